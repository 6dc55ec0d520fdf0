"""Files of spans: what stands in the rows of their calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from tests.collector.importers.fixtures import FIXTURES

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import tool_call

SPANS: list[dict[str, Any]] = json.loads(
    next(each.text for each in FIXTURES if each.name == "flat spans")
)
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def _rows(engine: Engine, path: Path, spans: list[dict[str, Any]]) -> list[Any]:
    path.write_text(json.dumps(spans))
    with write_transaction(engine) as conn:
        project = ensure_project(conn, path.name)
    problems = import_paths(engine, project, [path]).problems
    assert {problem.message for problem in problems} <= {"holds no spans; skipped"}
    query = select(tool_call).where(tool_call.c.project_id == project)
    with engine.connect() as conn:
        return list(conn.execute(query.order_by(tool_call.c.seq)))


def test_a_call_has_what_its_span_says(engine: Engine, tmp_path: Path) -> None:
    """Trace, span, conversation, times, sign and text of the failure, how the retry differs."""
    first, second = _rows(engine, tmp_path / "a.json", SPANS)
    assert (first.trace_id, first.span_id) == (SPANS[1]["trace_id"], SPANS[1]["span_id"])
    assert (first.session_id, first.duration_ms, first.time_source) == ("c-1", 500.0, "import")
    assert (first.success, first.detection, first.text_llm) == (
        *(False, "status"),
        "city must be a string",
    )
    assert (second.success, second.detection, second.attempt) == (True, "explicit", 2)
    assert [each["path"] for each in second.args_diff] == ["city"]


def test_the_type_of_the_error_tells_where_the_text_does_not(
    engine: Engine, tmp_path: Path
) -> None:
    """A time-out without a word is a time-out."""
    spans = json.loads(json.dumps(SPANS))
    spans[1]["attributes"]["error.type"] = "asyncio.exceptions.TimeoutError"
    spans[1]["status_message"] = ""
    assert _rows(engine, tmp_path / "a.json", spans)[0].code == "timeout"


def test_arguments_that_were_not_recorded_are_equal_to_none(engine: Engine, tmp_path: Path) -> None:
    """Most senders leave them out; two such attempts are no blind repeat."""
    spans = json.loads(json.dumps(SPANS))
    for span in spans:
        span["attributes"].pop("gen_ai.tool.call.arguments", None)
    rows = _rows(engine, tmp_path / "a.json", spans)
    assert [(row.args_fingerprint, row.args_diff) for row in rows] == [(None, None)] * 2


def test_a_broken_span_loses_no_other(engine: Engine, tmp_path: Path) -> None:
    """Odd values where ids, times and numbers are expected cost at most their own span."""
    odd: dict[str, Any] = {
        "span_id": [1],
        "start_time": "9" * 5_000,
        "attributes": [{"key": "a", "value": {"intValue": "--5"}}, {"key": 5}, None],
        "status": {"code": {"a": []}},
    }
    for name, value in odd.items():
        own = {**SPANS[1]["attributes"], "gen_ai.tool.call.id": "another"}
        broken = {**SPANS[1], "span_id": "00f067aa0ba902ff", "attributes": own, name: value}
        rows = _rows(engine, tmp_path / f"{name}.json", [SPANS[0], broken, *SPANS[1:]])
        known = {span["span_id"] for span in SPANS[1:]}
        assert known <= {row.span_id for row in rows}
