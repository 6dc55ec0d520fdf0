"""What was read of a cohort, as the data of a comparison: its window put in order at both ends.

A chain or a conversation may reach beyond the window. Calls and folded successes are those of the
window; whatever else is known of such a conversation must not be taken for a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolfault_dashboard.analysis.comparisons.cells import (
    COUNTS,
    Columns,
    Floats,
    Stratum,
    added,
    distinct,
    numbered,
)
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.queries.comparisons.cohort_segments import Counted, Ended, Segment
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = [
    "beyond_rows",
    "cohort_data",
    "ended_in_window",
    "has_cell",
    "named_tools",
    "with_named",
]


def cohort_data(label: str, scope: Scope, found: Segment) -> Cohort:
    """Return what was read of *scope* as a cohort, with the successes that senders counted."""
    counted = found.counted.calls
    if not counted:
        return _cohort(label, scope, found.views, Folded())
    since, until = window(scope)
    ended, cells = found.ended, found.views[0]
    after = np.full(len(ended.at), True) if since is None else ended.first >= since
    before = np.full(len(ended.at), True) if until is None else ended.last < until
    within = np.zeros(len(cells.names), dtype=np.bool_)
    within[ended.conversation[after & before]] = True
    calls = {cells: np.where(within[cells.conversation], found.more, 0.0)}
    beside, there = None, has_cell(ended, cells)
    if not scope.query.has("tool"):  # else what a conversation named beside them does not count
        beside = named_tools(cells, ended, ~there & within[ended.of])
        calls[beside] = beside.calls
        there |= within[ended.of]
    calls = _at_most(counted, calls)
    by_stratum: Counter[Stratum] = Counter()
    for block, more in calls.items():
        by_stratum.update(dict(zip(block.strata, block.by_stratum(more), strict=True)))
    # The counters hold every conversation in the minute of its end, those with a failure too.
    known = ended_in_window(ended, cells, there, window(scope))
    folded = replace(
        beyond_rows(found.counted, known, of_tools=scope.query.has("tool")),
        calls={
            key: rest for key, own in counted.items() if (rest := own - int(by_stratum[key])) > 0
        },
    )
    # A success that was only counted stands for itself.
    views = tuple(view.with_calls(calls[cells]) for view in found.views)
    if beside is not None:
        beside = replace(beside, calls=calls[beside])
    return _cohort(label, scope, views, folded, beside)


def ended_in_window(
    ended: Ended, cells: Columns, there: NDArray[np.bool_], own: tuple[int | None, int | None]
) -> Counted:
    """Return what senders counted of conversations that are known as rows too.

    Senders count a conversation in the minute of its end, each the calls that were made by way of
    it: of a conversation with several ends each is counted.

    Args:
        ended: What conversations said at their end.
        cells: The cells.
        there: Which pairs of conversation and tool are known, by a cell or by what was named.
        own: The window, of which the conversations are counted that ended in it.
    """
    since, until = own
    tools = {tool: number for number, tool in enumerate(ended.tools)}
    width = max(1, len(tools))
    chosen = np.full(len(ended.at), True) if since is None else ended.at >= since
    if until is not None:
        chosen &= ended.at < until
    several = dict(zip(cells.names.of(ended.several).tolist(), ended.several.values(), strict=True))
    chosen &= ~np.isin(ended.conversation, list(several))
    in_window = np.zeros(len(cells.names), dtype=np.bool_)
    in_window[ended.conversation[chosen]] = True
    known = in_window[ended.of] & there
    names = ended.tool[known]
    many = added(names, np.ones(len(names)), width)
    squares = added(names, ended.calls[known] ** 2, width)
    total = ended.total[chosen]
    found = Counted(
        calls=Counter(),
        conversations=len(total),
        squared=int((total * total).sum()),
        conversations_of=Counter({tool: int(many[place]) for tool, place in tools.items()}),
        squared_of=Counter({tool: int(squares[place]) for tool, place in tools.items()}),
    )
    if not several:
        return found
    ends = [
        (place, calls)
        for place, of_talk in several.items()
        for at, calls in of_talk
        if (since is None or at >= since) and (until is None or at < until)
    ]
    pairs = set(zip(ended.of[there].tolist(), ended.tool[there].tolist(), strict=True))
    for place, calls in ends:
        for tool, number in calls.items():
            if (place, tools.get(tool)) in pairs:
                found.conversations_of[tool] += 1
                found.squared_of[tool] += number * number
    return found._replace(
        conversations=found.conversations + len(ends),
        squared=found.squared + sum(sum(calls.values()) ** 2 for _, calls in ends),
    )


def has_cell(ended: Ended, cells: Columns) -> NDArray[np.bool_]:
    """Return which pairs of conversation and tool in *ended* have a cell."""
    tools = {tool: number for number, tool in enumerate(ended.tools)}
    own = numbered((tool for tool, *_ in cells.strata), tools)
    width = max(1, len(tools))
    return np.isin(ended.of * width + ended.tool, cells.conversation * width + own[cells.stratum])


def named_tools(cells: Columns, ended: Ended, missing: NDArray[np.bool_]) -> Columns:
    """Return what conversations named beside their cells: all of these calls were only counted.

    Of the columns of the cells that are returned calls alone take room.

    Args:
        cells: The cells.
        ended: What their conversations said at their end.
        missing: Of which pairs of conversation and tool, which have no cell, to do that.
    """
    of = ended.of[missing]
    # A conversation is of one model and one agent, but for few; of these the first by name tells,
    # since rows come in any order.
    by_name = sorted(cells.strata)
    places = {stratum: place for place, stratum in enumerate(by_name)}
    rank = np.asarray([places[stratum] for stratum in cells.strata], dtype=np.int64)
    first = np.full(len(cells.names), len(by_name), dtype=np.int64)
    np.minimum.at(first, cells.conversation, rank[cells.stratum])
    width = len(by_name) + 1
    pairs, place = distinct(ended.tool[missing] * width + first[of], len(ended.tools) * width)
    named = ((ended.tools[pair // width], *by_name[pair % width][1:]) for pair in pairs.tolist())
    strata: dict[Stratum, int] = {}
    stratum = numbered(named, strata)[place]
    calls = ended.calls[missing]
    none = np.broadcast_to(np.zeros(1), len(calls))
    counts = {**dict.fromkeys(COUNTS, none), "calls": calls}
    return Columns(cells.names, of, tuple(strata), stratum, **counts)


def with_named(cells: Columns, named: Columns) -> Columns:
    """Return *cells* with a cell for each pair of *named*, which has no reported call."""
    strata = {stratum: number for number, stratum in enumerate(cells.strata)}
    own = numbered(named.strata, strata)[named.stratum]
    none = np.zeros(len(own), dtype=np.float64)
    counts: dict[str, Any] = {name: np.concatenate([getattr(cells, name), none]) for name in COUNTS}
    return replace(
        cells,
        conversation=np.concatenate([cells.conversation, named.conversation]),
        strata=tuple(strata),
        stratum=np.concatenate([cells.stratum, own]),
        **counts,
    )


def beyond_rows(counted: Counted, known: Counted, *, of_tools: bool) -> Folded:
    """Return the conversations that senders counted beside those that are known as rows.

    Args:
        counted: What senders counted.
        known: What of that is known as rows.
        of_tools: Whether the scope is of some tools only: then senders' counts are of those tools,
            and what is known of each adds up.
    """
    by_tool = {
        tool: (
            max(0, conversations - known.conversations_of[tool]),
            max(0.0, float(counted.squared_of[tool] - known.squared_of[tool])),
        )
        for tool, conversations in counted.conversations_of.items()
    }
    if of_tools:
        conversations = sum(n for n, _ in by_tool.values())
        squared = sum(n for _, n in by_tool.values())
    else:
        conversations = max(0, counted.conversations - known.conversations)
        squared = max(0.0, float(counted.squared - known.squared))
    return Folded(conversations=conversations, calls_squared=squared, of_tools=by_tool)


def _at_most(
    counted: Mapping[Stratum, int], calls: Mapping[Columns, Floats]
) -> dict[Columns, Floats]:
    """Return the *calls* of cells, of no stratum more than were *counted* in the window.

    A conversation names all its calls, also those before the window; how many of the folded ones
    those were, nobody knows. Each cell gives up the same share of them, in whole calls.
    """
    wanted: Counter[Stratum] = Counter()
    for cells, more in calls.items():
        wanted.update(dict(zip(cells.strata, cells.by_stratum(more), strict=True)))

    def share(stratum: Stratum) -> float:
        there, asked = counted.get(stratum, 0), wanted[stratum]
        return there / max(asked, 1.0) if asked > there else 1.0

    return {
        cells: np.floor(more * np.asarray([*map(share, cells.strata), 1.0])[cells.stratum])
        for cells, more in calls.items()
    }


def _cohort(
    label: str,
    scope: Scope,
    views: Sequence[Columns],
    folded: Folded,
    beside: Columns | None = None,
) -> Cohort:
    rows, *others = (
        Cohort(label, str(scope.query), cells, folded, beside=beside) for cells in views
    )
    if not others:
        return rows
    weighed, squares = others
    return replace(weighed, rows=rows, squares=squares)
