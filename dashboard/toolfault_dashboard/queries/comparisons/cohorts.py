"""One cohort of a comparison, read from the database."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    Text,
    case,
    cast,
    func,
    literal,
    select,
    union,
    union_all,
)

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.tables import (
    OVERNIGHT,
    call_counts,
    chain,
    conversation,
    conversation_end,
    tool_call,
)
from toolfault_dashboard.analysis.comparisons.by_code import CodeAmounts
from toolfault_dashboard.analysis.comparisons.cells import CodeColumns, Stratum
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.queries.comparisons.cohort_data import cohort_data
from toolfault_dashboard.queries.comparisons.cohort_segments import (
    Counted,
    Ends,
    Segment,
    cells_of_rows,
    code_segment,
    code_segment_of_rows,
    ended_of,
    more_calls,
    together,
    views_of,
)
from toolfault_dashboard.queries.conditions import (
    calls_of,
    chains_of,
    counts_of,
    failures_of,
    issues_of,
)
from toolfault_dashboard.queries.counting import sampling_weights
from toolfault_dashboard.queries.counting.sampling_weights import (
    Sampling,
    chain_weight,
    sampling,
    weight,
    weighted_chains,
)
from toolfault_dashboard.queries.counting.segments import in_segments, is_asked_at_once
from toolfault_dashboard.queries.failures.codes import of_other_issues
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Moment, Pattern, Query

__all__ = [
    "TIMED",
    "cells_of",
    "cohort_of",
    "cohort_segment",
    "cohort_with_codes",
    "cohorts_of",
    "counts_of_senders",
    "failures_by_code",
    "growing_cohorts",
    "said_by",
]

TIMED: Final = Clause("time", (Pattern(("none",)),), negated=True)
"""Calls whose source has times."""


_COUNTS = (
    "calls", "failures", "chains", "unchained", "round_trips", "recovered", "closed", "timed",
    "time_lost_ms", "tokens_lost", "with_tokens",
)  # fmt: skip
_STRATUM = ("tool", "model", "agent")
_MOMENTS = ("first_at", "last_at", "ended_at")
# In the columns of a stratum. As text: of a long history most conversations are not of a cohort and
# need no reading.
_SAID: Final = (
    cast(conversation.c.end_calls, Text).label("calls"),
    cast(conversation.c.ends, Text).label(_STRATUM[1]),
    literal("").label(_STRATUM[2]),
)
_CELL: Final = "cell"
_COUNTED: Final = "counted"
_ENDED: Final = "ended"
_CODE: Final = "code"
_FEW: Final = 1_000  # conversations that are looked up by name


def cohort_of(conn: Connection, scope: Scope, label: str) -> Cohort:
    """Read the conversations of *scope* and what senders counted for it."""
    return cohort_data(label, scope, _whole(conn, scope, codes=False))


def cohort_with_codes(
    conn: Connection, scope: Scope, label: str
) -> tuple[Cohort, CodeColumns, CodeAmounts]:
    """Read the same with its failures by code: as columns, and as amounts where any is sampled."""
    found = _whole(conn, scope, codes=True)
    codes = found.codes
    assert codes is not None, "they were asked for"
    columns = CodeColumns(codes.codes, codes.code, codes.conversation, codes.failures)
    weighed = codes.amounts if sampling(conn, scope.project_id).calls else {}
    return cohort_data(label, scope, found), columns, weighed


def _whole(conn: Connection, scope: Scope, *, codes: bool) -> Segment:
    if is_asked_at_once(conn, scope):
        return cohort_segment(conn, scope, codes, whole=True)
    # With the codes always: then one stored answer of a day serves all who compare.
    asked = _without_times(conn, scope)
    return together(
        in_segments(
            conn, asked, cohort_segment, True, outcomes=True, together=together, stored=True
        )
    )


def _without_times(conn: Connection, scope: Scope) -> Scope:
    """Return *scope* without the condition of having a time, where all calls have one."""
    if has_untimed(conn, scope.project_id):
        return scope
    others = (clause for clause in scope.query.clauses if clause != TIMED)
    return replace(scope, query=Query(tuple(others)))


def cohort_segment(conn: Connection, scope: Scope, codes: bool, *, whole: bool = False) -> Segment:
    """Read a segment of a cohort, or the *whole* of it, with its failures by code if wanted."""
    sampled = sampling(conn, scope.project_id)
    if not whole and not sampled.calls:
        return _segment_of_rows(conn, scope, codes=codes)
    if is_columnar(conn):
        return _segment_of_cells(conn, scope, sampled, codes=codes)
    rows: defaultdict[str, list[Sequence[Any]]] = defaultdict(list)
    statement = _statement(scope, sampled, ended=whole, codes=codes and whole)
    for row in conn.execute(statement).all():
        rows[row[0]].append(row[1:])
    views = views_of(rows[_CELL], 3 if sampled.calls else 1)
    counted = _counted(rows[_COUNTED], of_tools=scope.query.has("tool"))
    if whole:
        # Without counters it does not matter what is in them already.
        said = rows[_ENDED] if counted.calls else []
        several = _several(conn, scope, said)
        width = _width(sampled)  # once: it builds expressions to count them
        of_codes: Sequence[Sequence[Any]] = [
            (code, talk, *numbers[:width]) for talk, code, _, _, *numbers in rows[_CODE]
        ]
    else:  # another segment may have some
        said, several = _ended(conn, scope, frozenset(views[0].names))
        of_codes = conn.execute(failures_by_code(scope, sampled)).all() if codes else ()
    ended = ended_of(said, views[0], several)
    return Segment(
        views=views,
        ended=ended,
        more=more_calls(views[0], ended),
        counted=counted,
        codes=code_segment(of_codes, views[0]) if codes else None,
    )


def _segment_of_cells(conn: Connection, scope: Scope, sampled: Sampling, *, codes: bool) -> Segment:
    """Read the whole of a cohort with a statement for each of its parts.

    A union of parts has columns of several types, which the driver of ClickHouse reads value by
    value.
    """
    views = views_of(_as_sent(conn, cells_of(scope, sampled)), 3 if sampled.calls else 1)
    cells = views[0]
    counted = counts_of_senders(conn, scope)
    said = _as_sent(conn, said_by(scope, step=False)) if counted.calls else []
    ended = ended_of(said, cells, _several(conn, scope, said))
    of_codes = _as_sent(conn, failures_by_code(scope, sampled)) if codes else ()
    return Segment(
        views=views,
        ended=ended,
        more=more_calls(cells, ended),
        counted=counted,
        codes=code_segment(of_codes, cells) if codes else None,
    )


def _as_sent(conn: Connection, statement: Select[Any]) -> Sequence[Sequence[Any]]:
    """Return rows as the driver has them: SQLAlchemy makes a row of its own of each."""
    result: Any = conn.execute(statement)
    rows: Sequence[Sequence[Any]] = result.cursor.fetchall()
    return rows


def _segment_of_rows(conn: Connection, scope: Scope, *, codes: bool) -> Segment:
    """Read a segment of a cohort call by call and chain by chain, of which none is sampled.

    Of many rows most are groups of their own, so that a database takes three times as long to group
    them as to hand them over.
    """
    calls = conn.execute(_calls(scope)).all()
    cells = cells_of_rows(calls, conn.execute(_chains(scope)).all())
    further: Sequence[Sequence[Any]] = ()
    if codes:
        talk = _conversation_of_call().label("talk")
        further = conn.execute(of_other_issues(failures_of(scope), talk, sampled=False)).all()
    said, several = _ended(conn, scope, frozenset(cells.names))
    ended = ended_of(said, cells, several)
    return Segment(
        views=(cells,),
        ended=ended,
        more=more_calls(cells, ended),
        counted=counts_of_senders(conn, scope),
        codes=code_segment_of_rows(calls, further, cells) if codes else None,
    )


def _conversation_of_call() -> ColumnElement[str]:
    """Return what stands for the conversation of a call: outside of any it is one of its own."""
    return func.coalesce(tool_call.c.session_id, tool_call.c.event_id)


def _calls(scope: Scope) -> Select[*tuple[Any, ...]]:
    """Return the calls of *scope*: conversation, stratum, three yes or no, and the code."""
    failed = failures_of(scope)
    return select(
        _conversation_of_call(),
        *(func.coalesce(tool_call.c[name], "") for name in _STRATUM),
        case((failed, 1), else_=0),
        case((failed & tool_call.c.chain_id.is_(None), 1), else_=0),
        case((tool_call.c.time_source != "none", 1), else_=0),
        func.coalesce(tool_call.c.code, ""),
    ).where(calls_of(scope))


def _chains(scope: Scope) -> Select[*tuple[Any, ...]]:
    """Return the chains of *scope*: conversation, stratum, and counts in the order of `_COUNTS`."""
    return select(
        chain.c.session_id,
        *(func.coalesce(chain.c[name], "") for name in _STRATUM),
        chain.c.round_trips,
        case((chain.c.recovered_at.is_not(None), 1), else_=0),
        case((chain.c.settles_at <= scope.now, 1), else_=0),
        chain.c.time_lost_ms,
        func.coalesce(chain.c.tokens_lost, 0),
        case((chain.c.tokens_lost.is_not(None), 1), else_=0),
    ).where(chains_of(scope))


def _width(sampled: Sampling) -> int:
    """Return how many columns count the failures of a code."""
    return len(sampling_weights.counted(sampled=sampled.failures))


def cohorts_of(conn: Connection, scopes: Mapping[str, Scope]) -> dict[str, Cohort]:
    """Read several cohorts by label: with as many statements as one, where they are few rows."""
    if not all(is_asked_at_once(conn, scope) for scope in scopes.values()):
        return {label: cohort_of(conn, scope, label) for label, scope in scopes.items()}
    (found,) = _at_once(conn, scopes, (0,))
    return {label: cohort_data(label, scopes[label], segment) for label, segment in found.items()}


def growing_cohorts(
    conn: Connection, scopes: Mapping[str, Scope], ends: Sequence[int]
) -> Iterator[dict[str, Cohort]]:
    """Yield what the cohorts of *scopes* were at each of *ends*: all that came before it.

    Args:
        conn: Open connection.
        scopes: Cohorts by label.
        ends: Moments in microseconds, ascending.
    """
    upto = {label: _bounded(scope, None, ends[-1]) for label, scope in scopes.items()}
    if all(is_asked_at_once(conn, scope) for scope in upto.values()):
        steps = _at_once(conn, upto, ends)
    else:
        steps = _step_by_step(conn, scopes, ends)
    known: dict[str, Segment] = {}
    for until, new in zip(ends, steps, strict=True):
        for label, segment in new.items():
            known[label] = together([known[label], segment]) if label in known else segment
        yield {
            label: cohort_data(label, _bounded(scopes[label], None, until), segment)
            for label, segment in known.items()
        }


def _bounded(scope: Scope, since: int | None, until: int) -> Scope:
    ends = (("since", since), ("until", until))
    clauses = [Clause(key, (Moment(at=at),)) for key, at in ends if at is not None]
    return replace(scope, query=scope.query.and_(Query(tuple(clauses))))


def _step_by_step(
    conn: Connection, scopes: Mapping[str, Scope], ends: Sequence[int]
) -> Iterator[dict[str, Segment]]:
    """Yield what came to each cohort between two ends; most of it is kept by the day."""
    for since, until in pairwise((None, *ends)):
        assert until is not None, "only the first has no beginning"
        between = {label: _bounded(scope, since, until) for label, scope in scopes.items()}
        yield {
            label: together(
                in_segments(conn, scope, cohort_segment, False, outcomes=True, together=together)
            )
            for label, scope in between.items()
        }


def _at_once(
    conn: Connection, scopes: Mapping[str, Scope], ends: Sequence[int]
) -> Iterator[dict[str, Segment]]:
    """Yield the same, all of it read by one statement."""
    found: defaultdict[tuple[str, str, int], list[Sequence[Any]]] = defaultdict(list)
    sampled = sampling(conn, next(iter(scopes.values())).project_id)
    of_all = union_all(
        *(
            select(literal(label), *_statement(scope, sampled, ends, ended=True).subquery().c)
            for label, scope in scopes.items()
        )
    )
    for label, kind, step, *row in conn.execute(of_all):
        found[label, kind, step].append(row)
    said = {label: found[label, _ENDED, 0] for label in scopes}
    several = {label: _several(conn, scopes[label], rows) for label, rows in said.items()}
    for step in range(len(ends)):
        new: dict[str, Segment] = {}
        for label, scope in scopes.items():
            views = views_of(found[label, _CELL, step], 3 if sampled.calls else 1)
            known = frozenset(views[0].names)
            own = [row for row in said[label] if row[0] in known]
            again = {name: each for name, each in several[label].items() if name in known}
            ended = ended_of(own, views[0], again)
            counted = _counted(found[label, _COUNTED, step], of_tools=scope.query.has("tool"))
            new[label] = Segment(views, ended, more_calls(views[0], ended), counted)
        yield new


def _step(column: ColumnElement[int], ends: Sequence[int]) -> ColumnElement[int]:
    """Return which of *ends* is the first that comes after *column*; the last, where none does."""
    if len(ends) == 1:
        return literal(0)
    return case(
        *((column < end, number) for number, end in enumerate(ends[:-1])), else_=len(ends) - 1
    )


def failures_by_code(scope: Scope, sampled: Sampling) -> Select[Any]:
    """Count failures by code and conversation: each under its own code and those of its issues."""
    key = func.coalesce(tool_call.c.session_id, tool_call.c.event_id).label("talk")
    # As an expression, or SQLite reads all of an index that is sorted by it.
    code_of = func.coalesce(tool_call.c.code, "").label("code")
    numbers = sampling_weights.counted(sampled=sampled.failures)
    own = select(code_of, key, *numbers).where(failures_of(scope)).group_by(code_of, key)
    names = ["code", "talk", *(each.name for each in own.selected_columns[2:])]
    further = of_other_issues(
        failures_of(scope) & issues_of(scope), key, sampled=sampled.failures
    ).subquery()
    both = union_all(own, select(*(further.c[name] for name in names))).subquery()
    pair = (both.c.code, both.c.talk)
    sums = (func.sum(both.c[name]) for name in names[2:])
    return select(*pair, *sums).group_by(*pair)


def cells_of(scope: Scope, sampled: Sampling, ends: Sequence[int] = ()) -> Select[Any]:
    """Return one row per conversation and stratum; a call outside is a conversation of its own.

    Where there are *ends*, the number of the first that comes after it is before each row.
    """
    failed = failures_of(scope)
    none = literal(0)
    of_calls = select(
        *([_step(tool_call.c.occurred_at, ends).label("step")] if ends else []),
        func.coalesce(tool_call.c.session_id, tool_call.c.event_id).label("key"),
        *(func.coalesce(tool_call.c[name], "").label(name) for name in _STRATUM),
        literal(1).label("calls"),
        case((failed, 1), else_=0).label("failures"),
        none.label("chains"),
        case((failed & tool_call.c.chain_id.is_(None), 1), else_=0).label("unchained"),
        none.label("round_trips"),
        none.label("recovered"),
        none.label("closed"),
        case((tool_call.c.time_source != "none", 1), else_=0).label("timed"),
        literal(0.0).label("time_lost_ms"),
        none.label("tokens_lost"),
        none.label("with_tokens"),
        *([weight().label("weight")] if sampled.calls else []),
    ).where(calls_of(scope))
    of_chain: ColumnElement[float] = chain_weight() if sampled.failures else literal(1.0)
    of_chains = (
        select(
            *([_step(chain.c.first_failed_at, ends).label("step")] if ends else []),
            chain.c.session_id.label("key"),
            *(func.coalesce(chain.c[name], "").label(name) for name in _STRATUM),
            none.label("calls"),
            none.label("failures"),
            literal(1).label("chains"),
            none.label("unchained"),
            chain.c.round_trips,
            case((chain.c.recovered_at.is_not(None), 1), else_=0).label("recovered"),
            case((chain.c.settles_at <= scope.now, 1), else_=0).label("closed"),
            none.label("timed"),
            chain.c.time_lost_ms,
            func.coalesce(chain.c.tokens_lost, 0).label("tokens_lost"),
            case((chain.c.tokens_lost.is_not(None), 1), else_=0).label("with_tokens"),
            *([of_chain.label("weight")] if sampled.calls else []),
        )
        .select_from(weighted_chains(sampled=sampled.failures))
        .where(chains_of(scope))
    )
    both = union_all(of_calls, of_chains).subquery()
    key = tuple(both.c[name] for name in (*(["step"] if ends else []), "key", *_STRATUM))
    sums = [func.sum(both.c[name]).label(name) for name in _COUNTS]
    if sampled.calls:
        for power, factor in enumerate((both.c.weight, both.c.weight * both.c.weight), 1):
            sums += [func.sum(factor * both.c[name]).label(f"{name}{power}") for name in _COUNTS]
    return select(*key, *sums).group_by(*key)


def _statement(
    scope: Scope,
    sampled: Sampling,
    ends: Sequence[int] = (),
    *,
    ended: bool = False,
    codes: bool = False,
) -> CompoundSelect[Any]:
    """Return the rows of `cells_of` and those of `_counts`, each with its kind before it.

    With *ended* also the conversations of the scope that said what they called, and what; with
    *codes* its failures by conversation and code.
    """
    cells = cells_of(scope, sampled, ends).subquery()
    others = {_COUNTED: _counts(scope, ends).subquery()}
    if ended:
        others[_ENDED] = said_by(scope, step=bool(ends)).subquery()
    if codes:
        found = failures_by_code(scope, sampled).subquery().c
        code, talk, *numbers = found
        others[_CODE] = select(talk, code, literal(""), literal(""), *numbers).subquery()
    return union_all(
        select(literal(_CELL), *cells.c),
        *(
            select(literal(kind), *rows.c, *(literal(0) for _ in range(len(cells.c) - len(rows.c))))
            for kind, rows in others.items()
        ),
    )


def said_by(scope: Scope, *, step: bool) -> Select[Any]:
    """Return the conversations with a call or chain of the scope, and what they said at the end."""
    own = union(
        select(tool_call.c.session_id).where(calls_of(scope)),
        select(chain.c.session_id).where(chains_of(scope)),
    )
    columns: list[ColumnElement[Any]] = [
        *([literal(0).label("step")] if step else []),
        conversation.c.session_id,
        *_SAID,
        *(conversation.c[name] for name in _MOMENTS),
    ]
    return select(*columns).where(
        conversation.c.project_id == scope.project_id,
        conversation.c.end_event_id.is_not(None),
        conversation.c.end_calls.is_not(None),
        conversation.c.session_id.in_(own),
    )


def _counts(scope: Scope, ends: Sequence[int] = ()) -> Select[Any]:
    """Return what senders counted by stratum; rows without a tool are over all tools."""
    names: list[ColumnElement[Any]] = [
        # They belong to no conversation; a minute lies where its middle lies.
        *([_step(call_counts.c.minute + MINUTE_US // 2, ends).label("step")] if ends else []),
        literal("").label("key"),
        call_counts.c.tool,
        *(func.coalesce(call_counts.c[name], "").label(name) for name in _STRATUM[1:]),
    ]
    numbers = ("calls", "conversations", "calls_squared")
    each = select(*names, *(call_counts.c[name] for name in numbers)).where(counts_of(scope))
    rows = each.subquery().c
    key = [rows[name.name] for name in names]
    return select(*key, *(func.sum(rows[name]).label(name) for name in numbers)).group_by(*key)


def counts_of_senders(conn: Connection, scope: Scope) -> Counted:
    """Return what senders counted of *scope*."""
    return _counted(conn.execute(_counts(scope)).all(), of_tools=scope.query.has("tool"))


def _counted(rows: Iterable[Sequence[Any]], *, of_tools: bool) -> Counted:
    """Return what senders counted. Conversations of some tools only are those of these tools."""
    calls: Counter[Stratum] = Counter()
    conversations_of: Counter[str | None] = Counter()
    squared_of: Counter[str | None] = Counter()
    for _, name, model, agent, *numbers in rows:
        if name is not None:
            calls[name, model, agent] += int(numbers[0])
        conversations_of[name] += int(numbers[1])
        squared_of[name] += int(numbers[2])
    everywhere = conversations_of.pop(None, 0), squared_of.pop(None, 0)
    named = Counter({tool: n for tool, n in conversations_of.items() if tool is not None})
    squares = Counter({tool: n for tool, n in squared_of.items() if tool is not None})
    total = (named.total(), squares.total()) if of_tools else everywhere
    return Counted(calls, *total, named, squares)


def _ended(conn: Connection, scope: Scope, known: Set[str]) -> tuple[list[Sequence[Any]], Ends]:
    """Return what ``conversation_end`` said of the conversations of the cohort, and `_several`."""
    statement = select(
        conversation.c.session_id, *_SAID, *(conversation.c[name] for name in _MOMENTS)
    ).where(
        conversation.c.project_id == scope.project_id,
        conversation.c.end_event_id.is_not(None),
    )
    since, until = window(scope)
    statements = [statement]
    if len(known) <= _FEW:
        statements = [statement.where(conversation.c.session_id.in_(known))]
    elif since is not None:
        began = statement.where(conversation.c.last_at >= since)
        statements = [began]
        if until is not None and until % DAY_US:
            statements = [began.where(conversation.c.first_at < until)]
        elif until is not None:
            # Those that go on after midnight have an index, so that nobody looks at all later ones.
            beyond = statement.where(
                conversation.c.last_at >= until, conversation.c.first_at < until, OVERNIGHT
            )
            statements = [began.where(conversation.c.last_at < until), beyond]
    rows = (row for each in statements for row in conn.execute(each).all())
    said: list[Sequence[Any]] = [row for row in rows if row[1] and row[0] in known]
    return said, _several(conn, scope, said)


def _several(conn: Connection, scope: Scope, said: Iterable[Sequence[Any]]) -> Ends:
    """Return each end of those conversations of *said* that ended more than once."""
    names = [row[0] for row in said if int(row[2]) > 1]
    end = conversation_end.c
    found: defaultdict[str, list[tuple[int, dict[str, int]]]] = defaultdict(list)
    for at in range(0, len(names), _FEW):
        statement = select(end.session_id, end.occurred_at, cast(end.calls, Text)).where(
            end.project_id == scope.project_id, end.session_id.in_(names[at : at + _FEW])
        )
        for name, moment, calls in conn.execute(statement):
            found[name].append((moment, json.loads(calls)))
    return dict(found)
