"""One side of a comparison, read from the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
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
from toolfault_dashboard.analysis.sides import Cell, Folded, SideData, Stratum
from toolfault_dashboard.queries.conditions import calls_of, chains_of, counts_of, failures_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.weighing import Sampling, chain_weight, sampling, weight
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search.outcomes import outcome_at

__all__ = ["side_of"]

_DECODE = msgspec.json.Decoder(dict[str, int])

_COUNTS = (
    "calls", "failures", "chains", "unchained", "round_trips", "recovered", "closed", "timed",
    "time_lost_ms", "tokens_lost", "told",
)  # fmt: skip
_STRATUM = ("tool", "model", "agent")


def side_of(conn: Connection, scope: Scope, label: str) -> SideData:
    """Read the conversations of *scope* and what senders counted for it."""
    sampled = sampling(conn, scope.project_id)
    # Cells counted in rows and, where calls were sampled, in what they stand for and its squares.
    views = _views(conn.execute(_cells(scope, sampled)), 3 if sampled.calls else 1)
    counted, conversations, squared = _counted(conn, scope)
    if not counted:
        return _side(label, scope, views, Folded())
    ended = _ended(conn, scope, {cell.conversation for cell in views[0]})
    more, added = _missing(views[0], ended)
    # A success that was only counted stands for itself.
    views = [
        [
            replace(cell, calls=cell.calls + n) if n else cell
            for cell, n in zip(cells, more, strict=True)
        ]
        for cells in views
    ]
    # The counters hold every conversation that ended, those with a failure too.
    own = [sum(calls.values()) for calls in ended.values()]
    folded = Folded(
        calls={key: rest for key, calls in counted.items() if (rest := calls - added[key]) > 0},
        conversations=max(0, conversations - len(ended)),
        calls_squared=max(0.0, float(squared - sum(calls * calls for calls in own))),
    )
    return _side(label, scope, views, folded)


def _side(label: str, scope: Scope, views: list[list[Cell]], folded: Folded) -> SideData:
    rows, *others = (SideData(label, str(scope.query), tuple(cells), folded) for cells in views)
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
    sums = [func.sum(both.c[name]) for name in _COUNTS]
    if sampled.calls:
        for factor in (both.c.weight, both.c.weight * both.c.weight):
            sums += [func.sum(factor * both.c[name]) for name in _COUNTS]
    return select(*key, *sums).group_by(*key)


def _views(rows: Iterable[Any], number: int) -> list[list[Cell]]:
    """Return the cells of all rows, once for each of the sets of counts that a row has."""
    views: list[list[Cell]] = [[] for _ in range(number)]
    width = len(_COUNTS)
    for key, tool, model, agent, *counts in rows:
        for at, view in enumerate(views):
            own = map(float, counts[at * width : (at + 1) * width])
            numbers = dict(zip(_COUNTS, own, strict=True))
            view.append(Cell(key, (tool, model, agent), **numbers))
    return views


def _counted(conn: Connection, scope: Scope) -> tuple[Counter[Stratum], int, int]:
    """Return folded calls by stratum, and conversations and squared calls as senders counted them.

    Rows without a tool are over all tools; of some tools only, their own are added up.
    """
    tool = call_counts.c.tool
    names = [tool, *(func.coalesce(call_counts.c[name], "") for name in _STRATUM[1:])]
    sums = [func.sum(call_counts.c[name]) for name in ("calls", "conversations", "calls_squared")]
    of_tools = scope.query.has("tool")
    found: Counter[Stratum] = Counter()
    conversations = squared = 0
    for name, model, agent, *numbers in conn.execute(
        select(*names, *sums).where(counts_of(scope)).group_by(*names)
    ):
        if name is not None:
            found[name, model, agent] += int(numbers[0])
        if of_tools == (name is not None):
            conversations += int(numbers[1])
            squared += int(numbers[2])
    return found, conversations, squared


def _ended(conn: Connection, scope: Scope, known: set[str]) -> dict[str, Counter[str]]:
    """Return the calls per tool that ``conversation_end`` named for conversations of the side."""
    # As text: of a long history most conversations are not of this side and need no reading.
    statement = select(
        conversation.c.session_id, cast(conversation.c.end_calls, Text).label("calls")
    ).where(
        conversation.c.project_id == scope.project_id,
        conversation.c.end_event_id.is_not(None),
    )
    since, _ = window(scope)
    if since is not None:
        statement = statement.where(conversation.c.last_at >= since)
    return {
        session: Counter(_DECODE.decode(calls))
        for session, calls in conn.execute(statement)
        if session in known and calls
    }


def _missing(
    cells: Sequence[Cell], ended: Mapping[str, Counter[str]]
) -> tuple[list[int], Counter[Stratum]]:
    """Return the folded successes that belong to each cell's conversation, and all by stratum."""
    reported: defaultdict[tuple[str, str], float] = defaultdict(float)
    for cell in cells:
        reported[cell.conversation, cell.stratum[0]] += cell.calls
    added: Counter[Stratum] = Counter()
    given: set[tuple[str, str]] = set()
    found: list[int] = []
    for cell in cells:
        key = (cell.conversation, cell.stratum[0])
        total = ended.get(cell.conversation, Counter())[cell.stratum[0]]
        more = max(0, total - int(reported[key])) if key not in given else 0
        given.add(key)
        added[cell.stratum] += more
        found.append(more)
    return found, added
