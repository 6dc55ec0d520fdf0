"""How long still to go: consistent with the sequence it foretells."""

from __future__ import annotations

from math import sqrt

import pytest

from toolfault_dashboard.analysis.comparisons.remaining import conversations_to_go
from toolfault_dashboard.analysis.comparisons.sequences import stretch
from toolfault_dashboard.analysis.rates import Interval


def _interval(difference: float, spread: float, conversations: int) -> Interval:
    reach = spread / sqrt(conversations) * stretch(conversations)
    return Interval(difference - reach, difference + reach)


@pytest.mark.parametrize("difference", [-0.04, 0.02, 0.3])
@pytest.mark.parametrize("conversations", [40, 611, 9_000])
def test_after_so_many_conversations_the_interval_decides_and_not_before(
    difference: float, conversations: int
):
    """With the conversations it asks for zero lies outside; with one less it does not yet."""
    more = conversations_to_go(difference, _interval(difference, 1.0, conversations), conversations)
    assert more is not None
    then = _interval(difference, 1.0, conversations + more)
    assert not then.low <= 0.0 <= then.high
    if more:
        before = _interval(difference, 1.0, conversations + more - 1)
        assert before.low <= 0.0 <= before.high


def test_what_no_number_of_conversations_shows_is_not_foretold():
    """No difference, or one far out of reach, gets no number."""
    assert conversations_to_go(0.0, Interval(-0.1, 0.1), 100) is None
    assert conversations_to_go(1e-6, _interval(1e-6, 1.0, 100), 100) is None
