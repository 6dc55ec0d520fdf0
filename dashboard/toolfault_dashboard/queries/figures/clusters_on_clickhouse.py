"""The sums of `clusters`, made by ClickHouse: of millions of conversations none is read one by one.

A cell is what a conversation did with one tool, by one model and agent. Cells add up to pairs of
conversation and tool, pairs to conversations; over pairs and conversations go the sums of squares
that an answer needs. The rules are those of `clusters`, which adds up cells in Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)

from toolfault_collector.storage.tables import conversation_end
from toolfault_dashboard.analysis.clusters import NO_MOMENTS, Moments
from toolfault_dashboard.queries.comparisons.cohort_segments import Counted
from toolfault_dashboard.queries.comparisons.cohorts import cells_of, failures_by_code, said_by
from toolfault_dashboard.queries.counting.sampling_weights import Sampling, sampling
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = ["CallSums", "call_sums"]

_PAIR: Final = ("talk", "tool")
_TOLD: Final = ("ends", "squares")
_RATES: Final = (("failures", "calls"), ("first_failures", "operations"))
_ADDED: Final = tuple(name for rate in _RATES for name in rate)

_TwoMoments = tuple[Moments, Moments]


class CallSums(NamedTuple):
    """Sums over the conversations of a scope.

    Attributes:
        of_all: Moments of failures, and of operations that failed at the first try.
        of_tools: The same of the calls of a tool, by tool.
        by_code: Moments of the failures of each code, but for ``whole_squared``.
        sender_counts: What the counters of senders hold of these conversations.
    """

    of_all: _TwoMoments
    of_tools: dict[str, _TwoMoments]
    by_code: dict[str, Moments]
    sender_counts: Counted


def call_sums(conn: Connection, scope: Scope, *, named: bool) -> CallSums:
    """Return the sums over the conversations of *scope*.

    Args:
        conn: Open connection to ClickHouse.
        scope: Which calls.
        named: Whether calls count that a conversation named at its end and nobody reported.
    """
    sampled = sampling(conn, scope.project_id)
    pairs = _named_pairs(scope, sampled) if named else _pairs(scope, sampled)
    # Where the scope is of some tools, what a conversation named beside them does not count.
    beside = named and not scope.query.has("tool")
    of_tools: dict[str, _TwoMoments] = {}
    known: dict[str, Moments] = {}
    sender_counts: dict[str, tuple[int, int]] = {}
    known_ends: dict[str, tuple[int, int]] = {}
    of_all, counts_of_all = (NO_MOMENTS, NO_MOMENTS), (0, 0)
    for is_all, tool, *numbers in conn.execute(_moments(pairs, beside=beside)):
        moments = _moments_of(numbers[:4]), _moments_of(numbers[4:8])
        ended = int(numbers[8] or 0), int(numbers[9] or 0)
        if is_all:
            of_all, counts_of_all = moments, ended
        else:
            of_tools[tool], sender_counts[tool] = moments, ended
            known[tool] = Moments(int(numbers[10] or 0), 0.0, 0.0, float(numbers[11] or 0))
            known_ends[tool] = int(numbers[12] or 0), int(numbers[13] or 0)
    if beside:
        for tool, many, squared in conn.execute(_named_by_tool(scope)):
            more = _rest(Moments(int(many), 0.0, 0.0, float(squared)), known.get(tool, NO_MOMENTS))
            one, other = of_tools.get(tool, (NO_MOMENTS, NO_MOMENTS))
            of_tools[tool] = one + more, other + more
        for tool, *of_whole in conn.execute(_sender_counts_by_tool(scope)):
            parts = zip(
                sender_counts.get(tool, (0, 0)), of_whole, known_ends.get(tool, (0, 0)), strict=True
            )
            ends, squares = (own + int(whole) - pairs for own, whole, pairs in parts)
            sender_counts[tool] = ends, squares
    by_code = {
        code: Moments(0, float(part), float(product))
        for code, part, product in conn.execute(
            _moments_by_code(scope, sampled, pairs, beside=beside)
        )
    }
    return CallSums(of_all, of_tools, by_code, _counted(counts_of_all, sender_counts))


def _moments_of(numbers: Sequence[Any]) -> Moments:
    return Moments(int(numbers[0] or 0), *(float(each or 0) for each in numbers[1:]))


def _rest(of: Moments, known: Moments) -> Moments:
    return Moments(of.clusters - known.clusters, 0.0, 0.0, of.whole_squared - known.whole_squared)


def _counted(of_all: tuple[int, int], of_tools: dict[str, tuple[int, int]]) -> Counted:
    conversations, squares = (
        Counter({tool: counts[place] for tool, counts in of_tools.items()}) for place in (0, 1)
    )
    return Counted(Counter(), *of_all, conversations, squares)


def _float(column: ColumnElement[Any]) -> Any:
    return func.toFloat64(column)


def _cells(scope: Scope, sampled: Sampling) -> Subquery:
    """Return the cells of *scope*: what each of `_ADDED` is, and what was tried and reported."""
    cells = cells_of(scope, sampled).subquery().c
    # What rows stand for, where some were sampled.
    of = "1" if sampled.calls else ""
    first_failures = _float(cells[f"chains{of}"]) + _float(cells[f"unchained{of}"])
    tries = _float(cells[f"calls{of}"]) - _float(cells[f"round_trips{of}"])
    return select(
        cells.key.label("talk"),
        *(cells[name] for name in ("tool", "model", "agent")),
        _float(cells[f"failures{of}"]).label("failures"),
        _float(cells[f"calls{of}"]).label("calls"),
        first_failures.label("first_failures"),
        func.greatest(tries, first_failures).label("operations"),
        tries.label("tries"),
        _float(cells.calls).label("reported"),
    ).subquery()


def _pairs(scope: Scope, sampled: Sampling) -> Subquery:
    """Return the sums of cells by conversation and tool, and that none is named."""
    cells = _cells(scope, sampled).c
    key = [cells[name] for name in _PAIR]
    names = (
        "whole",
        "of_talk",
        *(f"{of}{name}" for of in ("", "all_", "whole_") for name in _TOLD),
    )
    none = (literal(0).label(name) for name in names)
    return (
        select(*key, *(func.sum(cells[name]).label(name) for name in _ADDED), *none)
        .group_by(*key)
        .subquery()
    )


def _named_pairs(scope: Scope, sampled: Sampling) -> Subquery:
    """Return the same with the calls that conversations named at their end.

    ``named``: calls of the tool that the conversation named; ``whole``: the same, if all its calls
    lie in the window; ``of_talk`` are those of all its tools. ``ends`` and ``squares``: the ends in
    the window that named the tool, and their squared calls of it; ``all_ends`` and ``all_squares``
    are those of all tools; ``whole_ends`` and ``whole_squares`` as ``whole``.
    Conversations do not say which model and agent had these calls: the first by name takes them.
    """
    cells, said = _cells(scope, sampled).c, _said(scope)
    of_tool, of_talk = _sender_counts(scope)
    key = [cells[name] for name in _PAIR]
    first = func.argMin(tuple_(cells.tries, cells.first_failures), tuple_(cells.model, cells.agent))
    pairs = (
        select(
            *key,
            *(func.sum(cells[name]).label(name) for name in (*_ADDED, "reported")),
            first.label("first"),
        )
        .group_by(*key)
        .subquery()
    )
    pair, end, tool, talk = pairs.c, said.c, of_tool.c, of_talk.c
    calls = func.coalesce(end.calls, "{}")
    named = _float(func.JSONExtractInt(calls, pair.tool))
    is_whole, total = (_float(func.coalesce(each, 0)) for each in (end.is_whole, end.total))
    sender_counts = {
        "ends": tool.ends,
        "squares": tool.squares,
        "all_ends": talk.ends,
        "all_squares": talk.squares,
    }
    more = func.greatest(named - pair.reported, 0.0) * is_whole
    tried, least = (func.tupleElement(pair.first, place) for place in (1, 2))
    operations = func.greatest(tried + more, least)
    return (
        select(
            *(pair[name] for name in (*_PAIR, "failures", "first_failures")),
            (pair.calls + more).label("calls"),
            (pair.operations + operations - func.greatest(tried, least)).label("operations"),
            (named * is_whole).label("whole"),
            (total * is_whole).label("of_talk"),
            *(_float(func.coalesce(each, 0)).label(name) for name, each in sender_counts.items()),
            *(
                (_float(func.coalesce(sender_counts[name], 0)) * is_whole).label(f"whole_{name}")
                for name in _TOLD
            ),
        )
        .select_from(
            pairs.outerjoin(said, end.talk == pair.talk)
            .outerjoin(of_tool, and_(tool.talk == pair.talk, tool.tool == pair.tool))
            .outerjoin(of_talk, talk.talk == pair.talk)
        )
        .subquery()
    )


def _said(scope: Scope) -> Subquery:
    """Return the conversations of *scope* that named their calls at their end.

    ``is_whole``: all calls lie in the window.
    """
    since, until = window(scope)
    said = said_by(scope, step=False).subquery().c
    whole: list[ColumnElement[bool]] = [true()]
    if since is not None:
        whole.append(said.first_at >= since)
    if until is not None:
        whole.append(said.last_at < until)
    calls = func.assumeNotNull(said.calls)
    return select(
        said.session_id.label("talk"),
        calls.label("calls"),
        func.arraySum(func.tupleElement(_named(calls), 2)).label("total"),
        case((and_(*whole), 1), else_=0).label("is_whole"),
    ).subquery()


def _sender_counts(scope: Scope) -> tuple[Subquery, Subquery]:
    """Return what senders counted of conversations in the window, by tool and over all tools.

    They count a conversation in the minute of its end; of one with several ends each is counted.
    """
    row, (since, until) = conversation_end.c, window(scope)
    own = [row.project_id == scope.project_id]
    own += [] if since is None else [row.occurred_at >= since]
    own += [] if until is None else [row.occurred_at < until]
    named, talk = _named(cast(row.calls, Text)), row.session_id.label("talk")
    each = select(talk, func.arrayJoin(named).label("one")).where(*own).subquery().c
    tool, number = (func.tupleElement(each.one, place) for place in (1, 2))
    total = _float(func.arraySum(func.tupleElement(named, 2)))
    of_tool = select(each.talk, tool.label("tool"), *_squared(_float(number)))
    return (
        of_tool.group_by(each.talk, tool).subquery(),
        select(talk, *_squared(total)).where(*own).group_by(talk).subquery(),
    )


def _squared(number: ColumnElement[Any]) -> tuple[ColumnElement[Any], ...]:
    return func.count().label("ends"), func.sum(number * number).label("squares")


def _named(calls: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return pairs of tool and calls from what a conversation named, JSON as text."""
    return func.JSONExtractKeysAndValues(calls, "Int64")


def _named_by_tool(scope: Scope) -> Select[Any]:
    """Return the select of what conversations named that lie in the window: tool, n and n * n."""
    said = _said(scope).c
    each = (
        select(func.arrayJoin(_named(said.calls)).label("one")).where(said.is_whole == 1).subquery()
    )
    tool, calls = (func.tupleElement(each.c.one, place) for place in (1, 2))
    number = _float(calls)
    return select(tool, func.count(case((calls != 0, 1))), func.sum(number * number)).group_by(tool)


def _sender_counts_by_tool(scope: Scope) -> Select[Any]:
    """Return the select of `_sender_counts` of conversations within the window: tool, numbers."""
    said, (of_tool, _) = _said(scope).c, _sender_counts(scope)
    sums = (func.sum(of_tool.c[name]) for name in _TOLD)
    return (
        select(of_tool.c.tool, *sums)
        .select_from(of_tool.join(said.talk.table, said.talk == of_tool.c.talk))
        .where(said.is_whole == 1)
        .group_by(of_tool.c.tool)
    )


def _moments(pairs: Subquery, *, beside: bool) -> Select[Any]:
    """Return the select of the moments of all calls and, in rows of their own, of each tool."""
    pair = pairs.c
    is_all = func.grouping(pair.tool)
    more = is_all * (func.max(pair.of_talk) - func.sum(pair.whole)) if beside else literal(0)
    sender_counts = (
        case((is_all == 1, func.max(pair[f"all_{name}"])), else_=func.sum(pair[name])).label(name)
        for name in _TOLD
    )
    each = (
        select(
            is_all.label("is_all"),
            pair.tool,
            *(func.sum(pair[part]).label(part) for part, _ in _RATES),
            *((func.sum(pair[whole]) + more).label(whole) for _, whole in _RATES),
            *sender_counts,
            func.sum(pair.whole).label("named"),
            *(func.sum(pair[f"whole_{name}"]).label(f"whole_{name}") for name in _TOLD),
        )
        .group_by(func.grouping_sets(tuple_(pair.talk), tuple_(pair.talk, pair.tool)))
        .subquery()
    )
    row = each.c
    moments = [
        column
        for part, whole in ((row[part], row[whole]) for part, whole in _RATES)
        for column in (
            func.count(case((or_(part != 0, whole != 0), 1))),
            *(func.sum(product) for product in (part * part, part * whole, whole * whole)),
        )
    ]
    key = [row.is_all, row.tool]
    return select(
        *key,
        *moments,
        *(func.sum(row[name]) for name in _TOLD),
        func.count(case((row.named != 0, 1))),
        func.sum(row.named * row.named),
        *(func.sum(row[f"whole_{name}"]) for name in _TOLD),
    ).group_by(*key)


def _moments_by_code(
    scope: Scope, sampled: Sampling, pairs: Subquery, *, beside: bool
) -> Select[Any]:
    """Return the select of codes, the sums of f * f, and those of f * n."""
    pair = pairs.c
    more = func.max(pair.of_talk) - func.sum(pair.whole) if beside else literal(0)
    talks = (
        select(pair.talk, (func.sum(pair.calls) + more).label("calls"))
        .group_by(pair.talk)
        .subquery()
    )
    code, talk, *numbers = failures_by_code(scope, sampled).subquery().c
    failures = _float(numbers[1 if len(numbers) > 1 else 0])
    return (
        select(code, func.sum(failures * failures), func.sum(failures * talks.c.calls))
        .select_from(talks.join(code.table, talk == talks.c.talk))
        .group_by(code)
    )
