"""``toolfault table``: every table of the dashboard on the terminal and as a file."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.rows import rows_as_json

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.exports import TABLE_NAMES, TableName, named_table
from toolfault_dashboard.queries import Scope, project_by_name
from toolfault_dashboard.search import parse

UNTIL = "until:2026-11-18"


@pytest.fixture(scope="module")
def url(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A copy of the generated history, which is only read here."""
    path = tmp_path_factory.mktemp("tables") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    return f"sqlite:///{path}"


def _rows(url: str, name: TableName) -> list[dict[str, Any]]:
    """The rows of the table, as JSON has them."""
    engine = open_engine(url)
    with read_connection(engine) as conn:
        project = project_by_name(conn, "generated")
        assert project is not None
        rows = rows_as_json(named_table(conn, Scope(project.id, parse(UNTIL), now_us()), name))
    engine.dispose()
    return rows


def _steady(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what depends on the moment: savings a week, and since a change."""
    moving = ("saved_per_week", "cost_per_week", "saved_since")
    return {name: value for name, value in row.items() if not name.startswith(moving)}


# A list, computed tables, one that may be empty: all go through `named_table`, of which every table
# of six projects is among the recorded answers (tests/golden).
_WRITTEN = ("failures", "codes", "fixes", "silent_successes")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _WRITTEN else pytest.mark.long)
        for name in TABLE_NAMES
    ],
)
def test_every_table_is_written(
    name: TableName, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """JSON has the rows of the query, and the terminal the first of them."""
    asked = ["table", name.replace("_", "-"), UNTIL, "--project", "generated"]
    asked += ["--database-url", url]
    assert run([*asked, "--format", "json"]) == 0
    said = json.loads(capfd.readouterr().out)
    expected = _rows(url, name)
    assert list(map(_steady, said)) == list(map(_steady, expected))
    assert said or name == "silent_successes"
    assert run(asked) == 0
    shown = capfd.readouterr().out
    assert shown.startswith(name)
    assert len(shown.splitlines()) > min(len(said), 50)


def test_a_table_as_csv(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """CSV has the same rows, and nothing but them."""
    assert run(["table", "codes", UNTIL, "--project", "generated", "--database-url", url,
                "--format", "csv", "--raw"]) == 0  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out, newline="")))
    assert [(row["name"], int(row["failures"])) for row in rows] == [
        (row["name"], row["failures"]) for row in _rows(url, "codes")
    ]


def test_the_table_of_tools_has_what_they_cost(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Chains, calls spent, round trips and abandoned beside the failures, as by tool."""
    asked = ["table", "tools", UNTIL, "--project", "generated", "--database-url", url]
    assert run([*asked, "--format", "json"]) == 0
    costs = {row["name"]: row for row in _rows(url, "round_trips_by_tool")}
    for row in json.loads(capfd.readouterr().out):
        for name in ("chains", "calls_spent", "round_trips", "abandoned"):
            assert row[name] == costs[row["name"]][name]


def test_an_unknown_table_names_the_known_ones(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A wrong name or format is answered with the right ones."""
    assert run(["table", "colours", "--database-url", url]) == 2
    assert "codes" in capfd.readouterr().err
    assert run(["table", "codes", "--format", "xml", "--database-url", url]) == 2
    assert "parquet" in capfd.readouterr().err


@pytest.mark.postgres
def test_a_table_of_postgres(filled_postgres: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Tables and lists are written from PostgreSQL, too."""
    where = ["--project", "generated", "--database-url", filled_postgres, "--format", "json"]
    names: tuple[TableName, ...] = ("codes", "failures")
    for name in names:
        assert run(["table", name, UNTIL, *where]) == 0
        said = json.loads(capfd.readouterr().out)
        assert said == _rows(filled_postgres, name)


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["failures", pytest.param("issues", marks=pytest.mark.long)])
def test_a_table_of_postgres_on_the_terminal(
    name: str, filled_postgres: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tags and near misses, which that driver gives as they are and not as text, are printed."""
    asked = ["table", name, UNTIL, "--project", "generated", "--database-url", filled_postgres]
    assert run(asked) == 0
    assert len(capfd.readouterr().out.splitlines()) > 50


@pytest.mark.parametrize("terminal", ["0", pytest.param("1", marks=pytest.mark.long)])
def test_a_narrow_terminal_shows_what_matters_first(
    terminal: str, url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns every line fits and the others are counted; ``--wide`` shows them all.

    So does what is piped, where ``COLUMNS`` says how wide that is.
    """
    monkeypatch.setenv("TTY_COMPATIBLE", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    asked = ["table", "fixes", UNTIL, "--project", "generated", "--database-url", url]
    monkeypatch.setenv("COLUMNS", "80")
    assert run(asked) == 0
    narrow = capfd.readouterr()
    assert "--wide shows them" in narrow.err
    lines = re.sub(r"\x1b\[\d*m", "", narrow.out).splitlines()
    assert max(map(len, lines)) <= 80
    head = lines[2]
    assert [word in head for word in ("title", "saved", "failures", "remedy")] == [
        True, True, True, False,
    ]  # fmt: skip
    monkeypatch.setenv("COLUMNS", "300")
    assert run([*asked, "--wide"]) == 0
    wide = capfd.readouterr()
    assert "remedy" in wide.out
    assert "--wide" not in wide.err
