"""Calls as metrics count them, beside the calls that are stored: what sampling leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, case, func, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.tables import failure_counts, metric_calls
from toolfault_dashboard.queries.scope import Scope

__all__ = ["COUNTED_DAYS", "CountedLine", "counted_lines"]

COUNTED_DAYS: Final = 7  # UTC days, today included


@dataclass(frozen=True, slots=True)
class CountedLine:
    """One tool as one metric counts it: an exact number of calls, sampled or not.

    ``missing`` is how many calls of it are not stored; below 0 more are stored than were counted.
    """

    source: str  # execute_tool | mcp.client | mcp.server
    tool: str
    counted: int
    counted_failures: int
    stored: int
    stored_failures: int
    missing: int


def counted_lines(conn: Connection, scope: Scope) -> list[CountedLine]:
    """Return what metrics counted in the last days, by metric and tool, most calls first."""
    first = scope.now - scope.now % DAY_US - (COUNTED_DAYS - 1) * DAY_US
    row = metric_calls.c
    failed = case((row.error_type != "", row.calls), else_=0)
    counted = (
        select(row.source, row.tool, func.sum(row.calls), func.sum(failed))
        .where(row.project_id == scope.project_id, row.day >= first)
        .group_by(row.source, row.tool)
    )
    stored = {tool: (int(n), int(f)) for tool, n, f in conn.execute(_stored(scope, first))}
    lines = []
    for source, tool, calls, failures in conn.execute(counted):
        known, of_them = stored.get(tool, (0, 0))
        missing = int(calls) - known
        lines.append(CountedLine(source, tool, int(calls), int(failures), known, of_them, missing))
    return sorted(lines, key=lambda each: (-each.counted, each.source, each.tool))


def _stored(scope: Scope, first: int) -> Select[Any]:
    """Select the calls and failures that are stored, by tool, folded successes included."""
    row = failure_counts.c
    return (
        select(row.name, func.sum(row.calls), func.sum(row.failures))
        .where(
            row.project_id == scope.project_id,
            row.by.in_(("tool", "folded")),
            row.period >= first,
        )
        .group_by(row.name)
    )
