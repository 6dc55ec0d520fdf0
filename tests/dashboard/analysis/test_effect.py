"""The effect of a change: against independent implementations, and by simulation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats import proportion
from tests.dashboard.analysis.sampled import cell, cohort

from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.analysis.comparisons.differences import (
    difference_of_means,
    difference_of_rates,
)
from toolfault_dashboard.analysis.comparisons.effect import compare
from toolfault_dashboard.analysis.comparisons.estimates import (
    Estimate,
    crude,
    shared_weights,
    standardised,
)
from toolfault_dashboard.analysis.comparisons.metrics import METRICS

RATE = METRICS[0]


def _of(pairs: list[tuple[int, int]]) -> Cohort:
    cells = [cell(str(n), calls=y, failures=x) for n, (x, y) in enumerate(pairs)]
    return Cohort("x", "", tuple(cells))


def test_variance_is_that_of_a_clustered_regression() -> None:
    """The linearised variance equals statsmodels' cluster-robust sandwich of a mean."""
    rng = random.Random(5)
    sizes = [rng.randrange(1, 12) for _ in range(60)]
    pairs = [(sum(rng.random() < rng.choice((0.1, 0.7)) for _ in range(n)), n) for n in sizes]
    outcomes, groups = [], []
    for group, (failures, calls) in enumerate(pairs):
        outcomes += [1.0] * failures + [0.0] * (calls - failures)
        groups += [group] * calls
    fit = sm.OLS(np.array(outcomes), np.ones(len(outcomes))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(groups), "use_correction": False}
    )
    clusters = len(pairs)
    expected = float(fit.cov_params()[0, 0]) * clusters / (clusters - 1)
    assert crude(RATE, _of(pairs)).variance == pytest.approx(expected, rel=1e-9)


def test_strata_weigh_as_mantel_and_haenszel_say() -> None:
    """A stratum weighs n1 n0 / (n1 + n0): the smaller of its cohorts decides."""
    before, after = (
        Cohort("x", "", (cell("a", "t", calls=t, failures=1), cell("b", "u", calls=u, failures=1)))
        for t, u in ((10, 20), (30, 20))
    )
    found = shared_weights(RATE, before, after)
    assert found == pytest.approx({("t", "m", "a"): 7.5 / 17.5, ("u", "m", "a"): 10 / 17.5})


def test_a_conversation_with_several_tools_is_one_cluster() -> None:
    """Whether the calls of a conversation were of one tool or of two changes no variance."""
    pairs = [(4, 6), (0, 8), (2, 10), (6, 6), (0, 4), (2, 4)] * 5
    cells = [
        cell(str(n), tool, calls=calls // 2, failures=failures // 2)
        for n, (failures, calls) in enumerate(pairs)
        for tool in ("t", "u")
    ]
    split = crude(RATE, Cohort("x", "", tuple(cells)))
    assert split.variance == pytest.approx(crude(RATE, _of(pairs)).variance, rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(4, 9)), min_size=3, max_size=30))
@settings(max_examples=25, deadline=None)
def test_folding_successes_away_changes_no_figure(pairs: list[tuple[int, int]]) -> None:
    """A cohort whose quiet conversations are only counted has the same rate and variance."""
    whole = _of(pairs)
    quiet = [c for c in whole.cells if not c.failures]
    folded = Cohort(
        "x",
        "",
        tuple(c for c in whole.cells if c.failures),
        Folded(
            calls={("t", "m", "a"): int(sum(c.calls for c in quiet))},
            conversations=len(quiet),
            calls_squared=float(sum(c.calls**2 for c in quiet)),
        ),
    )
    mix = {("t", "m", "a"): 1.0}
    for metric in METRICS[:2]:
        a = crude(metric, whole)
        for b in (crude(metric, folded), standardised(metric, folded, mix)):
            assert (a.value, a.clusters, a.n) == (b.value, b.clusters, b.n)
            assert a.variance == pytest.approx(b.variance, rel=1e-9, abs=1e-15)


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 40), st.integers(0, 60))
@settings(max_examples=25, deadline=None)
def test_without_clustering_it_is_newcombe(n: int, m: int, k: int, j: int) -> None:
    """Independent calls give statsmodels' Newcombe interval."""
    k, j = min(k, n), min(j, m)

    def independent(count: int, of: int) -> Estimate:
        share = count / of
        return Estimate(share, share * (1 - share) / of, clusters=of, n=of)

    found = difference_of_rates(independent(k, n), independent(j, m))
    assert found is not None
    low, high = proportion.confint_proportions_2indep(j, m, k, n, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert "Newcombe" in found.method


def test_round_trips_per_failure_is_a_difference_of_means() -> None:
    """The interval is the Welch interval when every conversation has one failure."""
    rng = random.Random(23)
    left = [rng.randrange(6) for _ in range(40)]
    right = [rng.randrange(4) for _ in range(60)]
    (metric,) = (each for each in METRICS if each.name == "round_trips_per_failure")

    def estimate(trips: list[int]) -> Estimate:
        cells = [
            cell(str(n), calls=1 + each, failures=1, round_trips=each)
            for n, each in enumerate(trips)
        ]
        return crude(metric, Cohort("x", "", tuple(cells)))

    found = difference_of_means(estimate(left), estimate(right))
    assert found is not None
    expected = stats.ttest_ind(right, left, equal_var=False)
    interval = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-6)


@pytest.mark.parametrize("rounds", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_no_change_is_rarely_called_one(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """Of A/A changes with clusters and a shifting mix at most 6 % get a verdict; naively many."""
    rng = random.Random(11)
    wrong = naive = mixed = 0
    for _ in range(rounds):
        share = rng.uniform(0.2, 0.8)
        cohorts = [
            cohort(rng, 90, {"easy": 0.1, "hard": 0.4}, mix=(share, 1 - share), spread=0.15),
            cohort(rng, 90, {"easy": 0.1, "hard": 0.4}, mix=(0.5, 0.5), spread=0.15),
        ]
        found = compare(*cohorts)
        wrong += found.verdict in {"improved", "worse"}
        p, q = found.metrics[0].before, found.metrics[0].after
        assert p is not None
        assert q is not None
        calls = [each.calls.rows for each in cohorts]
        spread = math.sqrt(p * (1 - p) / calls[0] + q * (1 - q) / calls[1])
        naive += abs(p - q) > 1.96 * spread
        crude_only = difference_of_rates(crude(RATE, cohorts[0]), crude(RATE, cohorts[1]))
        assert crude_only is not None
        mixed += not crude_only.low <= 0 <= crude_only.high
    for name, number in (("false", wrong), ("at_own_mix", mixed), ("naive", naive)):
        record_property(name, number / rounds)
    assert wrong / rounds <= 0.06
    assert mixed / rounds > 0.15
    assert naive / rounds > 0.3


@pytest.mark.parametrize("rounds", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_a_real_effect_is_found_with_the_power_said(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """An effect as large as the smallest detectable one is seen in about 80 % of repetitions."""
    rng = random.Random(13)
    sizes = []
    for _ in range(20):
        pair = cohort(rng, 150, {"t": 0.4}), cohort(rng, 150, {"t": 0.3})
        smallest = compare(*pair).metrics[0].smallest_detectable
        assert smallest is not None
        sizes.append(smallest)
    size, found = float(np.mean(sizes)), 0
    for _ in range(rounds):
        before = cohort(rng, 150, {"t": 0.35 + size / 2})
        after = cohort(rng, 150, {"t": 0.35 - size / 2})
        high = compare(before, after).metrics[0].high
        found += high is not None and high < 0
    record_property("found", found / rounds)
    assert 0.75 <= found / rounds <= 0.85


def test_a_side_without_a_failure_still_has_an_interval() -> None:
    """No failure after the change is no proof of none: the interval does not shrink to a point."""
    rng = random.Random(17)
    before = cohort(rng, 60, {"t": 0.2}, spread=0.1)
    metric = compare(before, _of([(0, 5)] * 60)).metrics[0]
    assert metric.after == 0.0
    assert metric.verdict == "improved"
    assert metric.low is not None
    assert metric.high is not None
    assert metric.difference is not None
    assert metric.low < metric.difference < metric.high < 0


def test_few_conversations_get_no_verdict() -> None:
    """Below 20 conversations in a cohort nothing is said, however large the difference."""
    rng = random.Random(19)
    before, after = cohort(rng, 200, {"t": 0.9}, spread=0), cohort(rng, 19, {"t": 0.1}, spread=0)
    assert compare(before, after).verdict == "not enough data"


def test_sides_with_no_tool_in_common_are_not_compared() -> None:
    """What has no counterpart in the other cohort says nothing about a change."""
    rng = random.Random(29)
    found = compare(cohort(rng, 50, {"a": 0.5}), cohort(rng, 50, {"b": 0.1}))
    assert found.verdict == "not enough data"
    assert found.comparable == 0.0
    assert found.metrics[0].before is not None


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_rounding_of_a_share_moves_no_interval(share: float) -> None:
    """A share that is 0 or 1 but for the rounding of its sum has the interval of 0 or 1."""
    other = Estimate(value=0.6, variance=0.03, clusters=20, n=40)
    beside = abs(share - 2**-52)
    found = [
        difference_of_rates(Estimate(value=value, variance=0.0, clusters=20, n=30), other)
        for value in (share, beside)
    ]
    exact, rounded = found
    assert exact is not None
    assert rounded is not None
    assert (rounded.low, rounded.high) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_strata_are_added_in_one_order() -> None:
    """The order does not depend on the process, or the last digits of a comparison would."""
    names = [f"tool {number}" for number in range(40)]
    made = Cohort("x", "", tuple(cell(name, name, calls=3, failures=1) for name in names))
    assert list(shared_weights(RATE, made, made)) == sorted((name, "m", "a") for name in names)
