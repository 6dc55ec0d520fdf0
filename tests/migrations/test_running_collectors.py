"""A migration beside collectors that still run: nothing is lost, and nothing is stored twice."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text
from tests.collector.load import stored_ids
from tests.factories import failure
from tests.next_schema import add_next_schema

import toolfault_migrations as migrations
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.errors import SchemaError
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.database.schema import is_at_head
from toolfault_collector.storage.store import store_events

POSTGRES = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


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
def test_no_writer_lives_through_a_migration(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration waits for who writes, and who begins meanwhile finds that it is too old."""
    pools = [ThreadPoolExecutor(1) for _ in range(2)]
    own = migrations.HEAD
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [failure()], received_at=now_us())
        add_next_schema(tmp_path, monkeypatch.setattr)
        migrated: Future[None] = pools[0].submit(migrations.upgrade, engine)
        _wait_for_waiting(engine, 1)
        monkeypatch.setattr(migrations, "HEAD", own)  # as in the process that began before
        late = pools[1].submit(_store, engine, failure())
        _wait_for_waiting(engine, 2)
    migrated.result(60)

    with pytest.raises(SchemaError, match="nothing was stored"):
        late.result(60)
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
