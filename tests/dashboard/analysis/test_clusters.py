"""Intervals of rates over conversations, whose calls are not independent."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest
from scipy.stats import norm, t
from statsmodels.stats.proportion import proportion_confint

from toolfault_dashboard.analysis.clusters import Moments, call_moments
from toolfault_dashboard.analysis.comparisons.cells import Cell, columns_of
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.analysis.weights import Amount, weighted_rate

Talk = tuple[int, int]
"""Failures and calls of one conversation."""


def moments_of(talks: Sequence[Talk]) -> Moments:
    """The sums, one conversation after the other."""
    return Moments(
        len(talks),
        sum(f * f for f, _ in talks),
        sum(f * n for f, n in talks),
        sum(n * n for _, n in talks),
    )


def amounts_of(talks: Sequence[Talk]) -> tuple[Amount, Amount]:
    """Failures and calls."""
    failures, calls = (sum(each) for each in zip(*talks, strict=True))
    return Amount(failures, failures, failures), Amount(calls, calls, calls)


def test_the_interval_is_that_of_the_variance_between_conversations() -> None:
    """It is Wilson's of as many independent calls as have the linearised variance, with t.

    The degrees of freedom are the effective number of failing conversations less one.
    """
    talks = [(0, 4), (3, 4), (0, 6), (5, 5), (1, 9), (0, 2)] * 4
    calls, share = 120, 9 / 30
    variance = 24 / 23 * sum((f - share * n) ** 2 for f, n in talks) / calls**2
    fewer = share * (1 - share) / variance
    assert fewer < calls
    failing = 36 * 36 / sum(f * f for f, _ in talks)
    assert failing < min(len(talks), 84 * 84 / sum((n - f) ** 2 for f, n in talks))
    equivalent = fewer * (norm.ppf(0.975) / t.ppf(0.975, failing - 1)) ** 2
    low, high = proportion_confint(share * equivalent, equivalent, method="wilson")

    found = weighted_rate(*amounts_of(talks), moments_of(talks))
    assert (found.low, found.high) == pytest.approx((low, high))
    assert (found.count, found.n, found.clusters) == (36, 120, 24)
    assert found.high is not None
    independent = weighted_rate(*amounts_of(talks))
    assert independent.clusters is None
    assert independent.high is not None
    assert found.high > independent.high


@pytest.mark.parametrize(
    "talks",
    [
        [(0, 4), (3, 4), (0, 6), (5, 5), (1, 9), (0, 2)],  # little is known of the variance
        [(1, 1), *[(0, 1)] * 97, (0, 2)],  # and nothing of it, from the one failure
        [(0, 5)] * 20,  # nor without one
    ],
)
def test_a_conversation_is_one_trial_at_least(talks: list[Talk]) -> None:
    """An interval is no wider than where the calls of each conversation end alike."""
    calls = sum(n for _, n in talks)
    share = sum(f for f, _ in talks) / calls
    trials = calls * calls / sum(n * n for _, n in talks)
    low, high = proportion_confint(share * trials, trials, method="wilson")

    found = weighted_rate(*amounts_of(talks), moments_of(talks))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_one_call_for_each_conversation_is_no_cluster() -> None:
    """The interval is then that of independent calls."""
    talks = [(1, 1)] * 30 + [(0, 1)] * 70
    found, plain = (
        weighted_rate(*amounts_of(talks), moments_of(talks)),
        weighted_rate(*amounts_of(talks)),
    )
    assert found.low == pytest.approx(plain.low, rel=0.03)
    assert found.high == pytest.approx(plain.high, rel=0.03)


def test_one_conversation_says_nothing_of_how_alike_its_calls_are() -> None:
    """Its calls then count as independent, and the rate says that it has no conversations."""
    talks = [(0, 5)]
    assert weighted_rate(*amounts_of(talks), moments_of(talks)).clusters is None


def test_successes_have_the_interval_of_failures_turned_round() -> None:
    """What is not counted varies as what is."""
    talks = [(0, 4), (3, 4), (0, 6), (5, 5), (1, 9), (0, 2)]
    failures, calls = amounts_of(talks)
    found = weighted_rate(failures, calls, moments_of(talks))
    others = weighted_rate(calls - failures, calls, moments_of(talks).complement())
    assert others.low == pytest.approx(1 - (found.high or 0))
    assert others.high == pytest.approx(1 - (found.low or 0))


def _cell(conversation: str, tool: str, calls: int, failures: int) -> Cell:
    return Cell(conversation, (tool, "m", "a"), calls, failures, 0, failures, 0, 0, 0)


def test_moments_of_cells_are_those_of_their_conversations() -> None:
    """Of all calls and of the calls of each tool, of several figures at once."""
    cells = columns_of(
        [_cell("c1", "x", 4, 1), _cell("c1", "y", 2, 2), _cell("c2", "x", 3, 0)],
    )
    more = cells.with_calls(np.asarray([5.0, 0.0, 1.0]))
    failures = METRICS[0]
    pairs = [(failures.numerator(each), failures.denominator(each)) for each in (cells, more)]
    assert call_moments(cells, pairs) == [
        {"": moments_of([(3, 6), (0, 3)])},
        {"": moments_of([(3, 11), (0, 4)])},
    ]
    assert call_moments(cells, pairs, by_tool=True) == [
        {"x": moments_of([(1, 4), (0, 3)]), "y": moments_of([(2, 2)])},
        {"x": moments_of([(1, 9), (0, 4)]), "y": moments_of([(2, 2)])},
    ]


@pytest.mark.parametrize(
    ("calls", "likeness"),
    [
        (5, 0.0),
        (5, 0.2),
        pytest.param(20, 0.2, marks=pytest.mark.long),
        pytest.param(10, 0.5, marks=pytest.mark.long),
    ],
)
def test_ninety_five_percent_are_about_ninety_five(calls: int, likeness: float) -> None:
    """The interval covers the true rate as often as it says, however alike the calls are.

    200 conversations, a rate of 10 %; failures are drawn from a beta-binomial distribution whose
    intra-class correlation is ``likeness``. Counting calls as independent covers 57 to 85 %.
    """
    rng, share, runs, covered = random.Random(calls), 0.1, 400, 0
    for _ in range(runs):
        talks = []
        for _ in range(200):
            own = share
            if likeness:
                more = 1 / likeness - 1
                own = rng.betavariate(share * more, (1 - share) * more)
            talks.append((sum(rng.random() < own for _ in range(calls)), calls))
        found = weighted_rate(*amounts_of(talks), moments_of(talks))
        covered += (found.low or 0) <= share <= (found.high or 1)
    assert abs(covered / runs - 0.95) < 3 * sqrt(0.95 * 0.05 / runs)
