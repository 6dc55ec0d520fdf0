"""Events that were refused, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from toolfault_collector.storage.tables import rejected_event
from toolfault_dashboard.queries.lists.pages import read_page
from toolfault_dashboard.queries.scope import Scope

__all__ = ["RejectedPage", "RejectedRow", "rejected_list"]


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """One refused event as it was kept: redacted and capped."""

    received_at: int
    event_id: str | None
    code: str
    pointer: str  # where in the batch it was wrong (RFC 6901)
    body: str | None


@dataclass(frozen=True, slots=True)
class RejectedPage:
    """A page of refused events, newest first, and how many there are by code."""

    rows: tuple[RejectedRow, ...]
    by_code: tuple[tuple[str, int], ...]  # most first
    next_cursor: str | None
    previous_cursor: str | None


def rejected_list(
    conn: Connection, scope: Scope, *, cursor: str | None = None, limit: int = 50
) -> RejectedPage:
    """Return one page of the refused events of the project; queries do not apply to them.

    Raises:
        CursorError: The cursor belongs to another list.
    """
    table = rejected_event.c
    statement = select(
        table.received_at,
        table.event_id,
        table.code,
        table.pointer,
        table.body,
        table.received_at.label("_at"),
        table.id.label("_row"),
    ).where(table.project_id == scope.project_id)
    page = read_page(
        conn,
        scope,
        kind="rejected",
        statement=statement,
        key=(table.received_at, table.id),
        cursor=cursor,
        limit=limit,
    )
    return RejectedPage(
        rows=tuple(_row(row) for row in page.rows),
        by_code=_by_code(conn, scope),
        next_cursor=page.next_cursor,
        previous_cursor=page.previous_cursor,
    )


def _row(row: Any) -> RejectedRow:
    return RejectedRow(row.received_at, row.event_id, row.code, row.pointer, row.body)


def _by_code(conn: Connection, scope: Scope) -> tuple[tuple[str, int], ...]:
    table = rejected_event.c
    rows: Sequence[Any] = conn.execute(
        select(table.code, func.count())
        .where(table.project_id == scope.project_id)
        .group_by(table.code)
    ).all()
    return tuple(sorted(((code, number) for code, number in rows), key=lambda each: -each[1]))
