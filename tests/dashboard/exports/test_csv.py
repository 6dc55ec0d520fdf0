"""Exports: inert in a spreadsheet, exact for a program, visible when broken."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Text, column, select, values

from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_dashboard import queries
from toolfault_dashboard.exports import csv_cells, parquet, table_stream, write
from toolfault_dashboard.exports.cells import guard
from toolfault_dashboard.queries import RowStream, Scope
from toolfault_dashboard.queries.lists import streams
from toolfault_dashboard.queries.lists.lines import read_lines
from toolfault_dashboard.queries.rows import FrequencyRow

SIGNS = "=+-@"
STARTS = [
    *(lead + sign + "1+1" for sign in SIGNS for lead in
      ("", " ", "  ", "\t", "\r", "\n", "\r\n", "\x00", "\ufeff", "\u200b", "\u00a0", "\u2028",
       '"', "'", '""', "\u202e")),
    "＝1+1", "＋1", "－1", "＠SUM(A1)", " ＝1", "-", "=", "\t", "\r", "\n", "\x00",
    "|calc", "%0A=1", "-1+1", "+1 555 0100", "--1", "@SUM(1+1)*cmd|' /C calc'!A0",
    '"=HYPERLINK(""http://x"")', '=HYPERLINK("http://x?"&A1)', "-2+3+cmd|' /C calc'!A0",
]  # fmt: skip


def _stream(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> RowStream:
    return RowStream(tuple(columns), frozenset(), iter(rows))


def _csv(stream: RowStream, **how: bool) -> str:
    return b"".join(write(stream, "csv", **how)).decode()


def _read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def _is_formula(cell: str) -> bool:
    """What the most forgiving spreadsheet would run."""
    if cell[:1] in ("\t", "\r", "\n", "\x00"):
        return True
    seen = cell.lstrip(" \t\r\n\x00\ufeff\u200b\u00a0\u2028\u202e\"'" if cell[:1] != "'" else "")
    return seen[:1] in tuple("=+-@＝＋－＠")


@pytest.mark.parametrize("place", [0, 2])
def test_no_cell_begins_a_formula(place: int) -> None:
    """No cell of a first or last column begins with what a spreadsheet would run."""
    rows = [["a"] * place + [text] + ["c"] * (2 - place) for text in STARTS]
    for cells, text in zip(_read(_csv(_stream("xyz", rows)))[1:], STARTS, strict=True):
        assert not _is_formula(cells[place]), cells[place]
        assert cells[place] == "'" + text


def test_no_heading_begins_a_formula() -> None:
    """Names of columns may come from senders: they are guarded as cells are."""
    (header,) = _read(_csv(_stream(STARTS, [])))
    assert header == ["'" + text for text in STARTS]
    assert not any(map(_is_formula, header))


@pytest.mark.parametrize("number", ["-5.2", "+3", "-1e-9", "0", "-17"])
def test_numbers_survive(number: str) -> None:
    """A negative number is data, as a number and as text."""
    parsed = _read(_csv(_stream(["n", "t"], [[float(number), number]])))
    assert parsed[1] == [repr(float(number)), number]


@given(st.lists(st.lists(st.text(st.characters(codec="utf-8")), min_size=2, max_size=2)))
@example([["", "'|"]])  # its apostrophe is its own, and another one guards it
@settings(max_examples=300, deadline=None)
def test_any_text_comes_back(rows: list[list[str]]) -> None:
    """A CSV is read back as what was written; only the guard's apostrophe is added."""
    parsed = _read(_csv(_stream(["a", "b"], rows)))[1:]
    assert len(parsed) == len(rows)
    for read, row in zip(parsed, rows, strict=True):
        for cell, text in zip(read, row, strict=True):
            assert cell in (text, "'" + text)
    raw = _read(_csv(_stream(["a", "b"], rows), raw=True))[1:]
    assert raw == rows
    assert not any(_is_formula(cell) for row in parsed for cell in row
                   if not cell.lstrip("+-").replace(".", "", 1).isdigit())  # fmt: skip


def test_lines_end_as_the_standard_says() -> None:
    """RFC 4180: CRLF after every record, one header, quotes only where needed."""
    assert _csv(_stream(["a", "b"], [["x", None], ["y,z", 'say "hi"']])) == (
        'a,b\r\nx,\r\n"y,z","say ""hi"""\r\n'
    )


def test_excel_gets_its_mark() -> None:
    """Excel begins with a byte order mark; nothing else does."""
    stream = _stream(["a"], [["ü"]])
    assert b"".join(write(stream, "csv", excel=True)).startswith(b"\xef\xbb\xbfa\r\n")
    assert not b"".join(write(_stream(["a"], []), "csv")).startswith(b"\xef\xbb\xbf")


def test_values_keep_their_kind() -> None:
    """JSON keeps numbers, booleans, null and lists; CSV writes booleans as true and false."""
    row = [1, 2.5, True, None, ["a"], {"k": "ü"}]
    columns = list("abcdef")
    assert json.loads(b"".join(write(_stream(columns, [row]), "json"))) == [
        dict(zip(columns, row, strict=True))
    ]
    assert _read(_csv(_stream(columns, [row])))[1] == [
        "1", "2.5", "true", "", '["a"]', '{"k":"ü"}',
    ]  # fmt: skip


def test_times_are_utc_text_and_empty_where_there_are_none(conn: Connection, scope: Scope) -> None:
    """Every export writes RFC 3339 times, and nothing for a source without times."""
    for format_ in ("csv", "ndjson", "json"):
        data = b"".join(write(queries.iter_failures(conn, scope), format_)).decode()
        if format_ == "csv":
            rows = list(csv.DictReader(io.StringIO(data, newline="")))
        elif format_ == "json":
            rows = json.loads(data)
        else:
            rows = [json.loads(line) for line in data.splitlines()]
        assert len(rows) == queries.summary(conn, scope).failures
        for row in rows:
            if row["time_source"] == "none":
                assert not row["occurred_at"]
            else:
                assert row["occurred_at"].endswith("Z")
                assert row["occurred_at"] < "2026-11-20T12:00:00.1Z"


def _breaking(rows: int) -> Iterator[Sequence[Any]]:
    for number in range(rows):
        yield [number]
    raise OSError("the database went away")


@pytest.mark.parametrize("format_", ["csv", "ndjson", "json"])
def test_a_broken_stream_says_so(format_: Any) -> None:
    """The last line of an export that broke off says that it did, and no JSON reader accepts it."""
    stream = RowStream(("a",), frozenset(), _breaking(3))
    got: list[bytes] = []
    with pytest.raises(OSError, match="went away"):
        got.extend(write(stream, format_))
    text = b"".join(got).decode()
    assert "broke off after 3 rows" in text.splitlines()[-1]
    if format_ == "json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)


def test_memory_stays_flat() -> None:
    """An export of 60,000 rows needs no more memory than its chunks."""
    rows = ([f"row {number}", "x" * 100] for number in range(60_000))
    stream = RowStream(("a", "b"), frozenset(), rows)
    tracemalloc.start()
    size = sum(len(chunk) for chunk in write(stream, "csv"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 6_000_000
    assert peak < 4_000_000


def test_a_table_exports_what_it_shows(conn: Connection, scope: Scope) -> None:
    """A table of rates exports value, interval and n of each row."""
    table = queries.frequency(conn, scope, "code")
    text = b"".join(write(table_stream(table.rows, FrequencyRow), "csv")).decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(r["name"], int(r["failures"]), int(r["rate_n"])) for r in rows] == [
        (row.name, row.failures, row.rate.n) for row in table.rows
    ]
    assert rows[0]["first_at"].endswith("Z")


def _as_copied(conn: Connection, texts: Sequence[str], *, raw: bool) -> list[list[str]]:
    """What PostgreSQL makes of *texts*, one per record."""
    given = values(column("text", Text), name="given").data([(text,) for text in texts])
    lines = read_lines(
        conn,
        select(given.c.text),
        times=frozenset(),
        kinds={},
        inert=frozenset(),
        guard=None if raw else guard(),
    )
    records = b"\r\n".join(line for part in lines for line in part)
    return _read(records.decode())


@pytest.mark.parametrize("raw", [False, True])
def test_the_database_guards_as_python_does(conn: Connection, raw: bool) -> None:
    """A line that PostgreSQL makes has the cells that Python would make, formula or not."""
    if is_sqlite(conn):
        pytest.skip("SQLite's lines are made by Python")
    starts = [text for text in STARTS if "\x00" not in text]
    starts += [lead + "=1" for lead in ("\u3164", "\u115f", "\xad", "\x1f", "x", "“", "\u2800")]
    starts += ["-5.2", "+3", "-1e-9", "-1e", "−1", "ü", 'a "b", c', "a\r\nb", "1,5", "\\", "[=1]"]
    stream = _stream(["text"], [[text] for text in starts])
    assert _as_copied(conn, starts, raw=raw) == _read(_csv(stream, raw=raw))[1:]


@pytest.mark.parametrize("table", ["iter_failures", "iter_chains", "iter_issues"])
@pytest.mark.parametrize("raw", [False, True])
def test_the_database_writes_what_the_rows_say(
    conn: Connection, scope: Scope, table: str, raw: bool
) -> None:
    """CSV records made by the database are those made of the rows one by one."""
    stream = getattr(queries, table)(conn, scope)
    made = _read(_csv(replace(stream, lines=None), raw=raw))
    stream = getattr(queries, table)(conn, scope)
    assert len(made) > 100
    assert _read(_csv(stream, raw=raw)) == made


@pytest.mark.parametrize("rows", [queries.iter_failures, queries.iter_chains])
@pytest.mark.parametrize("known", [1, 20_000])
def test_packed_columns_are_the_columns(
    conn: Connection, scope: Scope, rows: Any, known: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that come together are written as if each came by itself, remembered or not."""
    if not is_sqlite(conn):
        pytest.skip("PostgreSQL makes the lines itself")
    for module in (csv_cells, parquet, streams):
        monkeypatch.setattr(module, "MOST_KNOWN", known)
    assert any(len(names) > 1 for names in rows(conn, scope).packed.names)
    for options in ({"raw": False}, {"raw": True}):
        packed = b"".join(write(rows(conn, scope), "csv", **options))
        plain = b"".join(write(replace(rows(conn, scope), packed=None), "csv", **options))
        assert packed == plain
        assert packed.count(b"\r\n") > 20
    pq = pytest.importorskip("pyarrow.parquet")
    files = [
        io.BytesIO(b"".join(write(stream, "parquet")))
        for stream in (rows(conn, scope), replace(rows(conn, scope), packed=None))
    ]
    first, second = (pq.read_table(each) for each in files)
    assert first.schema == second.schema
    assert first.equals(second)
