"""One correction over everything that a page or a gate decides from.

Source: S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6
(1979) 65-70; B. L. Wiens, A fixed sequence Bonferroni procedure for testing multiple endpoints,
Pharmaceut. Statist. 2 (2003) 211-215 (fallback: the first question keeps half of the level).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["adjusted"]


def adjusted(first: float | None, others: Sequence[float | None]) -> list[float | None]:
    """Return p-values such that with all of them together a false verdict is as rare as with one.

    The first question is tested at half of the level, so that its answer does not hang on how many
    others there are. The others share what it left: all of the level if it had an answer or was not
    asked, half of it else, by Holm's method. The rate of false discoveries would not do: a change
    that improves much would buy room for a wrong ``worse`` elsewhere, which shuts a gate.

    Args:
        first: p-value of the failure rate; None where there is too little data.
        others: Those of all other questions, None likewise.

    Returns:
        The adjusted p-values, the first one first; None stays None.
    """
    known = sorted((p, place) for place, p in enumerate(others) if p is not None)
    own = None if first is None else min(1.0, 2.0 * first)
    found: list[float | None] = [None] * len(others)
    least = 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, p * (len(known) - rank))
        found[place] = min(1.0, 2.0 * least, max(own or 0.0, least))
    return [own, *found]
