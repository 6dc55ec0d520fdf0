"""Facets: the values of each key under the current filter, with live counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, tuple_

from toolfault_collector.tables import chain, issue, tool_call
from toolfault_dashboard.queries import rollups
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.failures import count_failures
from toolfault_dashboard.queries.parts import in_parts
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
    scopes = {key: _without(scope, key) for key in keys}
    sizes = _sizes(conn, scope, set(scopes.values()), total)
    counts = _values(conn, scopes, sizes)
    return Facets(
        facets=tuple(_facet(scope.query, key, counts[key], limit) for key in keys),
        counted=min(sizes[scope], EXACT_UP_TO),
        exact=all(sizes[each] <= EXACT_UP_TO for each in scopes.values()),
    )


def _without(scope: Scope, key: str) -> Scope:
    base = Query(tuple(c for c in scope.query.clauses if c.key != key or c.negated))
    return Scope(scope.project_id, base, scope.now, scope.audience)


def _sizes(
    conn: Connection, scope: Scope, wanted: set[Scope], total: int | None
) -> dict[Scope, int]:
    """Return the failures of each scope; those that are the list itself are counted already."""
    found = {scope: count_failures(conn, scope) if total is None else total}
    others = []
    for each in wanted - found.keys():
        if rollups.usable(conn, each, keys=rollups.PAIR_KEYS):
            found[each] = count_failures(conn, each)
        else:
            others.append(each)
    if others:
        counts = [
            select(func.count()).select_from(tool_call).where(failures_of(each)).scalar_subquery()
            for each in others
        ]
        found.update(zip(others, conn.execute(select(*counts)).one(), strict=True))
    return found


def _values(
    conn: Connection, scopes: dict[str, Scope], sizes: dict[Scope, int]
) -> dict[str, Counter[str]]:
    """Count the values of every key; those that are columns of a call together where they can."""
    found: dict[str, Counter[str]] = {key: Counter() for key in scopes}
    together: defaultdict[tuple[Scope, str], list[str]] = defaultdict(list)
    for key, scope in scopes.items():
        exact = sizes[scope] <= EXACT_UP_TO
        added = _added_up(conn, scope, key) if exact else None
        if added is not None:
            found[key] = added
        elif key in _JOINED:
            together[scope, key].append(key)
        else:
            together[scope, "indexed" if key in _INDEXED else "rows"].append(key)
    for (scope, _), keys in together.items():
        for key, value, failures in _counted(conn, scope, tuple(keys), sizes[scope]):
            found[key][value] += failures
    return found


def _counted(
    conn: Connection, scope: Scope, keys: tuple[str, ...], size: int
) -> Iterable[tuple[str, str, int]]:
    """Yield key, value and failures; a value may come more than once."""
    if size > EXACT_UP_TO:
        yield from _of_rows(conn, scope, keys, False)
        return
    outcomes = "chain" in keys
    parts = in_parts(conn, scope, _of_rows, keys, outcomes=outcomes, together=_together)
    for part in parts:
        yield from part


def _together(
    parts: Sequence[list[tuple[str, str, int]]], _keys: tuple[str, ...]
) -> list[tuple[str, str, int]]:
    found: Counter[tuple[str, str]] = Counter()
    for part in parts:
        for key, value, failures in part:
            found[key, value] += failures
    return [(key, value, failures) for (key, value), failures in found.items()]


def _of_rows(
    conn: Connection,
    scope: Scope,
    keys: tuple[str, ...],
    exact: bool = True,
) -> list[tuple[str, str, int]]:
    where = _rows(conn, scope, exact)
    if keys[0] in _JOINED:
        key = keys[0]
        rows = conn.execute(_JOINED[key](scope, where))
        return [(key, value, failures) for value, failures in rows]
    return _by_columns(conn, where, keys)


def _added_up(conn: Connection, scope: Scope, key: str) -> Counter[str] | None:
    """Return the values of *key* from the rollups; None where they do not hold them."""
    found: Counter[str] = Counter()
    if key == "field" and rollups.usable(conn, scope, keys=frozenset({"tool"})):
        for (_, name), failures in rollups.failures_by_field(conn, scope).items():
            found[name] += failures
    elif key in _PAIR and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        for pair, (failures, _) in rollups.failures_by_pair(conn, scope).items():
            found[pair[_PAIR.index(key)]] += failures
    else:
        return None
    return found


def _by_columns(
    conn: Connection, where: ColumnElement[bool], keys: tuple[str, ...]
) -> list[tuple[str, str, int]]:
    """Count the values of *keys*, columns of a call, in one pass over their combinations."""
    found: Counter[tuple[str, str]] = Counter()
    columns = [tool_call.c[key] for key in keys]
    for *values, failures in conn.execute(
        select(*columns, func.count()).where(where).group_by(*columns)
    ):
        for key, value in zip(keys, values, strict=True):
            for name in arms_of(value or "") if key == "variant" else (value or "",):
                found[key, name] += failures
    return [(key, value, failures) for (key, value), failures in found.items()]


def _facet(query: Query, key: str, counts: Counter[str], limit: int) -> Facet:
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


def _rows(conn: Connection, scope: Scope, exact: bool) -> ColumnElement[bool]:
    """Return the condition for the failures that are counted: all, or the newest of them."""
    where = failures_of(scope)
    if exact:
        return where
    key = (tool_call.c.occurred_at, tool_call.c.id)
    oldest = conn.execute(
        select(*key)
        .where(where)
        .order_by(*(column.desc() for column in key))
        .offset(EXACT_UP_TO - 1)
        .limit(1)
    ).one()
    # Said of the time alone too, since that is what an index finds.
    return and_(where, key[0] >= oldest[0], tuple_(*key) >= tuple_(*oldest))


def _by_field(_: Scope, where: ColumnElement[bool]) -> Select[Any]:
    named = (issue.c.tool_call_id == tool_call.c.id) & (issue.c.root_field != "")
    value: Any = func.coalesce(issue.c.root_field, "").label("value")
    return (
        select(value, func.count(func.distinct(tool_call.c.id)))
        .select_from(tool_call.outerjoin(issue, named))
        .where(where)
        .group_by(value)
    )


def _by_outcome(scope: Scope, where: ColumnElement[bool]) -> Select[Any]:
    of_call = (chain.c.project_id == tool_call.c.project_id) & (
        chain.c.chain_id == tool_call.c.chain_id
    )
    value: Any = func.coalesce(outcome_at(scope.now), "none").label("value")
    return (
        select(value, func.count())
        .select_from(tool_call.outerjoin(chain, of_call))
        .where(where)
        .group_by(value)
    )


_JOINED: Final[dict[str, Callable[[Scope, ColumnElement[bool]], Select[Any]]]] = {
    "field": _by_field,
    "chain": _by_outcome,
}
_PAIR: Final = ("tool", "code")
_INDEXED: Final = frozenset({"tool", "code", "category", "audience", "detection"})
"""What the index of failures holds: counted without reading a row."""
