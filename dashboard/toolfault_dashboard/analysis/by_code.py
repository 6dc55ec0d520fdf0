"""The effect on every code at once, with the false discoveries among so many questions controlled.

Source: Y. Benjamini and Y. Hochberg, Controlling the false discovery rate, J. R. Statist. Soc. B 57
(1995) 289-300; computed by ``scipy.stats.false_discovery_control``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolfault_dashboard.analysis.differences import difference_of_rates
from toolfault_dashboard.analysis.effect import Verdict
from toolfault_dashboard.analysis.estimates import Estimate
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.sides import SideData
from toolfault_dashboard.analysis.weights import Amount, equivalent, weighed_rate

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.columns import CodeColumns

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
    failures: tuple[CodeFailures | CodeColumns, CodeFailures | CodeColumns],
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
    sums = _sums(failures[0], before), _sums(failures[1], after)
    squares = _squares(before), _squares(after)
    found = []
    for code in sorted(sums[0].keys() | sums[1].keys()):
        sides = [
            _estimate(own.get(code, _NONE), side, squared, _amount(own, amount, code))
            for own, side, squared, amount in zip(
                sums, (before, after), squares, amounts, strict=True
            )
        ]
        difference = difference_of_rates(sides[0], sides[1], confidence=confidence)
        if difference is not None:
            found.append((code, difference))
    adjusted = _adjusted([difference.p_value for _, difference in found])
    rows = [
        CodeEffect(
            code=code,
            before=weighed_rate(_amount(sums[0], amounts[0], code), before.calls),
            after=weighed_rate(_amount(sums[1], amounts[1], code), after.calls),
            difference=difference.value,
            low=difference.low,
            high=difference.high,
            adjusted_p=p,
            verdict=_verdict(difference.value, p),
        )
        for (code, difference), p in zip(found, adjusted, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.before.count + row.after.count), row.code)))


@dataclass(frozen=True, slots=True)
class _Sums:
    """The failures of one code over the conversations of a side.

    Attributes:
        failures: All of them.
        squares: Of the failures of each conversation.
        with_calls: The failures of each conversation times its calls.
    """

    failures: float
    squares: float
    with_calls: float


_NONE: Final = _Sums(0.0, 0.0, 0.0)


def _sums(failures: CodeFailures | CodeColumns, side: SideData) -> dict[str, _Sums]:
    from toolfault_dashboard.analysis.columns import CodeColumns, code_columns

    own = failures
    if not isinstance(own, CodeColumns):
        own = code_columns(own, side.columns)
    calls = side.columns.by_conversation(side.columns.calls)[own.conversation]
    counts = own.failures
    sums = zip(
        *(own.by_code(values).tolist() for values in (counts, counts * counts, counts * calls)),
        strict=True,
    )
    return {code: _Sums(*each) for code, each in zip(own.codes, sums, strict=True)}


def _amount(sums: Mapping[str, _Sums], amounts: CodeAmounts, code: str) -> Amount:
    if code in amounts:
        return amounts[code]
    rows = int(sums.get(code, _NONE).failures)
    return Amount(rows, rows, rows)


def _squares(side: SideData) -> float:
    calls = side.columns.by_conversation(side.columns.calls)
    return float((calls * calls).sum()) + side.folded.calls_squared


def _estimate(sums: _Sums, side: SideData, squares: float, amount: Amount) -> Estimate:
    n = side.calls.weight
    if not n:
        return Estimate(value=None, variance=None, clusters=0, n=0)
    share = sums.failures / n
    residual = sums.squares - 2 * share * sums.with_calls + share * share * squares
    clusters = side.conversations
    variance = residual / (n * n) * clusters / (clusters - 1) if clusters >= 2 else None
    return Estimate(
        value=share,
        variance=None if variance is None else max(0.0, variance),
        clusters=clusters,
        n=n if not side.calls.sampled else equivalent(amount, side.calls),
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
