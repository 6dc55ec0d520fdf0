"""Rates of sampled calls: what they are, and intervals that are as wide as they must be."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.analysis.sampled import cohort

from toolfault_dashboard.analysis.comparisons.cells import Cell
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.effect import compare
from toolfault_dashboard.analysis.rates import rate, wilson_share
from toolfault_dashboard.analysis.weights import Amount, equivalent, weighted_rate


def _sample(rows: int, sampled_at: float) -> Amount:
    weight = 1 / sampled_at
    return Amount(rows, rows * weight, rows * weight * weight)


@given(st.integers(0, 50), st.integers(0, 60))
def test_without_sampling_it_is_the_plain_rate(count: int, n: int) -> None:
    """Weights of 1 change no figure, not in its last digit."""
    assert weighted_rate(Amount(count, count, count), Amount(n, n, n)) == rate(count, n)


def test_squares_that_were_cut_off_still_give_an_interval() -> None:
    """Rollups bound the square of one call, rows do not: a difference of both may be negative."""
    of, part = Amount(63, 4_000_086, 4e8), Amount(17, 2_000_028, 2e12)
    found = weighted_rate(of - part, of - part)
    assert (found.low, found.high) == pytest.approx((0.923, 1.0), abs=0.001)
    assert weighted_rate(of - part, of).high is not None


@pytest.mark.parametrize(
    ("failures", "successes", "value", "n", "kish"),
    [
        (_sample(10, 0.1), _sample(900, 1.0), 0.1, 110.0, 526.0),
        (_sample(100, 1.0), _sample(90, 0.1), 0.1, 526.0, 110.0),
        (_sample(20, 0.5), _sample(180, 0.5), 0.1, 200.0, 200.0),
    ],
)
def test_the_examples_of_the_documentation(
    failures: Amount, successes: Amount, value: float, n: float, kish: float
) -> None:
    """Value, equivalent n and Kish's n are those that statistics.md names; n shown is of rows."""
    calls = failures + successes
    found = weighted_rate(failures, calls)
    assert found.weighed
    assert found.value == pytest.approx(value)
    assert (found.count, found.n) == (failures.rows, calls.rows)
    assert equivalent(failures, calls) == pytest.approx(n, abs=0.5)
    assert calls.weight**2 / calls.squares == pytest.approx(kish, abs=0.5)
    interval = wilson_share(value, equivalent(failures, calls))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_no_failure_among_sampled_calls_proves_little() -> None:
    """Where all rows are of one kind, the interval is that of the rows, not of the estimate."""
    found = weighted_rate(Amount(), _sample(50, 0.01))
    assert found.high == pytest.approx(rate(0, 50).high)


@pytest.mark.parametrize(("failed", "succeeded"), [(0.1, 1.0), (1.0, 0.1), (0.3, 0.5)])
def test_the_interval_covers_and_kishs_does_not(failed: float, succeeded: float) -> None:
    """Of intervals 94 to 96 % hold the true rate; Kish's too few where failures are sampled."""
    drawn, rounds, calls, true = np.random.default_rng(3), 2_000, 4_000, 0.2
    failures = drawn.binomial(calls, true, rounds)
    kept = drawn.binomial(failures, failed), drawn.binomial(calls - failures, succeeded)
    held = naive = 0
    for few, many in zip(*kept, strict=True):
        part, rest = _sample(int(few), failed), _sample(int(many), succeeded)
        found = weighted_rate(part, part + rest)
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= true <= found.high
        whole = part + rest
        kish = wilson_share(found.value, whole.weight**2 / whole.squares)
        naive += kish.low <= true <= kish.high
    assert 0.94 <= held / rounds <= 0.965
    if failed < succeeded / 2:
        assert naive / rounds < 0.8


def _thinned(rng: random.Random, whole: Cohort, failed: float, succeeded: float) -> Cohort:
    """The cohort as a sender tells it that drops failures, and successes, of some conversations."""
    views: tuple[list[Cell], list[Cell], list[Cell]] = ([], [], [])
    for cell in whole.cells:
        failures = cell.failures if rng.random() < failed else 0
        successes = cell.calls - cell.failures if rng.random() < succeeded else 0
        if not failures and not successes:
            continue
        for power, view in enumerate(views):
            own, others = failures / failed**power, successes / succeeded**power
            chains = cell.chains / failed**power if failures else 0
            view.append(
                Cell(cell.conversation, cell.stratum, own + others, own, chains, 0, 0, 0, 0)
            )
    rows, weighed, squares = (Cohort("x", "", tuple(cells)) for cells in views)
    return Cohort("x", "", weighed.cells, rows=rows, squares=squares)


@pytest.mark.parametrize("rounds", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_no_change_between_sampled_sides_is_rarely_called_one(rounds: int) -> None:
    """Of A/A cohorts sampled at different rates at most 6 % get a verdict; unweighed nearly all."""
    rng = random.Random(31)
    wrong = unweighed = 0
    tried = rounds // 5  # nearly all are called wrong: a part of them shows it
    for number in range(rounds):
        left, right = (cohort(rng, 150, {"t": 0.3}) for _ in range(2))
        cohorts = _thinned(rng, left, 0.5, 1.0), _thinned(rng, right, 1.0, 0.4)
        wrong += compare(*cohorts).verdict in {"improved", "worse"}
        if number >= tried:
            continue
        rows = [each.rows for each in cohorts]
        assert rows[0] is not None
        assert rows[1] is not None
        unweighed += compare(rows[0], rows[1]).verdict == "worse"
    assert wrong / rounds <= (0.06 if rounds >= 2_000 else 0.08)
    assert unweighed / tried > 0.9
