"""The effect of a change: every metric before and after, with an interval and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.differences import (
    Difference,
    chance_of,
    difference_of_means,
    difference_of_rates,
)
from toolfault_dashboard.analysis.comparisons.estimates import (
    Estimate,
    crude,
    shared_weights,
    standardised,
)
from toolfault_dashboard.analysis.comparisons.family import adjusted
from toolfault_dashboard.analysis.comparisons.metrics import METRICS, Metric, MetricName
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import weighted_rate

__all__ = [
    "FEWEST",
    "CohortSummary",
    "Effect",
    "MetricEffect",
    "MetricTest",
    "Verdict",
    "compare",
    "compare_metric",
    "effect_of",
    "metric_tests",
    "verdict_of",
]

Verdict = Literal["improved", "worse", "no detectable change", "not enough data"]

FEWEST: Final = 20
"""Conversations (for metrics of chains: chains) per cohort below which nothing is said: the
interval itself would be a guess."""


@dataclass(frozen=True, slots=True)
class CohortSummary:
    """What one cohort of a comparison consists of."""

    label: str  # "before", "after", or a variant, release or query
    query: str  # canonical text; a reader can open it
    conversations: int
    calls: int
    failures: int
    chains: int
    failure_rate: Rate


@dataclass(frozen=True, slots=True)
class MetricEffect:
    """One metric before and after, and the difference at an equal mix of tools, models and agents.

    ``before`` and ``after`` are the figures as they are. Where the mix shifted, ``difference`` is
    not after - before: it is what remains when both cohorts are given the same mix.
    """

    metric: MetricName
    better: Literal["lower", "higher"]
    before: float | None
    after: float | None
    conditional: bool  # on a failure: it may get worse while failures fall, see `Metric`
    n_before: int  # calls, operations, closed chains or failures that are there: see ``unit``
    n_after: int
    unit: str
    crude_difference: float | None  # after - before
    difference: float | None  # at equal mix
    low: float | None
    high: float | None
    smallest_detectable: float | None  # absolute difference found in 80 % of repetitions
    method: str  # names the interval
    verdict: Verdict


class MetricTest(NamedTuple):
    """A metric with the p-value of its difference; None where there is too little data."""

    effect: MetricEffect
    p_value: float | None


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change: before against after."""

    before: CohortSummary
    after: CohortSummary
    metrics: tuple[MetricEffect, ...]
    verdict: Verdict  # of the failure rate
    confidence: float  # two-sided coverage of every interval
    strata: int  # combinations of tool, model and agent that both cohorts have
    comparable: float | None  # share of all calls that lie in these
    excluded_untimed: int = 0  # failures without a time; a change in time cannot place them
    sampled: bool = False  # calls stand for others that were not sent: all is weighed

    @property
    def open_chains(self) -> tuple[int, int]:
        """Chains of both cohorts that the recovery rate does not know of yet; 0 where sampled."""
        (rate,) = (metric for metric in self.metrics if metric.metric == "recovery_rate")
        if self.sampled:
            return 0, 0
        return self.before.chains - rate.n_before, self.after.chains - rate.n_after


def compare(
    before: Cohort, after: Cohort, *, confidence: float = 0.95, equal_mix: bool = True
) -> Effect:
    """Compare two cohorts metric by metric; each verdict is corrected for all of them.

    Args:
        before: One cohort.
        after: The other cohort.
        confidence: Two-sided coverage of every interval.
        equal_mix: Weight tools, models and agents alike in both cohorts; off where cohorts were
            drawn at random and differ in their mix by chance or by effect only.
    """
    tests = metric_tests(before, after, confidence=confidence, equal_mix=equal_mix)
    corrected = adjusted(tests[0].p_value, [test.p_value for test in tests[1:]])
    return effect_of(before, after, tests, corrected, confidence=confidence)


def metric_tests(
    before: Cohort, after: Cohort, *, confidence: float, equal_mix: bool
) -> tuple[MetricTest, ...]:
    """Compare every metric taken by itself, the failure rate first; see `compare`."""
    return tuple(
        _tested(metric, before, after, confidence=confidence, equal_mix=equal_mix)
        for metric in METRICS
    )


def effect_of(
    before: Cohort,
    after: Cohort,
    tests: Sequence[MetricTest],
    corrected: Sequence[float | None],
    *,
    confidence: float,
) -> Effect:
    """Return the effect whose verdicts rest on the *corrected* p-values of *tests*."""
    metrics = tuple(
        replace(test.effect, verdict="no detectable change")
        if p is not None and p > 1.0 - confidence
        else test.effect
        for test, p in zip(tests, corrected, strict=True)
    )
    mixes = before.strata, after.strata
    strata = mixes[0].keys() & mixes[1].keys()
    calls = (before.calls + after.calls).weight
    shared = sum(mix[key] for mix in mixes for key in strata)
    return Effect(
        sampled=before.calls.sampled or after.calls.sampled,
        before=_cohort(before),
        after=_cohort(after),
        metrics=metrics,
        verdict=metrics[0].verdict,
        confidence=confidence,
        strata=len(strata),
        comparable=shared / calls if calls else None,
    )


def compare_metric(
    metric: Metric,
    before: Cohort,
    after: Cohort,
    *,
    confidence: float = 0.95,
    equal_mix: bool = True,
) -> MetricEffect:
    """Compare one metric of two cohorts, taken by itself; see `compare`."""
    return _tested(metric, before, after, confidence=confidence, equal_mix=equal_mix).effect


def _tested(
    metric: Metric, before: Cohort, after: Cohort, *, confidence: float, equal_mix: bool
) -> MetricTest:
    as_it_is = crude(metric, before), crude(metric, after)
    weights = shared_weights(metric, before, after) if equal_mix else {}
    compared = as_it_is
    if equal_mix:
        compared = standardised(metric, before, weights), standardised(metric, after, weights)
    found = _difference(metric, *compared, confidence=confidence)
    enough = all(_is_enough(metric, cohort) for cohort in compared)
    left, right = (_shown(metric, cohort.value) for cohort in as_it_is)
    effect = MetricEffect(
        metric=metric.name,
        better=metric.better,
        before=left,
        after=right,
        conditional=metric.conditional,
        n_before=as_it_is[0].counted,
        n_after=as_it_is[1].counted,
        unit=metric.unit,
        crude_difference=None if left is None or right is None else right - left,
        difference=found.value if found else None,
        low=found.low if found else None,
        high=found.high if found else None,
        smallest_detectable=found.smallest_detectable if found else None,
        method=_method(found, len(weights)),
        verdict=verdict_of(found if enough else None, metric.better),
    )
    chance = chance_of(_method_of(metric), *compared) if found is not None and enough else None
    return MetricTest(effect, chance)


def verdict_of(found: Difference | None, better: Literal["lower", "higher"]) -> Verdict:
    """Say what an interval of a difference means; None is too little data for one."""
    if found is None:
        return "not enough data"
    if found.low <= 0.0 <= found.high:
        return "no detectable change"
    return "improved" if (found.value < 0) == (better == "lower") else "worse"


def _cohort(data: Cohort) -> CohortSummary:
    return CohortSummary(
        label=data.label,
        query=data.query,
        conversations=data.conversations,
        calls=data.calls.whole,
        failures=data.failures.whole,
        chains=data.chains.whole,
        failure_rate=weighted_rate(data.failures, data.calls),
    )


def _difference(
    metric: Metric, before: Estimate, after: Estimate, *, confidence: float
) -> Difference | None:
    found = _method_of(metric)(before, after, confidence=confidence)
    return _mirrored(found) if found is not None and metric.complement else found


def _method_of(metric: Metric) -> Callable[..., Difference | None]:
    return difference_of_rates if metric.share else difference_of_means


def _mirrored(found: Difference) -> Difference:
    return Difference(
        value=-found.value,
        low=-found.high,
        high=-found.low,
        smallest_detectable=found.smallest_detectable,
        clustered=found.clustered,
        method=found.method,
    )


def _is_enough(metric: Metric, cohort: Estimate) -> bool:
    return cohort.clusters >= FEWEST if metric.of_calls else cohort.counted >= FEWEST


def _shown(metric: Metric, value: float | None) -> float | None:
    return value if value is None or not metric.complement else 1.0 - value


def _method(found: Difference | None, strata: int) -> str:
    if found is None:
        return ""
    mix = f", at equal mix of {strata} combinations of tool, model and agent" if strata > 1 else ""
    return found.method + mix
