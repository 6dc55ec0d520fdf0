"""Partitions of PostgreSQL: made ahead, dropped once they are empty, and nobody notices."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from sqlalchemy import Engine, Table, func, select
from tests.collector.load import writing
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success

import toolfault_migrations as migrations
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.partitions import (
    WIDTH,
    drop_emptied,
    keep_ahead,
    list_partitions,
    newest_id,
)
from toolfault_collector.retention.policy import prune
from toolfault_collector.retention.rows import Pruned
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import event_key, issue, metadata, tool_call

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
    """What retention has emptied is dropped; what it has not is there, under its own ids."""
    long = _talk("long", 20, calls=5)
    alone = [failure(session_id=None, at=NOW - 20 * DAY_US), success(session_id=None)]
    _store(engine, *_talk("old", 20), *long[:3], *alone, days_ago=20)
    _next_partition(engine)
    _store(engine, *long[3:], days_ago=19)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)
    before, names = _calls(engine), _names(engine)

    assert prune(engine, days=10, clock=lambda: NOW) == Pruned(2, 10, 0)
    assert drop_emptied(engine) == names[:2]

    assert _names(engine) == names[2:]
    left = _calls(engine)
    assert len(left) == 3
    assert left.items() <= before.items()
    assert [_count(engine, table) for table in (issue, event_key)] == [2, 3]
    assert recount(engine).right


def test_a_project_that_keeps_more_keeps_the_partition(engine: Engine) -> None:
    """Where another project has calls, the rows of this one go and the partition stays."""
    _store(engine, *_talk("old", 20), days_ago=20)
    _store(engine, *_talk("kept", 20), days_ago=20, project="archive")
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    removed = prune(engine, days=10, project_id=1, clock=lambda: NOW)

    assert removed == Pruned(1, 3, 0)
    assert drop_emptied(engine) == []
    assert recount(engine).right


def test_the_partition_that_is_written_to_stays(engine: Engine) -> None:
    """Empty ones ahead of the writers are for what comes next."""
    assert drop_emptied(engine) == []


def test_maintenance_drops_and_makes_partitions(engine: Engine) -> None:
    """A running collector needs nobody to see to its partitions."""
    _store(engine, *_talk("old", 20), days_ago=20)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql(f"SELECT setval('tool_call_id_seq', {WIDTH})")
    _store(engine, *_talk("new", 1), days_ago=1)

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
        drop_emptied(engine)
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
def test_a_partition_that_is_read_for_long_stays(engine: Engine) -> None:
    """Where a reader does not let go, the partition is dropped the next time."""
    _store(engine, *_talk("old", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    with read_connection(engine) as conn:
        assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() == 6
        assert prune(engine, days=10, clock=lambda: NOW) == Pruned(1, 3, 0)
        assert drop_emptied(engine) == []
        assert conn.execute(select(func.count()).select_from(tool_call)).scalar_one() == 6

    assert drop_emptied(engine) == ["tool_call_0"]
    assert recount(engine).right


def test_writers_go_on_while_a_partition_is_dropped(engine: Engine) -> None:
    """Calls that arrive for old conversations meanwhile are kept, and counted right."""
    for number in range(15):
        _store(engine, *_talk(f"c{number}", 20), days_ago=20)
    _next_partition(engine)
    _store(engine, *_talk("new", 1), days_ago=1)

    def store(turn: int) -> str:
        late = success(f"c{turn % 15}", session_id=f"c{turn % 15}", at=NOW)
        _store(engine, late, days_ago=0)
        return str(late["event_id"])

    with writing(store) as stored:
        for _ in range(4):
            prune(engine, days=10, clock=lambda: NOW)
            drop_emptied(engine)

    assert set(stored) <= set(_calls(engine))
    assert recount(engine).right
    assert_counts_hold(engine)


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
