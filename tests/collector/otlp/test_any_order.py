"""Whatever way the spans of traces come, the same is stored: split, permuted, or sent twice."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select
from tests.collector.otlp.spans import BEGAN, as_json, span
from tests.factories import event_id, failure, success
from tests.tables import tables_of

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import SECOND_US
from toolfault_collector.doctor.recount import recount
from toolfault_collector.otlp.request import read_request
from toolfault_collector.otlp.traces import KEPT_BYTES, resolve
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.steps import finish
from toolfault_collector.protocol.submission import Submission, read_events
from toolfault_collector.storage import tables
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.old_traces import KEPT_US, remove_all_old_traces
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import (
    chain,
    conversation,
    failure_counts,
    issue,
    tool_call,
)

NOW = BEGAN + 700 * SECOND_US
LONG = [pytest.mark.long, pytest.mark.timeout(3_600)]
_projects = itertools.count()
# Numbers of the database's own making.
_IGNORED = {
    tool_call: {"id", "project_id", "message_id", "signature_id"},
    issue: {"id", "project_id", "tool_call_id"},
    chain: {"id", "project_id", "first_message_id"},
    conversation: {"project_id"},
    failure_counts: {"project_id"},
}


def contents(engine: Engine, project_id: int) -> dict[str, list[str]]:
    """Everything that readers count, comparable with another project."""
    found = {}
    with read_connection(engine) as conn:
        for table, ignored in _IGNORED.items():
            columns = [column for column in table.c if column.name not in ignored]
            query = select(*columns).where(table.c.project_id == project_id)
            rows = conn.execute(query).mappings()
            # What was counted and taken back again is counted as nothing.
            kept = [row for row in rows if row.get("calls") or row.get("failures") != 0]
            found[table.name] = sorted(repr(dict(row)) for row in kept)
    return found


def _tool(trace: int, number: int, tool: str, at: int, **members: Any) -> dict[str, Any]:
    members |= {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": tool}
    return span(trace, number, f"execute_tool {tool}", at=at, **members)


def _made(generator: random.Random) -> list[dict[str, Any]]:
    """The spans of two traces of one or two conversations, whose roots alone name these."""
    spans: list[dict[str, Any]] = []
    for trace in (1, 2):
        base, conversation = 100 * trace, generator.choice(["conv-1", "conv-2"])
        spans.append(
            span(
                *(trace, base, "invoke_agent"),
                at=base,
                seconds=90,
                gen_ai__operation__name="invoke_agent",
                gen_ai__conversation__id=conversation,
            )
        )
        spans.append(span(trace, base + 1, "chat", parent=base, at=base))
        if generator.random() < 0.5:
            spans += _refused(trace, generator)
        for number in range(2, generator.randint(3, 6)):
            failed = generator.random() < 0.6
            tool = generator.choice("tu")
            spans.append(
                _tool(
                    *(trace, base + number, tool, base + 10 * number),
                    parent=base + generator.randint(0, 1),
                    gen_ai__tool__call__id=f"call-{base + number}",
                    status="error" if failed else "unset",
                    message="1 validation error: x Field required" if failed else "",
                )
            )
            if generator.random() < 0.3:  # what the MCP server says of the same call
                spans.append(
                    span(
                        *(trace, base + 50 + number, f"tools/call {tool}"),
                        parent=base + number,
                        at=base + 10 * number,
                        seconds=0.5,
                        status="error" if failed else "unset",
                        mcp__method__name="tools/call",
                        gen_ai__tool__name=tool,
                    )
                )
    return spans


def _refused(trace: int, generator: random.Random) -> list[dict[str, Any]]:
    """Two requests to a model, of which the second brings the answer to calls without a span.

    The second trace may send the messages of the first one again.
    """
    base = 100 * trace
    of = [generator.choice([1, trace])]
    if generator.random() < 0.3:
        of.append(trace)
    asked = [
        {"type": "tool_call", "id": f"ghost-{each}", "name": "t", "arguments": {}} for each in of
    ]
    told = [
        {"type": "tool_call_response", "id": f"ghost-{each}", "response": "Error: no such tool"}
        for each in of
    ]
    messages = [{"role": "assistant", "parts": asked}, {"role": "tool", "parts": told}]
    chat: dict[str, Any] = {"gen_ai__operation__name": "chat", "parent": base}
    return [
        span(
            *(trace, base + 90, "chat"),
            at=base + 70,
            gen_ai__output__messages=json.dumps(messages[:1]),
            **chat,
        ),
        span(
            *(trace, base + 91, "chat"),
            at=base + 72,
            gen_ai__input__messages=json.dumps(messages),
            **chat,
        ),
    ]


def _reported(spans: list[dict[str, Any]], generator: random.Random) -> list[dict[str, Any]]:
    """What the SDK reports of some of the same calls, and of one that has no span."""
    events = [failure("t", session_id="conv-1", at=NOW - 1)]
    for each in spans:
        values = {pair["key"]: pair["value"].get("stringValue") for pair in each["attributes"]}
        if "gen_ai.tool.call.id" not in values or generator.random() < 0.5:
            continue
        make = failure if each["status"]["code"] == 2 else success
        events.append(
            make(
                values["gen_ai.tool.name"],
                session_id="of the SDK",
                at=int(each["endTimeUnixNano"]) // 1_000,
                seq=0,
                call_id=values["gen_ai.tool.call.id"],
                trace_id=each["traceId"],
                span_id=each["spanId"],
            )
        )
    for each in events:
        each["event_id"] = event_id(generator)
    return events


def _submissions(
    project_id: int, requests: list[list[dict[str, Any]]], events: list[dict[str, Any]]
) -> list[Submission]:
    found: list[Submission] = [
        finish(
            read_request(as_json(spans), "traces", "json", project_id=project_id, received_at=NOW)
        )
        for spans in requests
    ]
    return [*found, *(read_events([each], Context(project_id, NOW)) for each in events)]


def _store(engine: Engine, groups: list[list[Submission]]) -> None:
    for group in groups:
        with write_transaction(engine) as conn:
            store_group(conn, resolve(conn, group))


def _project(engine: Engine) -> int:
    with write_transaction(engine) as conn:
        return ensure_project(conn, f"traces {next(_projects)}")


def _parts(items: list[Any], generator: random.Random) -> list[list[Any]]:
    generator.shuffle(items)
    parts: list[list[Any]] = []
    while items:
        size = generator.randint(1, 4)
        parts.append(items[:size])
        items = items[size:]
    return parts


@pytest.mark.parametrize(
    ("database_url", "examples"),
    [
        ("sqlite", 5),
        pytest.param("sqlite", 500, marks=LONG),
        pytest.param("postgresql", 50, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_any_order_of_spans_stores_the_same(engine: Engine, examples: int) -> None:
    """Any split, order and resend of spans and of the SDK's reports gives the same tables."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 2**32), with_sdk=st.booleans())
    def check(seed: int, with_sdk: bool) -> None:
        generator = random.Random(seed)
        spans = _made(generator)
        events = _reported(spans, generator) if with_sdk else []
        together, apart = _project(engine), _project(engine)
        _store(engine, [_submissions(together, [spans], events)])

        requests = _parts(list(spans), generator)
        requests.append(generator.choice(requests))  # sent twice: its answer was lost
        arriving = _submissions(apart, requests, events)
        _store(engine, _parts(arriving, generator))

        assert contents(engine, apart) == contents(engine, together)
        assert recount(engine).right
        with write_transaction(engine) as conn:  # the next example begins with nothing
            for table in reversed(tables_of(conn)):
                conn.execute(table.delete())

    check()


def test_a_trace_that_is_too_long_is_cut(sqlite_engine: Engine) -> None:
    """Calls of a trace beyond its bounds stay as they are, and what comes later is stored too."""
    project_id = _project(sqlite_engine)
    texts: dict[str, Any] = {name: name * 250_000 for name in "abcd"}
    for number in range(1, 25):
        chat = span(1, 100 + number, "chat", gen_ai__operation__name="chat", **texts)
        tool = _tool(1, number, "t", number, gen_ai__tool__call__id=f"call-{number}")
        _store(sqlite_engine, [_submissions(project_id, [[tool, chat]], [])])
    with read_connection(sqlite_engine) as conn:
        kept = conn.execute(select(tables.trace.c.size, tables.trace.c.spans)).one()
        assert len(conn.execute(select(tool_call.c.id)).all()) == 24
    assert kept.size <= KEPT_BYTES
    assert kept.spans < 48
    assert recount(sqlite_engine).right


def test_quiet_traces_are_forgotten(sqlite_engine: Engine) -> None:
    """After half an hour a trace is over: its spans go, its calls stay, a resend adds none."""
    project_id = _project(sqlite_engine)
    request = _submissions(project_id, [[_tool(1, 2, "t", 1)]], [])
    _store(sqlite_engine, [request])
    assert remove_all_old_traces(sqlite_engine, now=NOW + KEPT_US) == 0
    assert remove_all_old_traces(sqlite_engine, now=NOW + KEPT_US + 1) == 1
    _store(sqlite_engine, [request])
    with read_connection(sqlite_engine) as conn:
        assert len(conn.execute(select(tool_call.c.id)).all()) == 1
    assert recount(sqlite_engine).right
