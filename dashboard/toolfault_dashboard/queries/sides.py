"""One side of a comparison, read from the database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

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
from toolfault_dashboard.analysis.sides import Cell, Folded, SideData, Stratum
from toolfault_dashboard.queries.conditions import calls_of, chains_of, counts_of, failures_of
from toolfault_dashboard.queries.parts import in_parts, is_asked_at_once
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
_CELL: Final = "cell"
_COUNTED: Final = "counted"
_FEW: Final = 1_000  # conversations that are looked up by name
_WEIGHT: Final = 6  # rows of other answers that take as much memory as a cell


@dataclass(frozen=True, slots=True)
class _Part:
    """What a side has in a part of its window.

    Attributes:
        views: Its cells counted in rows and, where calls were sampled, in what they stand for and
            its squares.
        complete: The same with the folded successes of their conversations.
        more: How many of these each cell has.
        places: Positions of the cells of each conversation.
        ended: The calls per tool that ``conversation_end`` named, by conversation.
        counted: Folded calls by stratum, and conversations and squared calls as senders counted.
    """

    views: list[list[Cell]]
    complete: list[list[Cell]]
    more: list[int]
    places: Mapping[str, Sequence[int]]
    ended: Mapping[str, Mapping[str, int]]
    counted: tuple[Counter[Stratum], int, int]

    def __len__(self) -> int:
        return _WEIGHT * len(self.more)


def side_of(conn: Connection, scope: Scope, label: str) -> SideData:
    """Read the conversations of *scope* and what senders counted for it."""
    if is_asked_at_once(conn, scope):
        found = _read(conn, scope, whole=True)
    else:
        found = _together(in_parts(conn, scope, _read, outcomes=True))
    counted, conversations, squared = found.counted
    if not counted:
        return _side(label, scope, found.views, Folded())
    added: Counter[Stratum] = Counter()
    for cell, more in zip(found.views[0], found.more, strict=True):
        if more:
            added[cell.stratum] += more
    # The counters hold every conversation that ended, those with a failure too.
    own = [sum(calls.values()) for calls in found.ended.values()]
    folded = Folded(
        calls={key: rest for key, calls in counted.items() if (rest := calls - added[key]) > 0},
        conversations=max(0, conversations - len(own)),
        calls_squared=max(0.0, float(squared - sum(calls * calls for calls in own))),
    )
    return _side(label, scope, found.complete, folded)


def _read(conn: Connection, scope: Scope, *, whole: bool = False) -> _Part:
    """Read a part of a side, or the *whole* of it."""
    sampled = sampling(conn, scope.project_id)
    rows: dict[str, list[Sequence[Any]]] = {_CELL: [], _COUNTED: []}
    for kind, *row in conn.execute(_statement(scope, sampled)):
        rows[kind].append(row)
    views = _views(rows[_CELL], 3 if sampled.calls else 1)
    counted = _counted(rows[_COUNTED], of_tools=scope.query.has("tool"))
    # Without counters it does not matter what is in them already; another part may have some.
    needed = bool(counted[0]) or not whole
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, cell in enumerate(views[0]):
        places[cell.conversation].append(place)
    found = _Part(
        views=views,
        complete=[list(cells) for cells in views],
        more=[0] * len(views[0]),
        places=places,
        ended=_ended(conn, scope, places) if needed else {},
        counted=counted,
    )
    _complete(found, found.ended)
    return found


def _together(parts: Sequence[_Part]) -> _Part:
    """Return all *parts* as one; this costs what all but the largest of them hold."""
    if len(parts) == 1:
        return parts[0]
    number = max(len(part.views) for part in parts)
    base, *others = sorted(parts, key=len, reverse=True)
    views, complete = (
        [list(cells) for cells in _as_many(each, number)] for each in (base.views, base.complete)
    )
    more, ended = list(base.more), dict(base.ended)
    touched: dict[str, list[int]] = {}
    for part in others:
        ended |= part.ended
        for name, theirs in part.places.items():
            own = touched.setdefault(name, list(base.places.get(name, ())))
            for place in theirs:
                cells = [view[place] for view in _as_many(part.views, number)]
                _add_cell(views, own, cells)
    more += [0] * (len(views[0]) - len(more))
    for view, known in zip(views, complete, strict=True):
        known.extend(view[len(known) :])
    counted, conversations, squared = Counter(base.counted[0]), base.counted[1], base.counted[2]
    for part in others:
        counted.update(part.counted[0])
        conversations += part.counted[1]
        squared += part.counted[2]
    found = _Part(views, complete, more, touched, ended, (counted, conversations, squared))
    _complete(found, touched)
    return found


def _as_many(views: list[list[Cell]], number: int) -> list[list[Cell]]:
    """Return *number* views: where nothing was sampled they are all the same."""
    return views if len(views) == number else views * number


def _add_cell(views: list[list[Cell]], own: list[int], cells: Sequence[Cell]) -> None:
    """Add *cells*, one of each view, to that of their stratum among those at *own*."""
    for place in own:
        if views[0][place].stratum == cells[0].stratum:
            for view, cell in zip(views, cells, strict=True):
                view[place] = _sum(view[place], cell)
            return
    own.append(len(views[0]))
    for view, cell in zip(views, cells, strict=True):
        view.append(cell)


def _sum(one: Cell, other: Cell) -> Cell:
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _COUNTS})


def _complete(part: _Part, conversations: Iterable[str]) -> None:
    """Give the cells of *conversations* the folded successes that their senders named."""
    for name in conversations:
        total = part.ended.get(name, {})
        own = part.places[name]
        by_tool: defaultdict[str, list[int]] = defaultdict(list)
        for place in own:
            by_tool[part.views[0][place].stratum[0]].append(place)
        for tool, places in by_tool.items():
            reported = sum(part.views[0][place].calls for place in places)
            # Of several models or agents it is not known which; always the same one is taken.
            first = min(places, key=lambda place: part.views[0][place].stratum)
            for place in places:
                more = max(0, total.get(tool, 0) - int(reported)) if place == first else 0
                part.more[place] = more
                for complete, view in zip(part.complete, part.views, strict=True):
                    cell = view[place]
                    # A success that was only counted stands for itself.
                    complete[place] = replace(cell, calls=cell.calls + more) if more else cell


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
    sums = [func.sum(both.c[name]).label(name) for name in _COUNTS]
    if sampled.calls:
        for power, factor in enumerate((both.c.weight, both.c.weight * both.c.weight), 1):
            sums += [func.sum(factor * both.c[name]).label(f"{name}{power}") for name in _COUNTS]
    return select(*key, *sums).group_by(*key)


def _views(rows: Iterable[Any], number: int) -> list[list[Cell]]:
    """Return the cells of all rows, once for each of the sets of counts that a row has."""
    views: list[list[Cell]] = [[] for _ in range(number)]
    width = len(_COUNTS)
    for key, tool, model, agent, *counts in rows:
        stratum = (tool, model, agent)
        for at, view in enumerate(views):
            view.append(Cell(key, stratum, *map(float, counts[at * width : (at + 1) * width])))
    return views


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


def _counted(rows: Iterable[Sequence[Any]], *, of_tools: bool) -> tuple[Counter[Stratum], int, int]:
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


def _ended(conn: Connection, scope: Scope, known: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the calls per tool that ``conversation_end`` named for conversations of the side."""
    # As text: of a long history most conversations are not of this side and need no reading.
    statement = select(
        conversation.c.session_id, cast(conversation.c.end_calls, Text).label("calls")
    ).where(
        conversation.c.project_id == scope.project_id,
        conversation.c.end_event_id.is_not(None),
    )
    since, _ = window(scope)
    if len(known) <= _FEW:
        statement = statement.where(conversation.c.session_id.in_(known))
    elif since is not None:
        statement = statement.where(conversation.c.last_at >= since)
    return {
        session: _DECODE.decode(calls)
        for session, calls in conn.execute(statement)
        if session in known and calls
    }
