"""CSV lines made by PostgreSQL: a row that Python need not take apart costs a tenth.

SQLite has nothing like COPY; lines put together in its SQL cost as much as those that Python makes
of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    case,
    cast,
    func,
    literal_column,
    not_,
)

__all__ = ["Guard", "read_lines"]

BATCH: Final = 500
"""Lines handed on at a time: some 300 KiB of failures."""


@dataclass(frozen=True, slots=True)
class Guard:
    """How a text becomes a cell that no spreadsheet runs.

    Attributes:
        harmless: Regular expression (PostgreSQL's) of beginnings that are no formula's.
        formula: Regular expression that finds the beginning of a formula.
        number: Regular expression of texts that are numbers and may stay as they are.
    """

    harmless: str
    formula: str
    number: str


def read_lines(
    conn: Connection,
    statement: Select[Any],
    *,
    times: frozenset[str],
    kinds: Mapping[str, str],
    inert: frozenset[str],
    guard: Guard | None,
) -> Iterator[Sequence[bytes]]:
    """Copy the rows of *statement* out as CSV lines without their ends, UTF-8, in batches.

    Args:
        conn: Open connection to PostgreSQL.
        statement: What to read.
        times: Columns that are microseconds since the epoch.
        kinds: Columns that are no text.
        inert: Columns of texts that need neither a guard nor quotes.
        guard: None writes texts as they are.
    """

    def kind(name: str) -> str:
        return "time" if name in times else "inert" if name in inert else kinds.get(name, "text")

    columns = [(kind(each.name), each) for each in statement.selected_columns]
    cells = [_cell(kind, column, guard).label(column.name) for kind, column in columns]
    compiled = statement.with_only_columns(*cells).compile(
        dialect=conn.dialect, compile_kwargs={"render_postcompile": True}
    )
    driver: Any = conn.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    sql = f"COPY ({compiled.string}) TO STDOUT (FORMAT csv)"
    with driver.cursor() as cursor, cursor.copy(sql.encode(), compiled.params) as copy:
        lines: list[bytes] = []
        for row in copy:
            lines.append(bytes(row[:-1]))  # PostgreSQL ends a line with a line feed alone
            if len(lines) == BATCH:
                yield lines
                lines = []
        yield lines


def _text(value: str) -> ColumnElement[str]:
    """Return *value*, of this code's own making, as part of the statement: no parameter each."""
    return literal_column("'" + value.replace("'", "''") + "'")


def _cell(kind: str, column: ColumnElement[Any], guard: Guard | None) -> ColumnElement[Any]:
    if kind == "time":
        moment: Any = literal_column("timestamp 'epoch'") + column * literal_column(
            "interval '1 microsecond'"
        )
        return func.to_char(moment, literal_column("""'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'"""))
    if kind == "boolean":
        return case((column.is_(True), "true"), (column.is_(False), "false"))
    text = cast(column, Text)
    if kind == "number":
        # As Python writes it: a whole number with its ".0".
        return case((text.op("~")(_text("^-?[0-9]+$")), text.op("||")(_text(".0"))), else_=text)
    if kind in {"integer", "inert"} or guard is None:
        return text

    def matches(pattern: str) -> ColumnElement[bool]:
        return text.op("~", is_comparison=True)(pattern)

    harmless = matches(guard.harmless)
    formula = matches(guard.formula) & not_(matches(guard.number))
    guarded = _text("'").op("||")(text)
    return case((harmless, text), (formula, guarded), else_=text)
