"""Variance reduction by what a conversation did before the trial began (CUPED).

A conversation that goes on for days (a thread, a ticket, a customer) may have failed much or little
before it got its arm. The arm cannot have caused that, so the part of the difference that it
explains is noise and is taken away: the effect is the same on average, its interval narrower.

Each ratio is linearised, z = (numerator - R * denominator) * n / sum(denominator), and regressed on
w, the failures before the trial beyond those expected of as many calls. Conversations without an
earlier call have w = 0: they neither help nor harm.

Source: A. Deng, Y. Xu, R. Kohavi, T. Walker, Improving the sensitivity of online controlled
experiments by utilizing pre-experiment data, WSDM 2013; for ratios A. Deng, U. Knoblich, J. Lu,
Applying the delta method in metric analytics, KDD 2018, section 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.comparisons.metrics import Metric

__all__ = ["Adjusted", "Earlier", "adjusted"]

Earlier = Mapping[str, tuple[int, int]]
"""Conversation -> its failures and calls before it got its arm."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Both arms with what the time before the trial explains taken away."""

    control: Estimate
    treatment: Estimate
    conversations: int  # that had a call before the trial
    variance_removed: float  # share of the variance of the difference


@dataclass(slots=True)
class _Arm:
    """The conversations of one arm: value of the metric, and (z, w) of each."""

    ratio: float
    n: float  # denominator of the metric
    units: float  # conversations
    pairs: list[tuple[float, float]]
    folded_squares: float  # sum of z ** 2 of conversations that are only counted; their w is 0

    @property
    def mean(self) -> float:
        return sum(w for _, w in self.pairs) / self.units

    @property
    def variation(self) -> float:
        """Sum of (w - mean) ** 2 over all conversations, the counted ones included."""
        return sum(w * w for _, w in self.pairs) - self.units * self.mean**2

    @property
    def covariation(self) -> float:
        # z adds up to 0, so the mean of w needs no taking away.
        return sum(z * w for z, w in self.pairs)

    def variance(self, slope: float) -> float:
        """Variance of the arm's value with *slope* times w taken away."""
        squares = sum(z * z for z, _ in self.pairs) + self.folded_squares
        rest = squares - 2 * slope * self.covariation + slope**2 * self.variation
        return max(0.0, rest) / (self.units * (self.units - 1))


def adjusted(
    metric: Metric, control: Cohort, treatment: Cohort, earlier: Earlier
) -> Adjusted | None:
    """Adjust *metric* of both arms by what their conversations did before the trial.

    Args:
        metric: What is compared.
        control: One arm.
        treatment: The other arm.
        earlier: Of conversations of either arm; others are left out.

    Returns:
        None where no conversation was there before, or an arm has no variance.
    """
    if not earlier:
        return None  # the usual case, in which nothing need be walked
    known = {
        key for cohort in (control, treatment) for key in _conversations(cohort)
    } & earlier.keys()
    failures = sum(earlier[key][0] for key in known)
    calls = sum(earlier[key][1] for key in known)
    if not calls:
        return None
    usual = failures / calls
    weights = {key: earlier[key][0] - usual * earlier[key][1] for key in known}
    arms = [_arm(metric, cohort, weights) for cohort in (control, treatment)]
    left, right = arms
    if left is None or right is None:
        return None
    variation = left.variation + right.variation
    if variation <= 0:
        return None
    slope = (left.covariation + right.covariation) / variation
    before = left.variance(0.0) + right.variance(0.0)
    after = left.variance(slope) + right.variance(slope)
    if before <= 0:
        return None
    middle = (left.mean * left.units + right.mean * right.units) / (left.units + right.units)
    return Adjusted(
        control=_estimate(left, slope, middle),
        treatment=_estimate(right, slope, middle),
        conversations=len(known),
        variance_removed=1.0 - after / before,
    )


def _conversations(cohort: Cohort) -> set[str]:
    return {cell.conversation for block in cohort.blocks for cell in block}


def _arm(metric: Metric, cohort: Cohort, weights: Mapping[str, float]) -> _Arm | None:
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for cell in chain.from_iterable(cohort.blocks):
        own = sums[cell.conversation]
        own[0] += metric.numerator(cell)
        own[1] += metric.denominator(cell)
    folded = cohort.folded if metric.of_calls else None
    n = sum(own[1] for own in sums.values()) + (folded.total if folded else 0)
    units = len(sums) + (folded.conversations if folded else 0)
    if n <= 0 or units < 2:
        return None
    ratio = sum(own[0] for own in sums.values()) / n
    scale = units / n
    return _Arm(
        ratio=ratio,
        n=n,
        units=units,
        pairs=[
            ((own[0] - ratio * own[1]) * scale, weights.get(key, 0.0)) for key, own in sums.items()
        ],
        folded_squares=(ratio * scale) ** 2 * (folded.calls_squared if folded else 0.0),
    )


def _estimate(arm: _Arm, slope: float, middle: float) -> Estimate:
    return Estimate(
        value=arm.ratio - slope * (arm.mean - middle),
        variance=arm.variance(slope),
        clusters=int(arm.units),
        n=arm.n,
    )
