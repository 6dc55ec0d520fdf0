"""Counts from the collector's rollups, where a query asks for nothing but a window of time.

Whole hours and days come from ``failure_counts``; the broken ones at the edges of the window are
counted from the rows, so the sum is what a count over all rows gives. Where they are not `usable`
the rows must be counted: the query asks for more than time, or some calls have no time at all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

from sqlalchemy import ColumnElement, Connection, func, literal, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.rollups import HOUR_US
from toolfault_collector.tables import failure_counts, tool_call
from toolfault_dashboard.queries.conditions import calls_of, failures_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Moment, Query

__all__ = ["calls_by_tool", "calls_per_day", "extent", "failures_per_bucket", "usable"]

_By = Literal["code", "tool"]


def usable(conn: Connection, scope: Scope) -> bool:
    """Say whether the rollups hold what *scope* asks for."""
    if any(clause.key not in {"since", "until"} for clause in scope.query.clauses):
        return False
    table = failure_counts.c
    # Calls without a time are in period 0, and so in no window of the rollups.
    untimed = conn.execute(
        select(table.name)
        .where(table.project_id == scope.project_id, table.by == "tool", table.period == 0)
        .limit(1)
    )
    return untimed.first() is None


def extent(conn: Connection, scope: Scope) -> tuple[int | None, int | None]:
    """Return the times of the first and the last failure, each by one look into an index."""
    at = tool_call.c.occurred_at
    first, last = (
        select(end(at)).where(failures_of(scope)).scalar_subquery() for end in (func.min, func.max)
    )
    row = conn.execute(select(first, last)).one()
    return row[0], row[1]


def failures_per_bucket(
    conn: Connection, scope: Scope, *, width: int, offset: int
) -> Counter[tuple[str, int]]:
    """Return failures by code and bucket number, (time - offset) // width.

    Args:
        conn: Open connection.
        scope: What to count.
        width: Width of a bucket in microseconds, whole hours.
        offset: Where buckets begin, whole hours.
    """
    table = failure_counts.c
    inner, edges = _split(scope, HOUR_US)
    bucket = ((table.period - literal(offset)) // literal(width)).label("bucket")
    found: Counter[tuple[str, int]] = Counter()
    if inner is not None:
        for name, number, failures in conn.execute(
            select(table.name, bucket, func.sum(table.failures))
            .where(*_whole(scope, "code", inner))
            .group_by(table.name, bucket)
        ):
            found[name, number] += int(failures)
    at = ((tool_call.c.occurred_at - literal(offset)) // literal(width)).label("bucket")
    for edge in edges:
        for code, number, failures in conn.execute(
            select(tool_call.c.code, at, func.count())
            .where(failures_of(edge))
            .group_by(tool_call.c.code, at)
        ):
            found[code or "", number] += failures
    return found


def calls_by_tool(conn: Connection, scope: Scope) -> Counter[str]:
    """Return reported calls by tool, folded successes left out."""
    table = failure_counts.c
    inner, edges = _split(scope, DAY_US)
    found: Counter[str] = Counter()
    if inner is not None:
        for tool, calls in conn.execute(
            select(table.name, func.sum(table.calls))
            .where(*_whole(scope, "tool", inner))
            .group_by(table.name)
        ):
            found[tool] += int(calls)
    for edge in edges:
        for tool, calls in conn.execute(
            select(tool_call.c.tool, func.count()).where(calls_of(edge)).group_by(tool_call.c.tool)
        ):
            found[tool] += calls
    return found


def calls_per_day(conn: Connection, scope: Scope) -> Counter[int]:
    """Return reported calls by day number, time // day."""
    table = failure_counts.c
    inner, edges = _split(scope, DAY_US)
    found: Counter[int] = Counter()
    if inner is not None:
        for period, calls in conn.execute(
            select(table.period, func.sum(table.calls))
            .where(*_whole(scope, "tool", inner))
            .group_by(table.period)
        ):
            found[period // DAY_US] += int(calls)
    day = (tool_call.c.occurred_at // literal(DAY_US)).label("day")
    for edge in edges:
        for number, calls in conn.execute(
            select(day, func.count()).where(calls_of(edge)).group_by(day)
        ):
            found[number] += calls
    return found


def _whole(
    scope: Scope, by: _By, inner: tuple[int | None, int | None]
) -> list[ColumnElement[bool]]:
    table = failure_counts.c
    conditions: list[ColumnElement[bool]] = [table.project_id == scope.project_id, table.by == by]
    first, end = inner
    if first is not None:
        conditions.append(table.period >= first)
    if end is not None:
        conditions.append(table.period < end)
    return conditions


def _split(scope: Scope, width: int) -> tuple[tuple[int | None, int | None] | None, list[Scope]]:
    """Cut the window into whole periods and the broken ones at its edges.

    Returns:
        First and end of the whole periods (None where the window is open; None altogether where it
        has no whole period), and the scopes of the edges.
    """
    since, until = window(scope)
    first = None if since is None else -(-since // width) * width
    end = None if until is None else until // width * width
    if first is not None and end is not None and first >= end:
        return None, [scope]
    edges = []
    if since is not None and first is not None and since < first:
        edges.append(_between(scope, since, first))
    if until is not None and end is not None and end < until:
        edges.append(_between(scope, end, until))
    return (first, end), edges


def _between(scope: Scope, begin: int, end: int) -> Scope:
    clauses = (Clause("since", (Moment(at=begin),)), Clause("until", (Moment(at=end),)))
    return replace(scope, query=Query(clauses))
