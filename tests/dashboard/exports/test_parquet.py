"""Parquet and weekly reports."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.dashboard.generated import NOW
from tests.dashboard.reading import Page

from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.fixes.opportunities import FixKey
from toolfault_dashboard.analysis.fixes.remedies import advice
from toolfault_dashboard.exports import table_stream, write
from toolfault_dashboard.exports.weekly import weekly_report
from toolfault_dashboard.formats import percent
from toolfault_dashboard.queries import RowStream, Scope
from toolfault_dashboard.queries.rows import FrequencyRow

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def _read(stream: RowStream) -> Any:
    return pq.read_table(io.BytesIO(b"".join(write(stream, "parquet"))))


def test_parquet_is_the_list(conn: Connection, scope: Scope) -> None:
    """Every failure is in it once, with times as times and numbers as numbers."""
    table = _read(queries.iter_failures(conn, scope))
    assert table.num_rows == queries.count_failures(conn, scope)
    assert table.schema.field("occurred_at").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("attempt").type == pa.int64()
    assert table.schema.field("duration_ms").type == pa.float64()
    assert table.schema.field("retryable").type == pa.bool_()
    rows = table.to_pylist()
    stream = queries.iter_failures(conn, scope)
    place = stream.columns.index("event_id")
    assert [row["event_id"] for row in rows] == [row[place] for row in stream.rows]
    for row in rows:
        assert (row["occurred_at"] is None) == (row["time_source"] == "none")


def test_tables_keep_their_numbers(conn: Connection, scope: Scope) -> None:
    """A computed table has rates as numbers and counts as integers."""
    table = _read(table_stream(queries.frequency(conn, scope, "code").rows, FrequencyRow))
    kinds = {field.name: field.type for field in table.schema}
    assert kinds["rate"] == kinds["rate_low"] == pa.float64()
    assert kinds["rate_n"] == kinds["failures"] == pa.int64()
    assert kinds["name"] == pa.string()


def test_row_groups_stream() -> None:
    """A large file comes in parts and is whole; an empty one is a file too."""
    rows = ([number, f"x{number}"] for number in range(45_000))
    stream = RowStream(("n", "t"), frozenset(), rows, {"n": "integer"})
    parts = list(write(stream, "parquet"))
    assert len(parts) == 4
    assert pq.read_table(io.BytesIO(b"".join(parts))).num_rows == 45_000
    assert _read(RowStream(("n",), frozenset(), iter([]))).num_rows == 0


def _breaking() -> Iterator[Sequence[Any]]:
    for number in range(45_000):
        yield [number]
    raise OSError("gone")


def test_a_broken_file_is_no_file() -> None:
    """A Parquet file that broke off cannot be read as a whole one."""
    got: list[bytes] = []
    with pytest.raises(OSError, match="gone"):
        got.extend(write(RowStream(("n",), frozenset(), _breaking(), {"n": "integer"}), "parquet"))
    assert got
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(io.BytesIO(b"".join(got)))


def _has_both_weeks(conn: Connection, scope: Scope, text: str) -> None:
    parts: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in csv.DictReader(io.StringIO(text, newline="")):
        parts[row["part"]][row["row"].removeprefix("'")][row["column"]] = row["value"]
    weeks = {
        "this week": "since:7d until:0s -time:none",
        "the week before": "since:14d until:7d -time:none",
    }
    for column, query in weeks.items():
        found = queries.overview(conn, scope.narrowed(query))
        seen = {name: row[column] for name, row in parts["This week"].items()}
        for name in ("conversations", "calls", "failures", "chains", "recovered", "round_trips"):
            assert int(seen[name.replace("_", " ")]) == getattr(found.summary, name), (column, name)
        for name in ("failure_rate", "first_try", "recovery_rate"):
            assert seen[name.replace("_", " ")] == percent(getattr(found, name).value)
    week = scope.narrowed(weeks["this week"])
    tables: dict[str, queries.Dimension] = {"Codes": "code", "Tools": "tool"}
    for part, by in tables.items():
        expected = queries.frequency(conn, week, by, limit=10).rows
        assert [(name, row["failures"], row["of calls"]) for name, row in parts[part].items()] == [
            (row.name, str(row.failures), percent(row.rate.value)) for row in expected
        ]
    assert len(parts["Fix next"]) == len(queries.fix_next(conn, week, limit=10).rows)


# Both engines give the same week: tests/dashboard/queries.
on_sqlite = pytest.mark.parametrize("history_url", ["sqlite"], indirect=True, scope="session")


@on_sqlite
@pytest.mark.parametrize("format_", ["html", "markdown", "csv"])
def test_weekly_report(conn: Connection, scope: Scope, format_: Any) -> None:
    """The week's figures are those of the week's query, in every format, without scripts."""
    week = queries.weekly(conn, scope)
    text = weekly_report(week, "<b>project</b>", format_)
    assert "<b>" not in text
    assert "://" not in text  # nobody said where the dashboard is
    if format_ == "csv":
        _has_both_weeks(conn, scope, text)
    asked = scope.narrowed("since:7d until:0s -time:none")
    tools = [(row.name, row.failures) for row in queries.frequency(conn, asked, "tool").rows[:10]]
    assert len(tools) > 3
    if format_ == "markdown":
        lines = text.partition("## Tools")[2].partition("\n## ")[0].splitlines()
        shown = [line.replace("\\", "").split(" | ")[:2] for line in lines[4:]]
        assert shown == [[f"| {name}", str(failures)] for name, failures in tools]
    if format_ == "html":
        page = Page(text)
        assert page.tag.find("script") is None
        assert len(page.tables) >= 5
        names = [each.get_text() for each in page.tag.find_all("caption")]
        table = dict(zip(names, page.tables, strict=True))["Tools"]
        name, *_ = table.headings
        assert [(row[name].text, row["failures"].number) for row in table.rows] == tools


@on_sqlite
def test_the_lines_of_a_week_are_told_apart(conn: Connection, scope: Scope) -> None:
    """No two lines of a part have the same name, whatever labels and messages are alike."""
    week = queries.weekly(conn, scope, end=NOW - 5 * DAY_US)
    assert len({change.label for change in week.changes}) < len(week.changes)
    fixes = [
        replace(week.fixes[0], remedy=key.remedy, title=advice(key).title, detail=key.detail)
        for key in (
            FixKey("search", "kind", "fold_case"),
            FixKey("search", "kind", "close_choice"),
            FixKey("search", "", "reword", "no such page"),
            FixKey("search", "", "reword", "no such shelf"),
            FixKey("search", "", "reword", "=1"),
            FixKey("search", "", "reword", "=1"),
            FixKey("search", "", "reword", "=1 (2)"),
        )
    ]
    text = weekly_report(replace(week, fixes=tuple(fixes), fixes_of=7), "project", "csv")
    cells = [(row["part"], row["row"], row["column"]) for row in csv.DictReader(io.StringIO(text))]
    assert len(cells) == len(set(cells))
    names = [name for part, name, column in cells if column == "failures" and "newest 7" in part]
    assert names == [
        "Ignore upper and lower case in search.kind",
        "Accept a close choice in search.kind",
        *(
            f"Reword this message of search: say which argument to change, and to what: {text}"
            for text in ("no such page", "no such shelf", "=1", "=1 (2)", "=1 (2) (2)")
        ),
    ]
