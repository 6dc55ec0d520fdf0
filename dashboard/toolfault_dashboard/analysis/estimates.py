"""Estimates of a metric on one side: as it is, and at a mix that both sides share.

Between two sides the mix of tools, models and agents shifts, and a shift towards an easier tool
looks like an improvement. At equal mix it does not: strata are weighted alike on both sides, with
the weights of Mantel and Haenszel, which are best for the difference and bear sparse strata.

Source: S. Greenland and J. M. Robins, Estimation of a common effect parameter from sparse
follow-up data, Biometrics 41 (1985) 55-68 (weights n1 n0 / (n1 + n0) of the risk difference).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from toolfault_dashboard.analysis.metrics import Metric
from toolfault_dashboard.analysis.sides import SideData, Stratum
from toolfault_dashboard.analysis.weights import Amount, equivalent

__all__ = ["Estimate", "crude", "shared_weights", "standardised"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio with its variance over conversations.

    Attributes:
        value: The ratio; None where its denominator is nothing.
        variance: Linearised over conversations; None below two of them.
        clusters: Conversations that count.
        n: Denominator: calls, operations, chains or failures; of sampled ones, as many as would
            tell as much if they were independent and none was left out (`weights.equivalent`).
        rows: Rows of the denominator that are there; None where that is n.
    """

    value: float | None
    variance: float | None
    clusters: int
    n: float
    rows: int | None = None

    @property
    def counted(self) -> int:
        """Rows of the denominator that are there."""
        return int(self.n) if self.rows is None else self.rows

    @property
    def standard_error(self) -> float | None:
        """Square root of the variance."""
        return None if self.variance is None else sqrt(self.variance)


@dataclass(slots=True)
class _Sums:
    """Numerator and denominator of one stratum on one side."""

    numerator: float = 0.0
    denominator: float = 0.0

    @property
    def ratio(self) -> float:
        return self.numerator / self.denominator if self.denominator else 0.0


def crude(metric: Metric, side: SideData) -> Estimate:
    """Return the metric of a side as it is."""
    everything: Stratum = ("", "", "")
    return _weighted(metric, side, {everything: 1.0}, merged=True)


def standardised(metric: Metric, side: SideData, weights: Mapping[Stratum, float]) -> Estimate:
    """Return the metric of a side at the mix *weights*."""
    return _weighted(metric, side, weights, merged=False)


def shared_weights(metric: Metric, before: SideData, after: SideData) -> dict[Stratum, float]:
    """Return the weight of every stratum that both sides have; they add up to 1."""
    left, right = _by_stratum(metric, before), _by_stratum(metric, after)
    found: dict[Stratum, float] = {}
    for key in left.keys() & right.keys():
        a, b = left[key].denominator, right[key].denominator
        if a > 0 and b > 0:
            found[key] = a * b / (a + b)
    total = sum(found.values())
    return {key: weight / total for key, weight in found.items()} if total else {}


def _by_stratum(metric: Metric, side: SideData, *, merged: bool = False) -> dict[Stratum, _Sums]:
    found: defaultdict[Stratum, _Sums] = defaultdict(_Sums)
    cells = side.columns
    numerators = cells.by_stratum(metric.numerator(cells))
    denominators = cells.by_stratum(metric.denominator(cells))
    for stratum, above, below in zip(cells.strata, numerators, denominators, strict=True):
        sums = found[("", "", "") if merged else stratum]
        sums.numerator += above
        sums.denominator += below
    if metric.of_calls:
        for stratum, calls in side.folded.calls.items():
            found[("", "", "") if merged else stratum].denominator += calls
    return found


def _added(strata: Mapping[Stratum, _Sums], keys: Iterable[Stratum]) -> _Sums:
    own = [strata[key] for key in keys if key in strata]
    return _Sums(sum(each.numerator for each in own), sum(each.denominator for each in own))


def _weighted(
    metric: Metric, side: SideData, weights: Mapping[Stratum, float], *, merged: bool
) -> Estimate:
    """Return the weighted mean of the strata's ratios r_s, and its variance.

    The linearised variance is C / (C - 1) times the sum over the C conversations of z ** 2, where
    z = sum over strata of w_s / N_s * (numerator - r_s * denominator): W. G. Cochran, Sampling
    Techniques, 3rd ed. (1977), sections 6.3 and 9A.2, with weights w_s taken as fixed.
    """
    strata = _by_stratum(metric, side, merged=merged)
    scale = {
        key: weight / strata[key].denominator
        for key, weight in weights.items()
        if key in strata and strata[key].denominator > 0
    }
    if not scale:
        return Estimate(value=None, variance=None, clusters=0, n=0)
    value = sum(weights[key] * strata[key].ratio for key in scale)
    cells = side.columns
    keys: list[Stratum] = [("", "", "")] * len(cells.strata) if merged else list(cells.strata)
    # A stratum without a weight is scaled by 0; its conversations count where they have another.
    ratios = cells.of_strata([strata[key].ratio for key in keys])
    weighted = cells.of_strata([scale.get(key, 0.0) for key in keys])
    counted = cells.of_strata([float(key in scale) for key in keys])
    numerator, denominator = metric.numerator(cells), metric.denominator(cells)
    scores = cells.by_conversation(weighted * (numerator - ratios * denominator))
    has_any = cells.by_conversation(counted * ((numerator != 0) | (denominator != 0)))
    total = float((scores * scores).sum())
    clusters = int((has_any > 0).sum())
    if metric.of_calls:
        # Folded conversations have only successes: z = - sum(scale_s r_s n_s). Their calls per
        # stratum are not known together, so each is taken to be where it weighs most.
        heaviest = max((scale[key] * strata[key].ratio for key in scale), default=0.0)
        total += heaviest * heaviest * side.folded.calls_squared
        clusters += side.folded.conversations
    variance = total * clusters / (clusters - 1) if clusters >= 2 else None
    n, rows = sum(strata[key].denominator for key in scale), None
    if side.rows is not None and side.squares is not None:
        views = [_by_stratum(metric, each, merged=merged) for each in (side.rows, side.squares)]
        own, squared = (_added(each, scale) for each in views)
        whole = _added(strata, scale)
        n = equivalent(
            Amount(int(own.numerator), whole.numerator, squared.numerator),
            Amount(int(own.denominator), whole.denominator, squared.denominator),
        )
        rows = int(own.denominator)
    return Estimate(value=value, variance=variance, clusters=clusters, n=n, rows=rows)
