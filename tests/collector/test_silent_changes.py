"""No event is changed in silence: it is stored as it was sent, or says what was changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from tests.collector.mutations import VALUES, places
from tests.factories import (
    change,
    conversation_end,
    counts,
    event_id,
    failure,
    success,
    tool_error,
)
from tests.running import RunningCollector

from toolfault_collector.clock import MINUTE_US, parse_time
from toolfault_collector.protocol import wire
from toolfault_collector.protocol.codes import canonical_code
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.tables import call_counts, issue, tool_call
from toolfault_collector.storage.tables import change as changes
from toolfault_collector.storage.tables import conversation_end as conversation_ends

# Stands before a key that is to be written a second time.
AGAIN = "\ue000"
ODD = (*VALUES, "a\x00b", "a\ud800b", {"a\x00b": "\x00"}, {"a": None, "b": 7, "c": True}, ["\x00"])
KEYS = ("planet", "error.colour", "a/b", "a.b", "x" * 300, "k\x00", "extra", "", "type", "success")
SPELLINGS = ((", ", ": "), (",", ":"), (" ,\n", " :\t"))
# Members whose column has another name.
COLUMNS = {
    "type": "event_type",
    "validation.mode": "validation_mode",
    "validation.version": "validation_version",
    "error.renderings.user": "text_user",
    "error.renderings.llm": "text_llm",
    "error.renderings.system": "text_system",
    "error.exception.type": "exception_type",
    "error.exception.module": "exception_module",
    "error.exception.message": "exception_message",
    "error.exception.traceback": "traceback",
}
PARTS = {
    "": wire.ToolCall,
    "error": wire.Failure,
    "error.issues": None,
    "error.issues.*": wire.Issue,
    "error.renderings": wire.Renderings,
    "error.exception": wire.RaisedException,
    "coercions": None,
    "coercions.*": wire.Coercion,
    "validation": wire.Validation,
}
MEMBERS = {"type"} | {
    f"{part}.{name}".lstrip(".")
    for part, kind in PARTS.items()
    if kind is not None
    for name in kind.__struct_fields__
} - set(PARTS)
# Not stored, as docs/protocol.md says: the collector works them out itself, or decides by them.
IGNORED = ("attempt", "chain_id", "error.fingerprint", "counted_by")
# What flags without a member of their own are about.
ABOUT = {
    "duration": "duration_ms",
    "clock_skew": "occurred_at",
    "error_ignored": "error",
    "success_ignored": "success",
    "category": "error.category",
    "audience": "error.audience",
    "extra_dropped": "extra",
}


def full_failure() -> dict[str, Any]:
    """A failure that says everything a sender can say."""
    issue = {"field": "a.0.b", "code": "wrong_type", "expected": "int", "near_miss": ["strip"]}
    return failure(
        turn="t1", run_id="r1", request_id="q1", call_id="c1", trace_id="t", span_id="s",
        tool_requested="http", agent="a", model="m", provider="p", environment="prod",
        release="1", variant="control", user="u", framework="mcp", side="agent",
        conversation_rung="meta", sample_rate=0.5, args_fingerprint="f",
        args_recorded=True, args_diff=[{"path": "a", "change": "added"}],
        coercions=[{"field": "a", "from_type": "str", "to_type": "int"}],
        phantom_arguments=["pet", "who.*.title"], idempotent=False, repeated=False,
        validation={"mode": "strict", "version": "2"}, schema_hash="h", tokens=12,
        tags={"team": "travel", "tier": 2},
        error={
            "reason": "paused", "expected": "a text", "received": "7", "received_type": "int",
            "snippet": "{}", "issues": [issue, {**issue, "field": "c"}], "issues_total": 3,
            "retry_hint": "wait", "retry_context": {"seen": [1, {"b": None}]},
            "exception": {"type": "E", "module": "m", "message": "no", "traceback": "File x"},
            "adapter_failed": False,
        },
    )  # fmt: skip


@st.composite
def _mutated(draw: st.DrawFn, *makers: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """An event with some members of other values, unknown, missing or given twice."""
    event = draw(st.sampled_from(makers))()
    event["event_id"] = event_id()
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(list(places(event))))
        odd = deepcopy(draw(st.sampled_from((*ODD, holder[key]))))
        match draw(st.sampled_from(("value", "unknown", "missing", "twice"))):
            case "value":
                holder[key] = odd
            case "unknown":
                place = holder if isinstance(holder, dict) else event
                place[draw(st.sampled_from(KEYS))] = odd
            case "missing" if isinstance(holder, dict):
                del holder[key]
                holder.pop(f"{AGAIN}{key}", None)  # alone it would not be there twice
            case "twice" if isinstance(key, str):
                rest = dict(holder)
                holder.clear()
                holder |= {AGAIN + key: odd} | rest
    return event


@pytest.fixture(scope="module")
def stored(collector: RunningCollector) -> Iterator[Engine]:
    """The database of the collector."""
    engine = open_engine(collector.database_url)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("examples", [15, pytest.param(500, marks=pytest.mark.long)])
def test_an_event_is_stored_as_sent_or_says_what_was_changed(
    collector: RunningCollector, stored: Engine, examples: int
) -> None:
    """Each member of a damaged event is in its column, or named by a flag, or it is refused."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def explore(data: st.DataObject) -> None:
        makers = (full_failure, failure, success, tool_error)
        events = data.draw(st.lists(_mutated(*makers), min_size=1, max_size=5))
        resource = data.draw(
            st.dictionaries(st.sampled_from(("agent", "user")), st.sampled_from(ODD))
        )

        for event in _send(collector, data, events=events, resource=resource):
            _must_be_honest(stored, event, resource)

    explore()


@pytest.mark.parametrize("examples", [15, pytest.param(300, marks=pytest.mark.long)])
def test_so_is_an_event_that_is_no_call(
    collector: RunningCollector, stored: Engine, examples: int
) -> None:
    """Counts, ends and changes too; they have no room for members that nobody knows."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def explore(data: st.DataObject) -> None:
        makers = (counts, conversation_end, change)
        events = data.draw(st.lists(_mutated(*makers), min_size=1, max_size=5))

        for event in _send(collector, data, events=events):
            table, times = OTHERS[event["type"]]
            with read_connection(stored) as conn:
                query = select(table).where(table.c.event_id == event["event_id"].lower())
                row = dict(conn.execute(query).mappings().one())
            flags = row["flags"] or []
            if AGAIN in json.dumps(event, ensure_ascii=False):
                assert "duplicate_key" in flags
                continue
            for column, (path, value) in _columns(event).items():
                if column == times:
                    at = parse_time(value)
                    value = at - at % (MINUTE_US if column == "minute" else 1)
                    path = "occurred_at"
                if _plain(value) != _plain(row.get(column)):
                    assert any(_names(flag, path) for flag in flags), (path, value, row)

    explore()


# The table of each type, and its column of time.
OTHERS = {
    "tool_call_counts": (call_counts, "minute"),
    "conversation_end": (conversation_ends, "occurred_at"),
    "change": (changes, "occurred_at"),
}


def _columns(event: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return by column what an *event* that is no call says, and in which member."""
    known = next(kind for kind in OTHER_KINDS if kind.__struct_config__.tag == event["type"])
    found = {}
    for member, value in event.items():
        if member == "type" or (known is wire.CallCounts and member == "occurred_at"):
            continue  # the minute is the time of counts
        if member not in known.__struct_fields__:
            found[f"extra.{member}"] = (f"extra.{member}", value)
        elif member == "duration_ms":
            names = {"sum": "duration_sum_ms", "max": "duration_max_ms"}
            names["buckets"] = "duration_buckets"
            for name, part in (value or {}).items():
                column = names.get(name, f"extra.{name}")
                # Milliseconds are floats, also where they were written as integers.
                number = json.loads(json.dumps(part), parse_int=float)
                found[column] = (f"extra.{name}" if column == f"extra.{name}" else member, number)
        else:
            found[member] = (member, value.lower() if member == "event_id" else value)
    return {column: each for column, each in found.items() if each[1] is not None}


OTHER_KINDS = (wire.CallCounts, wire.ConversationEnd, wire.Change)


def _send(
    collector: RunningCollector,
    data: st.DataObject,
    *,
    events: list[dict[str, Any]],
    resource: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Send *events* in any spelling and return those that were stored."""
    separators = data.draw(st.sampled_from(SPELLINGS))
    body = json.dumps({"events": events, "resource": resource}, separators=separators)
    body = body.replace("\\ue000", "")
    if data.draw(st.booleans()):
        body = f'{body[:-1]},"planet":NaN}}'  # only the reader of such bodies accepts it

    answer = collector.client.post(
        f"{collector.url}/v1/events", content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 200, answer.text
    refused = {each["index"] for each in answer.json()["rejected"]}
    return [event for index, event in enumerate(events) if index not in refused]


def _must_be_honest(engine: Engine, event: dict[str, Any], resource: dict[str, Any]) -> None:
    with read_connection(engine) as conn:
        query = select(tool_call).where(tool_call.c.event_id == event["event_id"])
        row = conn.execute(query).mappings().one()
        query = select(issue).where(issue.c.tool_call_id == row["id"]).order_by(issue.c.position)
        issues = conn.execute(query).mappings().all()
    flags = row["flags"] or []
    if AGAIN in json.dumps(event, ensure_ascii=False):
        assert "duplicate_key" in flags
        return
    shown = dict(_shown(row, issues))
    for path, value in _sent(event, resource):
        if _plain(value) != _plain(shown.get(path)):
            sent_as = path.removeprefix("extra.")  # `request_id` has no column of its own
            assert any(_names(flag, path) or _names(flag, sent_as) for flag in flags), (
                path,
                value,
                shown.get(path),
                flags,
            )


def _names(flag: str, path: str) -> bool:
    kind, _, member = flag.partition(":")
    member = member or ABOUT.get(kind, kind)
    return f"{path}.".startswith(f"{member}.") or f"{member}.".startswith(f"{path}.")


def _plain(value: Any) -> Any:
    """An empty text, list or object says as little as none."""
    return None if value in ("", [], {}) else value


def _sent(event: dict[str, Any], resource: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what *event* says, member by member, in the terms of docs/protocol.md."""
    known = _flat(event)
    for path, value in known.items():
        if path in IGNORED or path.startswith("extra.type") or value is None:
            continue
        name = path.rpartition(".")[2]
        if path == "event_id":
            yield path, value.lower()
        elif path == "occurred_at":
            yield path, parse_time(value)
        elif path == "request_id":
            yield "extra.request_id", value
        elif path.startswith("error.") and name == "code":
            yield path, canonical_code(value)
        elif path == "tags":
            yield path, {key: _as_text(tag) for key, tag in value.items()}
        else:
            yield path, value
    for name, value in resource.items():
        if not event.get(name):
            yield f"resource.{name}", value


def _as_text(tag: Any) -> Any:
    return json.dumps(tag) if isinstance(tag, bool | int | float) else tag


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    """Return the members of *event* by their paths; unknown ones below ``extra``."""
    found: dict[str, Any] = {}
    pending: list[tuple[str, Any]] = [("", event)]
    while pending:
        above, holder = pending.pop()
        for key, value in enumerate(holder) if isinstance(holder, list) else holder.items():
            path = f"{above}.{key}" if above else str(key)
            member = re.sub(r"\.\d+\.", ".*.", f"{path}.")[:-1]
            if member and member in PARTS:
                pending.append((path, value or {}))
            else:
                found[path if member in MEMBERS else f"extra.{path}"] = value
    return found


def _shown(row: Any, issues: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is stored, by the paths of the members it comes from."""
    for path in MEMBERS - set(IGNORED):
        column = COLUMNS.get(path, path.removeprefix("error."))
        if column in row:
            yield path, row[column]
    for position, each in enumerate(issues):
        yield from ((f"error.issues.{position}.{name}", value) for name, value in each.items())
    for position, each in enumerate(row["coercions"] or ()):
        yield from ((f"coercions.{position}.{name}", value) for name, value in each.items())
    for name, value in (row["extra"] or {}).items():
        yield f"extra.{name}", value
    yield "resource.agent", row["agent"]
    yield "resource.user", row["user"]
