"""Facets: the values of each key under the current filter, with live counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    case,
    func,
    or_,
    select,
    union_all,
)

from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.tables import chain, issue, tool_call
from toolfault_dashboard.queries.conditions import failures_of, issues_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.memoise import answered, remember
from toolfault_dashboard.queries.counting.segments import (
    in_segments,
    is_asked_at_once,
    may_be_stored,
)
from toolfault_dashboard.queries.counting.together import Question, ask_together
from toolfault_dashboard.queries.failures.codes import failures_by_issue_code
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.failures.matches import FEW, Matches, is_of_index, matches
from toolfault_dashboard.queries.failures.newest import newest
from toolfault_dashboard.queries.rows import Facet, Facets, FacetValue
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.transpose import transposed
from toolfault_dashboard.search import FACETS, Query, arms_of
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["EXACT_UP_TO", "READ_UP_TO", "facets", "values_of"]

EXACT_UP_TO: Final = 200_000
"""Failures up to which facets count all of them, whatever the window; beyond it they count the
newest this many where no rollup holds the figures."""

READ_UP_TO: Final = 1_000_000
"""Failures of a window up to which facets count all that the filter leaves. Looking for the newest
of them reads the window too, and then each facet reads its own: of 780,000 failures, filtered by
code and model, that took 5.1 s of the processor, and all of them take 2.6 s."""


_Line = tuple[str, str, int]
"""Key, value, and failures with it."""


def facets(
    conn: Connection,
    scope: Scope,
    *,
    keys: Sequence[str] = FACETS,
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
        most: Failures beyond which only the newest are counted, where rows have to be, and those
            of a window up to which all are; `EXACT_UP_TO` and `READ_UP_TO` if not given.
    """
    scopes = {key: _without(scope, key) for key in keys}
    sizes = {} if total is None else {scope: total}
    read_up_to, most = (READ_UP_TO, EXACT_UP_TO) if most is None else (most, most)
    too_many: dict[Scope, int] = {}
    if not _are_at_most(conn, scope, read_up_to):
        sizes = _sizes(conn, sizes, {scope, *scopes.values()})
        too_many = {each: most for each in sizes if sizes[each] > most}
    counts, cut = _values(conn, scopes, too_many, sizes)
    for key, own in scopes.items():
        if own not in sizes:  # a failure has one value of most keys
            of_one = key not in _OF_SEVERAL
            sizes[own] = counts[key].total() if of_one else count_failures(conn, own)
    if _tells_enough(conn, scope, sizes) and answered(conn, matches, scope) is None:
        remember(conn, matches, Matches(sizes[scope], None), scope)
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
        counted=sizes[scope] if scope in sizes else count_failures(conn, scope),
        exact=not cut,
    )


def values_of(conn: Connection, scope: Scope, key: str, *, limit: int) -> tuple[FacetValue, ...]:
    """Count the values of one key among all failures of the scope, however many; see `facets`."""
    counts, _ = _values(conn, {key: _without(scope, key)}, {}, {})
    return _ranked(scope.query, key, counts[key], limit)


def _without(scope: Scope, key: str) -> Scope:
    base = Query(tuple(c for c in scope.query.clauses if c.key != key or c.negated))
    return Scope(scope.project_id, base, scope.now, scope.audience)


def _tells_enough(conn: Connection, scope: Scope, sizes: Mapping[Scope, int]) -> bool:
    """Say whether *sizes* tell of the failures of *scope* what their list needs to know.

    Of a few in a large window the list needs which they are: `matches` keeps that day by day, while
    looking for the newest of them reads the window each time.
    """
    if scope not in sizes:
        return False
    return sizes[scope] > FEW or sizes[scope] == 0 or is_asked_at_once(conn, scope)


def _are_at_most(conn: Connection, scope: Scope, most: int) -> bool:
    """Say whether the whole window of *scope* has no more failures than *most*."""
    window = Query(tuple(c for c in scope.query.clauses if c.key in {"since", "until"}))
    return count_failures(conn, replace(scope, query=window)) <= most


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


_Groups = dict[tuple[Scope, str], list[str]]
"""Keys that are counted in one pass, by the failures and what `_kind_of` says."""


def _values(
    conn: Connection, scopes: dict[str, Scope], most: dict[Scope, int], sizes: dict[Scope, int]
) -> tuple[dict[str, Counter[str]], set[str]]:
    """Count the values of every key; those that are columns of a call together where they can.

    Args:
        conn: Open connection in a read transaction.
        scopes: The failures of each key.
        most: How many of the newest to count, of scopes that are too large.
        sizes: The failures of scopes; takes those that are counted on the way.

    Returns:
        The values of each key, and the keys of which not all failures are counted.
    """
    found: dict[str, Counter[str]] = {key: Counter() for key in scopes}
    groups: _Groups = defaultdict(list)
    for key, scope in scopes.items():
        if _is_added_up(conn, scope, key):
            found[key] = _added_up(conn, scope, key)
        else:
            groups[scope, _kind_of(key, scope)].append(key)
    cut = {key for (scope, _), keys in groups.items() if scope in most for key in keys}
    counted = _at_once(conn, groups, most)
    counted += _in_one_look(conn, groups, most, sizes)
    for (scope, kind), keys in groups.items():
        lines = _counted(conn, scope, _usual(conn, scope, kind, keys), most.get(scope))
        counted += [line for line in lines if line[0] in keys]
    for key, value, failures in counted:
        found[key][value] += failures
    return found, cut


def _usual(conn: Connection, scope: Scope, kind: str, keys: Sequence[str]) -> tuple[str, ...]:
    """Return *keys* with all that are counted beside them, where answers to these are stored."""
    if kind in FACETS or not may_be_stored(scope.query):
        return tuple(keys)
    usual = (key for key in FACETS if _kind_of(key, scope) == kind)
    beside = {key for key in usual if key not in keys and not _is_added_up(conn, scope, key)}
    return tuple(key for key in FACETS if key in keys or key in beside)


def _at_once(conn: Connection, groups: _Groups, most: Mapping[Scope, int]) -> list[_Line]:
    """Count those *groups* by one statement that are of small windows, and take them out."""
    small = {scope for scope, _ in groups if scope not in most and is_asked_at_once(conn, scope)}
    own = [(group[0], tuple(groups.pop(group))) for group in list(groups) if group[0] in small]
    answers = ask_together(
        conn, [_question(scope, keys, failures_of(scope)) for scope, keys in own]
    )
    return [
        line for (_, keys), rows in zip(own, answers, strict=True) for line in _lines(keys, rows)
    ]


def _kind_of(key: str, scope: Scope) -> str:
    """Return which keys are counted together: those with the same answer, in one pass."""
    if key in _OF_ISSUES or (key == "chain" and is_of_index(scope)):
        return key
    # Where rows are read to find failures, they are read once for all columns.
    return "indexed" if key in _INDEXED and is_of_index(scope) else "rows"


def _counted(
    conn: Connection, scope: Scope, keys: tuple[str, ...], most: int | None
) -> Iterable[_Line]:
    """Yield key, value and failures of all, or of the newest; a value may come more than once."""
    if most is not None:
        begin = newest(conn, scope, most)
        if is_columnar(conn):
            yield from _where(conn, scope, begin.of_all(), keys)
            return
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


_Looks = tuple[tuple[Query, tuple[str, ...]], ...]
"""Queries without a window, and the keys that are counted among the failures of each."""


def _in_one_look(
    conn: Connection, groups: _Groups, most: Mapping[Scope, int], sizes: dict[Scope, int]
) -> list[_Line]:
    """Count those *groups* together for which rows have to be read, and take them out.

    Each value that is selected makes a query of its own, without it. What any of them asks for is
    read once. How many failures a query has goes into *sizes*, where no key of it says so.
    """
    own = [group for group in groups if group[0] not in most and not is_of_index(group[0])]
    if len(own) < 2:
        return []
    # Without their window, which each segment has its own of: what is known of a day serves others.
    looks = tuple(
        (scope.query.without("since", "until"), tuple(groups.pop((scope, kind))))
        for scope, kind in own
    )
    scopes = list(dict.fromkeys(scope for scope, _ in own))
    first, *others = (scope.query.clauses for scope in scopes)
    common = tuple(each for each in first if all(each in clauses for clauses in others))
    whole = replace(scopes[0], query=Query(common))
    segments = in_segments(conn, whole, _looked_at, looks, outcomes=True, together=_together)
    lines = _together(segments, ())
    for key, place, failures in lines:
        if key == _SIZE:
            sizes.setdefault(scopes[int(place)], failures)
    return [line for line in lines if line[0] != _SIZE]


_SIZE: Final = ""
"""In the place of a key: the failures of a query, whose place stands for the value."""


def _looked_at(conn: Connection, scope: Scope, looks: _Looks) -> list[_Line]:
    queries = list(dict(looks))
    # Whole, also what the scope says too: all that a query says of issues is about one of them.
    own = [failures_of(replace(scope, query=each)) for each in queries]
    columns = {key for _, keys in looks for key in keys} - _OF_ISSUES - {"chain"} | {"code"}
    rows = (
        select(
            *(tool_call.c[name] for name in ("id", "chain_id", *sorted(columns))),
            *(case((each, 1), else_=0).label(f"own_{place}") for place, each in enumerate(own)),
        )
        .where(failures_of(scope), or_(*_widest(queries, own)))
        .cte("failures")
    )
    questions = [
        _question(scope, keys, rows.c[f"own_{queries.index(query)}"] == 1, rows.c)
        for query, keys in looks
    ]
    told = {query for query, keys in looks if not _OF_SEVERAL.issuperset(keys)}
    sized = [place for place, query in enumerate(queries) if query not in told]
    questions += [
        Question(select(func.count()).where(rows.c[f"own_{place}"] == 1), 0) for place in sized
    ]
    answers = ask_together(conn, questions)
    lines = [
        line
        for (_, keys), found in zip(looks, answers, strict=False)
        for line in _lines(keys, found)
    ]
    sizes = zip(sized, answers[len(looks) :], strict=True)
    return lines + [(_SIZE, str(place), failures) for place, ((failures,),) in sizes]


def _widest(queries: Sequence[Query], own: Sequence[ColumnElement[bool]]) -> list[Any]:
    """Return the conditions of those queries that imply no other, the cheapest first.

    Who is in another query is in one of these as well.
    """
    clauses = [frozenset(query.clauses) for query in queries]
    kept = [place for place, each in enumerate(clauses) if not any(one < each for one in clauses)]
    kept.sort(key=lambda place: queries[place].has(*_OF_SEVERAL))
    return [own[place] for place in kept]


def _question(
    scope: Scope, keys: tuple[str, ...], where: ColumnElement[bool], row: Any = tool_call.c
) -> Question:
    """Return the select of failures by *keys*: columns of a call in one pass, or one of its issues.

    Args:
        scope: Says what an open chain is.
        keys: What to count the values of.
        where: Which failures.
        row: The columns of the calls, or of those that were found before.
    """
    rows = row.id.table
    if keys == ("field",):
        named = (issue.c.tool_call_id == row.id) & (issue.c.root_field != "") & issues_of(scope)
        value: Any = func.coalesce(issue.c.root_field, "").label("value")
        fields = _distinct(value, row.id).select_from(rows.outerjoin(issue, named))
        return Question(fields.where(where).group_by(value), 1)
    if keys == ("code",):
        code = issue.c.code.label("code")
        of_issue = (issue.c.tool_call_id == row.id) & issues_of(scope)
        others = _distinct(code, row.id).select_from(issue.join(rows, of_issue))
        of_own = select(row.code.label("code"), func.count().label("n")).where(where)
        others = others.where(where, issue.c.code != row.code).group_by(code)
        return Question(union_all(of_own.group_by(row.code), others), 1)
    if "chain" in keys:
        of_call = (chain.c.project_id == scope.project_id) & (chain.c.chain_id == row.chain_id)
        rows = rows.outerjoin(chain, of_call)
    columns = [_outcome(scope) if key == "chain" else row[key] for key in keys]
    counted = select(*columns, func.count()).select_from(rows).where(where).group_by(*columns)
    return Question(counted, len(keys))


def _outcome(scope: Scope) -> Any:
    return func.coalesce(outcome_at(scope.now), "none").label("chain")


def _distinct(value: Any, number: ColumnElement[int]) -> Select[Any]:
    return select(value, func.count(func.distinct(number)).label("n"))


def _where(
    conn: Connection, scope: Scope, where: ColumnElement[bool], keys: tuple[str, ...]
) -> list[_Line]:
    return _lines(keys, conn.execute(_question(scope, keys, where).statement))


def _lines(keys: tuple[str, ...], rows: Iterable[Any]) -> list[_Line]:
    """Return the rows of a `_question` key by key."""
    *columns, numbers = transposed([*rows], len(keys) + 1)
    found: Counter[tuple[str, str]] = Counter()
    for key, values in zip(keys, columns, strict=True):
        counts: Counter[str] = Counter()
        for value, failures in zip(values, numbers, strict=True):
            counts[value or ""] += failures
        for value, failures in counts.items():
            for name in arms_of(value) if key == "variant" else (value,):
                found[key, name] += int(failures)
    return [(key, value, failures) for (key, value), failures in found.items()]


def _is_added_up(conn: Connection, scope: Scope, key: str) -> bool:
    """Say whether the rollups hold the values of *key*."""
    if key == "field":
        return rollups.usable(conn, scope, keys=frozenset({"tool"}))
    return key in _PAIR and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS)


def _added_up(conn: Connection, scope: Scope, key: str) -> Counter[str]:
    """Return the values of *key* from the rollups."""
    found: Counter[str] = Counter()
    if key == "field":
        for (_, name), failures in rollups.failures_by_field(conn, scope).items():
            found[name] += failures
        return found
    for pair, (failures, _) in rollups.failures_by_pair(conn, scope).items():
        found[pair[_PAIR.index(key)]] += failures
    if key == "code":
        for (_, code), each in failures_by_issue_code(conn, scope).items():
            found[code] += each.rows
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


_OF_ISSUES: Final = frozenset({"code", "field"})
"""Keys whose values stand with the issues: each is counted in a pass of its own."""

_OF_SEVERAL: Final = frozenset({"code", "field", "variant"})
"""Keys of which a failure may have more than one value."""

_PAIR: Final = ("tool", "code")
_INDEXED: Final = frozenset({"tool", "category", "audience", "detection"})
"""What the index of failures holds: counted without reading a row."""
