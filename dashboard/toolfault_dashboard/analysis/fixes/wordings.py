"""Messages after which the model fails again more often than after the others, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

__all__ = ["Gain", "gains"]

FEWEST_ASKED = 10
"""Failures with a message below which nothing is said about its wording."""

LEVEL = 0.05
"""Share of lists in which any message may be listed by chance."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What each failure with a message would gain if it helped as often as the other messages.

    Attributes:
        value: Usual share of failures that the next call fixed, less that of this message.
        error: Its standard error.
    """

    value: float
    error: float


def gains(counts: Sequence[tuple[int, int]]) -> list[Gain | None]:
    """Say of every message whether it helps less often than all others together.

    Each is tested against the others (R. A. Fisher's exact test, one-sided); the p-values are
    corrected for as many messages as are tested (S. Holm, Scand. J. Statist. 6 (1979) 65-70). The
    standard error is that of A. Agresti and B. Caffo (Amer. Statist. 54 (2000) 280-288), which is
    not 0 where nothing or everything was fixed.

    Args:
        counts: Of each message the failures that the next call fixed, and those that it answered.

    Returns:
        The gain of each message that helps less often; None for the others.
    """
    from scipy.stats import hypergeom

    fixed, answered = (sum(each[part] for each in counts) for part in (0, 1))
    places = [
        place
        for place, (_, own) in enumerate(counts)
        if own >= FEWEST_ASKED and answered - own >= FEWEST_ASKED
    ]
    own_fixes, own_answers = ([counts[place][part] for place in places] for part in (0, 1))
    chances = hypergeom.cdf(own_fixes, answered, fixed, own_answers).tolist() if places else []
    tested = sorted(zip(chances, places, strict=True))
    found: list[Gain | None] = [None] * len(counts)
    for rank, (p, place) in enumerate(tested):
        if p * (len(tested) - rank) > LEVEL:
            break
        own_fixed, own = counts[place]
        others, their_fixed = answered - own, fixed - own_fixed
        error = sqrt(_variance(own_fixed, own) + _variance(their_fixed, others))
        found[place] = Gain(their_fixed / others - own_fixed / own, error)
    return found


def _variance(fixed: int, of: int) -> float:
    share = (fixed + 1) / (of + 2)
    return share * (1 - share) / (of + 2)
