"""A migration beside collectors that still run: nothing is lost, and nothing is stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, text
from tests.collector.load import stored_ids
from tests.factories import event_id, failure

import toolfault_migrations as migrations
from toolfault_collector.clock import now_us
from toolfault_collector.engine import write_transaction
from toolfault_collector.errors import SchemaError
from toolfault_collector.faults import classify
from toolfault_collector.projects import ensure_project
from toolfault_collector.recount import recount
from toolfault_collector.schema import is_at_head
from toolfault_collector.store import Receipt, store_events

POSTGRES = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)

# What a collector of schema 0011 did to store a call, as far as it matters here.
FIND = "SELECT event_id FROM tool_call WHERE project_id = %s AND event_id = ANY(%s)"
NUMBER = "SELECT nextval('tool_call_id_seq') FROM generate_series(1, %s)"
INSERT = (
    "INSERT INTO tool_call (id, project_id, event_id, event_type, tool, started_at, occurred_at,"
    " received_at, success) VALUES (%s, %s, %s, 'tool_call', 't', 1, 1, 1, true)"
)


@pytest.fixture
def old_collector(engine: Engine) -> Iterator[psycopg.Connection[Any]]:
    """The connection of a collector of schema 0011, whose statements were run often."""
    migrations.downgrade(engine, "0011")
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as conn:
        for _ in range(10):  # they are prepared by now
            _begin_to_store(conn, 1, event_id())
            conn.rollback()
        yield conn


def _begin_to_store(conn: psycopg.Connection[Any], project_id: int, event: str) -> None:
    """Do what 0011 did with a call, but for the commit."""
    if not conn.execute(FIND, (project_id, [event])).fetchall():
        numbers = conn.execute(NUMBER, (1,)).fetchone()
        assert numbers is not None
        conn.execute(INSERT, (numbers[0], project_id, event))


def _store(engine: Engine, *events: dict[str, Any]) -> Receipt:
    with write_transaction(engine) as conn:
        return store_events(conn, ensure_project(conn, "demo"), events, received_at=now_us())


def _wait_for_waiting(engine: Engine, count: int) -> None:
    """Return when *count* connections wait for a lock on a table."""
    waiting = text(
        "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'relation' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        while conn.execute(waiting).scalar_one() < count:
            """Each look is a question to the database, which takes its time."""


@POSTGRES
def test_what_an_older_collector_is_storing_is_known(
    engine: Engine, old_collector: psycopg.Connection[Any]
) -> None:
    """A migration waits for a call that is being stored, so that it is not stored once more."""
    call = failure()
    with engine.begin() as conn:
        project_id = ensure_project(conn, "demo")
    _begin_to_store(old_collector, project_id, call["event_id"])
    with ThreadPoolExecutor(1) as pool:
        migrated = pool.submit(migrations.upgrade, engine)
        _wait_for_waiting(engine, 1)
        old_collector.commit()
        migrated.result(60)

    receipt = _store(engine, call, failure())

    assert (receipt.accepted, receipt.duplicate) == (1, 1)
    assert set(stored_ids(engine).values()) == {1}


@POSTGRES
def test_an_older_collector_stores_no_call_after_the_migration(
    engine: Engine, old_collector: psycopg.Connection[Any]
) -> None:
    """It fails in a way for which its sender tries again, also with what it began to wait."""
    call = failure()
    with engine.begin() as conn:
        project_id = ensure_project(conn, "demo")
    migrations.upgrade(engine)

    with pytest.raises(psycopg.errors.UndefinedTable) as refused:
        _begin_to_store(old_collector, project_id, call["event_id"])
    old_collector.rollback()

    assert classify(refused.value) == "unavailable"
    assert _store(engine, call).accepted == 1
    assert recount(engine).right
    migrations.downgrade(engine, "0011")
    _begin_to_store(old_collector, project_id, event_id())  # its own schema again
    old_collector.commit()


@POSTGRES
def test_no_writer_lives_through_a_migration(engine: Engine) -> None:
    """A migration waits for who writes, and who begins meanwhile finds that it is too old."""
    pools = [ThreadPoolExecutor(1) for _ in range(2)]
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [failure()], received_at=now_us())
        migrated: Future[None] = pools[0].submit(migrations.downgrade, engine, "0011")
        _wait_for_waiting(engine, 1)
        late = pools[1].submit(_store, engine, failure())
        _wait_for_waiting(engine, 2)
    migrated.result(60)

    with pytest.raises(SchemaError, match="nothing was stored"):
        late.result(60)
    migrations.upgrade(engine)
    assert sum(stored_ids(engine).values()) == 1
    for pool in pools:
        pool.shutdown()


@POSTGRES
def test_readiness_is_answered_during_a_migration(engine: Engine) -> None:
    """Who asks whether the server is ready does not wait until a migration is done."""
    with engine.begin() as conn:
        conn.exec_driver_sql("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")

        with pytest.raises(Exception, match="lock timeout"):
            is_at_head(engine)

    assert is_at_head(engine)
