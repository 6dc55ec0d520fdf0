"""The interval of what a time to come will save."""

from __future__ import annotations

import numpy as np
import pytest

from toolfault_dashboard.analysis.fixes.prediction import prediction_interval
from toolfault_dashboard.analysis.rates import critical_value


@pytest.mark.parametrize(("weeks", "ahead"), [(4.0, 4.0), (2.0, 4.0), (4.0, 0.5)])
@pytest.mark.parametrize("saved", [1, 7, 250])
def test_it_solves_the_equation_that_defines_it(saved: int, weeks: float, ahead: float):
    """Its ends are as far from the past as chance lets two Poisson counts of one rate be."""
    z = critical_value(0.95)
    low, high = prediction_interval(saved, saved, weeks, ahead=ahead)
    for end in {low, high} - {0.0}:
        count, ratio = end * ahead, ahead / weeks
        assert (ratio * saved - count) ** 2 == pytest.approx(z * z * (saved + count) * ratio)
    assert low <= saved / weeks <= high


def test_its_unit_is_what_a_conversation_saves():
    """Savings that come three at a time are a third of the counts, each worth three."""
    alone = prediction_interval(40, 40, 4.0, ahead=2.0)
    by_three = prediction_interval(120, 360, 4.0, ahead=2.0)
    assert by_three == pytest.approx([3 * end for end in alone])


def test_a_longer_time_is_known_better():
    """The chance of the time to come shrinks with its length, that of the past stays."""
    widths = []
    for ahead in (0.25, 1.0, 4.0, 1e9):
        low, high = prediction_interval(300, 500, 4.0, ahead=ahead)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    of_the_average = 2 * critical_value(0.95) * 500**0.5 / 4.0
    assert widths[-1] == pytest.approx(of_the_average, rel=0.01)


@pytest.mark.parametrize("a_week", [2.0, 10.0, 60.0])
@pytest.mark.parametrize("ahead", [1.0, 4.0])
def test_it_holds_what_comes(a_week: float, ahead: float):
    """Some 95 % of times to come lie in it, 92 % where eight conversations tell."""
    rng = np.random.default_rng(5)
    held = held_by_average = known = 0
    for _ in range(1_000):
        past = rng.choice([1, 1, 2, 5], rng.poisson(4.0 * a_week))
        saved, squares = float(past.sum()), float((past**2).sum())
        if not saved:
            continue  # a remedy that no failure names has no prediction
        known += 1
        coming = rng.choice([1, 1, 2, 5], rng.poisson(ahead * a_week)).sum() / ahead
        low, high = prediction_interval(saved, squares, 4.0, ahead=ahead)
        held += low <= coming <= high
        reach = critical_value(0.95) * squares**0.5
        held_by_average += max(0.0, saved - reach) / 4 <= coming <= (saved + reach) / 4
    assert held / known > 0.915
    assert held_by_average / known < 0.9


@pytest.mark.parametrize("given", [(0, 0, 4.0, 4.0), (3, 3, 0.0, 4.0), (3, 3, 4.0, 0.0)])
def test_nothing_is_predicted_of_nothing(given: tuple[float, float, float, float]):
    """No saving and no time is refused, not divided by."""
    saved, squares, weeks, ahead = given
    with pytest.raises(ValueError, match="Nothing can be predicted"):
        prediction_interval(saved, squares, weeks, ahead=ahead)
