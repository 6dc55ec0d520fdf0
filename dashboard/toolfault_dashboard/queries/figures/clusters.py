"""The conversations behind a rate: what its interval needs to know of them.

A large window is counted in segments, by the day, and a conversation may go on from one day to the
next. Of conversations that lie within a segment their sums are kept, which add up over the
segments. What others did in a segment is kept conversation by conversation, until the segments are
together in which it lies, or until all segments are. So the answer is that of the whole window,
however it was cut.

A segment is counted anew when a conversation of it goes on: whoever writes to a conversation raises
the versions of all days from its first call to its last (``storage.cache_versions``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Final, Literal

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Label,
    Select,
    and_,
    case,
    false,
    func,
    literal,
    or_,
    select,
    union_all,
)

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.tables import OVERNIGHT, chain, conversation
from toolfault_dashboard.analysis.clusters import (
    NO_MOMENTS,
    Moments,
    call_moments,
    code_moments,
)
from toolfault_dashboard.analysis.comparisons.cells import (
    CodeColumns,
    Columns,
    Names,
    Numbers,
    added,
    numbered,
)
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.queries.comparisons.cohort_data import (
    beyond_rows,
    ended_in_window,
    has_cell,
    named_tools,
    with_named,
)
from toolfault_dashboard.queries.comparisons.cohort_segments import Counted, Segment, only, together
from toolfault_dashboard.queries.comparisons.cohorts import cohort_segment, counts_of_senders
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.counting.memoise import memoised, remember
from toolfault_dashboard.queries.counting.sampling_weights import (
    chain_weight,
    sampling,
    weighted_chains,
)
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.counting.together import Question
from toolfault_dashboard.queries.figures.clusters_on_clickhouse import (
    NO_SUMS,
    CallSums,
    sums_of_all,
    sums_of_codes,
    sums_of_tools,
)
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.transpose import transposed
from toolfault_dashboard.queries.windows import window

__all__ = [
    "CallClusters",
    "ChainClusters",
    "calls_of_conversations",
    "chain_questions",
    "chains_by_key",
    "hull",
    "lies_within",
    "reaching_out",
    "remember_chains",
]

_NAMES: Final = ("failure_rate", "first_try_success")
_OF_CALLS: Final = tuple(each for name in _NAMES for each in METRICS if each.name == name)


MANY: Final = 10_000
"""Calls and minutes of a window from which its days are counted one by one, and kept: reading each
conversation costs some ten times as much as counting calls does."""

_FEW: Final = 1_000  # conversations that are looked up by name at once

_Window = tuple[int | None, int | None]
_Span = tuple[int, int]
"""The first and the last microsecond of a conversation."""


@dataclass(frozen=True, slots=True)
class CallClusters:
    """Moments of the calls of a scope; the sum of two is that of both their segments.

    Attributes:
        failures: Of failures among all calls.
        first_try_failures: Of operations that failed at the first try.
        failures_of: Of failures among the calls of a tool, by tool.
        first_try_failures_of: The same of operations.
        by_code: Of the failures of each code among all calls, but for ``whole_squared``.
    """

    failures: Moments = NO_MOMENTS
    first_try_failures: Moments = NO_MOMENTS
    failures_of: Mapping[str, Moments] = field(default_factory=dict)
    first_try_failures_of: Mapping[str, Moments] = field(default_factory=dict)
    by_code: Mapping[str, Moments] = field(default_factory=dict)

    def __len__(self) -> int:
        return 2 + len(self.failures_of) + len(self.first_try_failures_of) + len(self.by_code)

    def __add__(self, other: CallClusters) -> CallClusters:
        return CallClusters(
            self.failures + other.failures,
            self.first_try_failures + other.first_try_failures,
            _added(self.failures_of, other.failures_of),
            _added(self.first_try_failures_of, other.first_try_failures_of),
            _added(self.by_code, other.by_code),
        )

    def of_tool(self, tool: str) -> tuple[Moments, Moments]:
        """Return the moments of failures and first-try failures of a tool."""
        return (
            self.failures_of.get(tool, NO_MOMENTS),
            self.first_try_failures_of.get(tool, NO_MOMENTS),
        )

    def of_code(self, code: str) -> Moments:
        """Return the moments of the failures of a code among all calls."""
        own, whole = self.by_code.get(code, NO_MOMENTS), self.failures
        return own._replace(clusters=whole.clusters, whole_squared=whole.whole_squared)


def _added(one: Mapping[str, Moments], other: Mapping[str, Moments]) -> dict[str, Moments]:
    names = one.keys() | other.keys()
    return {name: one.get(name, NO_MOMENTS) + other.get(name, NO_MOMENTS) for name in names}


@dataclass(frozen=True, slots=True)
class _Settled:
    """Sums over conversations that lie within a segment.

    Attributes:
        reported: Of the calls that were reported.
        named: Of all calls that a conversation named at its end.
        sender_counts: What the counters of senders hold of these conversations.
    """

    reported: CallClusters
    named: CallClusters
    sender_counts: Counted

    def __add__(self, other: _Settled) -> _Settled:
        return _Settled(
            self.reported + other.reported,
            self.named + other.named,
            self.sender_counts + other.sender_counts,
        )


@dataclass(frozen=True, slots=True)
class _CallSegment:
    """The calls of a segment of a window.

    Attributes:
        window: The segment.
        settled: The conversations that lie within it.
        beyond: What the others did in it.
        spans: From when to when each of those goes on.
        counted: What senders counted in it.
    """

    window: _Window
    settled: _Settled
    beyond: Segment
    spans: Mapping[str, _Span]
    counted: Counted

    def __len__(self) -> int:
        return 2 * len(self.settled.named) + len(self.beyond) + len(self.spans)


def calls_of_conversations(
    conn: Connection, scope: Scope, only: Literal["all", "tool", "code"] | None = None
) -> CallClusters:
    """Return the moments of the calls of *scope*, of all, of each tool and of each code.

    Args:
        conn: Open connection.
        scope: Which calls.
        only: What is needed: the rest may be missing, since ClickHouse works out each by itself.
    """
    if not is_columnar(conn):
        return _of_sql(conn, scope)
    return reduce(add, (part(conn, scope) for part in _ON_CLICKHOUSE[only]))


@memoised
def _of_sql(conn: Connection, scope: Scope) -> CallClusters:
    of_tools = scope.query.has("tool")
    if is_asked_at_once(conn, scope, many=MANY):
        segment = cohort_segment(conn, scope, True, whole=True)
        found, counted = _settled(segment, window(scope), of_tools=of_tools), segment.counted
    else:
        whole = _together(
            in_segments(conn, scope, _calls, of_tools, together=_together, many=MANY, stored=True),
            of_tools,
        )
        found = whole.settled + _settled(whole.beyond, window(scope), of_tools=of_tools)
        counted = whole.counted
    if not counted.calls:
        return found.reported
    return found.named + _beyond(scope, counted, found.sender_counts)


def _beyond(scope: Scope, counted: Counted, known: Counted) -> CallClusters:
    """Return the moments of conversations that senders *counted* and that are not *known*."""
    rest = beyond_rows(counted, known, of_tools=scope.query.has("tool"))
    all_tools = Moments(rest.conversations, 0.0, 0.0, rest.calls_squared)
    by_tool = {tool: Moments(n, 0.0, 0.0, squared) for tool, (n, squared) in rest.of_tools.items()}
    return CallClusters(all_tools, all_tools, by_tool, by_tool)


@memoised
def _all_on_clickhouse(conn: Connection, scope: Scope) -> CallClusters:
    counted = _counted_by_senders(conn, scope)
    sums = sums_of_all(conn, scope, named=bool(counted.calls))
    found = CallClusters(sums.failures, sums.first_try_failures)
    if not counted.calls:
        return found
    # Conversations of some tools only are counted by these tools.
    tools = _sums_of_tools(conn, scope) if scope.query.has("tool") else {}
    more = _beyond(scope, counted, _known(sums, tools))
    return found + CallClusters(more.failures, more.first_try_failures)


@memoised
def _tools_on_clickhouse(conn: Connection, scope: Scope) -> CallClusters:
    counted, sums = _counted_by_senders(conn, scope), _sums_of_tools(conn, scope)
    found = CallClusters(
        failures_of={tool: each.failures for tool, each in sums.items() if each.failures.clusters},
        first_try_failures_of={
            tool: each.first_try_failures
            for tool, each in sums.items()
            if each.first_try_failures.clusters
        },
    )
    if not counted.calls:
        return found
    more = _beyond(scope, counted, _known(NO_SUMS, sums))
    return found + replace(more, failures=NO_MOMENTS, first_try_failures=NO_MOMENTS)


@memoised
def _codes_on_clickhouse(conn: Connection, scope: Scope) -> CallClusters:
    named = bool(_counted_by_senders(conn, scope).calls)
    return CallClusters(by_code=sums_of_codes(conn, scope, named=named))


_counted_by_senders: Final = memoised(counts_of_senders)


@memoised
def _sums_of_tools(conn: Connection, scope: Scope) -> Mapping[str, CallSums]:
    return sums_of_tools(conn, scope, named=bool(_counted_by_senders(conn, scope).calls))


def _known(sums: CallSums, tools: Mapping[str, CallSums]) -> Counted:
    """Return what the counters of senders hold of conversations that were added up."""
    ends = Counter({tool: each.ends for tool, each in tools.items()})
    squares = Counter({tool: each.squares for tool, each in tools.items()})
    return Counted(Counter(), sums.ends, sums.squares, ends, squares)


_ON_CLICKHOUSE: Final = {
    None: (_all_on_clickhouse, _tools_on_clickhouse, _codes_on_clickhouse),
    "all": (_all_on_clickhouse,),
    "tool": (_tools_on_clickhouse,),
    "code": (_all_on_clickhouse, _codes_on_clickhouse),  # failures of a code among all calls
}


def _calls(conn: Connection, scope: Scope, of_tools: bool) -> _CallSegment:
    segment, own = cohort_segment(conn, scope, True), window(scope)
    spans = reaching_out(conn, scope, tuple(segment.views[0].names))
    return _divided(own, segment, spans, segment.counted, of_tools=of_tools)


def _together(segments: Sequence[_CallSegment], of_tools: bool) -> _CallSegment:
    if len(segments) == 1:
        return segments[0]
    spans = {name: span for segment in segments for name, span in segment.spans.items()}
    counted = reduce(add, (segment.counted for segment in segments))
    beyond = together([segment.beyond for segment in segments])
    found = _divided(
        hull([segment.window for segment in segments]), beyond, spans, counted, of_tools=of_tools
    )
    return replace(
        found, settled=reduce(add, (segment.settled for segment in segments), found.settled)
    )


def hull(windows: Iterable[_Window]) -> _Window:
    """Return the window from the beginning of the first to the end of the last of *windows*."""
    begins, ends = zip(*windows, strict=True)
    return (
        None if None in begins else min(begins),
        None if None in ends else max(ends),
    )


def lies_within(own: _Window, span: _Span) -> bool:
    """Say whether *span*, from its first call to its last, lies within the window *own*."""
    since, until = own
    return (since is None or span[0] >= since) and (until is None or span[1] < until)


def _divided(
    own: _Window, segment: Segment, spans: Mapping[str, _Span], counted: Counted, *, of_tools: bool
) -> _CallSegment:
    """Return *segment*; only its conversations with *spans* may reach beyond the window *own*."""
    names = segment.views[0].names
    beyond = {
        name: spans[name] for name in names if name in spans and not lies_within(own, spans[name])
    }
    is_beyond = np.fromiter((name in beyond for name in names), dtype=np.bool_, count=len(names))
    within = only(segment, ~is_beyond) if beyond else segment
    return _CallSegment(
        own, _settled(within, own, of_tools=of_tools), only(segment, is_beyond), beyond, counted
    )


def _settled(segment: Segment, own: _Window, *, of_tools: bool) -> _Settled:
    """Return the sums over the conversations of *segment*.

    What a conversation named at its end was called within the window *own* only if all of it was,
    and where the scope is *of_tools*, some tools only, what it named beside them does not count.
    """
    assert segment.codes is not None, "they were asked for"
    cells, ended = segment.views[1 if len(segment.views) > 1 else 0], segment.ended
    codes = CodeColumns(
        segment.codes.codes, segment.codes.code, segment.codes.conversation, segment.codes.failures
    )
    since, until = own
    whole = np.full(len(ended.at), True)
    if since is not None:
        whole &= ended.first >= since
    if until is not None:
        whole &= ended.last < until
    is_whole = np.zeros(len(cells.names), dtype=np.bool_)
    is_whole[ended.conversation[whole]] = True
    more = np.where(is_whole[cells.conversation], segment.more, 0.0)
    there = has_cell(ended, cells)
    if not of_tools:
        beside = named_tools(cells, ended, ~there & is_whole[ended.of])
        cells, more = with_named(cells, beside), np.concatenate([more, beside.calls])
        there |= is_whole[ended.of]
    reported, named = _moments_of([cells, cells.with_calls(more)], codes)
    return _Settled(reported, named, ended_in_window(ended, cells, there, own))


def _moments_of(views: Sequence[Columns], codes: CodeColumns) -> list[CallClusters]:
    """Return the moments of *views* of the same cells, which differ in their calls."""
    pairs = [(each.numerator(view), each.denominator(view)) for view in views for each in _OF_CALLS]
    of_all, of_tools = (call_moments(views[0], pairs, by_tool=each) for each in (False, True))
    found = [each.get("", NO_MOMENTS) for each in of_all]
    return [
        CallClusters(
            found[place],
            found[place + 1],
            of_tools[place],
            of_tools[place + 1],
            code_moments(codes, view),
        )
        for place, view in zip(range(0, len(pairs), len(_OF_CALLS)), views, strict=True)
    ]


def reaching_out(conn: Connection, scope: Scope, names: Sequence[str]) -> dict[str, _Span]:
    """Return the conversations among *names* that reach beyond the window of *scope*."""
    talk = conversation.c
    found = select(talk.session_id, *_ends_of(talk))
    if _is_of_days(scope):
        rows = conn.execute(found.where(_reaches_out(scope, talk.last_at), OVERNIGHT)).all()
    else:
        # An index of the last call would be read from the beginning of the window up to now.
        found = found.where(_reaches_out(scope, talk.last_at + 0))
        portions = (names[at : at + _FEW] for at in range(0, len(names), _FEW))
        rows = [
            row
            for portion in portions
            for row in conn.execute(found.where(talk.session_id.in_(portion)))
        ]
    return {name: (first, last) for name, first, last in rows}


def _is_of_days(scope: Scope) -> bool:
    """Say whether the window of *scope* begins and ends at midnight, or not at all."""
    return not any(end is not None and end % DAY_US for end in window(scope))


def _ends_of(talk: Any) -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Return the first and the last moment of the conversation in the columns *talk*."""
    return (
        case((talk.ended_at < talk.first_at, talk.ended_at), else_=talk.first_at).label("first"),
        case((talk.ended_at > talk.last_at, talk.ended_at), else_=talk.last_at).label("last"),
    )


def _reaches_out(scope: Scope, last_at: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition on conversations: calls in the window of *scope*, and not all in it.

    *last_at* is compared with the window's beginning.
    """
    talk, (since, until) = conversation.c, window(scope)
    beyond: list[ColumnElement[bool]] = []
    touches: list[ColumnElement[bool]] = [talk.project_id == scope.project_id]
    if since is not None:
        touches.append(last_at >= since)
        beyond += [talk.first_at < since, talk.ended_at < since]
    if until is not None:
        touches.append(talk.first_at < until)
        beyond += [talk.last_at >= until, talk.ended_at >= until]
    return and_(*touches, or_(*beyond) if beyond else false())


_Names = tuple[str, ...]
_Pair = tuple[Moments, Moments]


class ChainClusters(dict[_Names, _Pair]):
    """Moments of recovered among closed chains, and of first retries that fixed, by names."""

    def __missing__(self, names: _Names) -> _Pair:
        return NO_MOMENTS, NO_MOMENTS

    def add(self, names: _Names, moments: _Pair) -> None:
        """Add the moments of other conversations."""
        known = self[names]
        self[names] = known[0] + moments[0], known[1] + moments[1]


@dataclass(frozen=True, slots=True)
class _ChainSegment:
    """The chains of a segment of a window.

    Attributes:
        window: The segment.
        settled: Of the conversations that lie within it.
        beyond: Of the others by names and conversation: what is counted and of how many, twice.
        spans: From when to when each of those goes on.
    """

    window: _Window
    settled: ChainClusters
    beyond: dict[tuple[_Names, str], Sequence[float]]
    spans: Mapping[str, _Span]

    def __len__(self) -> int:
        return len(self.settled) + len(self.beyond) + len(self.spans)


@memoised
def chains_by_key(conn: Connection, scope: Scope, *columns: str) -> ChainClusters:
    """Return the moments of the chains of *scope* by columns of theirs, and of all under ()."""
    if is_asked_at_once(conn, scope):
        return _chains_at_once(conn, scope, columns)
    segments = in_segments(
        conn, scope, _chains, columns, outcomes=True, together=_chains_together, stored=True
    )
    whole = _chains_together(segments)
    found = ChainClusters(whole.settled)
    for (names, _), sums in whole.beyond.items():
        found.add(names, _moments_of_one(sums))
    return found


def _chains_at_once(conn: Connection, scope: Scope, columns: _Names) -> ChainClusters:
    names = [func.coalesce(chain.c[column], "").label(column) for column in columns]
    each = [
        _sums(conn, scope, names, of_all=of_all) for of_all in ([False, True] if names else [True])
    ]
    found = ChainClusters()
    for of_all, *row in conn.execute(union_all(*each)):
        found[() if of_all else tuple(row[: len(columns)])] = _pair_of(row[len(columns) :])
    return found


def _chains(conn: Connection, scope: Scope, columns: _Names) -> _ChainSegment:
    """Read the chains of a segment of a window one by one.

    Most conversations have one or two, so that a database takes longer to group them.
    """
    kinds = [case((kind, _weight(conn, scope)), else_=0) for kind in _kinds(scope).values()]
    names = [func.coalesce(chain.c[column], "") for column in columns]
    found_chains = select(chain.c.session_id, *kinds, *names).select_from(_weighed(conn, scope))
    rows = conn.execute(found_chains.where(chains_of(scope))).all()
    talks, *values = transposed(rows, 1 + len(kinds) + len(names))
    talking, own = Names(), window(scope)
    talk = talking.taking(talks)
    spans = {
        name: span
        for name, span in reaching_out(conn, scope, tuple(talking)).items()
        if not lies_within(own, span)
    }
    found = _ChainSegment(own, ChainClusters(), {}, spans)
    counts = values[: len(kinds)]
    if names:
        of_names = list(zip(*values[len(kinds) :], strict=True))
        _take_in(found, of_names, talking, talk, counts)
    _take_in(found, [()] * len(rows), talking, talk, counts)  # those of all names
    return found


def _take_in(
    found: _ChainSegment,
    of: Sequence[_Names],
    talking: Names,
    talk: Numbers,
    counts: Sequence[Sequence[float]],
) -> None:
    """Add up *counts* by the names *of* each chain and its conversation, and take them in.

    Args:
        found: Takes them in.
        of: The names of each chain.
        talking: The conversations.
        talk: The number of the conversation of each chain.
        counts: What is counted of each chain and of how many, of both rates.
    """
    places: dict[_Names, int] = {}
    width = max(1, len(talking))
    pairs, place = np.unique(numbered(of, places) * width + talk, return_inverse=True)
    sums = [added(place, np.asarray(each, dtype=np.float64), len(pairs)) for each in counts]
    reaching = np.fromiter((name in found.spans for name in talking), np.bool_, count=len(talking))
    group, within, groups = pairs // width, ~reaching[pairs % width], list(places)
    moments = [
        added(group, within * each, len(groups)).tolist()
        for one, whole in (sums[:2], sums[2:])
        for each in (whole > 0, one * one, one * whole, whole * whole)
    ]
    for names, *own in zip(groups, *moments, strict=True):
        found.settled[names] = _pair_of(own)
    beyond = [each[~within].tolist() for each in (group, pairs % width, *sums)]
    for number, conversation_, *own in zip(*beyond, strict=True):
        found.beyond[groups[number], talking.in_order[conversation_]] = tuple(own)


def chain_questions(
    conn: Connection, scope: Scope, of: Sequence[tuple[str, ...]]
) -> list[Question]:
    """Return what `chains_by_key` asks of a window that is counted at once, by each of *of*.

    The last question is about all chains, which each of these answers holds too.
    """
    found = []
    for columns in (*of, ()):
        names = [func.coalesce(chain.c[column], "").label(column) for column in columns]
        sums = _sums(conn, scope, names, of_all=not columns)
        found.append(Question(select(*list(sums.subquery().c)[1:]), len(columns)))
    return found


def remember_chains(
    conn: Connection,
    scope: Scope,
    of: Sequence[tuple[str, ...]],
    answers: Sequence[Iterable[Sequence[Any]]],
) -> None:
    """Remember the rows of `chain_questions` as the answers of `chains_by_key`."""
    *of_each, of_all = answers
    (everything,) = map(_pair_of, of_all)
    for columns, rows in zip(of, of_each, strict=True):
        width = len(columns)
        found = ChainClusters({tuple(row[:width]): _pair_of(row[width:]) for row in rows})
        found[()] = everything
        remember(conn, chains_by_key, found, scope, *columns)


def _pair_of(numbers: Sequence[Any]) -> _Pair:
    return _moments(numbers[:4]), _moments(numbers[4:8])


def _chains_together(segments: Sequence[_ChainSegment], *_args: object) -> _ChainSegment:
    if len(segments) == 1:
        return segments[0]
    own = hull([segment.window for segment in segments])
    settled, spans = ChainClusters(), dict[str, _Span]()
    sums: dict[tuple[_Names, str], Sequence[float]] = {}
    for segment in segments:
        spans.update(segment.spans)
        for names, moments in segment.settled.items():
            settled.add(names, moments)
        for key, more in segment.beyond.items():
            known = sums.get(key)
            sums[key] = more if known is None else tuple(map(add, known, more))
    beyond = {}
    for key, all_of_it in sums.items():
        if lies_within(own, spans[key[1]]):
            settled.add(key[0], _moments_of_one(all_of_it))
        else:
            beyond[key] = all_of_it
    left = {talk for _, talk in beyond}
    return _ChainSegment(own, settled, beyond, {talk: spans[talk] for talk in left})


def _weight(conn: Connection, scope: Scope) -> Any:
    """Return what a chain stands for."""
    return chain_weight() if sampling(conn, scope.project_id).failures else 1


def _weighed(conn: Connection, scope: Scope) -> FromClause:
    return weighted_chains(sampled=sampling(conn, scope.project_id).failures)


def _kinds(scope: Scope) -> dict[str, ColumnElement[bool]]:
    """Return which chains are counted and of how many, of both rates."""
    return {
        "recovered": chain.c.recovered_at.is_not(None),
        "closed": chain.c.settles_at <= scope.now,
        "fixed": chain.c.first_retry_fix,
        "retried": chain.c.round_trips > 0,
    }


def _sums(
    conn: Connection, scope: Scope, names: Sequence[Label[str]], *, of_all: bool
) -> Select[Any]:
    """Return the select of the moments by *names*; *of_all*, with nothing for each name."""
    weight = _weight(conn, scope)
    keys = [] if of_all else list(names)
    by_talk = (
        select(
            *keys,
            *(
                func.sum(case((kind, weight), else_=0)).label(of)
                for of, kind in _kinds(scope).items()
            ),
        )
        .select_from(_weighed(conn, scope))
        .where(chains_of(scope))
        .group_by(*keys, chain.c.session_id)
        .subquery()
    )
    each = by_talk.c
    moments: list[ColumnElement[Any]] = [
        column
        for part, of in ((each.recovered, each.closed), (each.fixed, each.retried))
        for column in (
            func.count(case((of > 0, 1))),
            func.sum(part * part),
            func.sum(part * of),
            func.sum(of * of),
        )
    ]
    own: list[ColumnElement[Any]] = [literal("") if of_all else each[name.name] for name in names]
    statement = select(literal(int(of_all)), *own, *moments)
    return statement if of_all else statement.group_by(*own)


def _moments(row: Sequence[Any]) -> Moments:
    return Moments(int(row[0] or 0), *(float(each or 0) for each in row[1:]))


def _moments_of_one(sums: Sequence[float]) -> _Pair:
    """Return the moments of one conversation: what is counted and of how many, of both rates."""
    one, other = (
        Moments(int(of > 0), part * part, part * of, of * of) for part, of in (sums[:2], sums[2:])
    )
    return one, other
