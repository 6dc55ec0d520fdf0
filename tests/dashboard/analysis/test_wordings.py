"""Which messages to reword."""

from __future__ import annotations

import numpy as np
import pytest

from toolfault_dashboard.analysis.fixes.fixes import Tally, fix_of, tallied
from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.fixes.wordings import gains


@pytest.mark.parametrize("messages", [10, 100])
def test_equally_good_messages_are_rarely_named(messages: int) -> None:
    """Of lists of messages that all help in 70 % of cases at most 5 % name one to reword."""
    noise = np.random.default_rng(7)
    rounds, wrong = 200, 0
    for _ in range(rounds):
        answered = noise.integers(10, 200, size=messages)
        fixed = noise.binomial(answered, 0.7)
        counts = list(zip(fixed.tolist(), answered.tolist(), strict=True))
        wrong += any(each is not None for each in gains(counts))
    assert wrong / rounds <= 0.05 + 2 * (0.05 * 0.95 / rounds) ** 0.5


def test_a_message_that_helps_less_is_named_with_its_gain() -> None:
    """A message fixed in 20 of 100 cases among others fixed in 70 % gains half of its failures."""
    found = gains([(20, 100), *[(70, 100)] * 20])
    assert [each is not None for each in found] == [True, *[False] * 20]
    assert found[0] is not None
    assert found[0].value == pytest.approx(0.5)
    assert found[0].error == pytest.approx(0.0413, abs=0.001)
    assert gains([(0, 9), *[(70, 100)] * 20])[0] is None  # too few


def test_the_interval_of_a_saving_includes_that_of_the_gain() -> None:
    """A gain of 0.5 +- 0.2 for 100 failures saves 50 +- 40: 0.2 * 100 failures * 1.96, and more."""
    tally = Tally()
    for number in range(100):
        tally.count(Opportunity(FixKey("t", "", "reword"), str(number), None, 1.0, None))
    known = tallied(tally)
    group = [type(known)(tally, known.total, known.squares, 0.5, 0.2)]
    fix = fix_of(FixKey("t", "", "reword", "m"), group, weeks=1.0)
    reach = 1.96 * (0.5**2 * 100 + (100 * 0.2) ** 2) ** 0.5
    assert fix.per_week == 50
    assert (fix.low, fix.high) == pytest.approx((50 - reach, 50 + reach), abs=0.01)
