"""Readers get from ClickHouse what they get from SQLite, also about real transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.dashboard.columnar import Both

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import sqlite_path, write_transaction

pytest.importorskip("chdb", reason="the engine of ClickHouse (chdb) is not installed")
pytest.importorskip("clickhouse_connect", reason="clickhouse-connect is not installed")


@pytest.mark.long
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    "source", ["tau_bench_airline", "agentrx_tau_retail", "claude_code_sessions"]
)
def test_real_transcripts_answer_the_same(
    source: str, shared_data: Path, sqlite_engine: Engine
) -> None:
    """Each function gives equal answers about real transcripts."""
    with write_transaction(sqlite_engine) as conn:
        number = ensure_project(conn, "real")
    assert not import_paths(sqlite_engine, number, [shared_data / source]).errors
    real = Both(sqlite_path(sqlite_engine))
    for asked in ("", "code:not_found", "-chain:recovered", "state:new", "error"):
        assert real.differing("real", asked) == []
    real.close()
