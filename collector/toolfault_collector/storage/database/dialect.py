"""The dialect seam: the few statements SQLite and PostgreSQL spell differently."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Insert, Table, any_, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from toolfault_collector.storage.database.engine import is_sqlite

__all__ = ["among", "insert_ignore"]


def among(
    conn: Connection, column: ColumnElement[Any], values: Collection[Any]
) -> ColumnElement[bool]:
    """Return whether *column* is one of *values*, which are one bound value, however many."""
    if is_sqlite(conn):
        each = func.json_each(msgspec.json.encode(list(values)).decode()).table_valued("value")
        return column.in_(select(each.c.value))
    return column == any_(literal(list(values), postgresql.ARRAY(column.type)))


def insert_ignore(conn: Connection, table: Table) -> Insert:
    """Return an insert into *table* that skips rows a unique constraint already holds."""
    new = sqlite.insert(table) if is_sqlite(conn) else postgresql.insert(table)
    return new.on_conflict_do_nothing()
