"""Facets: the values of each key under the current filter, with live counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain as chained
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    func,
    select,
    union_all,
)

from toolfault_collector.storage.tables import chain, issue, tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.counting.together import Question, ask_together
from toolfault_dashboard.queries.failures.codes import failures_by_issue_code, of_other_issues
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.failures.matches import is_of_index
from toolfault_dashboard.queries.failures.newest import newest
from toolfault_dashboard.queries.rows import Facet, Facets, FacetValue
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Query, arms_of
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["EXACT_UP_TO", "FACET_KEYS", "facets", "values_of"]

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
    "framework",
    "detection",
)

EXACT_UP_TO: Final = 200_000
"""Failures up to which facets count all of them, whatever the filter; beyond it they count the
newest this many where no rollup holds the figures."""


_Line = tuple[str, str, int]
"""Key, value, and failures with it."""


def facets(
    conn: Connection,
    scope: Scope,
    *,
    keys: Sequence[str] = FACET_KEYS,
    limit: int = 10,
    total: int | None = None,
    most: int | None = None,
) -> Facets:
    """Count the values of *keys* among the failures of the scope.

    The counts of a key ignore what the query selects of that same key, so that they say how many
    failures choosing a value would leave. Selected values are always in the list.

    Args:
        conn: Open connection in a read transaction.
        scope: The failures.
        keys: What to count the values of.
        limit: Values of each key, the most frequent ones; those selected are added.
        total: The failures of the scope, from a caller that has counted them already.
        most: Failures beyond which only the newest are counted, where rows have to be;
            `EXACT_UP_TO` if not given.
    """
    most = EXACT_UP_TO if most is None else most
    scopes = {key: _without(scope, key) for key in keys}
    sizes = {scope: count_failures(conn, scope) if total is None else total}
    if not _are_at_most(conn, scope, most):
        sizes = _sizes(conn, sizes, set(scopes.values()))
    counts, cut = _values(conn, scopes, {each: most for each in sizes if sizes[each] > most})
    for key, own in scopes.items():
        if own not in sizes:  # a failure has one value of most keys
            of_one = key not in _OF_SEVERAL
            sizes[own] = counts[key].total() if of_one else count_failures(conn, own)
    return Facets(
        facets=tuple(
            Facet(
                key=key,
                values=_ranked(scope.query, key, counts[key], limit),
                distinct=len(counts[key]),
                counted=most if key in cut else sizes[scopes[key]],
                exact=key not in cut,
            )
            for key in keys
        ),
        counted=min(sizes[scope], most),
        exact=not cut,
    )


def values_of(conn: Connection, scope: Scope, key: str, *, limit: int) -> tuple[FacetValue, ...]:
    """Count the values of one key among all failures of the scope, however many; see `facets`."""
    counts, _ = _values(conn, {key: _without(scope, key)}, {})
    return _ranked(scope.query, key, counts[key], limit)


def _without(scope: Scope, key: str) -> Scope:
    base = Query(tuple(c for c in scope.query.clauses if c.key != key or c.negated))
    return Scope(scope.project_id, base, scope.now, scope.audience)


def _are_at_most(conn: Connection, scope: Scope, most: int) -> bool:
    """Say whether the whole window of *scope* is known to have no more failures than *most*."""
    window = Query(tuple(c for c in scope.query.clauses if c.key in {"since", "until"}))
    whole = replace(scope, query=window)
    return rollups.usable(conn, whole, keys=rollups.PAIR_KEYS) and (
        count_failures(conn, whole) <= most
    )


def _sizes(conn: Connection, known: Mapping[Scope, int], wanted: set[Scope]) -> dict[Scope, int]:
    """Return the failures of each scope, of which some are *known*."""
    found = dict(known)
    others = []
    for each in wanted - found.keys():
        if not is_asked_at_once(conn, each) or rollups.usable(conn, each, keys=rollups.PAIR_KEYS):
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
    conn: Connection, scopes: dict[str, Scope], most: dict[Scope, int]
) -> tuple[dict[str, Counter[str]], set[str]]:
    """Count the values of every key; those that are columns of a call together where they can.

    Args:
        conn: Open connection in a read transaction.
        scopes: The failures of each key.
        most: How many of the newest to count, of scopes that are too large.

    Returns:
        The values of each key, and the keys of which not all failures are counted.
    """
    found: dict[str, Counter[str]] = {key: Counter() for key in scopes}
    together: defaultdict[tuple[Scope, str], list[str]] = defaultdict(list)
    for key, scope in scopes.items():
        if (added := _added_up(conn, scope, key)) is not None:
            found[key] = added
        else:
            together[scope, _kind_of(key, scope)].append(key)
    at_once = {
        at: keys
        for at, keys in together.items()
        if at[0] not in most and is_asked_at_once(conn, at[0])
    }
    questions = [_question(scope, tuple(keys)) for (scope, _), keys in at_once.items()]
    answers = zip(at_once.values(), ask_together(conn, questions), strict=True)
    counted: list[Iterable[_Line]] = [_lines(tuple(keys), rows) for keys, rows in answers]
    counted += [
        _counted(conn, scope, tuple(keys), most.get(scope))
        for (scope, kind), keys in together.items()
        if (scope, kind) not in at_once
    ]
    for key, value, failures in chained.from_iterable(counted):
        found[key][value] += failures
    cut = {key for (scope, _), keys in together.items() if scope in most for key in keys}
    return found, cut


def _kind_of(key: str, scope: Scope) -> str:
    """Return which keys are counted together: those with the same answer, in one pass."""
    if key in _JOINED or (key == "chain" and is_of_index(scope)):
        return key
    # Where rows are read to find failures, they are read once for all columns.
    return "indexed" if key in _INDEXED and is_of_index(scope) else "rows"


def _question(scope: Scope, keys: tuple[str, ...]) -> Question:
    return Question(_statement(scope, failures_of(scope), keys), len(keys))


def _counted(
    conn: Connection, scope: Scope, keys: tuple[str, ...], most: int | None
) -> Iterable[_Line]:
    """Yield key, value and failures of all, or of the newest; a value may come more than once."""
    if most is not None:
        begin = newest(conn, scope, most)
        yield from _where(conn, begin.same, begin.of_same(), keys)
        scope = begin.later
    outcomes = "chain" in keys
    segments = in_segments(
        conn, scope, _of_rows, keys, outcomes=outcomes, together=_together, stored=True
    )
    for segment in segments:
        yield from segment


def _together(segments: Sequence[list[_Line]], _keys: tuple[str, ...]) -> list[_Line]:
    found: Counter[tuple[str, str]] = Counter()
    for segment in segments:
        for key, value, failures in segment:
            found[key, value] += failures
    return [(key, value, failures) for (key, value), failures in found.items()]


def _of_rows(conn: Connection, scope: Scope, keys: tuple[str, ...]) -> list[_Line]:
    return _where(conn, scope, failures_of(scope), keys)


def _where(
    conn: Connection, scope: Scope, where: ColumnElement[bool], keys: tuple[str, ...]
) -> list[_Line]:
    return _lines(keys, conn.execute(_statement(scope, where, keys)))


def _statement(
    scope: Scope, where: ColumnElement[bool], keys: tuple[str, ...]
) -> Select[Any] | CompoundSelect[Any]:
    """Return the select of failures by *keys*: columns of a call in one pass, or a joined one."""
    if keys[0] in _JOINED:
        return _JOINED[keys[0]](scope, where)
    outcome: Any = func.coalesce(outcome_at(scope.now), "none").label("chain")
    columns = [outcome if key == "chain" else tool_call.c[key] for key in keys]
    rows = tool_call.outerjoin(chain, _OF_CALL) if "chain" in keys else tool_call
    return select(*columns, func.count()).select_from(rows).where(where).group_by(*columns)


def _lines(keys: tuple[str, ...], rows: Iterable[Any]) -> list[_Line]:
    """Return the rows of `_statement` key by key."""
    found: Counter[tuple[str, str]] = Counter()
    for *values, failures in rows:
        for key, value in zip(keys, values, strict=True):
            for name in arms_of(value or "") if key == "variant" else (value or "",):
                found[key, name] += int(failures)
    return [(key, value, failures) for (key, value), failures in found.items()]


def _added_up(conn: Connection, scope: Scope, key: str) -> Counter[str] | None:
    """Return the values of *key* from the rollups; None where they do not hold them."""
    found: Counter[str] = Counter()
    if key == "field" and rollups.usable(conn, scope, keys=frozenset({"tool"})):
        for (_, name), failures in rollups.failures_by_field(conn, scope).items():
            found[name] += failures
    elif key in _PAIR and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        for pair, (failures, _) in rollups.failures_by_pair(conn, scope).items():
            found[pair[_PAIR.index(key)]] += failures
        if key == "code":
            for (_, code), each in failures_by_issue_code(conn, scope).items():
                found[code] += each.rows
    else:
        return None
    return found


def _ranked(query: Query, key: str, counts: Counter[str], limit: int) -> tuple[FacetValue, ...]:
    """Return the most frequent values and those that are selected."""
    chosen = [value for value in counts if query.selects(key, value)]
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    shown = dict.fromkeys((*ranked[:limit], *chosen))
    return tuple(
        FacetValue(value, counts[value], selected=value in chosen)
        for value in sorted(shown, key=ranked.index)
    )


def _by_field(_: Scope, where: ColumnElement[bool]) -> Select[Any]:
    named = (issue.c.tool_call_id == tool_call.c.id) & (issue.c.root_field != "")
    value: Any = func.coalesce(issue.c.root_field, "").label("value")
    return (
        select(value, func.count(func.distinct(tool_call.c.id)))
        .select_from(tool_call.outerjoin(issue, named))
        .where(where)
        .group_by(value)
    )


def _by_code(_: Scope, where: ColumnElement[bool]) -> CompoundSelect[Any]:
    own = select(tool_call.c.code.label("code"), func.count().label("n")).where(where)
    return union_all(own.group_by(tool_call.c.code), of_other_issues(where, sampled=False))


_OF_CALL: Final = (chain.c.project_id == tool_call.c.project_id) & (
    chain.c.chain_id == tool_call.c.chain_id
)
_Statement = Select[Any] | CompoundSelect[Any]
_JOINED: Final[dict[str, Callable[[Scope, ColumnElement[bool]], _Statement]]] = {
    "code": _by_code,
    "field": _by_field,
}
_OF_SEVERAL: Final = frozenset({"code", "field", "variant"})
"""Keys of which a failure may have more than one value."""

_PAIR: Final = ("tool", "code")
_INDEXED: Final = frozenset({"tool", "category", "audience", "detection"})
"""What the index of failures holds: counted without reading a row."""
