"""Events on ClickHouse by command: the schema, the copy, the comparison and the way back."""

from __future__ import annotations

import pytest
from tests.clickhouse import empty_clickhouse
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.cli.app import run

pytest.importorskip("chdb", reason="chdb, ClickHouse in the process, is not installed")


def test_an_installation_moves_to_clickhouse_and_back(
    sqlite_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upgrade, copy, check and compare, each as docs/operations.md says; then without again."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, [failure(), failure()], received_at=now_us())
    engine.dispose()
    monkeypatch.setenv("TOOLFAULT_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("TOOLFAULT_EVENTS_URL", empty_clickhouse())

    def said(*command: str, code: int = 0) -> str:
        capfd.readouterr()
        assert run(command) == code, command
        out, err = capfd.readouterr()
        return out + err

    assert "ClickHouse: none" in said("db", "current")
    assert "ClickHouse lacks" in said("db", "check", code=1)
    assert "the schema of this version" in said("db", "upgrade")
    assert "every column" in said("db", "check")
    assert "0 too many" in said("doctor", "--recount", code=1)  # nothing is copied yet
    assert "Nothing is left to copy" in said("db", "copy-events")
    assert "rows compared" in said("doctor", "--recount")
    assert "every column" in said("db", "check")
    assert "without TOOLFAULT_EVENTS_URL" in said("db", "forget-events")
    assert "Nothing is noted" in said("db", "forget-events", code=1)
