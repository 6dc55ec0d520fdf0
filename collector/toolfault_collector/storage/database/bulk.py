"""Many rows in few statements: plain SQL for the write path, spelled for both engines.

Ingest writes some 70 columns per call; building and compiling expression objects per batch would
cost more than the database does. Names come from `tables`, values are always bound. SQLite is asked
through its driver alone, which answers in a tenth of the time that SQLAlchemy's results take, and
is given many rows with each run of a prepared statement; PostgreSQL, where every row of that kind
is a message, is given columns as arrays, or a COPY (see `postgres`).
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Table

from toolfault_collector.storage.database import postgres as arrays
from toolfault_collector.storage.database.engine import is_sqlite

__all__ = [
    "allocate_ids",
    "bind",
    "columns",
    "fetch",
    "find_rows",
    "insert_rows",
    "run",
    "select_in",
    "update_rows",
    "upsert_rows",
]

Rows = Sequence[tuple[Any, ...]]

# With so many rows a statement of SQLite costs a quarter less per row (7.3 us instead of 9.8 for a
# call), and its values stay far below the limit of 32,766.
ROWS_AT_ONCE: Final = 64


def columns(names: str) -> tuple[str, ...]:
    """Return the column names in *names*, which are separated by spaces."""
    return tuple(names.split())


def bind(conn: Connection, sql: str) -> str:
    """Return *sql* with its ``?`` as the driver of *conn* spells bound values."""
    return sql if is_sqlite(conn) else sql.replace("?", "%s")


def fetch(conn: Connection, sql: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
    """Return the rows of *sql*, in which each ``?`` is the next of *parameters*."""
    driver = _sqlite(conn)
    if driver is None:
        return conn.exec_driver_sql(sql.replace("?", "%s"), tuple(parameters)).all()
    return driver.execute(sql, parameters).fetchall()


def run(conn: Connection, sql: str, rows: Rows) -> int:
    """Run *sql* once per row of *rows*, each ``?`` one bound value; return the rows it changed."""
    if not rows:
        return 0
    driver = _sqlite(conn)
    if driver is None:
        return conn.exec_driver_sql(sql.replace("?", "%s"), list(rows)).rowcount
    return driver.executemany(sql, rows).rowcount


def insert_rows(conn: Connection, table: Table, names: tuple[str, ...], rows: Rows) -> None:
    """Insert *rows* of *table*, whose values are in the order of the columns *names*.

    Without the columns in which every row has null: half of those of a call are empty for all
    calls of most batches, and binding nothing costs as much as binding something.
    """
    if not rows:
        return
    needed, count = _with_default(table), len(rows)
    used = [
        (name, values)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
        if values[0] is not None or values.count(None) < count or name in needed
    ]
    if len(used) < len(names):
        # Turned around twice: cheaper than to pick from each row (0.9 us a call, not 1.1 to 1.3).
        names = tuple([name for name, _ in used])
        rows = list(zip(*[values for _, values in used], strict=True))
    driver = _sqlite(conn)
    if driver is None:
        arrays.copy_rows(conn, table, names, rows)
    else:
        _insert_many(driver, table, names, rows)


def upsert_rows(
    conn: Connection,
    table: Table,
    names: tuple[str, ...],
    *,
    key: tuple[str, ...],
    rows: Rows,
    add: bool = False,
    keep: frozenset[str] = frozenset(),
) -> None:
    """Insert *rows* of *table*, or overwrite those that share the columns *key*.

    Args:
        conn: In a write transaction.
        table: Where to.
        names: The columns of a row, in order.
        key: A unique constraint; *rows* are in its order, in which PostgreSQL locks them.
        rows: The rows.
        add: Add the other columns to those that are stored, instead of overwriting them.
        keep: Columns that are left as they are stored. SQLite writes the entry of every index
            that has a column which is set, whether its value is another or not.
    """
    if not rows:
        return
    conflict = _on_conflict(table, names, key=key, keep=keep, add=add)
    driver = _sqlite(conn)
    if driver is None:
        arrays.insert_arrays(conn, table, names, rows=rows, conflict=conflict)
    else:
        _insert_many(driver, table, names, rows, conflict)


def update_rows(
    conn: Connection, table: Table, names: tuple[str, ...], *, change: str, rows: Rows
) -> None:
    """Update the rows of *table* whose ``id`` is the first value of one of *rows*.

    Args:
        conn: In a write transaction.
        table: What to update, named ``t`` in *change*.
        names: Columns of *rows*, named ``given`` in *change*; the first is ``id``.
        change: The SET clause.
        rows: In the order of their ids, in which PostgreSQL locks them.
    """
    if not rows:
        return
    driver = _sqlite(conn)
    if driver is None:
        arrays.update_arrays(conn, table, names, change=change, rows=rows)
        return
    for place, name in enumerate(names, 1):
        change = change.replace(f"given.{name}", f"?{place}")
    driver.executemany(f'UPDATE "{table.name}" AS t SET {change} WHERE t.id = ?1', rows)


def find_rows(
    conn: Connection,
    table: Table,
    names: tuple[str, ...],
    *,
    key: str,
    among: Iterable[tuple[int, str]],
    lock: bool = False,
) -> Sequence[Any]:
    """Return the columns *names* of the rows whose *key*, unique in its project, is in *among*.

    Args:
        conn: An open connection.
        table: Where to look.
        names: What to return.
        key: A column that is unique within a project.
        among: Projects and values of *key*, in the order in which rows are locked.
        lock: Keep the rows locked until the transaction ends (PostgreSQL).
    """
    wanted = list(among)
    if not wanted:
        return []
    driver = _sqlite(conn)
    if driver is None:
        return arrays.find_keys(conn, table, names, key=key, among=wanted, lock=lock)
    by_project: dict[int, list[str]] = {}
    for project_id, value in wanted:
        by_project.setdefault(project_id, []).append(value)
    sql = (
        f"SELECT {', '.join(names)} FROM {table.name}"
        f" WHERE project_id = ? AND {key} IN (SELECT value FROM json_each(?))"
    )
    found: list[Any] = []
    for project_id, values in by_project.items():
        found += driver.execute(sql, (project_id, msgspec.json.encode(values).decode()))
    return found


def select_in(
    conn: Connection, sql: str, *, fixed: tuple[Any, ...] = (), among: Iterable[Any]
) -> Sequence[Any]:
    """Return the rows of *sql*, in which ``?`` are *fixed* and ``IN ?`` ends in the list *among*.

    The list is one bound value on both engines, so its length changes no statement and meets no
    limit on parameters.
    """
    values = list(among)
    if not values:
        return []
    if is_sqlite(conn):
        text = sql.replace("IN ?", "IN (SELECT value FROM json_each(?))")
        return fetch(conn, text, (*fixed, msgspec.json.encode(values).decode()))
    return fetch(conn, sql.replace("IN ?", "= ANY(?)"), (*fixed, arrays.array_text(values)))


def allocate_ids(conn: Connection, table: Table, count: int) -> Sequence[int]:
    """Return *count* unused ids of *table*; the caller is in a write transaction."""
    driver = _sqlite(conn)
    if driver is None:
        sql = f"SELECT nextval('{table.name}_id_seq') FROM generate_series(1, %s)"
        return conn.exec_driver_sql(sql, (count,)).scalars().all()
    # Nobody else can insert until this transaction ends.
    (newest,) = driver.execute(f"SELECT max(id) FROM {table.name}").fetchone()
    return range((newest or 0) + 1, (newest or 0) + 1 + count)


def _insert_many(
    driver: sqlite3.Connection, table: Table, names: tuple[str, ...], rows: Rows, conflict: str = ""
) -> None:
    """Insert *rows* in few statements.

    They fail without taking back their own first rows (``OR FAIL``), for which SQLite would have to
    keep a second journal: whoever writes in bulk gives up the transaction.
    """
    start = 0
    for size in _portions(len(rows)):
        values = list(chain.from_iterable(rows[start : start + size]))
        driver.execute(_insert(table, names, conflict, rows=size), values)
        start += size


@lru_cache(maxsize=4_096)
def _portions(count: int) -> tuple[int, ...]:
    """Return sizes that add up to *count*, of which there are few: each is a prepared statement."""
    whole, left = divmod(count, ROWS_AT_ONCE)
    sizes = [ROWS_AT_ONCE >> step for step in range(1, ROWS_AT_ONCE.bit_length())]
    return (*[ROWS_AT_ONCE] * whole, *[size for size in sizes if left & size])


def _sqlite(conn: Connection) -> sqlite3.Connection | None:
    """Return the driver's own connection if it is SQLite's.

    Whoever has *conn* has begun a transaction on it.
    """
    driver = conn.connection.driver_connection
    return driver if isinstance(driver, sqlite3.Connection) else None


@lru_cache(maxsize=32)
def _with_default(table: Table) -> frozenset[str]:
    """Return the columns of *table* in which leaving out is not the same as null."""
    return frozenset(
        column.name
        for column in table.c
        if column.server_default is not None or not column.nullable
    )


@lru_cache(maxsize=256)
def _insert(table: Table, names: tuple[str, ...], conflict: str = "", *, rows: int = 1) -> str:
    marks = ", ".join("?" * len(names))
    values = ", ".join([f"({marks})"] * rows)
    return f'INSERT OR FAIL INTO "{table.name}" ({_quoted(names)}) VALUES {values} {conflict}'


@lru_cache(maxsize=128)
def _on_conflict(
    table: Table, names: tuple[str, ...], *, key: tuple[str, ...], keep: frozenset[str], add: bool
) -> str:
    """Return the clause that makes an insert an upsert; both engines spell it alike."""
    old = f'"{table.name}"."{{0}}" + ' if add else ""
    changed = [
        f'"{name}" = {old.format(name)}excluded."{name}"'
        for name in names
        if name not in key and name not in keep
    ]
    return f"ON CONFLICT ({_quoted(key)}) DO UPDATE SET {', '.join(changed)}"


def _quoted(names: tuple[str, ...]) -> str:
    return '"' + '", "'.join(names) + '"'
