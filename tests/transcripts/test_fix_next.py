"""``toolfault fix-next`` about real transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_dashboard.cli.app import run


def test_markdown_says_what_the_page_says(
    shared_data: Path,
    sqlite_engine: Engine,
    sqlite_url: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The share of all calls spent that is listed, the message, and where no remedy is known."""
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "airline")
    import_paths(sqlite_engine, project, [shared_data / "tau_bench_airline"])
    assert run(["fix-next", "--format", "markdown", "--database-url", sqlite_url]) == 0
    said = capfd.readouterr().out
    assert "problems listed here account for 69 of 69 calls spent." in said
    first, second, third = said.split("\n## ")[1:4]
    assert "> Error: payment amount does not add up, total price is \\<n\\>, but paid" in first
    assert "In 8 of 8 chains that recovered, the model called think before" in first
    assert "No known remedy." not in first
    assert "No known remedy." in second
    assert third.startswith("3. Reword this message")
    assert "> Error: flight \\<id\\> not available on date \\<n\\>" in third
