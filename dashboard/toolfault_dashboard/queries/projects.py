"""Projects, and how much each holds."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from toolfault_collector.tables import project, tool_call
from toolfault_dashboard.queries.rows import ProjectRow

__all__ = ["project_by_name", "projects"]


def projects(conn: Connection) -> tuple[ProjectRow, ...]:
    """Return every project by name; the caller decides whom it shows them to."""
    last = (
        select(func.max(tool_call.c.occurred_at))
        .where(
            tool_call.c.project_id == project.c.id,
            tool_call.c.success.is_(False),
            tool_call.c.time_source != "none",
        )
        .correlate(project)
        .scalar_subquery()
    )
    rows = conn.execute(
        select(project.c.id, project.c.name, project.c.created_at, last).order_by(project.c.name)
    )
    return tuple(ProjectRow(*row) for row in rows)


def project_by_name(conn: Connection, name: str) -> ProjectRow | None:
    """Return the project called *name*, or None."""
    return next((row for row in projects(conn) if row.name == name), None)
