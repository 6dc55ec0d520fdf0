"""Retention removes whole old conversations and keeps every count right."""

from __future__ import annotations

import itertools
import threading

import pytest
from sqlalchemy import Connection, Engine, Table, event, func, select
from tests.collector.load import writing
from tests.collector.recount import assert_counts_hold
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import conversation_end, counts, failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.policy import prune, prune_rejects
from toolfault_collector.retention.rows import Pruned
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.drops import count_drops
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import (
    call_counts,
    chain,
    conversation,
    drop_counts,
    message,
    rejected_event,
    signature,
    tool_call,
)

NOW = now_us()

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def _store(
    engine: Engine, *events: dict[str, object], days_ago: float, project: str = "demo"
) -> int:
    at = NOW - int(days_ago * DAY_US)
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, project)
        store_events(conn, project_id, events, received_at=at)
    return project_id


def _count(engine: Engine, table: Table) -> int:
    with read_connection(engine) as conn:
        return conn.execute(select(func.count()).select_from(table)).scalar_one()


def _conversation(name: str, days_ago: float, *, calls: int = 3) -> list[dict[str, object]]:
    at = NOW - int(days_ago * DAY_US)
    made = [failure(name, session_id=name, at=at + n, field=f"f-{name}") for n in range(calls - 1)]
    return [*made, success(name, session_id=name, at=at + calls)]


def test_old_conversations_go_whole(engine: Engine) -> None:
    """What was received before the limit goes with everything in it; the rest stays as it was."""
    old, new = _conversation("old", 20), _conversation("new", 1)
    alone = [
        make(session_id=None, at=at)
        for at in (NOW - 20 * DAY_US, NOW)
        for make in (failure, success)
    ]
    _store(engine, *old, *alone[:2], counts(at=NOW - 20 * DAY_US), days_ago=20)
    _store(engine, conversation_end("old", at=NOW - 20 * DAY_US), days_ago=20)
    _store(engine, *new, *alone[2:], counts(at=NOW), days_ago=1)

    removed = prune(engine, days=10, clock=lambda: NOW)

    assert removed == Pruned(conversations=1, calls=5, counts=1)
    with read_connection(engine) as conn:
        left = set(conn.execute(select(tool_call.c.event_id)).scalars())
    assert left == {event["event_id"] for event in [*new, *alone[2:]]}
    assert [_count(engine, table) for table in (chain, conversation, call_counts)] == [1, 1, 1]
    # The signature and message that only the old one had are gone as well.
    assert (_count(engine, signature), _count(engine, message)) == (2, 2)
    assert_counts_hold(engine)
    assert recount(engine).right


@SQLITE
def test_age_is_what_the_server_saw(engine: Engine) -> None:
    """A transcript of long ago that was imported today stays."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        events = _conversation("imported", 400)
        store_events(conn, project_id, events, received_at=NOW, time_policy="import")

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned()


@SQLITE
def test_growing_conversation_is_not_old(engine: Engine) -> None:
    """A conversation that is still going on keeps its first calls."""
    events = _conversation("long", 5)
    _store(engine, *events[:2], days_ago=20)
    _store(engine, *events[2:], days_ago=1)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned()


@POSTGRESQL_IS_LONG
def test_limit_by_count(engine: Engine) -> None:
    """The oldest conversations go until about so many calls are left, in each project."""
    for number in range(10):
        _store(engine, *_conversation(f"c{number}", 1), days_ago=10 - number)
        _store(engine, *_conversation(f"c{number}", 1), days_ago=10 - number, project="small")

    removed = prune(engine, max_calls=12, clock=lambda: NOW)

    assert removed.conversations == 12
    assert _count(engine, tool_call) == 24
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_what_came_under_a_clock_of_the_past_stays(engine: Engine) -> None:
    """Events that were received while the clock was ten years behind are as new as they are."""
    _store(engine, *_conversation("before", 2), counts(at=NOW - 2 * DAY_US), days_ago=2)
    _store(engine, *_conversation("behind", 3_650), counts(at=NOW - 3_650 * DAY_US), days_ago=3_650)
    _store(engine, failure(session_id=None, at=NOW - 3_650 * DAY_US), days_ago=3_650)
    _store(engine, *_conversation("after", 1), counts(at=NOW - DAY_US), days_ago=1)

    assert prune(engine, days=30, clock=lambda: NOW) == Pruned()

    later = NOW + 40 * DAY_US
    assert prune(engine, days=30, force=True, clock=lambda: later) == Pruned(3, 10, 3)
    assert recount(engine).right


@POSTGRESQL_IS_LONG
def test_what_came_under_a_clock_of_the_future_goes_in_turn(engine: Engine) -> None:
    """Events that were received while the clock was ten years ahead go with their neighbours."""
    _store(
        engine, *_conversation("ahead", -3_650), counts(at=NOW + 3_650 * DAY_US), days_ago=-3_650
    )
    _store(engine, failure(session_id=None, at=NOW + 3_650 * DAY_US), days_ago=-3_650)
    _store(engine, *_conversation("after", 1), days_ago=1)

    assert prune(engine, days=30, clock=lambda: NOW) == Pruned()
    assert prune(engine, max_calls=2, clock=lambda: NOW) == Pruned(1, 4, 0)
    assert recount(engine).right

    later = NOW + 40 * DAY_US
    assert prune(engine, days=30, force=True, clock=lambda: later).conversations == 1
    assert _count(engine, tool_call) == 0


@pytest.mark.parametrize(
    "database_url",
    [
        pytest.param("sqlite", marks=pytest.mark.long),  # which takes one writer at a time
        pytest.param("postgresql", marks=pytest.mark.postgres),
    ],
    indirect=True,
)
def test_two_who_prune_at_once_count_once(engine: Engine) -> None:
    """Several processes that remove the same calls take them out of the counts once."""
    old = NOW - 20 * DAY_US
    for _ in range(4):
        alone = [failure(session_id=None, at=old + place) for place in range(120)]
        _store(engine, *alone, *_conversation("old", 20), days_ago=20)
    _store(engine, *_conversation("new", 1), days_ago=1)
    ready = threading.Barrier(3)

    def remove() -> None:
        ready.wait(20)
        prune(engine, days=10, force=True, clock=lambda: NOW)

    threads = [threading.Thread(target=remove) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert _count(engine, tool_call) == 3
    assert recount(engine).right


@pytest.mark.parametrize(
    "database_url",
    [
        pytest.param("sqlite", marks=pytest.mark.long),  # which takes one writer at a time
        pytest.param("postgresql", marks=pytest.mark.postgres),
    ],
    indirect=True,
)
def test_writers_go_on_while_old_conversations_go(engine: Engine) -> None:
    """Calls that arrive while retention removes their conversation are kept, and counted right."""
    for number in range(25):
        _store(engine, *_conversation(f"c{number}", 20), days_ago=20)

    def store(turn: int) -> str:
        late = success("late", session_id=f"c{turn % 25}", at=NOW)
        _store(engine, late, days_ago=0)
        return str(late["event_id"])

    with writing(store) as stored:
        prune(engine, days=10, force=True, clock=lambda: NOW)

    with read_connection(engine) as conn:
        left = set(conn.execute(select(tool_call.c.event_id)).scalars())
    assert left >= set(stored)
    assert recount(engine).right
    assert_counts_hold(engine)


@pytest.mark.parametrize("after", [3, pytest.param(7, marks=pytest.mark.long)])
def test_interrupted_retention_leaves_everything_right(
    engine: Engine, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended between two transactions, nothing is half removed, and the next run goes on."""
    monkeypatch.setattr("toolfault_collector.retention.rows.CONVERSATIONS_AT_ONCE", 2)
    for number in range(16):
        _store(engine, *_conversation(f"c{number}", 20), days_ago=20)
    _store(engine, *_conversation("new", 1), counts(at=NOW), days_ago=1)
    commits = itertools.count(1)

    class Ended(Exception):
        """The process ends here."""

    @event.listens_for(engine, "commit")
    def _end(conn: Connection) -> None:
        wrote = conn.get_execution_options().get("toolfault_write", False)
        if wrote and next(commits) > after:
            raise Ended

    with pytest.raises(Ended):
        prune(engine, days=10, force=True, clock=lambda: NOW)
    event.remove(engine, "commit", _end)

    assert _count(engine, conversation) == 17 - 2 * after
    assert recount(engine).right
    assert prune(engine, days=10, force=True, clock=lambda: NOW).conversations == 16 - 2 * after
    assert recount(engine).right


@SQLITE
def test_dry_run_removes_nothing(engine: Engine) -> None:
    """A dry run says what would go."""
    _store(engine, *_conversation("old", 20), days_ago=20)

    assert prune(engine, days=10, dry_run=True, clock=lambda: NOW).calls == 3
    assert _count(engine, tool_call) == 3


@SQLITE
def test_other_project_is_left_alone(engine: Engine) -> None:
    """Pruning one project removes nothing of another."""
    mine = _store(engine, *_conversation("old", 20), days_ago=20)
    _store(engine, *_conversation("old", 20), days_ago=20, project="other")

    prune(engine, days=10, project_id=mine, force=True, clock=lambda: NOW)

    assert _count(engine, tool_call) == 3


@SQLITE
def test_rejects_are_kept_for_a_week(engine: Engine) -> None:
    """Rejected events go after seven days."""
    _store(engine, {"type": "x"}, days_ago=8)
    _store(engine, {"type": "x"}, days_ago=6)

    assert prune_rejects(engine, clock=lambda: NOW) == 1
    assert _count(engine, rejected_event) == 1


def test_what_senders_lost_is_kept_for_a_week(engine: Engine) -> None:
    """Counts of dropped events go once no alert looks back so far, by whatever reason."""
    project_id = _store(engine, success(), days_ago=0)
    told = [(project_id, NOW - days * DAY_US, {"queue_full": 1, "x" * 64: 2}) for days in (6, 10)]
    with write_transaction(engine) as conn:
        count_drops(conn, told)

    assert prune_rejects(engine, clock=lambda: NOW) == 0
    assert _count(engine, drop_counts) == 2


@SQLITE
def test_no_reject_goes_by_a_clock_that_is_wrong(engine: Engine) -> None:
    """Where calls came later than now, rejected events stay."""
    _store(engine, {"type": "x"}, days_ago=8)
    _store(engine, success(), days_ago=-1)

    assert prune_rejects(engine, clock=lambda: NOW) == 0


def test_rejects_are_capped(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit per project the oldest go."""
    monkeypatch.setattr("toolfault_collector.retention.policy.REJECTS_PER_PROJECT", 5)
    for _ in range(4):
        _store(engine, {"type": "x"}, {"type": "y"}, days_ago=1)
    _store(engine, {"type": "x"}, days_ago=1, project="other")

    assert prune_rejects(engine, clock=lambda: NOW) == 3
    assert _count(engine, rejected_event) == 6
