"""Synthetic transcripts: the importers and the naive recount must always agree."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from tests.collector.importers import recount
from tests.collector.importers.counting import count_parsed, count_stored, parsed, total
from tests.collector.importers.strategies import (
    claude_code_lines,
    openai_messages,
    write_lines,
    write_runs,
)

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import write_transaction

FUZZ = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FEW = settings(FUZZ, max_examples=5)


@FUZZ
@given(runs=st.lists(openai_messages(), max_size=4))
def test_openai_files_are_parsed_as_the_rules_say(
    tmp_path: Path, runs: list[list[dict[str, Any]]]
) -> None:
    """Ids that repeat, answers in any order and missing answers are counted by the rules."""
    path = write_runs(tmp_path / "runs.json", runs)
    counted = [recount.count(attempts) for attempts in recount.openai_conversations(path)]
    conversations = parsed(path) if runs else []
    assert [count_parsed(conversation) for conversation in conversations] == counted
    assert len({conversation.key for conversation in conversations}) == len(runs)


@FUZZ
@given(lines=claude_code_lines())
def test_session_files_are_parsed_as_the_rules_say(tmp_path: Path, lines: list[str]) -> None:
    """Copies, results out of order and lines that are no messages change no number."""
    path = write_lines(tmp_path / "session.jsonl", lines)
    counted = recount.count(recount.decided(recount.claude_code_attempts(path)))
    conversations = parsed(path, format_name="claude-code") if "".join(lines) else []
    assert total([count_parsed(found) for found in conversations]) == counted


@FEW
@given(runs=st.lists(openai_messages(), min_size=1, max_size=4), lines=claude_code_lines())
def test_files_are_stored_as_the_rules_say(
    sqlite_engine: Engine, runs: list[list[dict[str, Any]]], lines: list[str]
) -> None:
    """What the database counts after an import is what the rules count, and stays so."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs_file = write_runs(folder / "runs.json", runs)
        session_file = write_lines(folder / "session.jsonl", lines)
        with write_transaction(sqlite_engine) as conn:
            project = ensure_project(conn, folder.name)
        for _ in range(2):
            import_paths(sqlite_engine, project, [runs_file])
            import_paths(sqlite_engine, project, [session_file], format="claude-code")
        attempts = [
            *recount.openai_conversations(runs_file),
            recount.decided(recount.claude_code_attempts(session_file)),
        ]
    wanted = total([recount.count(found) for found in attempts])
    assert total(list(count_stored(sqlite_engine, project).values())) == wanted


@FEW
@given(
    messages=openai_messages(),
    lines=claude_code_lines(),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_a_conversation_is_counted_once_however_often_it_was_met_on_its_way(
    sqlite_engine: Engine, messages: list[dict[str, Any]], lines: list[str], cuts: list[int]
) -> None:
    """Copies from before calls were answered, in any order: it counts as if imported at its end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with write_transaction(sqlite_engine) as conn:
            project = ensure_project(conn, folder.name)
        messages += [{"role": "user"}, {"role": "assistant", "content": "done"}]
        whole = [*cuts, max(len(messages), len(lines))]
        copies = [{"conversation_id": "c", "messages": messages[:cut]} for cut in whole]
        log = write_lines(folder / "log.jsonl", [json.dumps(copy) for copy in copies])
        import_paths(sqlite_engine, project, [log])
        for cut in whole:
            session_file = write_lines(folder / "session.jsonl", lines[:cut])
            import_paths(sqlite_engine, project, [session_file], format="claude-code")
        session = recount.decided(recount.claude_code_attempts(session_file))
    wanted = total([recount.count(found) for found in (recount.openai_attempts(messages), session)])
    assert total(list(count_stored(sqlite_engine, project).values())) == wanted


@pytest.mark.parametrize(
    ("outcomes", "wanted"),
    [
        ("F1 F2 S3", (1, 1, 2)),
        ("F1", (1, 0, 0)),
        ("F1 F2", (1, 0, 1)),
        ("F1 S1", (1, 0, 0)),
        ("F1 S1 S2", (1, 1, 1)),
        ("F1 F1 S2", (1, 1, 1)),
        ("F1 S1 F1 S2", (1, 1, 1)),
        ("S1 F1 S2 F3", (2, 1, 1)),
    ],
)
def test_the_recount_itself(outcomes: str, wanted: tuple[int, int, int]) -> None:
    """The examples of the README's definition, by hand (F failed, S succeeded, number = turn)."""
    attempts = [recount.Attempt("t", text[0] == "F", text[1]) for text in outcomes.split()]
    found = recount.count(attempts)
    assert (found.chains, found.recovered, found.round_trips) == wanted
