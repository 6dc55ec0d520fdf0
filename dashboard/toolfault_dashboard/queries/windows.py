"""The window of time that a query sets."""

from __future__ import annotations

from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Moment

__all__ = ["window"]


def window(scope: Scope) -> tuple[int | None, int | None]:
    """Return the bounds that the query sets: [since, until) in microseconds, None where open."""
    bounds: dict[str, list[int]] = {"since": [], "until": []}
    for clause in scope.query.clauses:
        if clause.key in bounds and isinstance(clause.values[0], Moment):
            bounds[clause.key].append(clause.values[0].resolve(scope.now))
    return max(bounds["since"], default=None), min(bounds["until"], default=None)
