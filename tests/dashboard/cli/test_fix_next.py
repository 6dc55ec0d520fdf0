"""``toolfault fix-next``: JSON, Markdown, and records for prompt optimisers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.generated import NOW
from tests.dashboard.hostile import hostile_events
from tests.factories import event_id

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.cli.app import run


def _call(session: str, number: int, *, success: bool) -> dict[str, Any]:
    error = {
        "code": "wrong_type",
        "category": "parameter",
        "field": "limit",
        "renderings": {"llm": 'limit: not "5"', "user": "Sorry.", "system": "SECRET-OF-SYSTEM"},
        "issues": [
            {"field": "limit", "code": "wrong_type", "near_miss": ["int_from_string"]}
        ],
        "issues_total": 1,
    }  # fmt: skip
    return {
        "type": "tool_call",
        "event_id": event_id(),
        "session_id": session,
        "tool": "search",
        "seq": number,
        "success": success,
        "occurred_at": format_time(NOW - 60 * MINUTE_US + number * SECOND_US),
        **({} if success else {"error": error}),
    }


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Three chains of one fix: recovered at once, after two retries, abandoned; and a hostile."""
    address = f"sqlite:///{tmp_path / 'toolfault.db'}"
    engine = open_engine(address)
    prepare(engine, migrate=True)
    endings = {"a": "FS", "b": "FFS", "c": "F"}
    events = [
        _call(name, number, success=letter == "S")
        for name, letters in endings.items()
        for number, letter in enumerate(letters)
    ]
    events += hostile_events("</x> ``` ignore all")
    with write_transaction(engine) as conn:
        receipt = store_events(
            conn, ensure_project(conn, "p"), events, received_at=NOW, time_policy="import"
        )
    assert not receipt.rejected
    engine.dispose()
    return address


def _said(capfd: pytest.CaptureFixture[str], url: str, format: str) -> str:  # noqa: A002
    assert run(["fix-next", "--format", format, "--database-url", url]) == 0
    return capfd.readouterr().out


def test_json_has_the_fixes_with_their_patches(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Each fix has what it saves and every way to carry it out."""
    first = next(row for row in json.loads(_said(capfd, url, "json")) if row["tool"] == "search")
    assert (first["remedy"], first["failures"]) == ("int_from_string", 4)
    kinds = [patch["kind"] for patch in first["patches"]]
    assert kinds == ["SDK", "pydantic", "JSON schema", "description"]
    assert "LLMInt" in first["patches"][0]["text"]


def test_markdown_is_text_in_which_no_name_is_markup(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Headings and code are ours; what was recorded ends neither."""
    said = _said(capfd, url, "markdown")
    assert "    limit: toolfault.coerce.LLMInt" in said
    headings = [line for line in said.splitlines() if line.startswith("#")]
    assert all(re.match(r"# Fix next|## \d+\. ", line) for line in headings)
    assert "\n```" not in said
    assert "</x>" not in said
    assert not re.search(r"\b1 (calls|failures|chains)\b", said)


def test_gepa_has_a_score_and_a_feedback_for_each_chain(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The score is 1 / (1 + calls spent) where it recovered; the feedback tells and helps."""
    records = [json.loads(line) for line in _said(capfd, url, "gepa").splitlines()]
    own = [record for record in records if record["component"] == "search"]
    assert sorted(record["score"] for record in own) == pytest.approx([0.0, 1 / 3, 1 / 2])
    assert len({record["chain_id"] for record in records}) == len(records)
    for record in own:
        assert record["feedback"] == record["Feedback"]
        assert 'the model was told "limit: not \\"5\\""' in record["feedback"]
        assert "An integer, not text" in record["feedback"]
        assert "SECRET-OF-SYSTEM" not in json.dumps(record)
        assert record["Generated Outputs"][0]["success"] is False


def test_an_unknown_format_is_refused(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The error names the formats."""
    assert run(["fix-next", "--format", "pdf", "--database-url", url]) == 2
    assert "markdown, json, gepa, agent" in capfd.readouterr().err
