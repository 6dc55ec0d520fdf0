"""The window of time that a query sets."""

from __future__ import annotations

from dataclasses import replace

from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Clause, Moment, Query

__all__ = ["between", "window"]


def between(scope: Scope, begin: int | None, end: int | None) -> Scope:
    """Return *scope* with the window [begin, end) in microseconds instead of its own."""
    bounds = [
        Clause(key, (Moment(at=at),))
        for key, at in (("since", begin), ("until", end))
        if at is not None
    ]
    rest = scope.query.without("since", "until")
    return replace(scope, query=Query((*bounds, *rest.clauses)))


def window(scope: Scope) -> tuple[int | None, int | None]:
    """Return the bounds that the query sets: [since, until) in microseconds, None where open."""
    bounds: dict[str, list[int]] = {"since": [], "until": []}
    for clause in scope.query.clauses:
        if clause.key in bounds and isinstance(clause.values[0], Moment):
            bounds[clause.key].append(clause.values[0].resolve(scope.now))
    return max(bounds["since"], default=None), min(bounds["until"], default=None)
