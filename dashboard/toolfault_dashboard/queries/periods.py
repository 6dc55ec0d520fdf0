"""The period before a window: as long as the window is, and just before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, asc, desc, false, func, select, true, union_all

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import between, window

__all__ = ["Period", "ends", "ends_of", "ends_of_calls", "first_call", "last_call", "period_before"]


class Period(NamedTuple):
    """A scope whose window has both ends, and how long that is in microseconds."""

    scope: Scope
    length: int


def period_before(conn: Connection, scope: Scope) -> Period | None:
    """Return the period before the window of *scope*.

    Returns:
        None where the window has no beginning; where the project has no data of the whole period
        (one that began last week has not doubled its calls); where it has calls without a time,
        which are in every window; and where the query asks when kinds were first seen: those of
        this period had none before.
    """
    since, until = window(scope)
    if since is None or scope.query.has("first_seen") or has_untimed(conn, scope.project_id):
        return None
    end = scope.now if until is None else min(until, scope.now)
    length = end - since
    first_at = first_call(conn, scope)
    if length <= 0 or first_at is None or first_at > since - length:
        return None
    return Period(between(scope, since - length, since), length)


@memoised
def ends_of_calls(conn: Connection, scope: Scope) -> tuple[int | None, int | None]:
    """Return when the first and the last call of *scope* ended, failed or not.

    Microseconds; None where no call has a time.
    """
    return ends_of(conn.execute(ends(scope)).one())


def ends(scope: Scope) -> Select[Any]:
    """Return the select of what `ends_of_calls` looks up.

    Each is a look at one end of an index, which is why successes and failures are asked for apart:
    the index begins with that.
    """
    looks = []
    for end in (func.min, func.max):
        looks += [
            select(end(tool_call.c.occurred_at)).where(
                calls_of(scope), tool_call.c.success == success, tool_call.c.time_source != "none"
            )
            for success in (false(), true())
        ]
        looks.append(
            select(end(call_counts.c.minute)).where(
                counts_of(scope), call_counts.c.tool.is_not(None)
            )
        )
    return select(*(each.scalar_subquery() for each in looks))


def ends_of(row: Iterable[Any]) -> tuple[int | None, int | None]:
    """Return the outermost moments of the row of `ends`.

    PostgreSQL tells them as decimals where a union adds up numbers beside them.
    """
    times = [int(at) for at in row if at is not None]
    return min(times, default=None), max(times, default=None)


def first_call(conn: Connection, scope: Scope) -> int | None:
    """Return when the first call of the project with a time ended, in microseconds, or None."""
    return min(_ends(conn, scope, asc, func.min), default=None)


def last_call(conn: Connection, scope: Scope) -> int | None:
    """Return when the last call of the project with a time ended, in microseconds, or None."""
    return max(_ends(conn, scope, desc, func.max), default=None)


def _ends(
    conn: Connection, scope: Scope, order: Callable[[Any], Any], end: Callable[[Any], Any]
) -> list[int]:
    """Return the outermost moments of failures, of successes and of calls that were counted."""
    outermost = [
        select(tool_call.c.occurred_at.label("at"))
        .where(
            tool_call.c.project_id == scope.project_id,
            tool_call.c.success == success,
            tool_call.c.time_source != "none",
        )
        .order_by(order(tool_call.c.occurred_at))
        .limit(1)
        .subquery()
        for success in (false(), true())
    ]
    counted = select(end(call_counts.c.minute)).where(call_counts.c.project_id == scope.project_id)
    found = conn.execute(union_all(*(select(each.c.at) for each in outermost), counted))
    return [at for at in found.scalars() if at is not None]
