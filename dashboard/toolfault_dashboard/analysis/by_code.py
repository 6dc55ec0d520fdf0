"""The effect on every code at once, with the false discoveries among so many questions controlled.

Source: Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, J. R. Statist. Soc. B 57
(1995) 289-300; computed by ``scipy.stats.false_discovery_control``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolfault_dashboard.analysis.differences import difference_of_rates
from toolfault_dashboard.analysis.effect import Verdict
from toolfault_dashboard.analysis.estimates import Estimate
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.analysis.sides import SideData

__all__ = ["FALSE_DISCOVERIES", "CodeEffect", "CodeFailures", "effect_by_code"]

CodeFailures = Mapping[str, Mapping[str, int]]
"""Code -> conversation -> failures."""

FALSE_DISCOVERIES = 0.05
"""Share of the verdicts that may be wrong on average."""


@dataclass(frozen=True, slots=True)
class CodeEffect:
    """One code before and after, as it is (not at equal mix), clustered by conversation."""

    code: str
    before: Rate
    after: Rate
    difference: float
    low: float
    high: float
    adjusted_p: float | None  # after Benjamini and Hochberg
    verdict: Verdict


def effect_by_code(
    before: SideData,
    after: SideData,
    failures: tuple[CodeFailures, CodeFailures],
    *,
    confidence: float = 0.95,
) -> tuple[CodeEffect, ...]:
    """Compare every code of two sides, most failures first.

    Args:
        before: One side.
        after: The other side.
        failures: The failures of both sides by code and conversation.
        confidence: Two-sided coverage of each interval, taken by itself.
    """
    calls = _calls(before), _calls(after)
    squares = _squares(calls[0], before), _squares(calls[1], after)
    codes = sorted(failures[0].keys() | failures[1].keys())
    found = []
    for code in codes:
        sides = [
            _estimate(counts.get(code, {}), own, side, squares=squared)
            for counts, own, side, squared in zip(
                failures, calls, (before, after), squares, strict=True
            )
        ]
        difference = difference_of_rates(sides[0], sides[1], confidence=confidence)
        if difference is not None:
            found.append((code, difference))
    adjusted = _adjusted([difference.p_value for _, difference in found])
    rows = [
        CodeEffect(
            code=code,
            before=rate(sum(failures[0].get(code, {}).values()), before.calls),
            after=rate(sum(failures[1].get(code, {}).values()), after.calls),
            difference=difference.value,
            low=difference.low,
            high=difference.high,
            adjusted_p=p,
            verdict=_verdict(difference.value, p),
        )
        for (code, difference), p in zip(found, adjusted, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.before.count + row.after.count), row.code)))


def _calls(side: SideData) -> dict[str, int]:
    found: dict[str, int] = {}
    for cell in side.cells:
        found[cell.conversation] = found.get(cell.conversation, 0) + cell.calls
    return found


def _squares(calls: Mapping[str, int], side: SideData) -> float:
    return sum(own * own for own in calls.values()) + side.folded.calls_squared


def _estimate(
    failures: Mapping[str, int], calls: Mapping[str, int], side: SideData, *, squares: float
) -> Estimate:
    n = side.calls
    if not n:
        return Estimate(value=None, variance=None, clusters=0, n=0)
    share = sum(failures.values()) / n
    residual = (
        sum(count * count for count in failures.values())
        - 2 * share * sum(count * calls.get(key, 0) for key, count in failures.items())
        + share * share * squares
    )
    clusters = side.conversations
    variance = residual / (n * n) * clusters / (clusters - 1) if clusters >= 2 else None
    return Estimate(
        value=share,
        variance=None if variance is None else max(0.0, variance),
        clusters=clusters,
        n=n,
    )


def _adjusted(values: list[float | None]) -> list[float | None]:
    from scipy.stats import false_discovery_control

    known = [value for value in values if value is not None]
    corrected = iter(false_discovery_control(known) if known else ())
    return [None if value is None else float(next(corrected)) for value in values]


def _verdict(difference: float, p: float | None) -> Verdict:
    if p is None:
        return "not enough data"
    if p > FALSE_DISCOVERIES:
        return "no detectable change"
    return "improved" if difference < 0 else "worse"
