"""How much the calls of one conversation resemble each other, and what that does to an interval.

An agent that misunderstands a tool fails again and again in the same conversation, so its calls are
no independent trials. The variance of a rate is therefore linearised over conversations, as in a
sample of clusters (W. G. Cochran, Sampling Techniques, 3rd ed. (1977), 6.3 and 9A.2), and needs
four sums only: how many conversations there are, and over them the sums of f * f, f * n and n * n,
where f is what is counted in a conversation and n the number of its calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from toolfault_dashboard.analysis.comparisons.cells import CodeColumns, Columns, Floats, added

__all__ = ["NO_MOMENTS", "Moments", "call_moments", "code_moments"]


class Moments(NamedTuple):
    """Sums over conversations: all that the variance of a rate needs.

    Attributes:
        clusters: Conversations that have any of the denominator.
        part_squared: Sum of f * f.
        product: Sum of f * n.
        whole_squared: Sum of n * n.
    """

    clusters: int = 0
    part_squared: float = 0.0
    product: float = 0.0
    whole_squared: float = 0.0

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        return Moments(
            self.clusters + other.clusters,
            self.part_squared + other.part_squared,
            self.product + other.product,
            self.whole_squared + other.whole_squared,
        )

    def complement(self) -> Moments:
        """Return the moments of what is not counted, n - f."""
        return Moments(
            self.clusters,
            self.whole_squared - 2 * self.product + self.part_squared,
            self.whole_squared - self.product,
            self.whole_squared,
        )

    def design_effect(self, share: float, whole: float, n: float) -> float | None:
        """Return the variance of a share over that of as many independent trials, at least 1.

        Args:
            share: The share, f summed over n summed.
            whole: The sum of n.
            n: As how many unsampled trials these count.

        Where all calls are counted, or none, nothing shows how alike those of a conversation are:
        each conversation then counts as one trial.

        Returns:
            The design effect; None below two conversations.
        """
        if self.clusters < 2:
            return None
        if not 0.0 < share < 1.0:
            return self.most_effect(whole, n)
        residual = self.part_squared - 2 * share * self.product + share * share * self.whole_squared
        variance = residual / (whole * whole) * self.clusters / (self.clusters - 1)
        # Below 1 would claim more than as many independent calls; chance does that in few calls.
        return max(1.0, variance * n / (share * (1.0 - share)))

    def most_effect(self, whole: float, n: float) -> float:
        """Return the design effect where all calls of a conversation end alike, at least 1.

        Each conversation is then one trial, and calls cannot be more alike: in 1 + (m - 1) rho
        (L. Kish, Survey Sampling (1965), 5.4 and 8.2) rho is 1, and m the mean size a call sees.

        Args:
            whole: The sum of n.
            n: As how many unsampled trials these count.
        """
        return max(1.0, self.whole_squared / whole * n / whole)

    def degrees(self, part: float, whole: float) -> float:
        """Return the degrees of freedom of the variance.

        Where failures are rare, a few conversations with many of them make the whole variance, and
        it is as uncertain as a variance of so few. So as many count as would give the same sums if
        all had alike (L. Kish, Survey Sampling (1965), 8.2), of what is counted or what is not.

        Args:
            part: The sum of f.
            whole: The sum of n.
        """
        rest = self.complement().part_squared
        effective = [
            total * total / squared
            for total, squared in ((part, self.part_squared), (whole - part, rest))
            if squared > 0
        ]
        return max(1.0, min([float(self.clusters), *effective]) - 1.0)


NO_MOMENTS: Final = Moments()


def call_moments(
    cells: Columns, pairs: Sequence[tuple[Floats, Floats]], *, by_tool: bool = False
) -> list[dict[str, Moments]]:
    """Return the moments of each of *pairs*, by tool or, under "", of all cells together.

    Args:
        cells: What conversations did.
        pairs: What is counted of each cell, and of how many (`Metric.numerator`, `denominator`).
        by_tool: Whether to tell tools apart.
    """
    places: dict[str, int] = {}
    own = [places.setdefault(tool if by_tool else "", len(places)) for tool, *_ in cells.strata]
    width = max(1, cells.conversations)
    keys = np.asarray(own, dtype=np.int64)[cells.stratum] * width + cells.conversation
    talks, talk = np.unique(keys, return_inverse=True)
    group, names = talks // width, list(places)
    found: list[dict[str, Moments]] = []
    for pair in pairs:
        f, n = (added(talk, each, len(talks)) for each in pair)
        squares = ((f != 0) | (n != 0), f * f, f * n, n * n)
        sums = zip(*(added(group, each, len(names)).tolist() for each in squares), strict=True)
        moments = (Moments(int(count), *rest) for count, *rest in sums)
        found.append({name: own for name, own in zip(names, moments, strict=True) if own.clusters})
    return found


def code_moments(codes: CodeColumns, cells: Columns) -> dict[str, Moments]:
    """Return the moments of the failures of each code, but for those of all calls."""
    calls = cells.by_conversation(cells.calls)
    f, n = codes.failures, calls[codes.conversation]
    sums = zip(codes.by_code(f * f).tolist(), codes.by_code(f * n).tolist(), strict=True)
    return {
        code: Moments(0, part, product)
        for code, (part, product) in zip(codes.codes, sums, strict=True)
    }
