"""Trials: always-valid intervals, and assignment that went wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from tests.dashboard.analysis.sampled import cohort

from toolfault_dashboard.analysis.comparisons.balance import balance
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.comparisons.experiments import always_valid, arm_effects
from toolfault_dashboard.analysis.comparisons.sequences import stretch


class _Growing:
    """The ratio of one arm as conversations arrive."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self.rng, self.rate = rng, rate
        self.sums = [0.0] * 6

    def arrive(self, conversations: int) -> Estimate:
        for _ in range(conversations):
            calls = self.rng.randrange(1, 12)
            own = min(1.0, max(0.0, self.rng.gauss(self.rate, 0.15)))
            failures = sum(self.rng.random() < own for _ in range(calls))
            for index, value in enumerate(
                (1, failures, calls, failures**2, failures * calls, calls**2)
            ):
                self.sums[index] += value
        n, x, y, xx, xy, yy = self.sums
        ratio = x / y
        variance = n / (n - 1) * (xx - 2 * ratio * xy + ratio**2 * yy) / y**2
        return Estimate(ratio, variance, clusters=int(n), n=y)


def _looks(rounds: int, difference: float = 0.0) -> tuple[float, float]:
    """Share of trials of 30 days in which either interval excluded 0 on any day."""
    always = fixed = 0
    for seed in range(rounds):
        rng = random.Random(seed)
        arms = _Growing(rng, 0.25), _Growing(rng, 0.25 + difference)
        seen_always = seen_fixed = False
        for _ in range(30):
            a, b = (arm.arrive(25) for arm in arms)
            found = always_valid(a, b)
            assert found is not None
            value, interval = found
            seen_always |= not interval.low <= 0 <= interval.high
            assert a.variance is not None
            assert b.variance is not None
            seen_fixed |= abs(value) > 1.96 * math.sqrt(a.variance + b.variance)
        always += seen_always
        fixed += seen_fixed
    return always / rounds, fixed / rounds


@pytest.mark.parametrize("rounds", [60, pytest.param(2_000, marks=pytest.mark.long)])
def test_looking_every_day_misleads_the_fixed_interval_alone(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """Of A/A trials looked at on 30 days at most 6 % ever show an effect; else many more do."""
    always, fixed = _looks(rounds)
    record_property("always_valid", always)
    record_property("fixed", fixed)
    assert always <= 0.06
    assert fixed > 0.15


def test_a_real_effect_is_seen() -> None:
    """An effect of ten points is found by the always-valid interval in nearly every trial."""
    always, _ = _looks(20, difference=0.1)
    assert always > 0.9


def test_always_valid_is_wider_and_grows_with_confidence() -> None:
    """It costs width at every sample size, least near the one it is tuned for."""
    widths = {n: stretch(n) for n in (10, 100, 500, 1_000, 100_000)}
    assert min(widths.values()) > 1.96
    assert min(widths, key=lambda n: widths[n]) in {500, 1_000}
    assert stretch(500, confidence=0.99) > widths[500]
    assert stretch(0) == math.inf


def test_arms_are_compared_as_they_are() -> None:
    """Every metric has both intervals, the always-valid one around the same difference, wider."""
    rng = random.Random(3)
    control, treatment = cohort(rng, 200, {"t": 0.5}), cohort(rng, 200, {"t": 0.2})
    effects = arm_effects(control, Cohort("new", "", treatment.cells))
    assert [effect.metric for effect in effects][:2] == ["failure_rate", "first_try_success"]
    assert effects[0].verdict == effects[0].fixed_verdict == "improved"
    for effect in effects[:2]:
        assert effect.arm == "new"
        assert effect.fixed is not None
        assert effect.always is not None
        assert effect.always.high - effect.always.low > effect.fixed.high - effect.fixed.low


@pytest.mark.parametrize(
    ("arms", "weights", "mismatch"),
    [
        ({"a": 500, "b": 510}, None, False),
        ({"a": 500, "b": 700}, None, True),
        ({"a": 900, "b": 100}, {"a": 9.0, "b": 1.0}, False),
        ({"a": 500, "b": 500}, {"a": 9.0, "b": 1.0}, True),
        ({"a": 10}, None, False),
        ({}, None, False),
    ],
)
def test_sample_ratio_mismatch(
    arms: dict[str, int], weights: dict[str, float] | None, mismatch: bool
) -> None:
    """Arms far from their shares are said to be; chance is not."""
    assert balance(arms, weights).mismatch is mismatch


def test_weights_must_be_whole() -> None:
    """An arm without a share makes the question meaningless."""
    with pytest.raises(ValueError, match="weight"):
        balance({"a": 1, "b": 1}, {"a": 1.0})
