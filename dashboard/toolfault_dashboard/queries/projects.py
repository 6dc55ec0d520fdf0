"""Projects, and how much each holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, func, select

from toolfault_collector.storage.tables import (
    api_key,
    failure_counts,
    project,
    quarter_version,
    tool_call,
)
from toolfault_dashboard.queries.counting.once import once
from toolfault_dashboard.queries.reading import sql_of
from toolfault_dashboard.queries.rows import ProjectRow
from toolfault_dashboard.search.sql import looked_up

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
    return any(row.id == project_id and row.untimed is not None for row in _all(conn))


def has_ingest_key(conn: Connection, project_id: int) -> bool:
    """Say whether the project ever had a key to send with: else its calls were imported."""
    return any(row.id == project_id and row.sends is not None for row in _all(conn))


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
    return next((int(row.written or 0) for row in _all(conn) if row.id == project_id), 0)


def project_by_name(conn: Connection, name: str) -> ProjectRow | None:
    """Return the project called *name*, or None."""
    return next((row for row in projects(conn) if row.name == name), None)


@once
def _all(conn: Connection) -> Sequence[Row[Any]]:
    call, counts, version = tool_call.c, failure_counts.c, quarter_version.c
    told: dict[str, tuple[ColumnElement[Any], Column[int], list[ColumnElement[bool]]]] = {
        "last": (
            func.max(call.occurred_at),
            call.project_id,
            [call.success.is_(False), call.time_source != "none"],
        ),
        # Calls without a time are in period 0.
        "untimed": (
            func.min(counts.period),
            counts.project_id,
            [counts.by == "tool", counts.period == 0],
        ),
        "sends": (func.max(api_key.c.id), api_key.c.project_id, [api_key.c.kind == "ingest"]),
        "sampled": (func.max(counts.name), counts.project_id, [counts.by == "unsent"]),
        "written": (func.sum(version.version), version.project_id, []),
    }
    source, columns = looked_up(conn, project, project.c.id, told)
    own = (project.c[name] for name in ("id", "name", "created_at", "token_prices"))
    return conn.execute(select(*own, *columns).select_from(source).order_by(project.c.name)).all()
