"""Parts of a cohort added up are the cohort."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

import pytest

from toolfault_dashboard.analysis.comparisons.cells import COUNTS, Cell, columns_of, layout_of

_Sums = dict[tuple[str, tuple[str, str, str]], list[float]]


def _summed(cells: Iterable[Cell]) -> _Sums:
    found: _Sums = defaultdict(lambda: [0.0] * len(COUNTS))
    for cell in cells:
        for place, name in enumerate(COUNTS):
            found[cell.conversation, cell.stratum][place] += getattr(cell, name)
    return dict(found)


def _part(drawn: random.Random, size: int) -> list[Cell]:
    """A part with each conversation and stratum once, of names that other parts have too."""
    pairs = {(f"c{drawn.randrange(40)}", (f"t{drawn.randrange(3)}", "m", "")) for _ in range(size)}
    return [
        Cell(name, stratum, *(float(drawn.randrange(9)) for _ in COUNTS))
        for name, stratum in sorted(pairs)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_cells_of_several_parts_are_added_up_once(seed: int):
    """A conversation that is in several parts has one cell per stratum, with the sum of all."""
    drawn = random.Random(seed)
    parts = [_part(drawn, drawn.choice((0, 1, 5, 30, 90))) for _ in range(drawn.randrange(2, 6))]
    columns = [columns_of(part) for part in parts]
    layout = layout_of(columns)
    whole = layout.sum_of(columns)
    naive = _summed(cell for part in parts for cell in part)
    assert len(whole) == len(naive)
    assert _summed(whole) == naive
    for ids, part in zip(layout.renumbered, columns, strict=True):
        assert [layout.names.in_order[at] for at in ids] == list(part.names.in_order)
    elsewhere = {
        cell.conversation
        for number, part in enumerate(parts)
        if number != layout.base
        for cell in part
    }
    touched = zip(layout.names.in_order, layout.touched.tolist(), strict=True)
    assert {name for name, is_touched in touched if is_touched} == elsewhere
