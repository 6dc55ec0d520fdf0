"""Silent successes: calls that were reported as fine and whose result reads like an error.

They are no failures and count as none; this is where to look whether a tool should have failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select

from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import weighted_rate
from toolfault_dashboard.queries.conditions import calls_of
from toolfault_dashboard.queries.counting.sampling_weights import amount, counted, sampling
from toolfault_dashboard.queries.figures.totals import calls_by
from toolfault_dashboard.queries.scope import Scope

__all__ = ["SilentRow", "silent_successes"]


@dataclass(frozen=True, slots=True)
class SilentRow:
    """The calls of one tool that one rule takes for errors."""

    tool: str
    rule: str
    calls: int
    rate: Rate  # of the calls of the tool
    example: str  # event id of one of them, the newest
    conversation: str | None  # in which to look
    last_at: int | None


def silent_successes(conn: Connection, scope: Scope) -> tuple[SilentRow, ...]:
    """Return successes that look like errors by tool and rule, most calls first."""
    numbers = counted(sampled=sampling(conn, scope.project_id).calls)
    timed = case((tool_call.c.time_source != "none", tool_call.c.occurred_at))
    newest = func.max(tool_call.c.id)
    groups = (
        select(
            tool_call.c.tool,
            tool_call.c.detection,
            *numbers,
            newest.label("newest"),
            func.max(timed).label("last_at"),
        )
        .where(calls_of(scope), tool_call.c.success.is_(True), tool_call.c.detection != "explicit")
        .group_by(tool_call.c.tool, tool_call.c.detection)
        .subquery()
    )
    rows = conn.execute(
        select(groups, tool_call.c.event_id, tool_call.c.session_id)
        .join(tool_call, tool_call.c.id == groups.c.newest)
        .where(tool_call.c.project_id == scope.project_id)
    ).all()
    per_tool = calls_by(conn, scope, "tool")
    found = [
        SilentRow(
            tool=row.tool,
            rule=row.detection.removeprefix("soft:"),
            calls=calls.whole,
            rate=weighted_rate(calls, per_tool[row.tool]),
            example=row.event_id,
            conversation=row.session_id,
            last_at=row.last_at,
        )
        for row in rows
        for calls in [amount(row[2 : 2 + len(numbers)])]
    ]
    return tuple(sorted(found, key=lambda row: (-row.calls, row.tool, row.rule)))
