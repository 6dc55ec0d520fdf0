"""Comparisons where conversations without a failure are only counted."""

from __future__ import annotations

import numpy as np
import pytest

from toolfault_dashboard.analysis.comparisons.cells import Cell
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.analysis.comparisons.effect import compare

TOOLS = 8


def _drawn(noise: np.random.Generator, rates: np.ndarray) -> tuple[Cohort, Cohort]:
    """A cohort as senders tell of it, and the same with every conversation known."""
    told: list[Cell] = []
    every: list[Cell] = []
    calls = np.zeros(TOOLS)
    squares = np.zeros(TOOLS)
    many = np.zeros(TOOLS)
    folded, squared = 0, 0.0
    for number in range(300):
        own = noise.multinomial(6, np.full(TOOLS, 1 / TOOLS))
        failed = noise.binomial(own, rates)
        cells = [
            Cell(str(number), (f"t{tool}", "m", "a"), int(n), int(bad), 0, int(bad), 0, 0, 0)
            for tool, (n, bad) in enumerate(zip(own, failed, strict=True))
            if n
        ]
        every += cells
        if failed.any():
            told += cells
        else:
            calls, squares, many = calls + own, squares + own**2, many + (own > 0)
            folded, squared = folded + 1, squared + 36.0
    counted = Folded(
        {(f"t{tool}", "m", "a"): int(n) for tool, n in enumerate(calls)},
        folded,
        squared,
        {f"t{tool}": (int(many[tool]), float(squares[tool])) for tool in range(TOOLS)},
    )
    return Cohort("", "", told, counted), Cohort("", "", every)


def test_what_is_only_counted_costs_an_interval_nothing() -> None:
    """One tool that nearly always fails makes no interval wide: each call weighs as its own tool.

    From the squares by tool and those of all calls the interval is that of full knowledge.
    """
    noise = np.random.default_rng(3)
    rates = np.linspace(0.02, 0.1, TOOLS)
    rates[-1] = 0.6
    before, after = _drawn(noise, rates), _drawn(noise, rates * 0.8)
    told, known = (compare(*pair).metrics[0] for pair in zip(before, after, strict=True))
    assert told.difference == pytest.approx(known.difference)
    assert told.low is not None
    assert told.high is not None
    assert known.low is not None
    assert known.high is not None
    assert told.high - told.low == pytest.approx(known.high - known.low, rel=0.05)


def test_without_squares_by_tool_an_interval_is_no_narrower_than_the_truth() -> None:
    """A sender that counted no squares by tool has every call where it weighs most."""
    noise = np.random.default_rng(4)
    rates = np.linspace(0.02, 0.1, TOOLS)
    cohorts = [_drawn(noise, rates)[0] for _ in range(2)]
    known = compare(*cohorts).metrics[0]
    bare = compare(
        *(
            Cohort("", "", cohort.cells, Folded(
                cohort.folded.calls, cohort.folded.conversations, cohort.folded.calls_squared
            ))
            for cohort in cohorts
        )
    ).metrics[0]  # fmt: skip
    assert known.low is not None
    assert known.high is not None
    assert bare.low is not None
    assert bare.high is not None
    assert bare.low <= known.low
    assert known.high <= bare.high
