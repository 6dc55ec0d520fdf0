"""Randomised trials: the causal effect of an arm, by fixed-horizon and always-valid intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

from toolfault_dashboard.analysis.comparisons.balance import Balance, balance
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.differences import (
    Difference,
    difference_of_means,
    difference_of_rates,
)
from toolfault_dashboard.analysis.comparisons.earlier import Adjusted, Earlier, adjusted
from toolfault_dashboard.analysis.comparisons.effect import FEWEST, Verdict, verdict_of
from toolfault_dashboard.analysis.comparisons.estimates import Estimate, crude
from toolfault_dashboard.analysis.comparisons.metrics import METRICS, Metric, MetricName
from toolfault_dashboard.analysis.comparisons.sequences import stretch
from toolfault_dashboard.analysis.rates import Interval

__all__ = [
    "AdjustedEffect",
    "ArmComparison",
    "ArmEffect",
    "Experiment",
    "always_valid",
    "arm_effect",
    "arm_effects",
    "as_trial",
]


@dataclass(frozen=True, slots=True)
class AdjustedEffect:
    """The same effect with what conversations did before the trial taken away (CUPED)."""

    difference: float
    fixed: Interval
    always: Interval
    conversations: int  # that had a call before the trial
    variance_removed: float  # share of the variance; the interval is narrower by its root
    verdict: Verdict  # of the always-valid interval


@dataclass(frozen=True, slots=True)
class ArmEffect:
    """One metric of one arm against the control."""

    metric: MetricName
    arm: str
    better: Literal["lower", "higher"]
    control: float | None
    treatment: float | None
    n_control: int
    n_treatment: int
    unit: str
    difference: float | None  # treatment - control
    fixed: Interval | None  # right if this is the one moment you chose to look
    always: Interval | None  # right however often you look
    verdict: Verdict  # of the always-valid interval
    fixed_verdict: Verdict
    adjusted: AdjustedEffect | None = None  # None where no conversation was there before


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """Two variants as arms of a trial: whether it was fair, and what holds at every look."""

    balance: Balance
    effects: tuple[ArmEffect, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A trial with its arms."""

    name: str
    control: str
    arms: tuple[str, ...]
    balance: Balance
    effects: tuple[ArmEffect, ...]
    confidence: float


def arm_effects(
    control: Cohort,
    treatment: Cohort,
    *,
    confidence: float = 0.95,
    earlier: Earlier | None = None,
) -> tuple[ArmEffect, ...]:
    """Compare an arm with the control on every metric.

    Assignment is random per conversation, so the mix is equal but for chance and the figures are
    compared as they are.

    Args:
        control: One arm.
        treatment: The other arm.
        confidence: Two-sided coverage of every interval.
        earlier: What their conversations did before the trial; adjusts each effect for it.
    """
    return tuple(
        arm_effect(metric, control, treatment, confidence=confidence, earlier=earlier)
        for metric in METRICS
    )


def as_trial(control: Cohort, treatment: Cohort, *, confidence: float = 0.95) -> ArmComparison:
    """Compare two variants as the arms of a trial that meant to share conversations evenly."""
    arms = {cohort.label: cohort.conversations for cohort in (control, treatment)}
    return ArmComparison(balance(arms), arm_effects(control, treatment, confidence=confidence))


def always_valid(
    before: Estimate, after: Estimate, *, confidence: float = 0.95
) -> tuple[float, Interval] | None:
    """Return the difference and its confidence sequence at this moment; None without variances."""
    if before.value is None or after.value is None:
        return None
    if before.variance is None or after.variance is None:
        return None
    difference = after.value - before.value
    spread = sqrt(before.variance + after.variance)
    reach = spread * stretch(before.clusters + after.clusters, confidence=confidence)
    return difference, Interval(difference - reach, difference + reach)


def arm_effect(
    metric: Metric,
    control: Cohort,
    treatment: Cohort,
    *,
    confidence: float = 0.95,
    earlier: Earlier | None = None,
) -> ArmEffect:
    """Compare an arm with the control on one *metric*; see `arm_effects`."""
    left, right = crude(metric, control), crude(metric, treatment)
    compute = difference_of_rates if metric.share else difference_of_means
    fixed = compute(left, right, confidence=confidence)
    sequence = always_valid(_floored(metric, left), _floored(metric, right), confidence=confidence)
    enough = min(left.clusters, right.clusters) >= FEWEST and (
        metric.of_calls or min(left.counted, right.counted) >= FEWEST
    )
    sign = -1.0 if metric.complement else 1.0
    always = None if sequence is None else _signed(sequence[1], sign)
    shown = None if fixed is None else _signed(Interval(fixed.low, fixed.high), sign)
    value = None if fixed is None else sign * fixed.value
    return ArmEffect(
        metric=metric.name,
        arm=treatment.label,
        better=metric.better,
        control=_value(metric, left),
        treatment=_value(metric, right),
        n_control=left.counted,
        n_treatment=right.counted,
        unit=metric.unit,
        difference=value,
        fixed=shown,
        always=always,
        verdict=_verdict(metric, value, always if enough else None),
        fixed_verdict=_verdict(metric, value, shown if enough else None),
        adjusted=_adjusted(
            metric, adjusted(metric, control, treatment, earlier or {}), confidence, enough=enough
        ),
    )


def _adjusted(
    metric: Metric, found: Adjusted | None, confidence: float, *, enough: bool
) -> AdjustedEffect | None:
    if found is None:
        return None
    fixed = difference_of_means(found.control, found.treatment, confidence=confidence)
    sequence = always_valid(found.control, found.treatment, confidence=confidence)
    if fixed is None or sequence is None:
        return None
    sign = -1.0 if metric.complement else 1.0
    always = _signed(sequence[1], sign)
    return AdjustedEffect(
        difference=sign * fixed.value,
        fixed=_signed(Interval(fixed.low, fixed.high), sign),
        always=always,
        conversations=found.conversations,
        variance_removed=found.variance_removed,
        verdict=_verdict(metric, sign * fixed.value, always if enough else None),
    )


def _floored(metric: Metric, cohort: Estimate) -> Estimate:
    """Return *cohort* with at least the variance of independent calls, like the fixed interval."""
    if not metric.share or cohort.value is None or cohort.variance is None or not cohort.n:
        return cohort
    independent = cohort.value * (1.0 - cohort.value) / cohort.n
    return replace(cohort, variance=max(cohort.variance, independent))


def _signed(interval: Interval, sign: float) -> Interval:
    return interval if sign > 0 else Interval(-interval.high, -interval.low)


def _value(metric: Metric, estimate: Estimate) -> float | None:
    if estimate.value is None or not metric.complement:
        return estimate.value
    return 1.0 - estimate.value


def _verdict(metric: Metric, value: float | None, interval: Interval | None) -> Verdict:
    if value is None or interval is None:
        return "not enough data"
    difference = Difference(
        value=value, low=interval.low, high=interval.high, smallest_detectable=None,
        clustered=True, method="",
    )  # fmt: skip
    return verdict_of(difference, metric.better)
