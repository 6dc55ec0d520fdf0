"""Conversations that reach beyond a window: every figure takes the same part of them."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy import text as statement
from tests.dashboard.conftest import on_engines
from tests.dashboard.fix_rules import fixes, ranked, rewordings
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables, load
from tests.engines import POSTGRESQL_IS_LONG

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, format_time
from toolfault_collector.storage.cache_versions import QUARTER_US, raise_versions
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import FixList, Scope
from toolfault_dashboard.queries.comparisons.cohorts import cohort_of
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search import parse

MOMENT = NOW - 3 * DAY_US


def _event(conversation: str, at: int, *, success: bool, turn: str | None = None) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": "tool_call",
        "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{conversation}-{at}-{turn}")),
        "session_id": conversation,
        "occurred_at": format_time(at),
        "tool": "search",
        "turn": turn,
        "duration_ms": 5,
        "success": success,
    }
    if not success:
        event["error"] = {"code": "wrong_type", "category": "parameter"}
    return event


def _long_conversations() -> list[dict[str, Any]]:
    """Thirty conversations that fail ten times, five on each side of a moment, and then recover.

    Each had 40 successes before and 60 after the moment, which the sender only counted, and beside
    every second there was one that was never reported and ended before it.
    """
    events: list[dict[str, Any]] = []
    for number in range(30):
        name = f"long-{number}"
        for place in range(-5, 5):
            events.append(_event(name, MOMENT + (2 * place + 1) * MINUTE_US, success=False))
        events.append(_event(name, MOMENT + 11 * MINUTE_US, success=True))
        end = MOMENT + 20 * MINUTE_US
        events.append(
            {
                "type": "conversation_end",
                "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}-end")),
                "occurred_at": format_time(end),
                "session_id": name,
                "calls": {"search": 111},
            }
        )
        for tool, minute, calls, ended in (
            ("search", MOMENT - 30 * MINUTE_US, 40, 0),
            ("search", MOMENT + 15 * MINUTE_US, 60, 1),
            (None, MOMENT + 15 * MINUTE_US, 0, 1),
            (None, MOMENT - 30 * MINUTE_US, 0, number % 2),
        ):
            minute = minute // MINUTE_US * MINUTE_US
            events.append(
                {
                    "type": "tool_call_counts",
                    "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}-{tool}-{minute}")),
                    "occurred_at": format_time(minute + MINUTE_US),
                    "minute": format_time(minute),
                    "tool": tool,
                    "calls": calls,
                    "conversations": ended,
                    "calls_squared": 111 * 111 * ended,
                }
            )
    return events


@pytest.fixture
def long(engine: Engine) -> Scope:
    """A project of conversations that go on across a moment."""
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "long")
        sent = _long_conversations()
        receipt = store_events(conn, project, sent, received_at=NOW, time_policy="import")
        assert not receipt.rejected
    return Scope(project, parse(""), NOW)


def test_a_long_conversation_before_and_after_a_change(engine: Engine, long: Scope) -> None:
    """Calls that a conversation made on one side of a change are not counted on the other."""
    change = ChangeRow("", MOMENT, "", None, "manual", "api")
    with read_connection(engine) as conn:
        found = queries.change_effect(conn, long, change)
    assert (found.before.calls, found.after.calls) == (30 * 45, 30 * 66)
    assert (found.before.conversations, found.after.conversations) == (45, 30)
    shown = {each.metric: each for each in found.metrics}
    assert shown["failure_rate"].before == pytest.approx(5 / 45)
    assert shown["failure_rate"].after == pytest.approx(5 / 66)


@POSTGRESQL_IS_LONG
def test_calls_that_were_only_counted_lie_in_their_minute(engine: Engine, long: Scope) -> None:
    """A cohort has as many calls as its summary, however its conversations go on elsewhere."""
    found = []
    for text in (
        f"until:{format_time(MOMENT - 20 * MINUTE_US)}",
        f"until:{format_time(MOMENT)}",
        f"since:{format_time(MOMENT - 4 * MINUTE_US)} until:{format_time(MOMENT)}",
        f"since:{format_time(MOMENT - 20 * MINUTE_US)}",
        f"since:{format_time(MOMENT + 8 * MINUTE_US + SECOND_US)}",
    ):
        asked = long.narrowed(text)
        with read_connection(engine) as conn:
            summary = queries.summary(conn, asked)
            cohort = queries.comparison(conn, asked, asked).effect.before
        assert (cohort.calls, cohort.conversations) == (summary.calls, summary.conversations), text
        found.append((summary.calls, summary.conversations))
    assert found == [(1200, 15), (30 * 45, 45), (60, 30), (30 * 71, 30), (30 * 62, 30)]


def test_a_conversation_has_its_own_calls_where_it_is_whole(engine: Engine, long: Scope) -> None:
    """What was only counted is a conversation's own only where all of it is in the window."""
    for text, own, folded in (
        ("", 111, 0),
        (f"until:{format_time(MOMENT)}", 5, 30 * 40),
        (f"since:{format_time(MOMENT)}", 6, 30 * 60),
    ):
        with read_connection(engine) as conn:
            cohort = cohort_of(conn, long.narrowed(text), "")
        assert {cell.calls for cell in cohort.cells} == {own}, text
        assert cohort.folded.total == folded, text


def _rows(stored: Tables, asked: Scope) -> list[dict[str, Any]]:
    """The failures of a scope as the naive rules take them."""
    return [
        row
        | {
            "conversation": row["session_id"] or row["event_id"],
            "at": row["occurred_at"] if row["time_source"] != "none" else None,
            "outcome": row["chain_outcome"],
            "others": stored.chains[row["chain_id"]]["others"]
            if row["chain_id"] == row["event_id"]
            else 0,
        }
        for row in stored.failures(asked.query, NOW)
    ]


def _members(stored: Tables) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(stored.calls, key=lambda call: call["attempt"] or 0):
        found.setdefault(row["chain_id"], []).append(row)
    return found


def _per_week(total: float, squares: float, weeks: float) -> object:
    reach = 1.959963984540054 * squares**0.5
    ends = (max(0.0, total - reach), total + reach)
    return pytest.approx((total / weeks, *(end / weeks for end in ends)))


def _is_ranking(found: FixList, stored: Tables, asked: Scope) -> None:
    rows, members = _rows(stored, asked), _members(stored)
    parameters = [row for row in rows if row["category"] == "parameter"]
    expected = fixes(rows, members) | rewordings(parameters, members)
    shown = {(row.tool, row.field, row.remedy, row.detail): row for row in found.rows}
    assert shown.keys() == expected.keys()
    for key, own in expected.items():
        row = shown[key]
        assert (row.failures, row.chains) == (own.failures, len(own.chains)), key
        assert row.saved == (None if row.remedy == "open" else pytest.approx(own.total)), key
        if not row.estimated:
            assert (row.cost, row.round_trips) == (own.cost, own.round_trips), key
            assert row.abandoned == len(own.abandoned), key
        assert row.last_at == max(own.times, default=None)
        if found.weeks is not None and row.saved is not None:
            shown_per_week = (row.saved_per_week, row.saved_per_week_low, row.saved_per_week_high)
            squares = sum(part**2 for part in own.saved.values()) + own.errors**2
            assert shown_per_week == _per_week(own.total, squares, found.weeks), key
        if found.weeks is not None and row.cost is not None:
            shown_per_week = (row.cost_per_week, row.cost_per_week_low, row.cost_per_week_high)
            squares = sum(part**2 for part in own.costs.values())
            assert shown_per_week == _per_week(own.cost, squares, found.weeks), key
    assert found.cost == sum(own.cost for own in expected.values())
    changed = {row["tool"]: row["occurred_at"] for row in stored.changes if row["tool"]}
    assert list(shown) == ranked(expected, changed)


@on_engines(
    "text",
    [
        "",
        pytest.param("tool:http_request,search since:14d", marks=[pytest.mark.long]),
        pytest.param("code:wrong_type", marks=[pytest.mark.long]),
    ],
    ["tool:http_request,search since:14d"],
)
def test_fixes_are_those_of_the_naive_rules(
    conn: Connection, scope: Scope, stored: Tables, text: str
) -> None:
    """Failures, chains and round trips of every fix, its interval and its place are the rows'."""
    asked = scope.narrowed(text)
    _is_ranking(queries.fix_next(conn, asked), stored, asked)


def _turns(name: str, at: int, turns: str) -> list[dict[str, Any]]:
    """One letter a call: its turn, as a capital where it failed."""
    return [
        _event(name, at + place * SECOND_US, success=turn.islower(), turn=f"{name}-{turn.lower()}")
        for place, turn in enumerate(turns)
    ]


@POSTGRESQL_IS_LONG
def test_calls_of_one_turn_are_saved_once(engine: Engine) -> None:
    """What comes after a failure is counted in turns: calls side by side are one round trip."""
    sent = [*_turns("talk", MOMENT, "ABBBc"), *_turns("other", MOMENT, "ABBBc")]
    for event, name in zip([each for each in sent if not each["success"]], "abcdefgh", strict=True):
        # Of each conversation one call of the second turn is mended by itself: its last, its first.
        remedies = ["int_from_string"] if name in "df" else []
        issue = {"field": name, "code": "wrong_type", "message": "", "near_miss": remedies}
        event["error"]["issues"] = [issue]
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "turns")
        assert not store_events(conn, project, sent, received_at=NOW, time_policy="import").rejected
    with read_connection(engine) as conn:
        found = queries.fix_next(conn, Scope(project, parse(""), NOW))
        stored = load(conn, project, NOW)
    assert {
        (row.field, row.remedy): (row.saved, row.failures)
        for row in found.rows
        if row.remedy != "open"
    } == {
        ("d", "int_from_string"): (1.0, 1),
        ("f", "int_from_string"): (1.0, 1),
        # Told of everything at once the model had been spared the second turn, once.
        ("", "all_at_once"): (1.0, 1),
    }
    _is_ranking(found, stored, Scope(project, parse(""), NOW))


def _failures_without_end(conn: Connection, project: int, number: int) -> None:
    """Store *number* failures, four weeks ago, each a little older than the last."""
    conn.execute(
        statement(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :number)"
            " INSERT INTO tool_call (project_id, event_id, event_type, tool, success, started_at,"
            " occurred_at, received_at, code, category) SELECT :project,"
            " printf('%08x-0000-7000-8000-000000000000', i), 'tool_error', 'endless', 0,"
            " :newest - i * :apart, :newest - i * :apart, :newest, 'timeout', 'internal' FROM n"
        ),
        {
            "project": project,
            "number": number,
            "apart": DAY_US // number,
            "newest": NOW - 25 * DAY_US,
        },
    )
    raise_versions(conn, [(project, NOW - 26 * DAY_US, NOW - 26 * DAY_US)] * number)


@pytest.mark.slow
@pytest.mark.parametrize("most", [20_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_a_part_of_the_failures_is_a_shorter_window(
    filled_sqlite: Path, tmp_path: Path, most: int
) -> None:
    """Where only the newest failures are looked at, a week is counted over their time alone."""
    shutil.copyfile(filled_sqlite, tmp_path / "toolfault.db")
    engine = open_engine(f"sqlite:///{tmp_path / 'toolfault.db'}")
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "generated")
        stored = load(conn, project, NOW)
        _failures_without_end(conn, project, most)
    timed = Scope(project, parse("since:28d -time:none"), NOW)
    with read_connection(engine) as conn:
        part = queries.fix_next(conn, timed, most=most)
        assert not part.complete
        assert most / 2 < part.failures <= most
        endless = [row for row in part.rows if row.tool == "endless"]
        assert [(row.remedy, row.detail, row.cost) for row in endless] == [("open", "timeout", 0.0)]
        part = replace(part, rows=tuple(row for row in part.rows if row not in endless))
        assert part.looked_from is not None
        assert part.weeks == pytest.approx((NOW - part.looked_from) / (7 * DAY_US))
        assert NOW - 27 * DAY_US < part.looked_from < NOW - 25 * DAY_US
    engine.dispose()
    looked_at = timed.narrowed(f"since:{format_time(part.looked_from)}")
    assert len(stored.failures(looked_at.query, NOW)) < len(stored.failures(timed.query, NOW))
    _is_ranking(part, stored, looked_at)
    assert len(part.rows) > 5


def test_the_newest_failures_say_no_week_without_times(
    conn: Connection, project: int, stored: Tables
) -> None:
    """Failures without times lie where they were received; of a part of them no week is known."""
    quarters = Counter(
        call["occurred_at"] // QUARTER_US for call in stored.failures(parse(""), NOW)
    )
    newest = quarters[max(quarters)]
    part = queries.fix_next(conn, Scope(project, parse(""), NOW), most=1)
    assert (part.failures, part.complete, part.looked_from) == (newest, False, None)
    assert part.weeks is None
    assert {row.cost_per_week for row in part.rows} == {None}
    assert queries.fix_next(conn, Scope(project, parse("time:none"), NOW)).weeks is not None


def test_an_end_after_the_last_call_is_no_call(engine: Engine) -> None:
    """A window that opens between the last call of a conversation and its end has none of it."""
    ago = {"both": (9, 1, 0), "before": (9, 8, 0), "beyond": (1, 1, 0), "first": (1, 1, 9)}
    sent = []
    for name, (*calls, end) in ago.items():
        sent += [_event(name, NOW - days * DAY_US, success=False) for days in {*calls}]
        told = {"type": "conversation_end", "session_id": name, "calls": {"search": 2}}
        event_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}-end"))
        sent.append(told | {"event_id": event_id, "occurred_at": format_time(NOW - end * DAY_US)})
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "ended")
        receipt = store_events(conn, project, sent, received_at=NOW, time_policy="import")
        assert not receipt.rejected
    found = {}
    for text in ("", "since:5d", "since:5d tool:search", "since:5d until:12h", "since:10h"):
        with read_connection(engine) as conn:
            found[text] = queries.summary(conn, Scope(project, parse(text), NOW)).conversations
    assert list(found.values()) == [4, 3, 3, 3, 0]
