"""The sums of `clusters`, made by ClickHouse: of millions of conversations none is read one by one.

A cell is what a conversation did with one tool, by one model and agent. All cells of a conversation
lie in one row, in arrays, beside what it named at its end; over these rows go the sums of squares
that an answer needs. A row for each conversation and tool instead, joined with what was named,
takes three times as long. The rules are those of `clusters`, which adds up cells in Python.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)

from toolfault_collector.storage.tables import conversation, conversation_end
from toolfault_dashboard.analysis.clusters import NO_MOMENTS, Moments
from toolfault_dashboard.queries.comparisons.cohorts import cells_of, failures_by_code
from toolfault_dashboard.queries.counting.sampling_weights import Sampling, sampling
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = ["NO_SUMS", "CallSums", "sums_of_all", "sums_of_codes", "sums_of_tools"]

_RATES: Final = (("failures", "calls"), ("first_failures", "operations"))


class CallSums(NamedTuple):
    """Sums over the conversations of a scope.

    Attributes:
        failures: Moments of failures.
        first_try_failures: Of operations that failed at the first try.
        ends: Ends of these conversations that the counters of senders hold.
        squares: The sum of the squared calls that these ends named.
    """

    failures: Moments
    first_try_failures: Moments
    ends: int
    squares: int


NO_SUMS: Final = CallSums(NO_MOMENTS, NO_MOMENTS, 0, 0)


def sums_of_all(conn: Connection, scope: Scope, *, named: bool) -> CallSums:
    """Return the sums over the conversations of *scope*.

    Args:
        conn: Open connection to ClickHouse.
        scope: Which calls.
        named: Whether calls count that a conversation named at its end and nobody reported.
    """
    talks = _talks(scope, sampling(conn, scope.project_id), named=named)
    return _sums_of(conn.execute(select(*_sums(talks))).one())


def sums_of_tools(conn: Connection, scope: Scope, *, named: bool) -> dict[str, CallSums]:
    """Return the same of the calls of each tool."""
    items = _tools(scope, sampling(conn, scope.project_id), named=named)
    statement = select(items.c.tool, *_sums(items)).group_by(items.c.tool)
    return {tool: _sums_of(numbers) for tool, *numbers in conn.execute(statement)}


def sums_of_codes(conn: Connection, scope: Scope, *, named: bool) -> dict[str, Moments]:
    """Return the moments of the failures of each code, but for ``whole_squared``."""
    sampled = sampling(conn, scope.project_id)
    talk = _talks(scope, sampled, named=named).c
    code, key, *numbers = failures_by_code(scope, sampled).subquery().c
    failures = func.toFloat64(numbers[1 if len(numbers) > 1 else 0])
    # A row for each conversation here, too: of each conversation and code joining takes twice that.
    codes = func.groupArray(tuple_(code, failures)).label("codes")
    failed = select(key.label("talk"), codes).group_by(key).subquery()
    each = (
        select(func.arrayJoin(failed.c.codes).label("code"), talk.calls)
        .select_from(failed.join(talk.talk.table, failed.c.talk == talk.talk))
        .subquery()
    )
    name, number = (func.tupleElement(each.c.code, place) for place in (1, 2))
    statement = select(name, func.sum(number * number), func.sum(number * each.c.calls)).group_by(
        name
    )
    return {
        name: Moments(0, float(part), float(product))
        for name, part, product in conn.execute(statement)
    }


def _sums(row: Subquery) -> list[ColumnElement[Any]]:
    """Return the columns of `CallSums` over the rows of a subquery."""
    found: list[ColumnElement[Any]] = []
    for part, whole in ((row.c[part], row.c[whole]) for part, whole in _RATES):
        found.append(func.count(case((or_(part != 0, whole != 0), 1))))
        found += [func.sum(each) for each in (part * part, part * whole, whole * whole)]
    return [*found, func.sum(row.c.ends), func.sum(row.c.squares)]


def _sums_of(numbers: Any) -> CallSums:
    one, other = (
        Moments(int(clusters), *(float(each or 0) for each in sums))
        for clusters, *sums in (numbers[:4], numbers[4:8])
    )
    return CallSums(one, other, *(int(each or 0) for each in numbers[8:]))


def _talks(scope: Scope, sampled: Sampling, *, named: bool) -> Subquery:
    """Return the conversations of *scope*: the parts and wholes of `_RATES`, ends and squares."""
    # Where the scope is of some tools, what a conversation named beside them does not count.
    beside = 0 if scope.query.has("tool") else _column("is_whole * (total - arraySum(said.2))")
    tries = _column("arraySum(c -> greatest(c.7, c.6), cells)")
    of_first = "arraySum((c, n) -> greatest(c.7 + n, c.6) - greatest(c.7, c.6), first, more)"
    return _said_and_done(
        scope,
        sampled,
        _column("talk"),
        _column("arraySum(cells.4)").label("failures"),
        (_column("arraySum(cells.5) + arraySum(more)") + beside).label("calls"),
        _column("arraySum(cells.6)").label("first_failures"),
        (tries + _column(of_first) + beside).label("operations"),
        _column("ends"),
        _column("squares"),
        named=named,
    )


def _tools(scope: Scope, sampled: Sampling, *, named: bool) -> Subquery:
    """Return the same for each conversation and tool, with the tool."""
    first = (
        "greatest(f.7 + n, f.6) - greatest(f.7, f.6)"
        " + arraySum(c -> greatest(c.7, c.6) * (c.1 = t), cells)"
    )
    items = _column(
        "arrayMap((t, s, n, f) -> (t, arraySum(c -> c.4 * (c.1 = t), cells),"
        " n + arraySum(c -> c.5 * (c.1 = t), cells), arraySum(c -> c.6 * (c.1 = t), cells),"
        f" {first}, s.3, s.4), tools, said, more, first)"
    )
    if not scope.query.has("tool"):
        beside = "arrayFilter(n -> is_whole = 1 and not has(tools, n.1), named)"
        items = func.arrayConcat(
            items, _column(f"arrayMap(n -> (n.1, 0., n.2, 0., n.2, n.3, n.4), {beside})")
        )
    joined = func.arrayJoin(items).label("item")
    item = _said_and_done(scope, sampled, joined, named=named).c.item
    names = ("tool", *(name for rate in _RATES for name in rate), "ends", "squares")
    return select(
        *(func.tupleElement(item, place).label(name) for place, name in enumerate(names, 1))
    ).subquery()


def _column(text: str) -> Any:
    """Return a column in ClickHouse's own words: lambdas and tuples are not SQLAlchemy's."""
    return literal_column(text)


def _said_and_done(
    scope: Scope, sampled: Sampling, *columns: ColumnElement[Any], named: bool
) -> Subquery:
    """Return *columns* of rows, each of which has all of a conversation.

    ``cells``: (tool, model, agent, failures, calls, first failures, tries, reported), by name;
    ``tools``: their tools, each once, of each of which there are, in the same order:
    ``first``: the first of its cells; ``said``: what the conversation named of it; ``more``: calls
    of it that were named and that nobody reported. Nobody says which model and agent had those: the
    first by name takes them.
    ``named``, ``total``, ``is_whole``, ``ends``, ``squares``: see `_ends`.
    """
    rows = _ends(scope, _cells(scope, sampled), named=named)
    of_tools = select(
        *rows.c,
        _column("arrayDistinct(cells.1)").label("tools"),
        _column("arrayMap(t -> arrayFirst(n -> n.1 = t, named), tools)").label("said"),
        _column("arrayMap(t -> arrayFirst(c -> c.1 = t, cells), tools)").label("first"),
        _column(
            "arrayMap((t, n) -> is_whole * greatest(0.,"
            " n.2 - arraySum(c -> c.8 * (c.1 = t), cells)), tools, said)"
        ).label("more"),
    ).subquery()
    return select(*columns).select_from(of_tools).subquery()


def _cells(scope: Scope, sampled: Sampling) -> Subquery:
    """Return the conversations of *scope* with their ``cells``, as `_said_and_done` tells."""
    cell = cells_of(scope, sampled).subquery().c
    # What rows stand for, where some were sampled.
    of = "1" if sampled.calls else ""
    first_failures = _number(cell[f"chains{of}"]) + _number(cell[f"unchained{of}"])
    tries = _number(cell[f"calls{of}"]) - _number(cell[f"round_trips{of}"])
    each = tuple_(
        *(cell[name] for name in ("tool", "model", "agent")),
        *(_number(cell[f"{name}{of}"]) for name in ("failures", "calls")),
        *(first_failures, tries, _number(cell.calls)),
    )
    cells = func.arraySort(func.groupArray(each)).label("cells")
    return select(cell.key.label("talk"), cells).group_by(cell.key).subquery()


def _number(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.assumeNotNull(func.toFloat64(column))


def _ends(scope: Scope, talks: Subquery, *, named: bool) -> Subquery:
    """Return *talks* with what they named at their end.

    ``is_whole``: 1, if all calls of the conversation lie in the window. ``named``: (tool, calls,
    ends, squares) of each tool; ``total``: all calls. ``ends`` and ``squares`` are what the
    counters of senders hold: they count a conversation in the minute of its end, each end of one
    with several, with the calls that it names.
    """
    talk = talks.c
    if not named:
        nothing = ("total", "is_whole", "ends", "squares")
        none = _column("CAST([], 'Array(Tuple(String, Float64, Float64, Float64))')").label("named")
        return select(*talk, none, *(func.toFloat64(0).label(name) for name in nothing)).subquery()
    end, again = _ended(scope).c, _ended_again(scope).c
    rows = (
        select(
            *talk,
            _column("JSONExtractKeysAndValues(coalesce(said_calls, '{}'), 'Int64')").label("calls"),
            _column("toFloat64(arraySum(calls.2))").label("total"),
            func.coalesce(end.is_whole, 0.0).label("is_whole"),
            _column("toFloat64(coalesce(is_now, 0) AND empty(again))").label("once"),
            _column("arrayMap(e -> e.2, arrayFilter(e -> e.1, again))").label("further"),
        )
        .select_from(
            talks.outerjoin(end.name.table, end.name == talk.talk).outerjoin(
                again.name.table, again.name == talk.talk
            )
        )
        .subquery()
    )
    each = (
        "arrayMap(c -> (c.1, toFloat64(c.2), once + arrayCount(e -> has(e.1, c.1), further),"
        " once * c.2 * c.2 + arraySum(e -> arraySum(n -> pow(n.2, 2) * (n.1 = c.1), e), further)),"
        " calls)"
    )
    return select(
        *(rows.c[name] for name in ("talk", "cells", "total", "is_whole")),
        _column(each).label("named"),
        _column("once + length(further)").label("ends"),
        _column("once * total * total + arraySum(e -> pow(arraySum(e.2), 2), further)").label(
            "squares"
        ),
    ).subquery()


def _ended(scope: Scope) -> Subquery:
    """Return the conversations that named their calls at an end, and go on into the window."""
    talk, (since, until) = conversation.c, window(scope)
    own = [
        talk.project_id == scope.project_id,
        talk.end_event_id.is_not(None),
        talk.end_calls.is_not(None),
        *([] if since is None else [talk.last_at >= since]),
        *([] if until is None else [talk.first_at < until]),
    ]
    whole: list[ColumnElement[bool]] = [true()]
    whole += [] if since is None else [talk.first_at >= since]
    whole += [] if until is None else [talk.last_at < until]
    return (
        select(
            talk.session_id.label("name"),
            cast(talk.end_calls, Text).label("said_calls"),
            case((and_(*whole), 1.0), else_=0.0).label("is_whole"),
            case((_in_window(scope, talk.ended_at), 1), else_=0).label("is_now"),
        )
        .where(*own)
        .subquery()
    )


def _ended_again(scope: Scope) -> Subquery:
    """Return each end of the conversations with several: if it is in the window, and its calls."""
    talk, end = conversation.c, conversation_end.c
    several = select(talk.session_id).where(talk.project_id == scope.project_id, talk.ends > 1)
    calls = func.JSONExtractKeysAndValues(cast(end.calls, Text), literal("Int64"))
    each = tuple_(case((_in_window(scope, end.occurred_at), 1), else_=0), calls)
    return (
        select(end.session_id.label("name"), func.groupArray(each).label("again"))
        .where(end.project_id == scope.project_id, end.session_id.in_(several))
        .group_by(end.session_id)
        .subquery()
    )


def _in_window(scope: Scope, at: ColumnElement[int]) -> ColumnElement[bool]:
    since, until = window(scope)
    bounds = [] if since is None else [at >= since]
    bounds += [] if until is None else [at < until]
    return and_(true(), *bounds)
