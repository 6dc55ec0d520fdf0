"""Counts from the collector's rollups, where a query asks for little but a window of time.

Whole hours and days come from ``failure_counts``; the broken ones at the edges of the window are
counted from the rows in the same statement, so the sum is what a count over all rows gives. Where
they are not `usable` the rows must be counted: the query asks for something else, or some calls
have no time at all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from sqlalchemy import (
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    func,
    literal,
    not_,
    or_,
    select,
    union_all,
)

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.rollups import HOUR_US, MILLION
from toolfault_collector.storage.tables import call_counts, failure_counts, issue, tool_call
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.sampling_weights import added, counted, sampling, weight
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Moment, Query
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = [
    "PAIR_KEYS",
    "call_selects",
    "calls_per_day",
    "failures_by_field",
    "failures_by_pair",
    "failures_per_bucket",
    "folded_conversations",
    "pair_selects",
    "pairs_of",
    "tool_of_call",
    "usable",
]

_By = Literal["code", "tool", "pair", "field", "folded", "ended", "unsent", "squared", "beyond"]
_CALLS: Final[tuple[_By, ...]] = ("tool", "folded")
_WINDOW: Final = frozenset({"since", "until"})
PAIR_KEYS: Final = frozenset({"tool", "own_code"})
"""What a query may ask for beside time where failures are counted by tool and own code."""


def usable(conn: Connection, scope: Scope, *, keys: frozenset[str] = frozenset()) -> bool:
    """Say whether the rollups hold what *scope* asks for.

    Args:
        conn: Open connection.
        scope: What to count.
        keys: Keys that the rollup meant can tell apart, beside time.
    """
    if is_columnar(conn):  # it has the rows alone, and counts them as fast
        return False
    asked = {clause.key for clause in scope.query.clauses}
    return asked <= _WINDOW | keys and not has_untimed(conn, scope.project_id)


def failures_per_bucket(
    conn: Connection, scope: Scope, *, width: int, offset: int
) -> Counter[tuple[str, int]]:
    """Return failures by code and bucket number, (time - offset) // width.

    Args:
        conn: Open connection.
        scope: What to count: a window and, of buckets of whole days, tools and codes.
        width: Width of a bucket in microseconds, whole hours.
        offset: Where buckets begin, whole days.
    """
    found: Counter[tuple[str, int]] = Counter()
    for segment in in_segments(conn, scope, _per_bucket, width, offset):
        found.update(segment)
    return found


def _per_bucket(
    conn: Connection, scope: Scope, width: int, offset: int
) -> Counter[tuple[str, int]]:
    table = failure_counts.c
    bucket = ((table.period - literal(offset)) // literal(width)).label("bucket")
    at = ((tool_call.c.occurred_at - literal(offset)) // literal(width)).label("bucket")
    by: _By = "pair" if scope.query.has(*PAIR_KEYS) else "code"
    inner, edges = _split(scope, DAY_US if by == "pair" else HOUR_US)
    selects: list[Select[Any]] = [
        select(tool_call.c.code, at, func.count())
        .where(failures_of(edge))
        .group_by(tool_call.c.code, at)
        for edge in edges
    ]
    if inner is not None:
        selects.append(
            select(table.name, bucket, func.sum(table.failures))
            .where(*_whole(scope, by, inner))
            .group_by(table.name, bucket)
        )
    found: Counter[tuple[str, int]] = Counter()
    for code, number, failures in _all(conn, selects):
        found[code or "", number] += int(failures)
    return found


def call_selects(scope: Scope, *, sampled: bool) -> list[Select[Any]]:
    """Return the selects of calls by tool, folded successes included; keys: a window, and tools."""
    table = failure_counts.c
    inner, edges = _split(scope, DAY_US)
    selects: list[Select[Any]] = []
    for edge in edges:
        tool = call_counts.c.tool
        name = tool_of_call()
        selects += [
            select(name, *counted(sampled=sampled)).where(calls_of(edge)).group_by(name),
            select(tool, *added(call_counts.c.calls, sampled=sampled))
            .where(counts_of(edge), tool.is_not(None))
            .group_by(tool),
        ]
    if inner is not None:
        selects += [
            select(table.name, *added(table.calls, sampled=sampled))
            .where(*_whole(scope, by, inner))
            .group_by(table.name)
            for by in _CALLS
        ]
        if sampled:
            selects += [
                select(table.tool, *numbers).where(*_whole(scope, by, inner)).group_by(table.tool)
                for by, numbers in _NOT_SENT
            ]
    return selects


def _stand_for(unit: float) -> Any:
    """Return the calls of a rollup that holds them in units of *unit*."""
    return func.sum(failure_counts.c.calls) / unit


_NOT_SENT: Final[tuple[tuple[_By, list[Any]], ...]] = (
    ("unsent", [literal(0), _stand_for(float(MILLION)), literal(0.0)]),
    ("squared", [literal(0), literal(0.0), _stand_for(1_000.0)]),
    ("beyond", [literal(0), literal(0.0), _stand_for(0.001)]),
)
"""What the calls that were not sent add to rows, weight and squares."""


def calls_per_day(conn: Connection, scope: Scope) -> dict[int, float]:
    """Return calls by day number, time // day, folded successes included; keys: a window."""
    found: Counter[int] = Counter()
    for segment in in_segments(conn, scope, _calls_per_day):
        found.update(segment)
    return dict(found)


def _calls_per_day(conn: Connection, scope: Scope) -> dict[int, float]:
    table = failure_counts.c
    sampled = sampling(conn, scope.project_id).calls
    reported = func.sum(weight()) if sampled else func.count()
    inner, edges = _split(scope, DAY_US)
    day, of_minute, period = (
        (column // literal(DAY_US)).label("day")
        for column in (tool_call.c.occurred_at, call_counts.c.minute, table.period)
    )
    selects: list[Select[Any]] = []
    for edge in edges:
        selects += [
            select(day, reported).where(calls_of(edge)).group_by(day),
            select(of_minute, func.sum(call_counts.c.calls))
            .where(counts_of(edge), call_counts.c.tool.is_not(None))
            .group_by(of_minute),
        ]
    if inner is not None:
        selects += [
            select(period, func.sum(table.calls)).where(*_whole(scope, by, inner)).group_by(period)
            for by in _CALLS
        ]
        if sampled:
            selects.append(
                select(period, _stand_for(float(MILLION)))
                .where(*_whole(scope, "unsent", inner))
                .group_by(period)
            )
    found: defaultdict[int, float] = defaultdict(int)
    for number, calls in _all(conn, selects):
        found[number] += float(calls) if sampled else int(calls)
    return found


def folded_conversations(scope: Scope) -> ScalarSelect[Any]:
    """Return how many conversations senders counted; keys: a window, and tools."""
    inner, edges = _split(scope, DAY_US)
    one_tool = scope.query.has("tool")
    tool = call_counts.c.tool
    selects: list[Select[Any]] = [
        select(func.sum(call_counts.c.conversations).label("conversations")).where(
            counts_of(edge), tool.is_not(None) if one_tool else tool.is_(None)
        )
        for edge in edges
    ]
    if inner is not None:
        name = failure_counts.c.name
        selects.append(
            select(func.sum(failure_counts.c.calls).label("conversations")).where(
                *_whole(scope, "ended", inner), name != "" if one_tool else name == ""
            )
        )
    added = (selects[0] if len(selects) == 1 else union_all(*selects)).subquery()
    return select(func.coalesce(func.sum(added.c.conversations), 0)).scalar_subquery()


@memoised
def failures_by_pair(conn: Connection, scope: Scope) -> dict[tuple[str, str], tuple[int, int]]:
    """Return failures by tool and code, and how many of them are in no chain."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for segment in in_segments(conn, scope, _by_pair):
        for pair, (failures, outside) in segment.items():
            before = found.get(pair, (0, 0))
            found[pair] = (before[0] + failures, before[1] + outside)
    return found


def _by_pair(conn: Connection, scope: Scope) -> dict[tuple[str, str], tuple[int, int]]:
    return pairs_of(_all(conn, pair_selects(scope)))


def pair_selects(scope: Scope) -> list[Select[Any]]:
    """Return the selects of failures by tool and code, and of how many are in no chain."""
    table = failure_counts.c
    inner, edges = _split(scope, DAY_US)
    pair = (tool_of_call(), tool_call.c.code)
    selects: list[Select[Any]] = [
        select(*pair, func.count(), func.count() - func.count(tool_call.c.chain_id))
        .where(failures_of(edge))
        .group_by(*pair)
        for edge in edges
    ]
    if inner is not None:
        selects.append(
            select(table.tool, table.name, func.sum(table.failures), func.sum(table.calls))
            .where(*_whole(scope, "pair", inner))
            .group_by(table.tool, table.name)
        )
    return selects


def pairs_of(rows: Iterable[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    """Add up rows of `pair_selects`."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for tool, code, failures, outside in rows:
        if failures:
            before = found.get((tool, code or ""), (0, 0))
            found[tool, code or ""] = (before[0] + int(failures), before[1] + int(outside))
    return found


def failures_by_field(conn: Connection, scope: Scope) -> Counter[tuple[str, str]]:
    """Return failures by tool and argument, those that name none under "".

    The query may ask for a window, and for tools.
    """
    found: Counter[tuple[str, str]] = Counter()
    for segment in in_segments(conn, scope, _by_field):
        found.update(segment)
    return found


def _by_field(conn: Connection, scope: Scope) -> Counter[tuple[str, str]]:
    table = failure_counts.c
    inner, edges = _split(scope, DAY_US)
    selects: list[Select[Any]] = []
    for edge in edges:
        named = (issue.c.tool_call_id == tool_call.c.id) & (issue.c.root_field != "")
        field: Any = func.coalesce(issue.c.root_field, "")
        tool = tool_of_call()
        selects.append(
            select(tool, field.label("field"), func.count(func.distinct(tool_call.c.id)))
            .select_from(tool_call.outerjoin(issue, named))
            .where(failures_of(edge))
            .group_by(tool, issue.c.root_field)
        )
    if inner is not None:
        selects.append(
            select(table.tool, table.name, func.sum(table.failures))
            .where(*_whole(scope, "field", inner))
            .group_by(table.tool, table.name)
        )
    found: Counter[tuple[str, str]] = Counter()
    for tool, name, failures in _all(conn, selects):
        if failures:
            found[tool, name] += int(failures)
    return found


def tool_of_call() -> Any:
    """Return the tool of a call to group by.

    As an expression: of a column SQLite would rather read a whole index that is sorted by it than
    the part of another that the window selects.
    """
    return func.coalesce(tool_call.c.tool, "").label("tool")


def _all(conn: Connection, selects: Sequence[Select[Any]]) -> Iterable[Any]:
    """Return the rows of all *selects* in one statement."""
    return conn.execute(selects[0] if len(selects) == 1 else union_all(*selects)).all()


_COLUMNS: Final = {
    ("tool", "tool"): "name",
    ("folded", "tool"): "name",
    ("ended", "tool"): "name",
    ("unsent", "tool"): "tool",
    ("squared", "tool"): "tool",
    ("beyond", "tool"): "tool",
    ("pair", "tool"): "tool",
    ("pair", "own_code"): "name",
    ("field", "tool"): "tool",
}
"""Where each rollup has what a query may ask for."""


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
    for clause in scope.query.clauses:
        if clause.key in _WINDOW or (by, clause.key) not in _COLUMNS:
            continue
        column = table[_COLUMNS[by, clause.key]]
        found = or_(*matches_any(column, patterns_of(clause)))
        conditions.append(not_(found) if clause.negated else found)
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
    rest = scope.query.without("since", "until")
    return replace(scope, query=Query((*clauses, *rest.clauses)))
