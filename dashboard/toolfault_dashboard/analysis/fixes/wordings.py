"""Messages after which the model fails again more often than after the others, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

__all__ = ["Answers", "Gain", "gains"]

FEWEST_ASKED = 10
"""Failures with a message below which nothing is said about its wording."""

LEVEL = 0.05
"""Share of lists in which any message may be listed by chance."""


class Answers(NamedTuple):
    """What came of the failures whose model was told one message.

    Attributes:
        fixed: The next call of the tool succeeded.
        answered: There was a next call of the tool.
        failures: All of them.
    """

    fixed: int
    answered: int
    failures: int


@dataclass(frozen=True, slots=True)
class Gain:
    """What a message would save if it helped as often as the other messages.

    Attributes:
        value: Calls, for each failure with it that was answered.
        error: Its standard error.
    """

    value: float
    error: float


def gains(counts: Sequence[Answers]) -> list[Gain | None]:
    """Say of every message whether it helps less often than all others together, and what it costs.

    Each is tested against the others (R. A. Fisher's exact test, one-sided); the p-values are
    corrected for as many messages as are tested (S. Holm, Scand. J. Statist. 6 (1979) 65-70). The
    standard error is that of A. Agresti and B. Caffo (Amer. Statist. 54 (2000) 280-288), which is
    not 0 where nothing or everything was fixed, carried over to calls by the delta method.

    A failure that the next call fixes saves more than that call: what would have followed its
    failure is saved, too. After other messages a share a of failures is answered, and of these q
    succeed. So x = a (1 + (1 - q) x) calls follow a failure, which is a / (1 - a (1 - q)). With p
    the share that this message fixes, (q - p) x calls are saved for each of its answered failures,
    whatever the messages of the failures after it are.

    Returns:
        The gain of each message that helps less often; None for the others.
    """
    from scipy.stats import hypergeom

    every = _added(counts)
    places = [
        place
        for place, each in enumerate(counts)
        if each.answered >= FEWEST_ASKED and every.answered - each.answered >= FEWEST_ASKED
    ]
    fixed = [counts[place].fixed for place in places]
    answered = [counts[place].answered for place in places]
    tested = hypergeom.cdf(fixed, every.answered, every.fixed, answered).tolist() if places else []
    found: list[Gain | None] = [None] * len(counts)
    for rank, (p, place) in enumerate(sorted(zip(tested, places, strict=True))):
        if p * (len(places) - rank) > LEVEL:
            break
        own = counts[place]
        others = Answers(*(of_all - of_it for of_all, of_it in zip(every, own, strict=True)))
        found[place] = _gain(own, others)
    return found


def _added(counts: Sequence[Answers]) -> Answers:
    return Answers(*(sum(each) for each in zip(*counts, Answers(0, 0, 0), strict=True)))


def _gain(own: Answers, others: Answers) -> Gain:
    usual = others.fixed / others.answered
    more = usual - own.fixed / own.answered
    goes_on = others.answered / others.failures
    calls = goes_on / (1 - goes_on * (1 - usual))
    variance = _variance(own) * calls**2 + _variance(others) * (calls - more * calls**2) ** 2
    return Gain(more * calls, sqrt(variance))


def _variance(counts: Answers) -> float:
    share = (counts.fixed + 1) / (counts.answered + 2)
    return share * (1 - share) / (counts.answered + 2)
