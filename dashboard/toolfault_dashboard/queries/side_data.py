"""What was read of a side, as the data of a comparison: its window put in order at both ends.

A chain or a conversation may reach beyond the window. Calls and folded successes are those of the
window; whatever else is known of such a conversation must not be taken for a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolfault_dashboard.analysis.columns import Columns, Floats, added
from toolfault_dashboard.analysis.sides import Folded, SideData, Stratum
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.side_parts import Part
from toolfault_dashboard.queries.windows import window

__all__ = ["side_data"]


def side_data(label: str, scope: Scope, found: Part) -> SideData:
    """Return what was read of *scope* as a side, with the successes that senders counted."""
    counted, conversations, squared = found.counted
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
    own = ended.total[told if until is None else told & (ended.at < until)]
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
