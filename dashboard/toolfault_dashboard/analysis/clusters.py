"""How much the calls of one conversation resemble each other, and what that does to an interval.

An agent that misunderstands a tool fails again and again in the same conversation, so its calls are
no independent trials. The variance of a rate is therefore linearised over conversations, as in a
sample of clusters (W. G. Cochran, Sampling Techniques, 3rd ed. (1977), 6.3 and 9A.2), and needs
four sums only: how many conversations there are, and over them the sums of f * f, f * n and n * n,
where f is what is counted in a conversation and n the number of its calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from toolfault_dashboard.analysis.metrics import Metric

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.columns import CodeColumns
    from toolfault_dashboard.analysis.sides import SideData

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
            return max(1.0, self.whole_squared / whole * n / whole)
        residual = self.part_squared - 2 * share * self.product + share * share * self.whole_squared
        variance = residual / (whole * whole) * self.clusters / (self.clusters - 1)
        # Below 1 would claim more than as many independent calls; chance does that in few calls.
        return max(1.0, variance * n / (share * (1.0 - share)))

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


def call_moments(metric: Metric, side: SideData, *, by_tool: bool = False) -> dict[str, Moments]:
    """Return the moments of a metric of calls, by tool or, under "", of all together.

    Of conversations without a failure it is known how many there are, and the sum of their squared
    calls.

    Args:
        metric: One whose denominator is calls or operations.
        side: What each conversation did.
        by_tool: Whether to tell tools apart.
    """
    import numpy as np
    import pandas as pd

    cells = side.columns
    places: dict[str, int] = {}
    own = [places.setdefault(tool if by_tool else "", len(places)) for tool, *_ in cells.strata]
    frame = pd.DataFrame(
        {
            "name": np.asarray(own, dtype=np.int64)[cells.stratum],
            "conversation": cells.conversation,
            "f": metric.numerator(cells),
            "n": metric.denominator(cells),
        }
    )
    talks = frame.groupby(["name", "conversation"], sort=False).sum()
    talks = talks[(talks.f != 0) | (talks.n != 0)]
    f, n = talks.f, talks.n
    sums = pd.DataFrame({"talks": 1.0, "ff": f * f, "fn": f * n, "nn": n * n}, index=talks.index)
    by_name = sums.groupby(level="name").sum()
    names = list(places)
    found = {
        names[place]: Moments(int(count), *rest)
        for place, (count, *rest) in zip(
            by_name.index.tolist(), by_name.to_numpy().tolist(), strict=True
        )
    }
    if not by_tool:
        folded = side.folded
        found[""] = found.get("", NO_MOMENTS) + Moments(
            folded.conversations, 0.0, 0.0, folded.calls_squared
        )
        return found
    for tool, (conversations, squared) in side.folded.of_tools.items():
        found[tool] = found.get(tool, NO_MOMENTS) + Moments(conversations, 0.0, 0.0, squared)
    return found


def code_moments(codes: CodeColumns, side: SideData) -> dict[str, Moments]:
    """Return the moments of the failures of each code, but for those of all calls."""
    calls = side.columns.by_conversation(side.columns.calls)
    f, n = codes.failures, calls[codes.conversation]
    sums = zip(codes.by_code(f * f).tolist(), codes.by_code(f * n).tolist(), strict=True)
    return {
        code: Moments(0, part, product)
        for code, (part, product) in zip(codes.codes, sums, strict=True)
    }
