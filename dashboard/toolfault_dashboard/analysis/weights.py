"""What sampled rows stand for: counts that carry their weight.

A call that was sent at rate r stands for 1 / r calls (D. G. Horvitz and D. J. Thompson, A
generalization of sampling without replacement from a finite universe, JASA 47 (1952) 663-685); a
ratio of two such sums is Hajek's estimate. Its variance is linearised: with x = 1 for what is
counted and 0 else, and weights w, it is the sum of (w (x - p)) ** 2 over the rows divided by the
squared sum of w (C.-E. Sarndal, B. Swensson and J. Wretman, Model Assisted Survey Sampling (1992),
5.5 to 5.7). The equivalent number of independent, unsampled calls is p (1 - p) over that variance.

L. Kish's effective size (Survey Sampling, 1965), the squared sum of the weights over the sum of
their squares, is right only where weights have nothing to do with x. Here they have: failures are
sent at one rate and successes at another, and of rare failures that are sampled it would claim
several times too many. It is used where p is 0 or 1, since all rows are then of one kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from typing import NamedTuple

from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.rates import Rate, inflation, rate, wilson_share

__all__ = [
    "Amount",
    "Amounts",
    "calls_per_trial",
    "equivalent",
    "rate_within",
    "total",
    "weighted_rate",
    "whole",
]


class Amount(NamedTuple):
    """A count of rows, what they stand for, and the sum of their squared weights.

    All three are the same integer where nothing was sampled. A named tuple, since thousands are
    added up for one page.
    """

    rows: int = 0
    weight: float = 0
    squares: float = 0

    def __add__(self, other: Amount) -> Amount:  # type: ignore[override]
        return Amount(
            self.rows + other.rows, self.weight + other.weight, self.squares + other.squares
        )

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            self.rows - other.rows, self.weight - other.weight, self.squares - other.squares
        )

    @property
    def whole(self) -> int:
        """What the rows stand for, in whole calls."""
        return whole(self.weight)

    @property
    def sampled(self) -> bool:
        """Whether any row stands for more than itself."""
        return self.weight != self.rows


class Amounts(dict[str, Amount]):
    """Amounts by name; a name that is not there has none."""

    def __missing__(self, name: str) -> Amount:
        return Amount()

    def add(self, name: str, amount: Amount) -> None:
        """Add *amount* to what *name* has."""
        self[name] = self[name] + amount

    def total(self) -> Amount:
        """Return the sum over all names."""
        return total(self.values())


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of *amounts*."""
    return sum(amounts, Amount())


def whole(number: float) -> int:
    """Round an estimate to whole calls, halves up."""
    return number if isinstance(number, int) else floor(number + 0.5)


def weighted_rate(part: Amount, of: Amount, moments: Moments | None = None) -> Rate:
    """Return the share that *part* has of *of*, with its interval over conversations.

    ``count`` and ``n`` are the rows that are there. Without *moments* each call counts as
    independent: the interval is Wilson's at the equivalent n.

    Args:
        part: What is counted, contained in *of* (or reported before it: *of* is then raised).
        of: All of it.
        moments: Of the same over the conversations.
    """
    if of.weight < part.weight:
        of = part
    if of.weight <= 0:
        return rate(0, 0)
    share = min(1.0, part.weight / of.weight)
    interval = wilson_share(share, of.weight / calls_per_trial(part, of, moments))
    rows = max(of.rows, part.rows)
    weighed = part.sampled or of.sampled
    clusters = moments.clusters if moments is not None and moments.clusters > 1 else None
    return Rate(part.rows, rows, share, interval.low, interval.high, weighed, clusters)


def calls_per_trial(part: Amount, of: Amount, moments: Moments | None = None) -> float:
    """Return how many of the calls *of* tell as much as one independent, unsampled call.

    Args:
        part: What is counted, contained in *of*.
        of: All of it, more than nothing.
        moments: Of the same over the conversations; None counts each call as independent.
    """
    share, n = min(1.0, part.weight / of.weight), equivalent(part, of)
    effect = None if moments is None else moments.design_effect(share, of.weight, n)
    if moments is None or effect is None:
        return of.weight / n
    degrees = moments.degrees(part.weight, of.weight)
    most = moments.most_effect(of.weight, n)
    return of.weight / n * inflation(effect, degrees, most=most)


def rate_within(failures: float, calls: float, per_trial: float, *, weighed: bool = False) -> Rate:
    """Return the failure rate of a part of a window, with its interval.

    How alike the calls of one conversation are is taken from the whole window: a part of it, an
    hour or a day, mostly has too few conversations to tell. ``count`` and ``n`` are the calls that
    sampled ones stand for, in whole calls, as the chart counts them.

    Args:
        failures: Failures in the part, not rounded.
        calls: Calls in the part; raised to its failures, which may be reported before them.
        per_trial: `calls_per_trial` of the window.
        weighed: Whether calls were sampled.
    """
    calls = max(calls, failures)
    if not calls:
        return rate(0, 0)
    interval = wilson_share(failures / calls, calls / per_trial)
    numbers = whole(failures), whole(calls)
    return Rate(*numbers, failures / calls, interval.low, interval.high, weighed)


def equivalent(part: Amount, of: Amount) -> float:
    """Return how many independent unsampled calls would tell as much about part / of."""
    if not part.sampled and not of.sampled:
        return of.weight
    share = part.weight / of.weight
    variance = part.squares * (1 - 2 * share) + share * share * of.squares
    if not 0.0 < share < 1.0 or variance <= 0:
        # So many rows have at least these squares; rollups round them, so that what is left of a
        # difference may be less than nothing.
        return of.weight * of.weight / max(of.squares, of.weight * of.weight / max(1, of.rows))
    return share * (1 - share) * of.weight * of.weight / variance
