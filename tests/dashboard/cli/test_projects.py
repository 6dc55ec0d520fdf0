"""``toolfault projects``: names, and what goes with a project."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import Engine, select
from tests.dashboard.cli.test_cli import CHAT
from tests.tables import tables_of

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard.cli.app import run


@pytest.fixture
def two_projects(database_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """A database in which two projects hold the same transcript and a key each."""
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    for name in ("kept", "gone"):
        arguments = ["--project", name, "--database-url", database_url]
        assert run(["import", str(path), *arguments]) == 0
        assert run(["keys", "create", "--kind", "read", *arguments]) == 0
    capfd.readouterr()
    return database_url


def _rows(engine: Engine) -> Counter[tuple[str, int]]:
    """How many rows each project has in each table."""
    with read_connection(engine) as conn:
        return Counter(
            (table.name, row[0])
            for table in tables_of(engine)
            if "project_id" in table.c and table.name != "audit_log"
            for row in conn.execute(select(table.c.project_id))
        )


def test_a_deleted_project_takes_its_rows_alone(
    two_projects: str, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """No table keeps a row of it, the other project keeps all, and its number never comes back."""
    before = _rows(engine)
    with read_connection(engine) as conn:
        gone, kept = find_project(conn, "gone"), find_project(conn, "kept")
    assert {number for _, number in before} == {gone, kept}

    assert run(["projects", "delete", "gone", "--yes", "--database-url", two_projects]) == 0
    said = capfd.readouterr().err
    assert f"{sum(n for (_, of), n in before.items() if of == gone):,} rows" in said
    assert _rows(engine) == Counter({key: n for key, n in before.items() if key[1] == kept})
    assert run(["projects", "create", "new", "--database-url", two_projects]) == 0
    with read_connection(engine) as conn:
        assert find_project(conn, "gone") is None
        assert find_project(conn, "new") not in (gone, kept)


def test_a_project_is_renamed_with_all_it_has(
    two_projects: str, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the name changes; a name that is taken, or a project that is not there, is refused."""
    before = _rows(engine)
    url = ["--database-url", two_projects]
    assert run(["projects", "rename", "gone", "kept", *url]) == 2
    assert run(["projects", "rename", "other", "new", *url]) == 2
    assert run(["projects", "rename", "gone", "new", *url]) == 0
    said = capfd.readouterr().err
    assert "there is a project 'kept' already" in said
    assert "There is no project 'other'" in said
    assert run(["projects", "list", *url]) == 0
    assert capfd.readouterr().out.split() == ["kept", "new"]
    assert _rows(engine) == before


mostly_sqlite = pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
)


@mostly_sqlite
def test_soft_rules_are_switched(two_projects: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One rule is switched and the others stay; a rule that is not there is refused."""
    command = ["projects", "soft-rules", "kept", "--database-url", two_projects]
    assert run([*command, "--off", "json_error", "--off", "exit_code"]) == 0
    assert run([*command, "--on", "exit_code"]) == 0
    assert run([*command, "--off", "nonsense"]) == 2
    assert run([*command, "--on", "nonsense"]) == 2
    assert capfd.readouterr().err.count("There is no soft rule 'nonsense'") == 2
    assert run(command) == 0
    states = {line.split()[0]: line.split()[1:3] for line in capfd.readouterr().out.splitlines()}
    assert [name for name, (state, _) in states.items() if state == "off"] == ["json_error"]
    assert [name for name, (_, since) in states.items() if since == "since"] == [
        *("exit_code", "json_error"),
    ]


@mostly_sqlite
def test_deleting_asks_for_the_name(
    two_projects: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another answer than the name deletes nothing."""
    monkeypatch.setattr("sys.stdin", io.StringIO("another\n"))
    assert run(["projects", "delete", "gone", "--database-url", two_projects]) != 0
    assert run(["projects", "list", "--database-url", two_projects]) == 0
    assert capfd.readouterr().out.split() == ["gone", "kept"]
