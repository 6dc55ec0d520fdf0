"""PostgreSQL, given many rows at once: COPY, columns as arrays, and lookups by index.

Every row of an ``executemany`` is a message to bind and run; a COPY or a statement over arrays is
one. A lookup by a list of keys is written as one index scan per key: on a table that has grown
since it was last analysed, the planner would rather read all of it.

Arrays are written as literals here: the driver looks at every element for characters that need
quotes, which costs as much as all else it does for a batch.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import psycopg
from sqlalchemy import JSON, BigInteger, Boolean, Connection, Float, Integer, Table

__all__ = ["array_text", "copy_rows", "find_keys", "insert_arrays", "insert_new", "update_arrays"]

Rows = Sequence[tuple[Any, ...]]

# The order matters: BigInteger is an Integer to SQLAlchemy.
_TYPES: Final = (
    (BigInteger, "bigint"),
    (Integer, "integer"),
    (Float, "double precision"),
    (Boolean, "boolean"),
)
# Columns of one kind are written at once.
_NUMBERS: Final = {int, float}
_TEXTS: Final = {str}


def copy_rows(conn: Connection, table: Table, names: tuple[str, ...], rows: Rows) -> None:
    """Copy *rows*, whose values are in the order of the columns *names*, into *table*."""
    driver = conn.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    quoted = ", ".join(f'"{name}"' for name in names)
    sql = f'COPY "{table.name}" ({quoted}) FROM STDIN'
    with driver.cursor() as cursor, cursor.copy(sql.encode()) as copy:
        for row in rows:
            copy.write_row(row)


def array_text(values: Iterable[object]) -> str:
    """Return *values* (texts, numbers, truths, None) as the text of a PostgreSQL array."""
    values = list(values)
    kinds = set(map(type, values))
    if kinds <= _NUMBERS:
        return "{" + repr(values)[1:-1] + "}"
    if kinds == _TEXTS:
        joined = '","'.join(values)  # type: ignore[arg-type]
        if "\\" not in joined and joined.count('"') == 2 * (len(values) - 1):
            return '{"' + joined + '"}'
    return "{" + ",".join(map(_element, values)) + "}"


def insert_arrays(
    conn: Connection,
    table: Table,
    names: tuple[str, ...],
    *,
    rows: Rows,
    conflict: str,
    returning: str = "",
) -> Sequence[Any]:
    """Insert *rows* in their order and return *returning* of those that were written.

    Args:
        conn: In a write transaction.
        table: Where to.
        names: The columns of a row, in order.
        rows: The rows.
        conflict: What happens where one is there already.
        returning: Columns to return, if any.
    """
    quoted = ", ".join(f'"{name}"' for name in names)
    source, shown = _unnest(table, names)
    sql = f'INSERT INTO "{table.name}" ({quoted}) SELECT {shown} FROM {source} {conflict}'
    if not returning:
        conn.exec_driver_sql(sql, _columns(rows))
        return []
    return conn.exec_driver_sql(f"{sql} RETURNING {returning}", _columns(rows)).all()


def insert_new(conn: Connection, table: Table, names: tuple[str, ...], rows: Rows) -> int:
    """Insert those of *rows*, in their order, that are not there; return how many there were.

    Where another transaction has written the same and not yet committed, this waits for it.
    """
    quoted = ", ".join(f'"{name}"' for name in names)
    source, shown = _unnest(table, names)
    sql = f'INSERT INTO "{table.name}" ({quoted}) SELECT {shown} FROM {source}'
    return conn.exec_driver_sql(f"{sql} ON CONFLICT DO NOTHING", _columns(rows)).rowcount


def update_arrays(
    conn: Connection, table: Table, names: tuple[str, ...], *, change: str, rows: Rows
) -> int:
    """Update the rows whose ``id`` is the first of *names*; return how many there were.

    Args:
        conn: In a write transaction.
        table: What to update.
        names: Columns of the rows of *rows*, named ``given`` in *change*.
        change: The SET clause.
        rows: In the order of their ids, in which they are locked.
    """
    ids = [row[0] for row in rows]
    lock = f'SELECT id FROM "{table.name}" WHERE id = ANY(%s) ORDER BY id FOR UPDATE'
    conn.exec_driver_sql(lock, (ids,))
    source, _ = _unnest(table, names)
    sql = f'UPDATE "{table.name}" AS t SET {change} FROM {source} WHERE t.id = given.id'
    return conn.exec_driver_sql(sql, _columns(rows)).rowcount


def find_keys(
    conn: Connection,
    table: Table,
    names: tuple[str, ...],
    *,
    key: str,
    among: Sequence[tuple[int, str]],
    lock: bool,
) -> Sequence[Any]:
    """Return the columns *names* of the rows whose project and unique *key* are *among* these."""
    shown = ", ".join(names)
    one = f"SELECT {shown} FROM {table.name} WHERE project_id = p AND {key} = k LIMIT 1"
    locked = " FOR UPDATE" if lock else ""
    sql = (
        "SELECT found.* FROM unnest(%s::int[], %s::text[]) WITH ORDINALITY AS wanted(p, k, place)"
        f" CROSS JOIN LATERAL ({one}{locked}) AS found"
    )
    return conn.exec_driver_sql(sql, _columns(among)).all()


@lru_cache(maxsize=128)
def _unnest(table: Table, names: tuple[str, ...]) -> tuple[str, str]:
    """Return a row source over one array per column, and the list that selects from it."""
    arguments = ", ".join(f"%s::{_type(table, name)}[]" for name in names)
    quoted = ", ".join(f'"{name}"' for name in names)
    shown = ", ".join(
        f'given."{name}"::json' if isinstance(table.c[name].type, JSON) else f'given."{name}"'
        for name in names
    )
    return f"unnest({arguments}) AS given({quoted})", shown


def _type(table: Table, name: str) -> str:
    kind = table.c[name].type
    return next((text for each, text in _TYPES if isinstance(kind, each)), "text")


def _columns(rows: Rows) -> tuple[str, ...]:
    return tuple(array_text(column) for column in zip(*rows, strict=True))


def _element(value: object) -> str:
    if isinstance(value, str):
        if '"' in value or "\\" in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    return "NULL" if value is None else str(value)  # true and false are read in any case
