"""Real dumps of spans, imported by the command, counted by their truth.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import case, func, select

from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.cli.app import run


@pytest.fixture
def samples(shared_data: Path) -> Path:
    """The folder of span dumps."""
    return shared_data / "otel_format_samples"


def test_span_files_import_with_the_counts_of_truth(
    samples: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every file: its conversations with their calls, each tool with its calls and failures."""
    truth = json.loads((samples / "truth.json").read_text(encoding="utf-8"))
    url = f"sqlite:///{tmp_path / 'toolfault.db'}"
    assert run(["import", str(samples), "--database-url", url]) == 0
    told = capfd.readouterr().err
    for each in truth["per_conversation"]:
        name = each["id"].rpartition(":")[0]
        assert f"{name}: recognised as OpenTelemetry spans" in told
    assert run(["import", str(samples), "--database-url", url]) == 0
    assert "0 new events" in capfd.readouterr().err
    engine = open_engine(url)
    failed = func.sum(case((tool_call.c.success, 0), else_=1))
    by_tool = select(tool_call.c.tool, func.count(), failed).group_by(tool_call.c.tool)
    by_trace = select(tool_call.c.trace_id, func.count(), failed).group_by(tool_call.c.trace_id)
    with engine.connect() as conn:
        tools = {tool: (calls, failures) for tool, calls, failures in conn.execute(by_tool)}
        traces = {trace: (calls, failures) for trace, calls, failures in conn.execute(by_trace)}
    engine.dispose()
    assert tools == {
        tool: (counts["calls"], counts["failed"]) for tool, counts in truth["per_tool"].items()
    }
    assert traces == {
        each["id"].rpartition(":")[2].removeprefix("0x"): (each["calls"], each["failed"])
        for each in truth["per_conversation"]
    }
