"""A conversation in the database: deterministic ids, no values, renderings per audience."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, RowMapping, select
from tests.collector.importers.sessions import answer, call, write

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import parse_time
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.tables import call_counts, issue, tool_call


class Importer:
    """Imports files into projects of their own and gives back what was stored."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._projects = 0

    def __call__(self, path: Path, table: Any = tool_call) -> list[RowMapping]:
        """Import *path* and return the rows of *table* in the order of their ids."""
        self._projects += 1
        with write_transaction(self.engine) as conn:
            project = ensure_project(conn, f"import {self._projects}")
        import_paths(self.engine, project, [path])
        query = select(table).where(table.c.project_id == project).order_by(*table.primary_key)
        with read_connection(self.engine) as conn:
            return list(conn.execute(query).mappings())


@pytest.fixture
def imported(sqlite_engine: Engine) -> Importer:
    """A function that imports a file."""
    return Importer(sqlite_engine)


def test_events_are_the_same_on_every_import(imported: Importer, tmp_path: Path) -> None:
    """Only the stand-in for missing times depends on when the import runs; ids are hashes."""
    moments = ("occurred_at", "started_at", "received_at")
    own = ("id", "project_id", "signature_id", "message_id", "received_at")
    timed = [call(1), answer(1, failed=True), call(2), answer(2)]
    untimed = [{key: line[key] for key in line if key != "timestamp"} for line in timed]
    for lines, left_out in ((timed, own), (untimed, own + moments)):
        first = imported(write(tmp_path / "a.jsonl", lines))
        second = imported(write(tmp_path / "elsewhere" / "b.jsonl", lines))
        assert [{name: row[name] for name in row if name not in left_out} for row in first] == [
            {name: row[name] for name in row if name not in left_out} for row in second
        ]
        ids = [uuid.UUID(row["event_id"]) for row in first]
        assert {(each.version, each.variant) for each in ids} == {(8, uuid.RFC_4122)}
        assert len(set(ids)) == 2


def test_a_timed_call_has_its_end_and_duration(imported: Importer, tmp_path: Path) -> None:
    """occurred_at is the end; start = end - duration_ms."""
    (row,) = imported(write(tmp_path / "a.jsonl", [call(1), answer(1)]))
    assert row["occurred_at"] == parse_time("2025-03-01T09:00:01.500000Z")
    assert row["started_at"] == parse_time("2025-03-01T09:00:01Z")
    assert (row["duration_ms"], row["time_source"]) == (500.0, "import")


def test_an_untimed_call_says_so(imported: Importer, tmp_path: Path) -> None:
    """The stand-in is the time of the import, and the row marks it as none."""
    path = tmp_path / "a.json"
    chat = [
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "fine"},
    ]
    path.write_text(json.dumps(chat))
    (row,) = imported(path)
    assert (row["time_source"], row["duration_ms"]) == ("none", None)


def test_an_unanswered_call_is_a_counter(imported: Importer, tmp_path: Path) -> None:
    """It adds to the calls of its tool and is no success."""
    path = write(tmp_path / "a.jsonl", [call(1, "Bash"), call(2), answer(2)])
    (row,) = imported(path, call_counts)
    assert (row["tool"], row["calls"]) == ("Bash", 1)
    assert [each["tool"] for each in imported(path)] == ["Read"]


def test_a_failure_has_a_text_for_each_audience(imported: Importer, tmp_path: Path) -> None:
    """The user sees a sentence made from the code, the model's text is what it saw."""
    text = "<tool_use_error>InputValidationError: Edit failed due to the following issue:\n"
    text += "The required parameter `path` is missing</tool_use_error>"
    lines = [call(1, "Edit"), answer(1, text, failed=True)]
    (row,) = imported(write(tmp_path / "a.jsonl", lines))
    said = (row["code"], row["category"], row["audience"], row["field"])
    assert said == ("missing_field", "parameter", "llm", "path")
    assert row["text_user"] == "Edit: Missing field (path)"
    assert row["text_llm"].startswith("InputValidationError: Edit failed")
    assert "\n" not in row["text_system"]
    assert "code=missing_field" in row["text_system"]


def test_the_user_never_sees_the_original_text(imported: Importer, tmp_path: Path) -> None:
    """Whatever the code, values of the original sentence are not in the user's rendering."""
    texts = [
        "account 4711 not found",
        "4711 must be an integer",
        "Traceback (most recent call last):\n4711",
        "4711",
        "The user doesn't want to proceed with this tool use. 4711",
        "Claude requested permissions to use 4711, but you haven't granted it yet.",
        "Unknown tool: 4711",
    ]
    lines = []
    for number, text in enumerate(texts, 1):
        lines += [call(number), answer(number, text, failed=True)]
    rows = imported(write(tmp_path / "a.jsonl", lines))
    assert len(rows) == len(texts)
    for row in rows:
        assert "4711" not in row["text_user"]
        assert "4711" in row["text_llm"]


def test_secrets_and_values_are_not_kept(imported: Importer, tmp_path: Path) -> None:
    """Arguments are hashed; what looks like a secret in a text is redacted."""
    key = "sk-0123456789abcdefghij"
    lines = [
        call(1, "Bash", input={"command": f"curl -H {key}", "password": "hunter2"}),
        answer(1, f"401 Bearer {key} password=hunter2", failed=True),
        call(2, "Bash", input={"command": "ls", "password": "hunter3"}),
        answer(2, f"1 validation error for X\nkey\n  bad {key} [type=value_error]", failed=True),
    ]
    path = write(tmp_path / "a.jsonl", lines)
    rows = imported(path)
    stored = repr([rows, imported(path, issue)])
    assert key not in stored
    assert "hunter" not in stored
    assert [each["path"] for each in rows[1]["args_diff"]] == ["command", "password"]


def test_differences_are_to_the_previous_attempt_of_the_chain(
    imported: Importer, tmp_path: Path
) -> None:
    """Not across a success, not across turns that could not see the error, not across tools."""
    lines = [
        call(1, input={"n": 1}, message_id="m"),
        call(2, input={"n": 2}, message_id="m"),
        answer(1, failed=True),
        answer(2),
        call(3, "Other", input={"n": 3}),
        answer(3),
        call(4, input={"n": "4"}),
        answer(4),
        call(5, input={"n": 5}),
        answer(5),
    ]
    rows = imported(write(tmp_path / "a.jsonl", lines))
    assert [row["args_diff"] for row in rows] == [
        None,
        None,
        None,
        [{"path": "n", "change": "changed", "from_type": "integer", "to_type": "string"}],
        None,
    ]


def test_the_session_id_names_the_session_and_is_unique(imported: Importer, tmp_path: Path) -> None:
    """What a person recognises, and enough of the key to tell two of one name apart."""
    sessions = [
        imported(write(tmp_path / "a.jsonl", [call(1, input={"path": path}), answer(1)]))[0]
        for path in ("a", "b")
    ]
    names = {row["session_id"].rpartition(":")[0] for row in sessions}
    assert names == {"11111111-2222-3333-4444-555555555555"}
    assert len({row["session_id"] for row in sessions}) == 2
