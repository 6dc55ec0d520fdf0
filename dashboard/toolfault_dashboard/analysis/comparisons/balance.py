"""Sample ratio mismatch: arms that did not get the shares they were meant to get.

A trial whose assignment is broken shows effects that are none, so this is asked before any other
figure of it. The threshold is strict, since it is asked of every trial again and again.

Source: A. Fabijan et al., Diagnosing sample ratio mismatch in online controlled experiments, KDD
2019; Pearson's chi-squared test, ``scipy.stats.chisquare``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MISMATCH", "Balance", "balance"]

MISMATCH = 0.001
"""p-value below which the assignment is said to be broken."""


@dataclass(frozen=True, slots=True)
class Balance:
    """How many conversations each arm got, and how surprising that is."""

    conversations: Mapping[str, int]
    expected: Mapping[str, float]
    p_value: float | None  # None with fewer than two arms or no conversation
    mismatch: bool


def balance(
    conversations: Mapping[str, int], weights: Mapping[str, float] | None = None
) -> Balance:
    """Compare the conversations of the arms with what their weights would have given.

    Args:
        conversations: Conversations by arm.
        weights: Shares that were meant, in any unit; equal by default.

    Raises:
        ValueError: A weight is missing or not above 0.
    """
    from scipy.stats import chisquare

    shares = {arm: 1.0 if weights is None else weights.get(arm, 0.0) for arm in conversations}
    if any(share <= 0 for share in shares.values()):
        raise ValueError("Give every arm a weight above 0.")
    total, whole = sum(conversations.values()), sum(shares.values())
    expected = {arm: total * share / whole for arm, share in shares.items()}
    if len(conversations) < 2 or not total:
        return Balance(conversations, expected, p_value=None, mismatch=False)
    found = chisquare(list(conversations.values()), [expected[arm] for arm in conversations])
    p = float(found.pvalue)
    return Balance(conversations, expected, p_value=p, mismatch=p < MISMATCH)
