"""How long still to go: conversations until an always-valid interval would leave zero out.

An honest guess, not a promise: it takes the difference seen so far for the true one. Who wants to
know beforehand how large a trial must be asks for the smallest difference worth having instead.
"""

from __future__ import annotations

from math import inf, sqrt

from toolfault_dashboard.analysis.comparisons.sequences import stretch
from toolfault_dashboard.analysis.rates import Interval

__all__ = ["FARTHEST", "conversations_to_go"]

FARTHEST = 1_000
"""Times as many conversations as now; beyond that no guess is worth making."""


def conversations_to_go(
    difference: float, always: Interval, conversations: int, *, confidence: float = 0.95
) -> int | None:
    """Return how many more conversations it would take; 0 if decided, None if far out of reach.

    The standard error falls with the square root of the conversations, the stretch of the sequence
    (``sequences.stretch``) grows slowly; the smallest sufficient number is found by bisection.

    Args:
        difference: Difference seen so far.
        always: Its always-valid interval.
        conversations: Conversations so far, both arms together.
        confidence: Coverage of the interval.
    """
    if not always.low <= 0.0 <= always.high:
        return 0
    reach = (always.high - always.low) / 2.0
    if conversations < 1 or difference == 0.0 or reach in {0.0, inf}:
        return None
    spread = reach / stretch(conversations, confidence=confidence) * sqrt(conversations)

    def decided(number: int) -> bool:
        return spread / sqrt(number) * stretch(number, confidence=confidence) < abs(difference)

    low, high = conversations, conversations * FARTHEST
    if not decided(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high - conversations
