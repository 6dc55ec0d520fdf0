"""One side of a comparison, read from the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
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
    union_all,
)

from toolfault_collector.tables import call_counts, chain, conversation, tool_call
from toolfault_dashboard.analysis.sides import Folded, SideData, Stratum
from toolfault_dashboard.queries.conditions import calls_of, chains_of, counts_of, failures_of
from toolfault_dashboard.queries.parts import in_parts, is_asked_at_once
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.weighing import Sampling, chain_weight, sampling, weight
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search.outcomes import outcome_at

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.columns import Columns
    from toolfault_dashboard.queries.side_parts import Counted, Part

__all__ = ["side_of"]

_DECODE = msgspec.json.Decoder(dict[str, int])

_COUNTS = (
    "calls", "failures", "chains", "unchained", "round_trips", "recovered", "closed", "timed",
    "time_lost_ms", "tokens_lost", "told",
)  # fmt: skip
_STRATUM = ("tool", "model", "agent")
_CELL: Final = "cell"
_COUNTED: Final = "counted"
_FEW: Final = 1_000  # conversations that are looked up by name


def side_of(conn: Connection, scope: Scope, label: str) -> SideData:
    """Read the conversations of *scope* and what senders counted for it."""
    from toolfault_dashboard.queries.side_parts import more_calls, together

    if is_asked_at_once(conn, scope):
        found = _read(conn, scope, whole=True)
    else:
        found = together(in_parts(conn, scope, _read, outcomes=True, together=together))
    counted, conversations, squared = found.counted
    if not counted:
        return _side(label, scope, found.views, Folded())
    more = more_calls(found.views[0], found.ended)
    by_stratum = dict(zip(found.views[0].strata, found.views[0].by_stratum(more), strict=True))
    # The counters hold every conversation that ended, those with a failure too.
    own = found.ended.total
    folded = Folded(
        calls={
            key: rest
            for key, calls in counted.items()
            if (rest := calls - int(by_stratum.get(key, 0))) > 0
        },
        conversations=max(0, conversations - len(own)),
        calls_squared=max(0.0, float(squared - (own * own).sum())),
    )
    # A success that was only counted stands for itself.
    return _side(label, scope, tuple(view.with_calls(more) for view in found.views), folded)


def _read(conn: Connection, scope: Scope, *, whole: bool = False) -> Part:
    """Read a part of a side, or the *whole* of it."""
    from toolfault_dashboard.queries.side_parts import Part, ended_of, views_of

    sampled = sampling(conn, scope.project_id)
    rows: dict[str, list[Sequence[Any]]] = {_CELL: [], _COUNTED: []}
    for row in conn.execute(_statement(scope, sampled)).all():
        rows[row[0]].append(row[1:])
    views = views_of(rows[_CELL], 3 if sampled.calls else 1)
    counted = _counted(rows[_COUNTED], of_tools=scope.query.has("tool"))
    # Without counters it does not matter what is in them already; another part may have some.
    needed = bool(counted[0]) or not whole
    ended = _ended(conn, scope, frozenset(views[0].names)) if needed else {}
    return Part(views, ended_of(ended, views[0]), counted)


def _side(label: str, scope: Scope, views: Sequence[Columns], folded: Folded) -> SideData:
    rows, *others = (SideData(label, str(scope.query), cells, folded) for cells in views)
    if not others:
        return rows
    weighed, squares = others
    return replace(weighed, rows=rows, squares=squares)


def _cells(scope: Scope, sampled: Sampling) -> Select[Any]:
    """Return one row per conversation and stratum; a call outside is a conversation of its own."""
    failed = failures_of(scope)
    none = literal(0)
    of_calls = select(
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
        none.label("told"),
        *([weight().label("weight")] if sampled.calls else []),
    ).where(calls_of(scope))
    of_chain: ColumnElement[float] = chain_weight() if sampled.failures else literal(1.0)
    of_chains = select(
        chain.c.session_id.label("key"),
        *(func.coalesce(chain.c[name], "").label(name) for name in _STRATUM),
        none.label("calls"),
        none.label("failures"),
        literal(1).label("chains"),
        none.label("unchained"),
        chain.c.round_trips,
        case((chain.c.recovered_at.is_not(None), 1), else_=0).label("recovered"),
        case((outcome_at(scope.now) != "open", 1), else_=0).label("closed"),
        none.label("timed"),
        chain.c.time_lost_ms,
        func.coalesce(chain.c.tokens_lost, 0).label("tokens_lost"),
        case((chain.c.tokens_lost.is_not(None), 1), else_=0).label("told"),
        *([of_chain.label("weight")] if sampled.calls else []),
    ).where(chains_of(scope))
    both = union_all(of_calls, of_chains).subquery()
    key = (both.c.key, *(both.c[name] for name in _STRATUM))
    sums = [func.sum(both.c[name]).label(name) for name in _COUNTS]
    if sampled.calls:
        for power, factor in enumerate((both.c.weight, both.c.weight * both.c.weight), 1):
            sums += [func.sum(factor * both.c[name]).label(f"{name}{power}") for name in _COUNTS]
    return select(*key, *sums).group_by(*key)


def _statement(scope: Scope, sampled: Sampling) -> CompoundSelect[Any]:
    """Return the rows of `_cells` and those of `_counts`, each with its kind before it."""
    cells = _cells(scope, sampled).subquery()
    counts = _counts(scope).subquery()
    missing = len(cells.c) - len(counts.c)
    return union_all(
        select(literal(_CELL), *cells.c),
        select(literal(_COUNTED), *counts.c, *(literal(0) for _ in range(missing))),
    )


def _counts(scope: Scope) -> Select[Any]:
    """Return what senders counted by stratum; rows without a tool are over all tools."""
    names = [
        call_counts.c.tool,
        *(func.coalesce(call_counts.c[name], "").label(name) for name in _STRATUM[1:]),
    ]
    sums = [
        func.sum(call_counts.c[name]).label(name)
        for name in ("calls", "conversations", "calls_squared")
    ]
    own = literal("").label("key")  # they belong to no conversation
    return select(own, *names, *sums).where(counts_of(scope)).group_by(*names)


def _counted(rows: Iterable[Sequence[Any]], *, of_tools: bool) -> Counted:
    """Return folded calls by stratum, and conversations and squared calls as senders counted them.

    Of some tools only, their own are added up.
    """
    found: Counter[Stratum] = Counter()
    conversations = squared = 0
    for _, name, model, agent, *numbers in rows:
        if name is not None:
            found[name, model, agent] += int(numbers[0])
        if of_tools == (name is not None):
            conversations += int(numbers[1])
            squared += int(numbers[2])
    return found, conversations, squared


def _ended(conn: Connection, scope: Scope, known: Set[str]) -> dict[str, dict[str, int]]:
    """Return the calls per tool that ``conversation_end`` named for conversations of the side."""
    # As text: of a long history most conversations are not of this side and need no reading.
    statement = select(
        conversation.c.session_id, cast(conversation.c.end_calls, Text).label("calls")
    ).where(
        conversation.c.project_id == scope.project_id,
        conversation.c.end_event_id.is_not(None),
    )
    since, until = window(scope)
    if len(known) <= _FEW:
        statement = statement.where(conversation.c.session_id.in_(known))
    elif since is not None:
        statement = statement.where(conversation.c.last_at >= since)
        if until is not None:
            statement = statement.where(conversation.c.first_at < until)
    return {
        session: _DECODE.decode(calls)
        for session, calls in conn.execute(statement)
        if session in known and calls
    }
