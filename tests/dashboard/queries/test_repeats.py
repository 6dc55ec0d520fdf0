"""Repeated execution: counted by tool and model as a recount of the rows has it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables
from tests.engines import POSTGRESQL_IS_LONG

from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import wilson
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

ASKED = ("", "since:14d -tool:search", "model:claude*", "tool:search code:timeout", "agent:nobody")


def _executed_before(calls: list[dict[str, Any]]) -> set[str]:
    """Event ids of the successes that follow one of the same conversation, tool and arguments."""
    known: set[tuple[str, str, str]] = set()
    found: set[str] = set()
    for call in sorted(calls, key=lambda each: (each["occurred_at"], each["id"])):
        key = (call["session_id"], call["tool"], call["args_fingerprint"])
        if call["success"] and None not in key:
            found |= {call["event_id"]} if key in known else set()
            known.add(key)
    return found


@on_engines("text", ASKED, ("", "since:14d -tool:search"))
def test_repeated_executions_are_those_of_the_rows(
    conn: Connection, project: int, stored: Tables, text: str
) -> None:
    """Those senders know of and those among the rows, each call once; none of idempotent tools."""
    scope = Scope(project, parse(text), NOW)
    before = _executed_before(stored.calls)
    calls: Counter[tuple[str, str]] = Counter()
    again: Counter[tuple[str, str, bool | None]] = Counter()
    for row in stored.denominators(scope.query, NOW):
        pair = (row["tool"], row["model"] or "")
        calls[pair] += row["calls"]
        if "event_id" in row and "success" not in row:
            again[*pair, False] += row["repeated"] or 0
        elif row["success"] and row["idempotent"] in (None, False):
            declared = None if row["idempotent"] is None else False
            again[*pair, declared] += bool(row["repeated"]) or row["event_id"] in before
    found = queries.repeated_executions(conn, scope)
    told = {(each.tool, each.model, each.idempotent): each.calls for each in found}
    assert told == dict(+again)
    assert {each.idempotent for each in found} == ({None, False} if found else set())
    assert bool(found) == (text != "agent:nobody")
    for each in found:
        n = calls[each.tool, each.model]
        interval = wilson(each.calls, n)
        assert (each.rate.count, each.rate.n) == (each.calls, n)
        assert (each.rate.low, each.rate.high) == (interval.low, interval.high)
    order = [(each.idempotent is None, -each.calls) for each in found]
    assert order == sorted(order)


def test_a_sampled_call_counts_as_what_it_stands_for(conn: Connection) -> None:
    """Where calls were sent at a rate the numbers are those of what they stand for."""
    sampled = find_project(conn, "sampled")
    assert sampled is not None
    found = queries.repeated_executions(conn, Scope(sampled, parse(""), NOW))
    assert any(row.calls > row.rate.count for row in found)


@pytest.mark.parametrize("backwards", [False, True])
@POSTGRESQL_IS_LONG
def test_a_repeat_is_one_in_any_order_and_of_its_own_day(engine: Engine, backwards: bool) -> None:
    """The later of two equal successes is, in whatever order they came, or came again."""
    first, last = NOW - DAY_US, NOW
    events = [
        {
            "type": "tool_call",
            "event_id": f"00000000-0000-4000-8000-{number:012}",
            "occurred_at": format_time(at),
            "session_id": "c",
            "tool": "pay",
            "success": success,
            "args_fingerprint": "aa",
            **({} if success else {"error": {"code": "timeout", "category": "internal"}}),
        }
        for number, (at, success) in enumerate(
            [(first - SECOND_US, False), (first, True), (last, True), (last, False)]
        )
    ]
    with write_transaction(engine) as conn:
        project = ensure_project(conn, f"repeats-{backwards}")
        for event in [*(reversed(events) if backwards else events), *events]:
            store_events(conn, project, [event], received_at=NOW)
    with read_connection(engine) as conn:
        (row,) = queries.repeated_executions(conn, Scope(project, parse("since:1h"), NOW))
        assert (row.tool, row.calls, row.idempotent) == ("pay", 1, None)
        assert not queries.repeated_executions(conn, Scope(project, parse("until:1h"), NOW))
