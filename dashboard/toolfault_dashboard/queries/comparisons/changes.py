"""Changes: markers that say that something was changed here, recorded or seen by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, or_, select

from toolfault_collector.storage.tables import change as change_table
from toolfault_dashboard.queries.comparisons.detected import PREFIX, detected_changes
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Query
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = ["all_changes", "change", "changes"]

_COLUMNS: Final = ("event_id", "occurred_at", "label", "tool", "kind", "source")


def all_changes(conn: Connection, scope: Scope, *, detected: bool = True) -> tuple[ChangeRow, ...]:
    """Return the recorded changes and those that nobody recorded, newest first.

    Args:
        conn: Open connection.
        scope: Of its query only the window and the tools matter.
        detected: Whether what was seen for the first time is among them.
    """
    found = changes(conn, scope) + (detected_changes(conn, scope) if detected else ())
    return tuple(sorted(found, key=lambda row: -row.occurred_at))


@memoised
def changes(conn: Connection, scope: Scope) -> tuple[ChangeRow, ...]:
    """Return the recorded changes within the window and tools of the query, newest first.

    A change that names no tool is about all of them.
    """
    table = change_table.c
    statement = select(*(table[name] for name in _COLUMNS)).where(
        table.project_id == scope.project_id
    )
    since, until = window(scope)
    if since is not None:
        statement = statement.where(table.occurred_at >= since)
    if until is not None:
        statement = statement.where(table.occurred_at < until)
    for clause in scope.query.of("tool"):
        found = or_(*matches_any(table.tool, patterns_of(clause)))
        statement = statement.where(or_(table.tool.is_(None), ~found if clause.negated else found))
    rows = conn.execute(statement.order_by(table.occurred_at.desc(), table.id.desc()))
    return tuple(ChangeRow(**row) for row in rows.mappings())


def change(conn: Connection, scope: Scope, event_id: str) -> ChangeRow | None:
    """Return the change *event_id* of the project, recorded or detected, or None."""
    if "\0" in event_id:  # PostgreSQL cannot be asked for it, and nothing stored has it
        return None
    if event_id.startswith(f"{PREFIX}-"):
        everything = replace(scope, query=Query())
        found = detected_changes(conn, everything)
        return next((row for row in found if row.event_id == event_id), None)
    table = change_table.c
    row = (
        conn.execute(
            select(*(table[name] for name in _COLUMNS)).where(
                table.project_id == scope.project_id, table.event_id == event_id
            )
        )
        .mappings()
        .one_or_none()
    )
    return None if row is None else ChangeRow(**row)
