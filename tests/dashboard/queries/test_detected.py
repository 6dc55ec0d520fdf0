"""A model or release that is seen for the first time, compared as a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import event_id

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search import parse

MOMENT = NOW - 5 * DAY_US
MINUTE_US = 60 * SECOND_US
OLD = {"agent": "bot", "model": "vendor/old", "release": "1.0"}


def _calls(
    names: dict[str, str], tool: str, at: int, *, failing: int, number: int = 40
) -> Iterator[Any]:
    """Conversations of one call each, a minute apart, of which the first *failing* fail."""
    for place in range(number):
        failed = place < failing
        error = {"code": "timeout", "category": "internal"}
        yield {
            "type": "tool_call",
            "event_id": event_id(),
            "session_id": f"{tool}-{at}-{place}-{names}",
            "occurred_at": format_time(at + place * MINUTE_US),
            "tool": tool,
            "success": not failed,
            **names,
            **({"error": error} if failed else {}),
        }


def _store(engine: Engine, *groups: Iterator[Any]) -> Scope:
    events = [event for group in groups for event in group]
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "p")
        receipt = store_events(conn, project, events, received_at=NOW, time_policy="import")
    assert not receipt.rejected
    return Scope(project, parse(""), NOW)


def _detected(engine: Engine, scope: Scope) -> dict[str, ChangeRow]:
    with read_connection(engine) as conn:
        return {row.label: row for row in queries.detected_changes(conn, scope)}


def test_the_first_of_all_is_no_change(engine: Engine):
    """A project that has one model and one release has no change, nor has a new agent's first."""
    scope = _store(engine, _calls(OLD, "search", MOMENT, failing=3))
    assert not _detected(engine, scope)
    other = {"agent": "other", "model": "vendor/old", "release": "9"}
    _store(engine, _calls(other, "search", MOMENT + DAY_US, failing=3))
    assert not _detected(engine, scope)


def test_what_came_late_moves_the_change(engine: Engine):
    """An older call that arrives afterwards makes the other model the new one."""
    scope = _store(engine, _calls(OLD, "search", MOMENT, failing=3))
    new = {**OLD, "model": "new"}
    _store(engine, _calls(new, "search", MOMENT + DAY_US, failing=3))
    assert {row.occurred_at for row in _detected(engine, scope).values()} == {MOMENT + DAY_US}
    _store(engine, _calls(new, "search", MOMENT - DAY_US, failing=0, number=1))
    assert _detected(engine, scope).keys() == {"new model vendor/old"}


def test_a_release_is_seen_in_counts_too(engine: Engine):
    """One whose calls all succeed has no row of its own; its minute is when it was first seen."""
    scope = _store(engine, _calls(OLD, "search", MOMENT, failing=3))
    minute = (MOMENT + DAY_US) // MINUTE_US * MINUTE_US
    counts = {
        "type": "tool_call_counts",
        "event_id": event_id(),
        "occurred_at": format_time(minute + MINUTE_US),
        "minute": format_time(minute),
        "tool": "search",
        "calls": 7,
        "conversations": 7,
        "calls_squared": 7,
        **OLD,
        "release": "1.1",
    }
    _store(engine, iter([counts]))
    (row,) = _detected(engine, scope).values()
    assert (row.label, row.occurred_at) == ("new release 1.1 of bot", minute)
    assert (row.kind, row.name, row.agent, row.tool) == ("release", "1.1", "bot", None)


@pytest.mark.parametrize("kind", ["model", "release"])
@POSTGRESQL_IS_LONG
def test_it_is_compared_with_what_was_before(engine: Engine, kind: str):
    """After is the new one alone; the tools that it does not call are the control."""
    new = {**OLD, kind: "new"}
    scope = _store(
        engine,
        _calls(OLD, "search", MOMENT - DAY_US, failing=20),
        _calls(OLD, "mail", MOMENT - DAY_US, failing=4),
        _calls(new, "search", MOMENT, failing=2),
        # What goes on beside it: the old one, and another tool that fails as before.
        _calls(OLD, "search", MOMENT + SECOND_US, failing=30),
        _calls(OLD, "mail", MOMENT + SECOND_US, failing=4),
    )
    (row,) = _detected(engine, scope).values()
    with read_connection(engine) as conn:
        found = queries.change_comparison(conn, scope, row)
        control = queries.change_control(conn, scope, row)
    after = found.effect.after
    assert (after.calls, after.failures) == (40, 2)
    assert (found.effect.before.calls, found.effect.before.failures) == (80, 24)
    rate = found.effect.metrics[0]
    # At equal mix of tools: of mail there is nothing after.
    assert found.effect.comparable == pytest.approx(80 / 120)
    assert rate.difference == pytest.approx(2 / 40 - 20 / 40)
    assert rate.verdict == "improved"
    assert control is not None
    assert found.control == control.metric
    assert control.tools == 1
    assert (control.metric.before, control.metric.after) == (0.1, 0.1)
    assert control.metric.verdict == "no detectable change"


@POSTGRESQL_IS_LONG
def test_a_release_of_no_agent_is_compared_with_calls_of_none(engine: Engine):
    """Calls that name no agent are compared among themselves, as those of an agent are."""
    old, new = ({"release": name} for name in ("1.0", "1.1"))
    scope = _store(
        engine,
        _calls(old, "search", MOMENT - DAY_US, failing=20),
        _calls(new, "search", MOMENT, failing=2),
        # Another agent has the release later, and one never has it.
        _calls(OLD, "search", MOMENT - DAY_US, failing=7),
        _calls({**OLD, "release": "1.1"}, "search", MOMENT + DAY_US, failing=9),
        _calls({**OLD, "agent": "third"}, "search", MOMENT - DAY_US, failing=35),
    )
    found = _detected(engine, scope)
    assert found.keys() == {"new release 1.1", "new release 1.1 of bot"}
    counted = []
    with read_connection(engine) as conn:
        for row in found.values():
            effect = queries.change_effect(conn, scope, row)
            counted.append([(one.calls, one.failures) for one in (effect.before, effect.after)])
    assert counted == [[(40, 7), (40, 9)], [(40, 20), (40, 2)]]


@POSTGRESQL_IS_LONG
def test_without_an_untouched_tool_there_is_no_control(engine: Engine):
    """Where the new model calls every tool, nothing stayed as it was."""
    scope = _store(
        engine,
        _calls(OLD, "search", MOMENT - DAY_US, failing=20),
        _calls({**OLD, "model": "new"}, "search", MOMENT, failing=2),
    )
    (row,) = _detected(engine, scope).values()
    with read_connection(engine) as conn:
        assert queries.change_control(conn, scope, row) is None
        assert queries.change_comparison(conn, scope, row).control is None
