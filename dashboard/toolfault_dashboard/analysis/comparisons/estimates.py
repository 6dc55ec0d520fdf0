"""Estimates of a metric in one cohort: as it is, and at a mix that both cohorts share.

Between two cohorts the mix of tools, models and agents shifts, and a shift towards an easier tool
looks like an improvement. At equal mix it does not: strata are weighted alike in both cohorts, with
the weights of Mantel and Haenszel, which are best for the difference and bear sparse strata.

Source: S. Greenland and J. M. Robins, Estimation of a common effect parameter from sparse
follow-up data, Biometrics 41 (1985) 55-68 (weights n1 n0 / (n1 + n0) of the risk difference).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from toolfault_dashboard.analysis.comparisons.cells import Columns, Floats, Numbers, Stratum, added
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort, Folded
from toolfault_dashboard.analysis.comparisons.metrics import Metric
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


_NOTHING: Final = Estimate(value=None, variance=None, clusters=0, n=0)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What every estimate of one metric of one cohort begins with.

    Only cells that have any numerator or denominator are kept: of most metrics few do, and the
    others change neither a ratio nor its variance.

    Attributes:
        numerator: Of each cell.
        denominator: Of each cell.
        conversation: Position of its conversation among those of the cohort.
        conversations: How many the cohort has.
        stratum: Position of its stratum in ``strata``.
        strata: Those of the cells in their order, then those that only folded calls have.
        above: Sum of the numerators of each stratum.
        below: Sum of the denominators, folded calls included where they belong to it.
        of_conversations: Numerator and denominator of each conversation.
        clusters: Conversations that have a cell.
    """

    numerator: Floats
    denominator: Floats
    conversation: Numbers
    conversations: int
    stratum: Numbers
    strata: tuple[Stratum, ...]
    above: Floats
    below: Floats
    of_conversations: tuple[Floats, Floats]
    clusters: int


def crude(metric: Metric, cohort: Cohort) -> Estimate:
    """Return the metric of a cohort as it is: all strata as one, see `standardised`."""
    terms = _terms(metric, cohort)
    above, below = float(terms.above.sum()), float(terms.below.sum())
    if below <= 0:
        return _NOTHING
    ratio = above / below
    part, whole = terms.of_conversations
    scores = (part - ratio * whole) / below
    squares, clusters = float((scores * scores).sum()), terms.clusters
    if metric.of_calls:  # folded conversations have only successes
        squares += (ratio / below) ** 2 * cohort.folded.calls_squared
        clusters += cohort.folded.conversations
    return _estimate(metric, cohort, ratio, squares, clusters, (above, below))


def standardised(metric: Metric, cohort: Cohort, weights: Mapping[Stratum, float]) -> Estimate:
    """Return the weighted mean of the ratios r_s of a cohort's strata, and its variance.

    The linearised variance is C / (C - 1) times the sum over the C conversations of z ** 2, where
    z = sum over strata of w_s / N_s * (numerator - r_s * denominator): W. G. Cochran, Sampling
    Techniques, 3rd ed. (1977), sections 6.3 and 9A.2, with weights w_s taken as fixed.
    """
    terms = _terms(metric, cohort)
    weight = np.asarray([weights.get(stratum, 0.0) for stratum in terms.strata])
    counts = (weight > 0) & (terms.below > 0)
    if not counts.any():
        return _NOTHING
    # A stratum without a weight is scaled by 0; its conversations count where they have another.
    below = np.where(counts, terms.below, 1.0)
    ratio, scale = (np.where(counts, each / below, 0.0) for each in (terms.above, weight))
    of_part, of_whole = scale[terms.stratum], (scale * ratio)[terms.stratum]
    numbers = of_part * terms.numerator - of_whole * terms.denominator
    scores = added(terms.conversation, numbers, terms.conversations)
    squares, clusters = float((scores * scores).sum()), terms.clusters
    if not counts.all():
        has_any = added(terms.conversation, counts[terms.stratum], terms.conversations)
        clusters = int((has_any > 0).sum())
    if metric.of_calls:
        # Folded conversations have only successes: z = - sum(scale_s r_s n_s).
        factors = dict(zip(terms.strata, (scale * ratio).tolist(), strict=True))
        squares += _squares_of_folded(factors, cohort.folded)
        clusters += cohort.folded.conversations
    sums = float(terms.above[counts].sum()), float(terms.below[counts].sum())
    chosen = {key for key, own in zip(terms.strata, counts.tolist(), strict=True) if own}
    value = float((weight * ratio).sum())
    return _estimate(metric, cohort, value, squares, clusters, sums, chosen)


def shared_weights(metric: Metric, before: Cohort, after: Cohort) -> dict[Stratum, float]:
    """Return the weight of every stratum that both cohorts have; they add up to 1."""
    left, right = (
        dict(zip(terms.strata, terms.below.tolist(), strict=True))
        for terms in (_terms(metric, before), _terms(metric, after))
    )
    found = {
        key: a * b / (a + b)
        for key, a in sorted(left.items())
        if a > 0 and (b := right.get(key, 0.0)) > 0
    }
    total = sum(found.values())
    return {key: weight / total for key, weight in found.items()} if total else {}


def _terms(metric: Metric, cohort: Cohort) -> _Terms:
    found: _Terms | None = cohort.known.get(metric.name)
    if found is None:
        cohort.known.clear()  # metrics come one by one; of all it would be as much as the cells are
        found = cohort.known[metric.name] = _worked_out(metric, cohort)
    return found


def _worked_out(metric: Metric, cohort: Cohort) -> _Terms:
    places: dict[Stratum, int] = {}
    found = [
        _kept(metric, block, np.asarray([places.setdefault(s, len(places)) for s in block.strata]))
        for block in cohort.blocks
    ]
    numerator, denominator, conversation, stratum = map(np.concatenate, zip(*found, strict=True))
    folded = cohort.folded.calls if metric.of_calls else {}
    of_folded = [places.setdefault(each, len(places)) for each in folded]
    below = added(stratum, denominator, len(places))
    below[of_folded] += list(folded.values())
    return _Terms(
        numerator,
        denominator,
        conversation,
        cohort.columns.conversations,
        stratum,
        tuple(places),
        added(stratum, numerator, len(places)),
        below,
        (
            added(conversation, numerator, cohort.columns.conversations),
            added(conversation, denominator, cohort.columns.conversations),
        ),
        int(np.count_nonzero(np.bincount(conversation))),
    )


def _kept(
    metric: Metric, cells: Columns, places: Numbers
) -> tuple[Floats, Floats, Numbers, Numbers]:
    numerator, denominator = metric.numerator(cells), metric.denominator(cells)
    kept = np.flatnonzero((numerator != 0) | (denominator != 0))
    stratum = places[cells.stratum[kept]] if len(kept) else kept
    return numerator[kept], denominator[kept], cells.conversation[kept], stratum


def _estimate(
    metric: Metric,
    cohort: Cohort,
    value: float,
    squares: float,
    clusters: int,
    sums: tuple[float, float],
    chosen: Set[Stratum] | None = None,
) -> Estimate:
    """Return the estimate with its variance and what it rests on.

    Args:
        metric: Of what.
        cohort: Of which cohort.
        value: The ratio.
        squares: Sum over conversations of the squared scores.
        clusters: Conversations that count.
        sums: Numerator and denominator.
        chosen: Strata that count; None for all.
    """
    variance = squares * clusters / (clusters - 1) if clusters >= 2 else None
    above, n = sums
    rows: int | None = None
    if cohort.rows is not None and cohort.squares is not None:
        own, squared = (_sums(metric, each, chosen) for each in (cohort.rows, cohort.squares))
        n = equivalent(Amount(int(own[0]), above, squared[0]), Amount(int(own[1]), n, squared[1]))
        rows = int(own[1])
    return Estimate(value=value, variance=variance, clusters=clusters, n=n, rows=rows)


def _squares_of_folded(factors: Mapping[Stratum, float], folded: Folded) -> float:
    """Return the sum over folded conversations of (sum over strata of factor * calls) ** 2.

    Senders count the squares of the calls of each tool, and those of all calls together. The
    squares of all calls exceed the sum over tools by the products of two tools; of these the sum is
    known, and it is divided among pairs of tools as if the calls of any two were equally correlated
    within a model and agent. Where a sender counted no squares by tool, every call is taken to be
    where it weighs most.
    """
    heaviest = max(factors.values(), default=0.0)
    calls: dict[str, float] = {}
    for (tool, *_), own in folded.calls.items():
        calls[tool] = calls.get(tool, 0.0) + own
    squares = {tool: folded.of_tools.get(tool, (0, 0.0))[1] for tool in calls}
    if not all(squares.values()):
        return heaviest * heaviest * folded.calls_squared
    alone = with_factor = roots = with_factors = 0.0
    groups: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for stratum, own in folded.calls.items():
        tool, *group = stratum
        squared = squares[tool] * own / calls[tool]
        groups.setdefault(tuple(group), []).append((factors.get(stratum, 0.0), squared))
    for pairs in groups.values():
        alone += sum(squared for _, squared in pairs)
        with_factor += sum(factor * factor * squared for factor, squared in pairs)
        roots += sum(sqrt(squared) for _, squared in pairs) ** 2
        with_factors += sum(factor * sqrt(squared) for factor, squared in pairs) ** 2
    products = roots - alone  # of two tools, if their calls went up and down together
    share = (folded.calls_squared - alone) / products if products > 0 else 0.0
    # What the squares by tool cannot explain, since some were not counted, is where it weighs most.
    unexplained = max(0.0, folded.calls_squared - max(roots, alone))
    return (
        with_factor
        + min(1.0, max(0.0, share)) * (with_factors - with_factor)
        + unexplained * heaviest * heaviest
    )


def _sums(metric: Metric, cohort: Cohort, chosen: Set[Stratum] | None) -> tuple[float, float]:
    """Return numerator and denominator of the *chosen* strata, or of all."""
    terms = _terms(metric, cohort)
    counts = [chosen is None or stratum in chosen for stratum in terms.strata]
    return float(terms.above[counts].sum()), float(terms.below[counts].sum())
