"""Always-valid intervals: right at every moment at once, however often one looks.

A fixed-horizon interval is right at one moment chosen beforehand; who looks every day and stops at
the first verdict is wrong far more often than it says. An asymptotic confidence sequence stays
right at all of them together, at the price of width.

Source: I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas, Time-uniform central limit
theory and asymptotic confidence sequences, Annals of Statistics 52 (2024) 2613-2640, theorem 2.2
and appendix B.2 (choice of rho).
"""

from __future__ import annotations

from math import log, sqrt

__all__ = ["TUNED_FOR", "stretch"]

TUNED_FOR = 500
"""Conversations at which the sequence is narrowest, relative to the fixed-horizon interval."""


def stretch(conversations: int, *, confidence: float = 0.95, tuned_for: int = TUNED_FOR) -> float:
    """Return how many standard errors wide an always-valid interval is on either side.

    Args:
        conversations: Independent units seen so far, both arms together.
        confidence: Coverage at all moments together.
        tuned_for: Number of units at which it should be narrowest.
    """
    if conversations < 1:
        return float("inf")
    alpha = 1.0 - confidence
    rho_squared = (-2.0 * log(alpha) + log(-2.0 * log(alpha)) + 1.0) / tuned_for
    grown = conversations * rho_squared + 1.0
    return sqrt(2.0 * grown / (grown - 1.0) * log(sqrt(grown) / alpha))
