"""``toolfault table``: every table of the dashboard on the terminal and as a file."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tests.dashboard.generated import NOW

from toolfault_collector.engine import open_engine, read_connection
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.exports import TABLE_NAMES, named_table
from toolfault_dashboard.queries import Scope, project_by_name
from toolfault_dashboard.search import parse

assert NOW


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_every_table_is_written(
    name: str, history_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """CSV and JSON have the rows of the query; the terminal shows the first of them."""
    common = ["--project", "generated", "--database-url", history_url]
    asked = ["table", name.replace("_", "-"), "until:2026-11-18", *common]
    assert run([*asked, "--format", "csv", "--raw"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out, newline="")))
    assert run([*asked, "--format", "json"]) == 0
    assert len(json.loads(capfd.readouterr().out)) == len(rows)
    engine = open_engine(history_url)
    with read_connection(engine) as conn:
        project = project_by_name(conn, "generated")
        assert project is not None
        scope = Scope(project.id, parse("until:2026-11-18"), NOW)
        assert len(list(named_table(conn, scope, name).rows)) == len(rows)  # type: ignore[arg-type]
    engine.dispose()
    assert rows or name == "silent_successes"
    assert run(asked) == 0
    assert name in capfd.readouterr().out


def test_an_unknown_table_names_the_known_ones(
    history_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A wrong name or format is answered with the right ones."""
    assert run(["table", "colours", "--database-url", history_url]) == 2
    assert "codes" in capfd.readouterr().err
    assert run(["table", "codes", "--format", "xml", "--database-url", history_url]) == 2
    assert "parquet" in capfd.readouterr().err
