"""Partitions of PostgreSQL: made ahead, dropped with every count right, and nobody notices."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from sqlalchemy import Engine, Table, func, select
from tests.collector.load import writing
from tests.collector.recount import assert_counts_hold
from tests.factories import conversation_end, counts, event_id, failure, success

import toolfault_migrations as migrations
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.failpoints import DROP_POINTS
from toolfault_collector.maintenance import Maintenance
from toolfault_collector.partitions import WIDTH, keep_ahead, list_partitions, newest_id
from toolfault_collector.planner import analyze_new_tables
from toolfault_collector.projects import ensure_project
from toolfault_collector.recount import recount
from toolfault_collector.retention import Limits, Pruned, prune, prune_projects
from toolfault_collector.settings import Settings
from toolfault_collector.store import store_events
from toolfault_collector.tables import (
    chain,
    conversation,
    event_key,
    issue,
    metadata,
    tool_call,
)

pytestmark = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
NOW = now_us()


def _store(engine: Engine, *events: dict[str, Any], days_ago: float, project: str = "demo") -> int:
    at = NOW - int(days_ago * DAY_US)
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, project)
        return store_events(conn, project_id, events, received_at=at).accepted


def _talk(name: str, days_ago: float, *, calls: int = 3) -> list[dict[str, Any]]:
    at = NOW - int(days_ago * DAY_US)
    made = [failure(name, session_id=name, at=at + n, field=f"f-{name}") for n in range(calls - 1)]
    return [*made, success(name, session_id=name, at=at + calls)]


def _next_partition(engine: Engine) -> None:
    """Have the next call be the first of the partition after the one that is written to."""
    with write_transaction(engine) as conn:
        newest = newest_id(conn)
        (high,) = (each.high for each in list_partitions(conn) if each.low <= newest < each.high)
        conn.exec_driver_sql(f"SELECT setval('tool_call_id_seq', {high - 1})")
    keep_ahead(engine)


def _names(engine: Engine) -> list[str]:
    with read_connection(engine) as conn:
        return [each.calls for each in list_partitions(conn)]


def _count(engine: Engine, table: Table) -> int:
    with read_connection(engine) as conn:
        return conn.execute(select(func.count()).select_from(table)).scalar_one()


def _calls(engine: Engine) -> dict[str, int]:
    with read_connection(engine) as conn:
        rows = conn.execute(select(tool_call.c.event_id, tool_call.c.id))
        return {row.event_id: row.id for row in rows}


def _somebody_waits(engine: Engine) -> bool:
    """Return whether anybody waits for a lock; a transaction is told the same all through."""
    sql = "SELECT wait_event_type FROM pg_stat_activity WHERE datname = current_database()"
    with read_connection(engine) as conn:
        return "Lock" in conn.exec_driver_sql(sql).scalars().all()


def test_a_whole_partition_lies_ahead(engine: Engine) -> None:
    """Maintenance makes partitions before they are written to, and no more than it must."""
    assert _names(engine) == ["tool_call_0", f"tool_call_{WIDTH}"]
    assert keep_ahead(engine) == []

    _next_partition(engine)
    _store(engine, failure(), days_ago=0)

    assert keep_ahead(engine) == [f"tool_call_{2 * WIDTH}"]
    assert keep_ahead(engine) == []
    with read_connection(engine) as conn:
        stored = conn.exec_driver_sql(f"SELECT count(*) FROM tool_call_{WIDTH}").scalar_one()
        issues = conn.exec_driver_sql(f"SELECT count(*) FROM issue_{WIDTH}").scalar_one()
    assert (stored, issues) == (1, 1)


def test_calls_without_a_partition_are_kept(engine: Engine) -> None:
    """Calls that outrun the partitions are stored, and the next ones have a partition again."""
    with write_transaction(engine) as conn:
        conn.exec_driver_sql(f"SELECT setval('tool_call_id_seq', {5 * WIDTH})")
    _store(engine, *_talk("late", 0), days_ago=0)

    made = keep_ahead(engine)

    assert made == [f"tool_call_{5 * WIDTH + 3 + WIDTH // 8}"]
    with read_connection(engine) as conn:
        assert conn.exec_driver_sql("SELECT count(*) FROM tool_call_default").scalar_one() == 3
    assert recount(engine).right


def test_an_old_partition_is_dropped(engine: Engine) -> None:
    """What only has old conversations goes as a whole, and every count is right afterwards."""
    alone = [failure(session_id=None, at=NOW - 20 * DAY_US), success(session_id=None)]
    _store(engine, *_talk("old", 20), *alone, counts(at=NOW - 20 * DAY_US), days_ago=20)
    _store(engine, conversation_end("old", at=NOW - 20 * DAY_US), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)
    before = _names(engine)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned(1, 5, 1)

    assert _names(engine) == before[1:]
    tables = (tool_call, issue, event_key, chain, conversation)
    assert [_count(engine, table) for table in tables] == [3, 2, 3, 1, 1]
    assert recount(engine).right
    assert_counts_hold(engine)


def test_what_goes_on_moves_under_its_own_ids(engine: Engine) -> None:
    """Calls of a conversation that goes on outlive their partition, with ids, issues and chains."""
    growing = _talk("growing", 20, calls=4)
    _store(engine, *growing[:2], *_talk("old", 20), days_ago=20)
    before = _calls(engine)
    _next_partition(engine)
    _store(engine, *growing[2:], days_ago=1)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned(1, 3, 0)

    after = _calls(engine)
    assert set(after) == {each["event_id"] for each in growing}
    assert {name: after[name] for name in before if name in after} == {
        each["event_id"]: before[each["event_id"]] for each in growing[:2]
    }
    assert "tool_call_0" not in _names(engine)
    assert _count(engine, issue) == 3
    assert recount(engine).right
    # What moved goes in its turn, and can be sent again only then.
    assert _store(engine, *growing, days_ago=0) == 0
    assert prune(engine, days=10, force=True, clock=lambda: NOW + 20 * DAY_US).calls == 4
    assert recount(engine).right


def test_conversation_over_two_partitions_goes_whole(engine: Engine) -> None:
    """What an old conversation has in the next partition goes with the one that is dropped."""
    talk = _talk("long", 20, calls=5)
    _store(engine, *talk[:3], days_ago=20)
    _next_partition(engine)
    _store(engine, *talk[3:], days_ago=19)
    _store(engine, *_talk("new", 1), days_ago=1)

    assert prune(engine, days=10, force=True, clock=lambda: NOW) == Pruned(1, 5, 0)

    assert "tool_call_0" not in _names(engine)
    assert _count(engine, tool_call) == _count(engine, event_key) == 3
    assert recount(engine).right


def test_a_project_that_keeps_more_keeps_the_partition(engine: Engine) -> None:
    """Where another project has calls, the rows of this one go and the partition stays."""
    _store(engine, *_talk("old", 20), days_ago=20)
    _store(engine, *_talk("kept", 20), days_ago=20, project="archive")
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    removed = prune(engine, days=10, project_id=1, clock=lambda: NOW)

    assert removed == Pruned(1, 3, 0)
    assert "tool_call_0" in _names(engine)
    assert recount(engine).right


def test_many_that_stay_keep_the_partition(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition of which too much stays is emptied row by row."""
    monkeypatch.setattr("toolfault_collector.partition_drop.MOST_KEPT", 1)
    growing = _talk("growing", 20, calls=4)
    _store(engine, *growing[:2], *_talk("old", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *growing[2:], days_ago=1)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned(1, 3, 0)

    assert "tool_call_0" in _names(engine)
    assert recount(engine).right


def test_a_quick_partition_is_waited_for(engine: Engine) -> None:
    """Retention by age waits for a partition that came in quickly; by hand it cuts exactly."""
    _store(engine, *_talk("first", 11), days_ago=11)
    _store(engine, *_talk("second", 10), days_ago=10)
    _next_partition(engine)
    _store(engine, *_talk("third", 0), days_ago=0)

    def by_itself(day: float) -> Pruned:
        limits = {1: Limits(days=10)}
        at = NOW + int(day * DAY_US)
        return prune_projects(engine, limits, waiting=True, force=True, clock=lambda: at)

    assert by_itself(-0.5) == Pruned()
    assert by_itself(0.5) == Pruned(2, 6, 0)
    assert "tool_call_0" not in _names(engine)
    assert recount(engine).right


def test_by_hand_it_cuts_exactly(engine: Engine) -> None:
    """``db prune`` waits for no partition, and a slow partition is not waited for."""
    for days_ago in (12, 11, 9.5, 8):
        _store(engine, *_talk(f"c{days_ago}", days_ago), days_ago=days_ago)
    _next_partition(engine)
    _store(engine, *_talk("new", 0), days_ago=0)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned(2, 6, 0)
    limits = {1: Limits(days=9)}
    slow = prune_projects(engine, limits, waiting=True, clock=lambda: NOW + DAY_US // 4)
    assert slow == Pruned(0, 0, 0)
    assert prune_projects(engine, limits, clock=lambda: NOW + DAY_US // 4) == Pruned(1, 3, 0)
    assert recount(engine).right


def test_maintenance_drops_and_makes_partitions(engine: Engine) -> None:
    """A running collector needs nobody to see to its partitions."""
    _store(engine, *_talk("old", 20), days_ago=20)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql(f"SELECT setval('tool_call_id_seq', {WIDTH})")
    _store(engine, *_talk("new", 0), days_ago=0)

    Maintenance(engine, Settings(retention_days=10)).run_once()

    assert _names(engine) == [f"tool_call_{WIDTH}", f"tool_call_{2 * WIDTH}"]
    assert set(_calls(engine).values()) == {WIDTH + 1, WIDTH + 2, WIDTH + 3}
    assert recount(engine).right


def test_a_reader_sees_one_state_across_a_drop(engine: Engine) -> None:
    """A read transaction that began before the drop sees counts and calls agree to its end."""
    _store(engine, *_talk("old", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)
    done = threading.Event()

    def remove() -> None:
        prune(engine, days=10, clock=lambda: NOW)
        done.set()

    with read_connection(engine) as conn:
        conn.exec_driver_sql("SELECT count(*) FROM failure_counts").scalar_one()
        remover = threading.Thread(target=remove)
        remover.start()
        while not done.is_set() and not _somebody_waits(engine):
            pass
        seen = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
    remover.join(60)

    assert seen == 6
    assert done.is_set()
    assert _count(engine, tool_call) == 3
    assert recount(engine).right


@pytest.mark.long  # it is tried for many seconds
def test_a_partition_that_is_read_for_long_is_emptied(engine: Engine) -> None:
    """Where a reader does not let go, its rows go one by one, and the partition the next time."""
    _store(engine, *_talk("old", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    with read_connection(engine) as conn:
        conn.execute(select(func.count()).select_from(tool_call))
        assert prune(engine, days=10, clock=lambda: NOW) == Pruned(1, 3, 0)
    assert "tool_call_0" in _names(engine)
    assert recount(engine).right

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned()
    assert "tool_call_0" not in _names(engine)
    assert recount(engine).right


def _random_history(generator: random.Random) -> list[tuple[float, list[dict[str, Any]]]]:
    """Return batches with how many days ago they came: conversations that begin, go on, end."""
    names = [f"c{number}" for number in range(12)]
    batches = []
    for days_ago in sorted((generator.uniform(0, 40) for _ in range(30)), reverse=True):
        at = NOW - int(days_ago * DAY_US)
        events: list[dict[str, Any]] = []
        for _ in range(generator.randrange(1, 8)):
            session = generator.choice([None, *names[: 1 + int(12 - days_ago * 0.3)]])
            make = generator.choice([failure, failure, success])
            moment = at - generator.randrange(DAY_US)
            events.append(
                make(
                    generator.choice("tu"),
                    session_id=session,
                    at=moment,
                    event_id=event_id(generator),
                )
            )
        if generator.random() < 0.2:
            events.append(conversation_end(generator.choice(names), at=at))
        batches.append((days_ago, events))
    return batches


@pytest.mark.parametrize(
    "seed", [0, 7, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 18))]
)
def test_dropping_leaves_what_deleting_leaves(engine: Engine, seed: int) -> None:
    """Over random histories the same is left, whether partitions are dropped or rows deleted."""
    generator = random.Random(seed)
    history = _random_history(generator)
    borders = {generator.randrange(30) for _ in range(3)}
    left: list[set[str]] = []
    for project, parted in (("rows", False), ("parts", True)):
        for number, (days_ago, events) in enumerate(history):
            if parted and number in borders:
                _next_partition(engine)
            _store(engine, *events, days_ago=days_ago, project=project)
            if parted and generator.random() < 0.3:
                assert _store(engine, *events, days_ago=0, project=project) == 0
        with read_connection(engine) as conn:
            wanted = prune(engine, days=15, dry_run=True, force=True, clock=lambda: NOW)
        removed = prune(engine, days=15, force=True, clock=lambda: NOW)
        assert (removed.conversations, removed.calls) == (wanted.conversations, wanted.calls)
        assert recount(engine).right
        assert_counts_hold(engine)
        left.append(set(_calls(engine)))
        assert _count(engine, event_key) == len(left[-1])
        prune(engine, max_calls=1, force=True, clock=lambda: NOW)
        with write_transaction(engine) as conn:
            for table in (tool_call, issue, event_key, chain, conversation):
                conn.execute(table.delete())
            conn.exec_driver_sql("DELETE FROM failure_counts")
            conn.exec_driver_sql("DELETE FROM conversation_end")

    assert left[0] == left[1]


def test_writers_go_on_while_a_partition_is_dropped(engine: Engine) -> None:
    """Calls that arrive for old conversations during the drop are kept, and counted right."""
    for number in range(40):
        _store(engine, *_talk(f"c{number}", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    def store(turn: int) -> str:
        late = success(f"c{turn % 40}", session_id=f"c{turn % 40}", at=NOW)
        _store(engine, late, days_ago=0)
        return str(late["event_id"])

    with writing(store) as stored:
        prune(engine, days=10, force=True, clock=lambda: NOW)

    assert set(stored) <= set(_calls(engine))
    assert recount(engine).right
    assert_counts_hold(engine)


PRUNE = """
import sys
from toolfault_collector.engine import open_engine
from toolfault_collector.retention import prune
print(prune(open_engine(sys.argv[1]), days=10, force=True).calls)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=[] if point == "detached" else pytest.mark.long)
        for point in DROP_POINTS
    ],
)
def test_killed_while_dropping(engine: Engine, point: str) -> None:
    """Killed before, within or after the drop, a partition is there whole or gone whole."""
    growing = _talk("growing", 20, calls=4)
    _store(engine, *growing[:2], *_talk("old", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *growing[2:], days_ago=1)
    url = engine.url.render_as_string(hide_password=False)

    def run(failpoint: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PRUNE, url],
            env={**os.environ, "TOOLFAULT_FAILPOINT": failpoint},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    ended = run(point)
    assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
    gone = point == "detached_committed"
    assert ("tool_call_0" not in _names(engine)) == gone
    assert _count(engine, tool_call) == (4 if gone else 7)
    assert recount(engine).right

    ended = run("")
    assert ended.returncode == 0, ended.stderr
    assert "tool_call_0" not in _names(engine)
    assert _count(engine, tool_call) == 4
    assert recount(engine).right


def test_the_same_event_through_two_collectors_is_stored_once(engine: Engine) -> None:
    """Two who store the same events at the same moment, in any order, share them without error."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
    accepted: list[int] = []
    generator = random.Random(5)
    rounds = [[failure(session_id=None) for _ in range(20)] for _ in range(15)]
    ready = threading.Barrier(2)

    def send(batches: list[list[dict[str, Any]]]) -> None:
        for batch in batches:
            ready.wait(20)
            with write_transaction(engine) as conn:
                accepted.append(store_events(conn, project_id, batch, received_at=NOW).accepted)

    shuffled = [generator.sample(batch, len(batch)) for batch in rounds]
    threads = [threading.Thread(target=send, args=(each,)) for each in (rounds, shuffled)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(accepted) == 30
    assert sum(accepted) == 300 == _count(engine, tool_call)


def test_keys_are_compared_with_the_calls(engine: Engine) -> None:
    """A recount names calls without a key and keys without a call, and puts both right."""
    _store(engine, *_talk("one", 1, calls=5), days_ago=1)
    with write_transaction(engine) as conn:
        lost = "(SELECT min(event_id) FROM tool_call)"
        conn.exec_driver_sql(f"DELETE FROM event_key WHERE event_id = {lost}")
        conn.exec_driver_sql("INSERT INTO event_key VALUES (1, 'stray'), (2, 'stray')")

    assert recount(engine, repair=True).wrong_keys == 3

    assert recount(engine).right
    assert _count(engine, event_key) == 5


def test_partitions_are_no_difference(engine: Engine) -> None:
    """``db check`` takes partitions for parts of their table."""
    _next_partition(engine)
    _store(engine, failure(), days_ago=0)
    keep_ahead(engine)

    assert migrations.check(engine, metadata) == []


def test_first_calls_of_a_partition_are_analysed(engine: Engine) -> None:
    """The planner is told of a partition that was analysed while it was empty."""
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("ANALYZE tool_call, issue")
    _next_partition(engine)
    for number in range(4):
        events = [failure(session_id=f"c{number}-{place}") for place in range(200)]
        _store(engine, *events, days_ago=0)

    with write_transaction(engine) as conn:
        found = analyze_new_tables(conn)

    assert f"tool_call_{WIDTH}" in found
