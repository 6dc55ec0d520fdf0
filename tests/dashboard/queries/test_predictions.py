"""What a picked fix promised beside what it saved, recounted by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.factories import event_id

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.analysis.fixes.prediction import prediction_interval
from toolfault_dashboard.predictions import Outcome, held, outcomes, predicted
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.picked_fixes import Prediction, pick_fix, picked_fixes

FIX = {"tool": "search", "field": "limit", "remedy": "int_from_string"}
HOUR_US = DAY_US // 24


def _call(session: str, at: int, *, success: bool) -> dict[str, Any]:
    issue = {"field": "limit", "code": "wrong_type", "near_miss": ["int_from_string"]}
    error = {"code": "wrong_type", "category": "parameter", "issues": [issue], "issues_total": 1}
    return {
        "type": "tool_call",
        "event_id": event_id(),
        "session_id": session,
        "tool": "search",
        "success": success,
        "occurred_at": format_time(at),
        **({} if success else {"error": error}),
    }


def _operations(name: str, first: int, number: int, *, failing: int) -> Iterator[dict[str, Any]]:
    """So many operations, twelve hours apart; the first *failing* need a retry."""
    for each in range(number):
        at = first + each * 12 * HOUR_US
        if each < failing:
            yield _call(f"{name}{each}", at, success=False)
        yield _call(f"{name}{each}", at + SECOND_US, success=True)


def _store(engine: Engine, events: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> int:
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "p")
        receipt = store_events(
            conn, project, list(events), received_at=NOW + 100 * DAY_US, time_policy="import"
        )
    assert not receipt.rejected
    return project


def _scope(project: int, now: int) -> Scope:
    return Scope(project, parse(""), now)


@pytest.fixture
def picked(sqlite_engine: Engine) -> tuple[Engine, int, Prediction]:
    """Forty operations in twenty days, thirty of which needed a retry; then the fix is picked."""
    first = NOW - 20 * DAY_US
    project = _store(sqlite_engine, _operations("before", first, 40, failing=30))
    with read_connection(sqlite_engine) as conn:
        found = predicted(conn, _scope(project, NOW), **FIX)
    assert found is not None
    pick_fix(sqlite_engine, project, **FIX, event_id="x", actor="ada", now=NOW, prediction=found)
    return sqlite_engine, project, found


def _outcome(engine: Engine, project: int, now: int) -> Outcome:
    with read_connection(engine) as conn:
        (found,) = outcomes(conn, _scope(project, now), picked_fixes(conn, project))
    return found


def _change(engine: Engine, label: str = "take text", at: int = NOW + HOUR_US) -> None:
    change = {
        "type": "change",
        "event_id": event_id(),
        "occurred_at": format_time(at),
        "label": label,
        "tool": "search",
    }
    _store(engine, [change])


def test_a_picked_fix_remembers_its_prediction(picked: tuple[Engine, int, Prediction]):
    """Thirty calls in as many weeks as the project has data, with n and the operations a week."""
    engine, project, found = picked
    weeks = (20 * DAY_US) / (7 * DAY_US)
    assert found.n == 30
    assert found.per_week == pytest.approx(30 / weeks, rel=1e-6)
    assert found.operations == pytest.approx(40 / weeks, rel=1e-6)
    assert (found.weeks, found.squares) == pytest.approx((weeks, 30), rel=1e-6)
    ends = prediction_interval(30, 30, weeks, ahead=4)
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-6)
    with read_connection(engine) as conn:
        (row,) = picked_fixes(conn, project)
    assert (row.predicted_per_week, row.predicted_n) == (found.per_week, 30)
    assert _outcome(engine, project, NOW).verdict == "not changed yet"


@pytest.mark.parametrize(
    ("operations", "failing", "verdict"),
    [(30, 0, "held"), (60, 1, "held"), (30, 22, "missed"), (10, 0, "not enough data")],
)
def test_the_saving_is_put_beside_it(
    picked: tuple[Engine, int, Prediction], operations: int, failing: int, verdict: str
):
    """The saving is what the operations since would have cost less what they did cost."""
    engine, project, found = picked
    _change(engine)
    _store(engine, _operations("after", NOW + 2 * HOUR_US, operations, failing=failing))
    outcome = _outcome(engine, project, NOW + 40 * DAY_US)
    assert (outcome.verdict, outcome.change, outcome.n) == (verdict, "take text", operations)
    if verdict == "not enough data":
        assert outcome.saved is None
        assert held([outcome]).n == 0
        return
    expected = operations * 30 / 40 - failing
    assert outcome.saved == pytest.approx(expected / operations * found.operations)
    assert outcome.saved is not None
    assert outcome.low is not None
    assert outcome.high is not None
    assert outcome.low <= outcome.saved <= outcome.high
    weeks = operations / found.operations
    assert outcome.weeks == pytest.approx(weeks)
    ends = prediction_interval(30, 30, found.weeks, ahead=weeks)
    assert (outcome.predicted_low, outcome.predicted_high) == pytest.approx(ends)
    assert (verdict == "held") == (ends[0] <= outcome.saved <= ends[1])
    assert (held([outcome]).count, held([outcome]).n) == (verdict == "held", 1)


def test_a_change_before_the_pick_is_none(picked: tuple[Engine, int, Prediction]):
    """Only what was changed afterwards can be what was predicted."""
    engine, project, _ = picked
    _change(engine, "earlier", NOW - DAY_US)
    assert _outcome(engine, project, NOW + DAY_US).verdict == "not changed yet"


def test_a_later_change_takes_nothing_back(picked: tuple[Engine, int, Prediction]):
    """The first change after the pick is judged: before a later one there is nothing to save."""
    engine, project, _ = picked
    _change(engine)
    _store(engine, _operations("after", NOW + 2 * HOUR_US, 60, failing=0))
    _change(engine, "something else", NOW + 20 * DAY_US)
    outcome = _outcome(engine, project, NOW + 40 * DAY_US)
    assert (outcome.verdict, outcome.change, outcome.n) == ("held", "take text", 60)


def test_a_prediction_rests_on_the_time_since_the_last_change(
    picked: tuple[Engine, int, Prediction],
):
    """What a tool did before it was changed says nothing about the changed one."""
    engine, project, _ = picked
    _change(engine, "wants a limit", NOW - 15 * DAY_US)
    with read_connection(engine) as conn:
        found = predicted(conn, _scope(project, NOW), **FIX)
    # Ten of the forty operations were before it; twenty of the thirty after it needed a retry.
    assert found is not None
    assert found.n == 20
    assert found.weeks == pytest.approx(15 / 7)
    assert found.per_week == pytest.approx(20 / (15 / 7))
    assert found.operations == pytest.approx(30 / (15 / 7))


def test_nothing_is_predicted_of_what_did_not_happen(picked: tuple[Engine, int, Prediction]):
    """A remedy that no failure of four weeks names has no prediction."""
    engine, project, _ = picked
    with read_connection(engine) as conn:
        assert predicted(conn, _scope(project, NOW), **{**FIX, "remedy": "strip"}) is None
        assert predicted(conn, _scope(project, NOW + 60 * DAY_US), **FIX) is None
