"""The dialect seam: the few statements SQLite and PostgreSQL spell differently."""

from __future__ import annotations

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

from toolfault_collector.engine import is_sqlite

__all__ = ["insert_ignore", "upsert"]


def insert_ignore(conn: Connection, table: Table) -> Insert:
    """Return an insert into *table* that skips rows a unique constraint already holds."""
    return _insert(conn, table).on_conflict_do_nothing()


def upsert(conn: Connection, table: Table, *, key: list[str], update: list[str]) -> Insert:
    """Return an insert into *table* that overwrites the columns *update* where *key* exists."""
    new = _insert(conn, table)
    return new.on_conflict_do_update(
        index_elements=key, set_={name: new.excluded[name] for name in update}
    )


def _insert(conn: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if is_sqlite(conn) else postgresql.insert(table)
