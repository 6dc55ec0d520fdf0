"""Facets: the values of each key under the current filter, with live counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, literal, select, union_all

from toolfault_collector.tables import chain, issue, tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.failures import count_failures
from toolfault_dashboard.queries.rows import Facet, Facets, FacetValue
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Query, arms_of
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["EXACT_UP_TO", "FACET_KEYS", "facets"]

FACET_KEYS: Final = (
    "tool",
    "code",
    "category",
    "audience",
    "field",
    "chain",
    "model",
    "agent",
    "release",
    "environment",
    "variant",
    "detection",
)

EXACT_UP_TO: Final = 200_000
"""Failures up to which facets count all of them; beyond it they count the newest this many."""


def facets(
    conn: Connection,
    scope: Scope,
    *,
    keys: Sequence[str] = FACET_KEYS,
    limit: int = 10,
    total: int | None = None,
) -> Facets:
    """Count the values of *keys* among the failures of the scope.

    The counts of a key ignore what the query selects of that same key, so that they say how many
    failures choosing a value would leave. Selected values are always in the list. A caller that has
    counted the failures of the scope already passes their *total*.
    """
    if total is None:
        total = count_failures(conn, scope)
    scopes = {key: _without(scope, key) for key in keys}
    sizes = _sizes(conn, scope, set(scopes.values()), total)
    exact = {key: sizes[scopes[key]] <= EXACT_UP_TO for key in keys}
    counts = _values(conn, scopes, exact)
    return Facets(
        facets=tuple(_facet(scope.query, key, counts[key], limit) for key in keys),
        counted=min(total, EXACT_UP_TO),
        exact=all(exact.values()),
    )


def _without(scope: Scope, key: str) -> Scope:
    base = Query(tuple(c for c in scope.query.clauses if c.key != key or c.negated))
    return Scope(scope.project_id, base, scope.now, scope.audience)


def _sizes(conn: Connection, scope: Scope, wanted: set[Scope], total: int) -> dict[Scope, int]:
    """Return the failures of each scope; those that are the list itself are counted already."""
    others = [each for each in wanted if each.query != scope.query]
    found = dict.fromkeys(wanted, total)
    if others:
        counts = [
            select(func.count()).select_from(tool_call).where(failures_of(each)).scalar_subquery()
            for each in others
        ]
        found.update(zip(others, conn.execute(select(*counts)).one(), strict=True))
    return found


def _values(
    conn: Connection, scopes: dict[str, Scope], exact: dict[str, bool]
) -> dict[str, dict[str, int]]:
    """Count the values of every key in one statement."""
    found: dict[str, dict[str, int]] = {key: {} for key in scopes}
    parts = [
        _count_values(scope, key, exact=exact[key]).add_columns(literal(key).label("facet"))
        for key, scope in scopes.items()
    ]
    if parts:
        for value, failures, key in conn.execute(union_all(*parts)):
            for name in arms_of(value or "") if key == "variant" else (str(value or ""),):
                found[key][name] = found[key].get(name, 0) + int(failures)
    return found


def _facet(query: Query, key: str, counts: dict[str, int], limit: int) -> Facet:
    chosen = [value for value in counts if query.selects(key, value)]
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    shown = dict.fromkeys((*ranked[:limit], *chosen))
    return Facet(
        key=key,
        values=tuple(
            FacetValue(value, counts[value], selected=value in chosen)
            for value in sorted(shown, key=ranked.index)
        ),
        distinct=len(counts),
    )


def _count_values(scope: Scope, key: str, *, exact: bool) -> Select[Any]:
    where = failures_of(scope)
    if not exact:
        newest = (
            select(tool_call.c.id)
            .where(where)
            .order_by(tool_call.c.occurred_at.desc(), tool_call.c.id.desc())
            .limit(EXACT_UP_TO)
        )
        where = tool_call.c.id.in_(newest)
    number: ColumnElement[int] = func.count()
    source: Any = tool_call
    value: ColumnElement[Any]
    if key == "field":
        named = (issue.c.tool_call_id == tool_call.c.id) & (issue.c.root_field != "")
        source = tool_call.outerjoin(issue, named)
        value = func.coalesce(issue.c.root_field, "")
        number = func.count(func.distinct(tool_call.c.id))
    elif key == "chain":
        source = tool_call.outerjoin(
            chain,
            (chain.c.project_id == tool_call.c.project_id)
            & (chain.c.chain_id == tool_call.c.chain_id),
        )
        value = func.coalesce(outcome_at(scope.now), "none")
    else:
        value = func.coalesce(tool_call.c[key], "")
    labelled = value.label("value")
    return select(labelled, number).select_from(source).where(where).group_by(labelled)
