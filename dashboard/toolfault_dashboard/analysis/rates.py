"""Rates that carry their n and their interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt
from statistics import NormalDist

__all__ = [
    "Interval",
    "Rate",
    "critical_t",
    "critical_value",
    "effective_interval",
    "inflation",
    "rate",
    "wilson",
    "wilson_share",
]


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``n``; value and interval are None where n is 0.

    Where calls were sampled, ``count`` and ``n`` are the rows that are there (over time: what they
    stand for); value and interval are those of the calls that they stand for.

    The interval is that of `clusters`, conversations whose calls are not independent; where it is
    None they are not known, and each call counts as independent.
    """

    count: int
    n: int
    value: float | None
    low: float | None
    high: float | None
    weighed: bool = False  # rows were sampled, each counts 1 / its rate
    clusters: int | None = None


@lru_cache(maxsize=64)
def critical_value(confidence: float) -> float:
    """Return z such that a standard normal lies within +-z with probability *confidence*."""
    if not 0.0 < confidence < 1.0:
        raise ValueError("The confidence must lie between 0 and 1, for example 0.95.")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson(count: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of a proportion, without continuity correction.

    Closed form, since a page shows hundreds of rates; a test holds it equal to
    ``scipy.stats.binomtest(count, n).proportion_ci(method="wilson")``.

    Args:
        count: Observed events, 0 <= count <= n.
        n: Trials, at least 1.
        confidence: Two-sided coverage.

    Raises:
        ValueError: count and n are no proportion.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        JASA 22 (1927) 209-212.
    """
    if n < 1 or not 0 <= count <= n:
        raise ValueError("A proportion needs 0 <= count <= n and n >= 1.")
    return wilson_share(count / n, n, confidence=confidence)


def wilson_share(share: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Return the Wilson score interval of a share observed on *n* trials, n need not be whole.

    An effective sample size (fewer independent trials than calls) gives a fractional n.
    """
    z = critical_value(confidence)
    centre = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At 0 and at 1 the end is exact; rounding must not push it a hair inside or outside.
    low = 0.0 if share == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if share == 1 else min(1.0, (centre + spread) / scale)
    return Interval(low, high)


@lru_cache(maxsize=4096)
def critical_t(degrees: float, confidence: float) -> float:
    """Return t such that Student's t lies within +-t with probability *confidence*."""
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, degrees), 0.5 + confidence / 2))


def inflation(
    design_effect: float, degrees: float, *, most: float = inf, confidence: float = 0.95
) -> float:
    """Return how many calls that come in conversations tell as much as one independent call.

    It is the design effect times (t / z) ** 2, with Student's t on *degrees* of freedom, since the
    design effect is an estimate itself. However uncertain the estimate is, the result is at most
    *most*: one failure in a hundred conversations says next to nothing of how alike calls are, but
    much of the share.

    Source: E. L. Korn and B. I. Graubard, Confidence intervals for proportions with small expected
        number of positive counts, Survey Methodology 24 (1998) 193-201; N. Dean and M. Pagano,
        J. Survey Stat. Methodol. 3 (2015) 484-503.
    """
    z = critical_value(confidence)
    t = critical_t(degrees, confidence) if design_effect > 1.0 else z
    return min(design_effect * (t / z) ** 2, max(design_effect, most))


def effective_interval(
    share: float,
    n: float,
    design_effect: float,
    degrees: float,
    *,
    most: float = inf,
    confidence: float = 0.95,
) -> Interval:
    """Return the Wilson interval of a share of *n* calls that come in conversations.

    It is that of as many independent calls as tell as much: n / `inflation`.
    """
    effect = inflation(design_effect, degrees, most=most, confidence=confidence)
    return wilson_share(share, n / effect, confidence=confidence)


def rate(count: int, n: int, *, confidence: float = 0.95) -> Rate:
    """Return the rate *count* of *n* with its Wilson interval.

    A numerator above its denominator is possible when only the failures of a call were reported
    (its success counter is still on the way): n is then raised to the count.
    """
    if n <= 0 and count <= 0:
        return Rate(count=0, n=0, value=None, low=None, high=None)
    n = max(n, count)
    interval = wilson(count, n, confidence=confidence)
    return Rate(count=count, n=n, value=count / n, low=interval.low, high=interval.high)
