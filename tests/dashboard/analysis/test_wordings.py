"""Which messages to reword."""

from __future__ import annotations

import numpy as np
import pytest

from toolfault_dashboard.analysis.fixes.fixes import Tally, fix_of, tallied
from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.fixes.wordings import Answers, gains


@pytest.mark.parametrize("messages", [10, pytest.param(100, marks=pytest.mark.long)])
def test_equally_good_messages_are_rarely_named(messages: int) -> None:
    """Of lists of messages that all help in 70 % of cases at most 5 % name one to reword."""
    noise = np.random.default_rng(7)
    rounds, wrong = 200, 0
    for _ in range(rounds):
        answered = noise.integers(10, 200, size=messages)
        fixed = noise.binomial(answered, 0.7)
        counts = list(map(Answers, fixed.tolist(), answered.tolist(), answered.tolist()))
        wrong += any(each is not None for each in gains(counts))
    assert wrong / rounds <= 0.05 + 2 * (0.05 * 0.95 / rounds) ** 0.5


def test_a_message_that_helps_less_is_named_with_its_gain() -> None:
    """A message fixed in 20 of 100 cases, others in 70: half of its failures cost what follows."""
    usual = [Answers(70, 100, 125)] * 20
    found = gains([Answers(20, 100, 100), *usual])
    assert [each is not None for each in found] == [True, *[False] * 20]
    assert found[0] is not None
    # After others 80 % go on, 30 % of these to the next failure: 0.8 / (1 - 0.8 * 0.3) calls.
    assert found[0].value == pytest.approx(0.5 * 0.8 / 0.76)
    assert found[0].error == pytest.approx(0.0426, abs=0.001)
    assert gains([Answers(0, 9, 9), *usual])[0] is None  # too few


@pytest.mark.parametrize("same_again", [pytest.param(1.0, marks=pytest.mark.long), 0.4])
def test_the_gain_is_what_a_better_message_saves(same_again: float) -> None:
    """Simulated chains cost so much less, whether the message comes again in them or others do."""
    told, calls = _lived(0.2, same_again)
    _, fewer = _lived(0.7, same_again)
    (gain, _) = gains(told)
    assert gain is not None
    assert gain.value * told[0].answered == pytest.approx(calls - fewer, rel=0.03)


def _lived(fixed: float, same_again: float) -> tuple[list[Answers], int]:
    """Let 20,000 chains begin with a message, after which *fixed* of the next calls succeed.

    As many begin with others, after which 70 % succeed. 90 % of all failures are answered.

    Returns:
        What came of the failures with the message and with others, and the calls after failures.
    """
    noise, shares = np.random.default_rng(3), (fixed, 0.7)
    counts, calls = [[0, 0, 0], [0, 0, 0]], 0
    for number in range(40_000):
        which, failed = number % 2, True
        while failed:
            counts[which][2] += 1
            if noise.random() >= 0.9:
                break
            calls += 1
            failed = noise.random() >= shares[which]
            counts[which][1] += 1
            counts[which][0] += not failed
            which = 0 if which == 0 and noise.random() < same_again else 1
    return [Answers(*each) for each in counts], calls


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
