"""``--format agent``: the commands print what the tools of coding agents answer."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.mcp.asking import text_of

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.cli.app import run

COMMANDS: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "overview": (["summary", "tool:search"], "overview", {"query": "tool:search"}),
    "fix_next": (["fix-next", "tool:search"], "fix_next", {"query": "tool:search"}),
    "kinds": (
        ["kinds", "list", "--format", "agent", "--order", "last"],
        "kinds",
        {"order": "last"},
    ),
    "search": (["errors", "-code:timeout"], "search", {"query": "!code:timeout"}),
    "changes": (["change", "list", "--recorded"], "changes", {"detected": False}),
    "compare": (
        ["compare", "--before", "until:2026-11-10", "--after", "since:2026-11-10"],
        "compare",
        {"before": "until:2026-11-10", "after": "since:2026-11-10"},
    ),
}


@pytest.fixture
def url(filled_sqlite: Path, tmp_path: Path) -> str:
    """A copy of the generated history."""
    shutil.copyfile(filled_sqlite, tmp_path / "toolfault.db")
    return f"sqlite:///{tmp_path / 'toolfault.db'}"


def _tool(url: str, name: str, **given: Any) -> str:
    engine = open_engine(url)
    with read_connection(engine) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        text = text_of(conn, project, name, **given)
    engine.dispose()
    return text


def _steady(text: str) -> str:
    """An answer without what depends on the clock: savings a week, and what is still new."""
    text = re.sub(r'"(saved|spent)_per_week":({[^}]*}|"[a-z ]*"),', "", text).strip()
    return text.replace('"state":"new"', '"state":"open"')


def _said(capfd: pytest.CaptureFixture[str], url: str, *words: str) -> str:
    assert run([*words, "--project", "generated", "--database-url", url]) == 0
    return capfd.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in ("fix_next", "changes") else ())
        for name in COMMANDS
    ],
)
def test_a_command_prints_the_answer_of_its_tool(
    name: str, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each tool has a command that prints the same line."""
    words, tool, given = COMMANDS[name]
    said = _said(capfd, url, *words, "--format", "agent")
    assert _steady(said) == _steady(_tool(url, tool, **given))


def test_one_kind_and_one_chain_are_printed(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """What the lists name can be asked for, also by the cursor of the page before."""
    first = json.loads(_said(capfd, url, "kinds", "list", "--format", "agent"))
    kind = first["kinds"][0]["kind"]
    said = _said(capfd, url, "kind", kind)
    assert _steady(said) == _steady(_tool(url, "kind", kind=kind))
    chain = next(row["chain"] for row in json.loads(said)["newest_failures"] if "chain" in row)
    assert _said(capfd, url, "chain", chain).strip() == _tool(url, "chain", chain=chain)
    second = json.loads(
        _said(capfd, url, "kinds", "list", "--format", "agent", "--cursor", first["next_cursor"])
    )
    assert second["kinds"][0] not in first["kinds"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["chain", "x"], 1, "no chain of that id"),
        (["kinds", "list", "--format", "agent", "--cursor", "AAAA"], 2, "first page"),
        (["kinds", "list", "--format", "csv"], 2, "toolfault table"),
        (["summary", "--format", "csv"], 2, "table, json, agent"),
        (["change", "list", "--format", "csv"], 2, "table or agent"),
    ],
)
def test_what_cannot_be_answered_is_said(
    words: list[str], code: int, says: str, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A wrong id, cursor or format is one sentence and an exit code."""
    assert run([*words, "--project", "generated", "--database-url", url]) == code
    assert says in capfd.readouterr().err
