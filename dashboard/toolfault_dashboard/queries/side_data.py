"""What was read of a side, as the data of a comparison: its window put in order at both ends.

A chain or a conversation may reach beyond the window. Calls and folded successes are those of the
window; whatever else is known of such a conversation must not be taken for a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolfault_dashboard.analysis.columns import Columns, Floats, added
from toolfault_dashboard.analysis.sides import Folded, SideData, Stratum
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.side_parts import Counted, Ended, Part
from toolfault_dashboard.queries.windows import window

__all__ = ["side_data"]


def side_data(label: str, scope: Scope, found: Part) -> SideData:
    """Return what was read of *scope* as a side, with the successes that senders counted."""
    counted, conversations, squared, *_ = found.counted
    if not counted:
        return _side(label, scope, found.views, Folded())
    since, until = window(scope)
    ended, cells = found.ended, found.views[0]
    after = np.full(len(ended.at), True) if since is None else ended.first >= since
    before = np.full(len(ended.at), True) if until is None else ended.last < until
    within = np.zeros(len(cells.names), dtype=np.bool_)
    within[ended.conversation[after & before]] = True
    more = _at_most(counted, cells, np.where(within[cells.conversation], found.more, 0.0))
    by_stratum = dict(zip(cells.strata, cells.by_stratum(more), strict=True))
    # The counters hold every conversation in the minute of its end, those with a failure too.
    told = np.full(len(ended.at), True) if since is None else ended.at >= since
    if until is not None:
        told &= ended.at < until
    own = ended.total[told]
    of_tools = _of_tools(found.counted, ended, cells, told)
    # Of some tools only, senders' counts are of those tools, and what is known of each adds up.
    few = scope.query.has("tool")
    folded = Folded(
        calls={
            key: rest
            for key, calls in counted.items()
            if (rest := calls - int(by_stratum.get(key, 0))) > 0
        },
        conversations=sum(n for n, _ in of_tools.values())
        if few
        else max(0, conversations - len(own)),
        calls_squared=sum(n for _, n in of_tools.values())
        if few
        else max(0.0, float(squared - (own * own).sum())),
        of_tools=of_tools,
    )
    # A success that was only counted stands for itself.
    return _side(label, scope, tuple(view.with_calls(more) for view in found.views), folded)


def _of_tools(
    counted: Counted, ended: Ended, cells: Columns, told: NDArray[np.bool_]
) -> dict[str, tuple[int, float]]:
    """Return, by tool, the conversations that senders counted and no cell has, and their squares.

    Args:
        counted: What senders counted, every conversation in the minute of its end.
        ended: What conversations said at their end.
        cells: The cells.
        told: Which conversations of *ended* ended in the window.
    """
    tools = {tool: number for number, tool in enumerate(ended.tools)}
    own = [tools.setdefault(tool, len(tools)) for tool, *_ in cells.strata]
    width = max(1, len(tools))
    in_window = np.zeros(len(cells.names), dtype=np.bool_)
    in_window[ended.conversation[told]] = True
    there = np.isin(
        ended.of * width + ended.tool,
        cells.conversation * width + np.asarray(own, dtype=np.int64)[cells.stratum],
    )
    known = in_window[ended.of] & there
    names = ended.tool[known]
    many = added(names, np.ones(len(names)), width)
    squares = added(names, ended.calls[known] ** 2, width)
    return {
        tool: (
            max(0, conversations - int(many[tools[tool]] if tool in tools else 0)),
            max(
                0.0, counted.squared_of[tool] - float(squares[tools[tool]] if tool in tools else 0)
            ),
        )
        for tool, conversations in counted.conversations_of.items()
    }


def _at_most(counted: dict[Stratum, int], cells: Columns, more: Floats) -> Floats:
    """Return *more* calls of each cell, of no stratum more than were *counted* in the window.

    A conversation names all its calls, also those before the window; how many of the folded ones
    those were, nobody knows. Each cell gives up the same share of them, in whole calls.
    """
    wanted = added(cells.stratum, more, len(cells.strata))
    there = np.asarray([counted.get(key, 0) for key in cells.strata], dtype=np.float64)
    share = np.where(wanted > there, there / np.maximum(wanted, 1.0), 1.0)
    return np.floor(more * share[cells.stratum])


def _side(label: str, scope: Scope, views: Sequence[Columns], folded: Folded) -> SideData:
    rows, *others = (SideData(label, str(scope.query), cells, folded) for cells in views)
    if not others:
        return rows
    weighed, squares = others
    return replace(weighed, rows=rows, squares=squares)
