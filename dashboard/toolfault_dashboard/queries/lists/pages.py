"""Keyset pagination over (time, row number), newest first, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, tuple_

from toolfault_dashboard.queries.lists.cursors import Cursor, Direction, read_cursor, write_cursor
from toolfault_dashboard.queries.scope import Scope

__all__ = ["MAX_LIMIT", "Page", "read_page"]

MAX_LIMIT: Final = 500
"""Rows of one page; a larger limit is cut to this."""


@dataclass(frozen=True, slots=True)
class Page:
    """Database rows of one page, newest first, and the cursors beside it."""

    rows: list[RowMapping]
    next_cursor: str | None
    previous_cursor: str | None


def read_page(
    conn: Connection,
    scope: Scope,
    *,
    kind: str,
    statement: Select[Any],
    key: tuple[ColumnElement[Any], ColumnElement[Any]],
    cursor: str | None,
    limit: int,
) -> Page:
    """Read one page of *statement*.

    Args:
        conn: Open connection.
        scope: The scope the statement was built from; cursors are bound to it.
        kind: Name of the list.
        statement: Unordered select that yields *key* as columns ``_at`` and ``_row``.
        key: Sort time in microseconds and row number, unique together.
        cursor: Text of an earlier page, or None for the newest rows.
        limit: Rows wanted, cut to 1..500.

    Raises:
        CursorError: The cursor is not one of this list.
    """
    limit = max(1, min(limit, MAX_LIMIT))
    at = read_cursor(scope, kind, cursor) if cursor else None
    newer = at is not None and at.direction == "newer"
    if at is not None:
        here, there = tuple_(*key), tuple_(at.at, at.row)
        statement = statement.where(here > there if newer else here < there)
    order = [column.asc() if newer else column.desc() for column in key]
    rows = list(conn.execute(statement.order_by(*order).limit(limit + 1)).mappings())
    more = len(rows) > limit
    rows = rows[:limit]
    if newer:
        rows.reverse()
    if not rows:
        return Page(rows=[], next_cursor=None, previous_cursor=None)

    def text(direction: Direction, row: RowMapping) -> str:
        return write_cursor(scope, kind, Cursor(direction, row["_at"], row["_row"]))

    has_older = more if not newer else True
    has_newer = more if newer else at is not None
    return Page(
        rows=rows,
        next_cursor=text("older", rows[-1]) if has_older else None,
        previous_cursor=text("newer", rows[0]) if has_newer else None,
    )
