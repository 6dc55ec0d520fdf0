"""Calls that conversations named, of tools that none of their reported calls is of."""

from __future__ import annotations

from itertools import permutations

from toolfault_dashboard.analysis.comparisons.cells import COUNTS
from toolfault_dashboard.queries.comparisons.cohort_data import has_cell, named_tools
from toolfault_dashboard.queries.comparisons.cohort_segments import ended_of, views_of


def test_a_named_tool_is_of_the_same_model_in_whatever_order_rows_come():
    """Databases return groups in any order, and parts of a window change it: no number follows it.

    The conversation has calls of two models, and named a third tool at its end.
    """
    none = [0] * (len(COUNTS) - 1)
    rows = [("c", tool, f"m{place}", "a", 1, *none) for place, tool in enumerate(("x", "y", "z"))]
    said = '{"x": 1, "y": 1, "z": 1, "write": 5}'
    found = set()
    for ordered in permutations(rows):
        (cells,) = views_of(ordered, 1)
        ended = ended_of([("c", said, "1", "", 0, 1, 2)], cells, {})
        named = named_tools(cells, ended, ~has_cell(ended, cells))
        assert named.calls.tolist() == [5.0]
        found.add(named.strata)
    assert found == {(("write", "m0", "a"),)}


def test_each_stratum_of_named_tools_stands_once():
    """Conversations whose calls were of different tools name the same one: it is one stratum."""
    none = [0] * (len(COUNTS) - 1)
    rows = [(talk, tool, "m", "a", 1, *none) for talk, tool in (("c", "x"), ("d", "y"))]
    (cells,) = views_of(rows, 1)
    said = [(talk, '{"write": 5}', "1", "", 0, 1, 2) for talk in ("c", "d")]
    ended = ended_of(said, cells, {})
    named = named_tools(cells, ended, ~has_cell(ended, cells))
    assert named.strata == (("write", "m", "a"),)
    assert named.by_stratum(named.calls) == [10.0]
