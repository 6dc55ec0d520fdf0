"""Projects, and how much each holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, exists, func, select

from toolfault_collector.storage.tables import (
    api_key,
    failure_counts,
    project,
    quarter_version,
    tool_call,
)
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.reading import sql_of
from toolfault_dashboard.queries.rows import ProjectRow

__all__ = [
    "has_ingest_key",
    "has_untimed",
    "project_by_name",
    "projects",
    "sampled_code",
    "token_prices",
    "written",
]


def projects(conn: Connection) -> tuple[ProjectRow, ...]:
    """Return every project by name; the caller decides whom it shows them to."""
    return tuple(ProjectRow(row.id, row.name, row.created_at, row.last) for row in _all(conn))


def has_untimed(conn: Connection, project_id: int) -> bool:
    """Say whether any call of the project has no time: it is in no window of the rollups."""
    return any(row.id == project_id and bool(row.untimed) for row in _all(conn))


def has_ingest_key(conn: Connection, project_id: int) -> bool:
    """Say whether the project ever had a key to send with: else its calls were imported."""
    return any(row.id == project_id and bool(row.sends) for row in _all(conn))


def sampled_code(conn: Connection, project_id: int) -> str | None:
    """Return the last code by name of which the project has sampled calls.

    Returns:
        "" where only successes were sampled, None where nothing was.
    """
    return next((row.sampled for row in _all(conn) if row.id == project_id), None)


def token_prices(conn: Connection, project_id: int) -> str | None:
    """Return the prices that the project stores, None where the environment decides."""
    return next((row.token_prices for row in _all(conn) if row.id == project_id), None)


def written(conn: Connection, project_id: int) -> int:
    """Return the sum of the versions of all days of the project."""
    return next((int(row.written) for row in _all(conn) if row.id == project_id), 0)


def project_by_name(conn: Connection, name: str) -> ProjectRow | None:
    """Return the project called *name*, or None."""
    return next((row for row in projects(conn) if row.name == name), None)


@memoised
def _all(conn: Connection) -> Sequence[Row[Any]]:
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
    # Calls without a time are in period 0.
    counts = failure_counts.c
    untimed = (
        exists()
        .where(counts.project_id == project.c.id, counts.by == "tool", counts.period == 0)
        .correlate(project)
    )
    sends = (
        exists()
        .where(api_key.c.project_id == project.c.id, api_key.c.kind == "ingest")
        .correlate(project)
    )
    sampled = (
        select(func.max(counts.name))
        .where(counts.project_id == project.c.id, counts.by == "unsent")
        .correlate(project)
        .scalar_subquery()
    )
    versions = (
        select(func.coalesce(func.sum(quarter_version.c.version), 0))
        .where(quarter_version.c.project_id == project.c.id)
        .correlate(project)
        .scalar_subquery()
    )
    columns = (
        *(project.c.id, project.c.name, project.c.created_at, last.label("last")),
        untimed.label("untimed"),
        sends.label("sends"),
        sampled.label("sampled"),
        versions.label("written"),
        project.c.token_prices,
    )
    return sql_of(conn).execute(select(*columns).order_by(project.c.name)).all()
