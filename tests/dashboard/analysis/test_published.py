"""Figures printed in the papers that the methods are from."""

from __future__ import annotations

import pytest

from toolfault_dashboard.analysis.comparisons.differences import difference_of_rates
from toolfault_dashboard.analysis.comparisons.estimates import Estimate
from toolfault_dashboard.analysis.rates import wilson


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
     (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_wilson_intervals_of_newcombe(count: int, n: int, low: float, high: float) -> None:
    """R. G. Newcombe, Statist. Med. 17 (1998) 857-872, table I, method 3."""
    found = wilson(count, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_differences_of_newcombe(
    one: tuple[int, int], other: tuple[int, int], low: float, high: float
) -> None:
    """R. G. Newcombe, Statist. Med. 17 (1998) 873-890, table II, method 10."""

    def cohort(count: int, n: int) -> Estimate:
        share = count / n
        return Estimate(share, share * (1 - share) / n, clusters=n, n=n)

    found = difference_of_rates(cohort(*other), cohort(*one))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
