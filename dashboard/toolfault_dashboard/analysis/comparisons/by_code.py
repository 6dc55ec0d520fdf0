"""The effect on every metric and every code at once, corrected for so many questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from toolfault_dashboard.analysis.comparisons.cells import CodeColumns, code_columns
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.comparisons.differences import difference_of_rates, pooled_p_value
from toolfault_dashboard.analysis.comparisons.effect import (
    FEWEST,
    Effect,
    Verdict,
    effect_of,
    metric_tests,
)
from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.comparisons.family import adjusted
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, equivalent, weighted_rate

__all__ = ["FEWEST_EXPECTED", "CodeAmounts", "CodeEffect", "CodeFailures", "compare_by_code"]

CodeFailures = Mapping[str, Mapping[str, float]]
"""Code -> conversation -> failures, each as what it stands for."""

CodeAmounts = Mapping[str, Amount]
"""Code -> failures, where some were sampled."""

FEWEST_EXPECTED: Final = 5
"""Conversations with a failure of the code that the smaller cohort would have without any change;
below that nothing is said (W. G. Cochran, Biometrics 10 (1954) 417-451)."""


@dataclass(frozen=True, slots=True)
class CodeEffect:
    """One code before and after, as it is (not at equal mix), clustered by conversation."""

    code: str
    before: Rate
    after: Rate
    difference: float
    low: float
    high: float
    adjusted_p: float | None  # corrected for all codes and metrics; None: not enough data
    verdict: Verdict


def compare_by_code(
    before: Cohort,
    after: Cohort,
    failures: tuple[CodeFailures | CodeColumns, CodeFailures | CodeColumns],
    *,
    amounts: tuple[CodeAmounts, CodeAmounts] = ({}, {}),
    confidence: float = 0.95,
    equal_mix: bool = True,
) -> tuple[Effect, tuple[CodeEffect, ...]]:
    """Compare two cohorts metric by metric and code by code, most failures first.

    Every verdict is corrected for all metrics and codes together (`family.adjusted`).

    Args:
        before: One cohort.
        after: The other cohort.
        failures: The failures of both cohorts by code and conversation.
        amounts: What they are as rows and squares, of codes of which some were sampled.
        confidence: Two-sided coverage of each interval, taken by itself.
        equal_mix: See `effect.compare`; codes are compared as they are.
    """
    tests = metric_tests(before, after, confidence=confidence, equal_mix=equal_mix)
    sums = _sums(failures[0], before), _sums(failures[1], after)
    squares = _squares(before), _squares(after)
    totals = before.calls.weight, after.calls.weight
    rows: list[CodeEffect] = []
    chances: list[float | None] = []
    for code in sums[0].keys() | sums[1].keys():
        own = tuple(each.get(code, _NONE) for each in sums)
        counted = tuple(
            _amount(each, amount, code) for each, amount in zip(sums, amounts, strict=True)
        )
        cohorts = [
            _estimate(one, cohort, squared, amount)
            for one, cohort, squared, amount in zip(
                own, (before, after), squares, counted, strict=True
            )
        ]
        difference = difference_of_rates(cohorts[0], cohorts[1], confidence=confidence)
        if difference is None:
            continue
        chances.append(_score_test((own[0], own[1]), (cohorts[0], cohorts[1]), totals, squares))
        rows.append(
            CodeEffect(
                code=code,
                before=weighted_rate(counted[0], before.calls),
                after=weighted_rate(counted[1], after.calls),
                difference=difference.value,
                low=difference.low,
                high=difference.high,
                adjusted_p=None,
                verdict="not enough data",
            )
        )
    corrected = adjusted(tests[0].p_value, [*(test.p_value for test in tests[1:]), *chances])
    effect = effect_of(before, after, tests, corrected[: len(tests)], confidence=confidence)
    judged = [
        replace(row, adjusted_p=p, verdict=_verdict(row.difference, p, 1.0 - confidence))
        for row, p in zip(rows, corrected[len(tests) :], strict=True)
    ]
    judged.sort(key=lambda row: (-(row.before.count + row.after.count), row.code))
    return effect, tuple(judged)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The failures of one code over the conversations of a cohort.

    Attributes:
        failures: All of them.
        squares: Of the failures of each conversation.
        with_calls: The failures of each conversation times its calls.
        conversations: Those that have any.
    """

    failures: float
    squares: float
    with_calls: float
    conversations: float


_NONE: Final = _Sums(0.0, 0.0, 0.0, 0.0)


def _sums(failures: CodeFailures | CodeColumns, cohort: Cohort) -> dict[str, _Sums]:
    own = failures
    if not isinstance(own, CodeColumns):
        own = code_columns(own, cohort.columns)
    calls = cohort.calls_by_conversation()[own.conversation]
    counts = own.failures
    sums = zip(
        *(
            own.by_code(values).tolist()
            for values in (counts, counts * counts, counts * calls, counts > 0)
        ),
        strict=True,
    )
    return {code: _Sums(*each) for code, each in zip(own.codes, sums, strict=True)}


def _amount(sums: Mapping[str, _Sums], amounts: CodeAmounts, code: str) -> Amount:
    if code in amounts:
        return amounts[code]
    rows = int(sums.get(code, _NONE).failures)
    return Amount(rows, rows, rows)


def _squares(cohort: Cohort) -> float:
    calls = cohort.calls_by_conversation()
    return float((calls * calls).sum()) + cohort.folded.calls_squared


def _estimate(sums: _Sums, cohort: Cohort, squares: float, amount: Amount) -> Estimate:
    n = cohort.calls.weight
    if not n:
        return Estimate(value=None, variance=None, clusters=0, n=0)
    share = sums.failures / n
    residual = sums.squares - 2 * share * sums.with_calls + share * share * squares
    clusters = cohort.conversations
    variance = residual / (n * n) * clusters / (clusters - 1) if clusters >= 2 else None
    return Estimate(
        value=share,
        variance=None if variance is None else max(0.0, variance),
        clusters=clusters,
        n=n if not cohort.calls.sampled else equivalent(amount, cohort.calls),
    )


def _score_test(
    sums: tuple[_Sums, _Sums],
    cohorts: tuple[Estimate, Estimate],
    calls: tuple[float, float],
    squares: tuple[float, float],
) -> float | None:
    """Return the p-value of no difference, both cohorts at one share; None below the minimum.

    A score test takes the variance as it is without a difference, so the squared residuals of both
    cohorts about their common share are pooled: a small cohort alone, with a handful of failing
    conversations, would not know how they differ. Student's t on the conversations of the smaller
    cohort. Unlike normal theory with each cohort's own variance this holds its level at 1:10 sizes.
    """
    clusters = [cohort.clusters for cohort in cohorts]
    fewest, everywhere = min(clusters), sum(clusters)
    failing = sum(each.conversations for each in sums)
    if fewest < FEWEST or failing * fewest < FEWEST_EXPECTED * everywhere:
        return None
    n = [cohort.n for cohort in cohorts]
    share = sum(
        size * (cohort.value or 0.0) for size, cohort in zip(n, cohorts, strict=True)
    ) / sum(n)
    # In units of equivalent calls: where nothing was sampled they are the calls.
    residual = sum(
        (size / own_calls) ** 2
        * (own.squares - 2 * share * own.with_calls + share * share * squared)
        for size, own_calls, own, squared in zip(n, calls, sums, squares, strict=True)
    )
    variance = residual * everywhere / (everywhere - 1) / (n[0] * n[1])
    difference = (cohorts[1].value or 0.0) - (cohorts[0].value or 0.0)
    return pooled_p_value(difference, variance, (clusters[0], clusters[1]))


def _verdict(difference: float, p: float | None, level: float) -> Verdict:
    if p is None:
        return "not enough data"
    if p > level:
        return "no detectable change"
    return "improved" if difference < 0 else "worse"
