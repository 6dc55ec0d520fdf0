"""Rates against scipy and statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from toolfault_dashboard.analysis.rates import rate, wilson, wilson_share


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_wilson_is_scipys(data: st.DataObject) -> None:
    """The closed form and scipy agree to rounding, at every confidence."""
    n = data.draw(st.integers(1, 100_000))
    count = data.draw(st.integers(0, n))
    confidence = data.draw(st.sampled_from((0.8, 0.9, 0.95, 0.99)))
    found = wilson(count, n, confidence=confidence)
    expected = binomtest(count, n).proportion_ci(confidence, method="wilson")
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)
    assert 0 <= found.low <= count / n <= found.high <= 1


@pytest.mark.parametrize(("count", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_no_proportion_is_refused(count: int, n: int) -> None:
    """What is no proportion raises instead of making a number up."""
    with pytest.raises(ValueError, match="proportion"):
        wilson(count, n)


def test_nothing_has_no_rate() -> None:
    """Without calls there is no rate and no interval."""
    assert rate(0, 0).value is None
    assert rate(0, 0).n == 0


def test_a_numerator_ahead_of_its_denominator_is_bounded() -> None:
    """Failures whose calls are still on the way never show a rate above one."""
    assert rate(3, 2).value == 1.0


def test_fewer_independent_trials_widen_the_interval() -> None:
    """The interval of a share grows as its effective sample size shrinks."""
    wide, narrow = wilson_share(0.3, 12.5), wilson_share(0.3, 100)
    assert wide.high - wide.low > narrow.high - narrow.low
