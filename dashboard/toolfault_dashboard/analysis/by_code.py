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
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.sides import SideData
from toolfault_dashboard.analysis.weights import Amount, equivalent, weighed_rate

__all__ = ["FALSE_DISCOVERIES", "CodeAmounts", "CodeEffect", "CodeFailures", "effect_by_code"]

CodeFailures = Mapping[str, Mapping[str, float]]
"""Code -> conversation -> failures, each as what it stands for."""

CodeAmounts = Mapping[str, Amount]
"""Code -> failures, where some were sampled."""

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
    amounts: tuple[CodeAmounts, CodeAmounts] = ({}, {}),
    confidence: float = 0.95,
) -> tuple[CodeEffect, ...]:
    """Compare every code of two sides, most failures first.

    Args:
        before: One side.
        after: The other side.
        failures: The failures of both sides by code and conversation.
        amounts: What they are as rows and squares, of codes of which some were sampled.
        confidence: Two-sided coverage of each interval, taken by itself.
    """
    calls = _calls(before), _calls(after)
    squares = _squares(calls[0], before), _squares(calls[1], after)
    codes = sorted(failures[0].keys() | failures[1].keys())
    found = []
    for code in codes:
        sides = [
            _estimate(counts.get(code, {}), own, side, squared, amount.get(code))
            for counts, own, side, squared, amount in zip(
                failures, calls, (before, after), squares, amounts, strict=True
            )
        ]
        difference = difference_of_rates(sides[0], sides[1], confidence=confidence)
        if difference is not None:
            found.append((code, difference))
    adjusted = _adjusted([difference.p_value for _, difference in found])
    rows = [
        CodeEffect(
            code=code,
            before=weighed_rate(_amount(failures[0], amounts[0], code), before.calls),
            after=weighed_rate(_amount(failures[1], amounts[1], code), after.calls),
            difference=difference.value,
            low=difference.low,
            high=difference.high,
            adjusted_p=p,
            verdict=_verdict(difference.value, p),
        )
        for (code, difference), p in zip(found, adjusted, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.before.count + row.after.count), row.code)))


def _amount(failures: CodeFailures, amounts: CodeAmounts, code: str) -> Amount:
    if code in amounts:
        return amounts[code]
    rows = int(sum(failures.get(code, {}).values()))
    return Amount(rows, rows, rows)


def _calls(side: SideData) -> dict[str, float]:
    found: dict[str, float] = {}
    for cell in side.cells:
        found[cell.conversation] = found.get(cell.conversation, 0) + cell.calls
    return found


def _squares(calls: Mapping[str, float], side: SideData) -> float:
    return sum(own * own for own in calls.values()) + side.folded.calls_squared


def _estimate(
    failures: Mapping[str, float],
    calls: Mapping[str, float],
    side: SideData,
    squares: float,
    amount: Amount | None,
) -> Estimate:
    n = side.calls.weight
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
        n=n if not side.calls.sampled else equivalent(amount or Amount(), side.calls),
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
