"""The difference of two ratios with its confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.rates import (
    Interval,
    Rate,
    critical_t,
    critical_value,
    effective_interval,
)

__all__ = [
    "Difference",
    "chance_of",
    "change_of_rate",
    "difference_of_means",
    "difference_of_rates",
    "pooled_p_value",
]

POWER = 0.80
"""Share of repetitions in which the smallest detectable effect would be seen."""

ROUNDING = 1e-9
"""Design effects this close to 1 are 1; a weighted share this close to 0 or 1 is 0 or 1."""


@dataclass(frozen=True, slots=True)
class Difference:
    """after - before, its interval, and the smallest difference that could have been seen."""

    value: float
    low: float
    high: float
    smallest_detectable: float | None
    clustered: bool
    method: str


def difference_of_rates(
    before: Estimate, after: Estimate, *, confidence: float = 0.95
) -> Difference | None:
    """Return the difference of two shares of calls, cluster-robust over conversations.

    Each share gets a Wilson interval at its effective sample size, n / design effect, where the
    design effect is the linearised variance over the binomial one and the critical value is
    Student's t on the number of conversations; the two intervals are combined by Newcombe's hybrid
    score method. Without clustering (one call per conversation) this is Newcombe's method 10.
    Unlike a difference +- standard error it stays honest when one cohort has no failure at all.

    Args:
        before: One cohort.
        after: The other cohort.
        confidence: Two-sided coverage.

    Returns:
        The difference, or None where a cohort has no calls.

    Source: R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, method 10; N. Dean and
        M. Pagano, J. Survey Stat. Methodol. 3 (2015) 484-503 (effective sample size);
        G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693-1702 (combining).
    """
    p, q = before.value, after.value
    if p is None or q is None:
        return None
    effects = [_design_effect(cohort) for cohort in (before, after)]
    known = [effect for effect in effects if effect is not None]
    shared = max(known, default=1.0)
    left, right = (
        _effective_interval(cohort, effect if effect is not None else shared, confidence)
        for cohort, effect in zip((before, after), effects, strict=True)
    )
    value = q - p
    ends = _combined(p, left, q, right)
    # Under no difference both cohorts have the same share, so its variance is taken at the mean.
    spread = sum(
        _spread(cohort, effect if effect is not None else shared, (p + q) / 2)
        for cohort, effect in zip((before, after), effects, strict=True)
    )
    clustered = any(effect > 1.0 for effect in known)
    return Difference(
        value=value,
        low=ends.low,
        high=ends.high,
        smallest_detectable=_smallest(spread, confidence),
        clustered=clustered,
        method=(
            "Wilson intervals at the effective sample size of the conversations, combined after"
            " Newcombe"
            if clustered
            else "Newcombe's hybrid score interval"
        ),
    )


def change_of_rate(before: Rate, after: Rate) -> Interval | None:
    """Return the interval of after - before for two rates that have intervals of their own.

    It is as wide as the intervals beside which it stands make it (Newcombe's hybrid score method,
    as in `difference_of_rates`): a reader who sees both rates and the change sees one claim.

    Returns:
        The 95 % interval, or None where a rate has no value.
    """
    p, q = before.value, after.value
    ends = (before.low, before.high, after.low, after.high)
    if p is None or q is None or None in ends:
        return None
    low, high, new_low, new_high = (end for end in ends if end is not None)
    return _combined(p, Interval(low, high), q, Interval(new_low, new_high))


def _combined(p: float, left: Interval, q: float, right: Interval) -> Interval:
    """Return the interval of q - p, whose own intervals are *right* and *left*."""
    low = q - p - sqrt((q - right.low) ** 2 + (left.high - p) ** 2)
    high = q - p + sqrt((right.high - q) ** 2 + (p - left.low) ** 2)
    return Interval(max(-1.0, low), min(1.0, high))


def difference_of_means(
    before: Estimate, after: Estimate, *, confidence: float = 0.95
) -> Difference | None:
    """Return the difference of two ratios that are no shares, such as round trips per failure.

    Normal theory on the linearised variances, with Student's t on the Welch-Satterthwaite degrees
    of freedom of the conversations.

    Returns:
        The difference, or None where a cohort has fewer than two conversations.
    """
    p, q = before.value, after.value
    u, v = before.variance, after.variance
    if p is None or q is None or u is None or v is None:
        return None
    spread = sqrt(u + v)
    reach = critical_t(_degrees(before, after, u, v), confidence) * spread
    return Difference(
        value=q - p,
        low=q - p - reach,
        high=q - p + reach,
        smallest_detectable=_smallest(u + v, confidence),
        clustered=True,
        method="linearised variance over conversations, Student's t",
    )


def chance_of(
    compute: Callable[..., Difference | None], before: Estimate, after: Estimate
) -> float | None:
    """Return the two-sided p-value of no difference: the larger one of two.

    One is 1 - the confidence at which the interval just touches 0, so that a verdict never
    contradicts the interval beside which it stands. The other is that of pooled variance: far out,
    where one of many questions is decided, the variance of a small cohort by itself is too
    uncertain.

    Args:
        compute: `difference_of_rates` or `difference_of_means`.
        before: One cohort.
        after: The other cohort.

    Returns:
        The p-value, to a relative precision of one in a thousand and not below 1e-12; None where
        there is no difference.
    """
    low, high = -12.0, 0.0  # powers of ten
    for _ in range(15):
        middle = (low + high) / 2
        found = compute(before, after, confidence=1.0 - 10.0**middle)
        if found is None:
            return None
        if found.low <= 0.0 <= found.high:
            low = middle
        else:
            high = middle
    return max(float(10.0**high), _pooled(before, after))


def pooled_p_value(difference: float, variance: float, clusters: tuple[int, int]) -> float:
    """Return the two-sided p-value by Student's t on the conversations of the smaller cohort.

    Args:
        difference: after - before.
        variance: Of the difference, from the conversations of both cohorts together.
        clusters: Conversations of the cohorts.
    """
    from scipy.special import stdtr

    degrees = min(clusters) - 1
    if variance <= 0 or degrees < 1:
        return 1.0
    return 2.0 * float(stdtr(degrees, -abs(difference) / sqrt(variance)))


def _pooled(before: Estimate, after: Estimate) -> float:
    if before.value is None or after.value is None:
        return 1.0
    # A variance times n is what one unit of the denominator adds; equal units add alike.
    squares = sum((cohort.variance or 0.0) * cohort.n * cohort.n for cohort in (before, after))
    return pooled_p_value(
        after.value - before.value,
        squares / (before.n * after.n),
        (before.clusters, after.clusters),
    )


def _degrees(before: Estimate, after: Estimate, u: float, v: float) -> float:
    if u + v == 0:
        return float(before.clusters + after.clusters - 2)
    return (u + v) ** 2 / (u * u / max(1, before.clusters - 1) + v * v / max(1, after.clusters - 1))


def _design_effect(cohort: Estimate) -> float | None:
    """Return how much wider the clusters make the variance; None where it cannot be known."""
    ratio, variance = cohort.value, cohort.variance
    if ratio is None or variance is None or not ROUNDING < ratio < 1.0 - ROUNDING:
        return None
    # Below 1 would claim more than as many independent calls; a chance result at small numbers.
    effect = variance * cohort.n / (ratio * (1.0 - ratio))
    return effect if effect > 1.0 + ROUNDING else 1.0


def _effective_interval(cohort: Estimate, effect: float, confidence: float) -> Interval:
    assert cohort.value is not None, "the caller has looked"
    return effective_interval(
        cohort.value, cohort.n, effect, cohort.clusters - 1, confidence=confidence
    )


def _spread(cohort: Estimate, effect: float, share: float) -> float:
    return effect * share * (1 - share) / cohort.n


def _smallest(variance: float, confidence: float) -> float | None:
    if variance <= 0:
        return None
    return (critical_value(confidence) + NormalDist().inv_cdf(POWER)) * sqrt(variance)
