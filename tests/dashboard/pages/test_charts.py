"""Charts: whatever is counted, every shape lies inside its drawing and adds up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.charts import (
    PLOT_HEIGHT,
    bar_chart,
    differences,
    estimate,
    heat_level,
    nice_ceiling,
    rate_chart,
)
from toolfault_dashboard.whiskers import Reading, whisker_chart

counts = st.integers(min_value=0, max_value=10**9)
stacks = st.integers(1, 20).flatmap(
    lambda n: st.lists(st.lists(counts, min_size=n, max_size=n), min_size=1, max_size=7)
)


@given(stacks)
def test_stacks_are_as_high_as_their_counts(series: list[list[int]]):
    """The bars of a bucket stand on each other without gap, and their height is their sum."""
    n = len(series[0])
    chart = bar_chart(
        [str(i) for i in range(n)],
        [(str(i), each) for i, each in enumerate(series)],
        titles=[""] * n,
    )
    for index in range(n):
        left, right = index * 100 / n, (index + 1) * 100 / n
        bars = [bar for bar in chart.bars if left <= bar.x and bar.x + bar.width <= right + 1e-9]
        height = sum(bar.height for bar in bars)
        total = sum(each[index] for each in series)
        assert math.isclose(height, PLOT_HEIGHT * total / chart.axis.highest, abs_tol=0.2)
        assert all(chart.top - 0.1 <= bar.y <= chart.baseline for bar in bars)
    assert [stack.total for stack in chart.stacks] == [sum(each) for each in series]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=40))
def test_a_rate_stands_within_its_interval_above_its_bucket(pairs: list[tuple[int, int]]):
    """Every bucket with calls has a dot, inside the drawing and inside its line; no other has."""
    rates = [rate(min(pair), max(pair)) for pair in pairs]
    chart = rate_chart(rates, titles=[str(at) for at in range(len(rates))])
    with_calls = [at for at, each in enumerate(rates) if each.n]
    if chart is None:
        assert not with_calls
        return
    assert [point.title for point in chart.points] == [str(at) for at in with_calls]
    for at, point in zip(with_calls, chart.points, strict=True):
        assert at * 100 / len(rates) < point.x < (at + 1) * 100 / len(rates)
        assert chart.top <= point.top <= point.at <= point.bottom <= chart.baseline
    cut = [point for point in chart.points if point.top == chart.top]
    assert bool(cut) or not chart.is_cut


@given(st.floats(min_value=0, max_value=1e12))
def test_an_axis_ends_above_its_highest_value(value: float):
    """The end of an axis is round, at least the value, and at most half as far again."""
    ceiling = nice_ceiling(value)
    assert ceiling >= min(value, value * (1 - 1e-9))
    assert ceiling <= max(2.0, value * 1.5)


@pytest.mark.parametrize("value", [0, 1, 2, 3, 7, 10, 11, 49, 99, 100, 101, 12345])
def test_axis_labels_are_whole_numbers(value: int):
    """Counts have no halves: every gridline stands at a whole number."""
    chart = bar_chart(["a"], [("x", [value])], titles=[""])
    labels = [tick.label.replace(",", "") for tick in chart.axis.ticks]
    assert labels == sorted({*labels}, key=int)
    assert int(labels[-1]) == chart.axis.highest


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_an_interval_stays_on_its_track(value: float, low: float, high: float, scale: float):
    """Point and band never leave the track, also where the scale ends before them."""
    low, high = min(low, high), max(low, high)
    drawn = estimate(value, low, high, scale=scale)
    assert drawn is not None
    assert 0 <= drawn.at <= 100
    assert 0 <= drawn.low <= 100
    assert drawn.width > 0


def test_what_is_unknown_is_not_drawn():
    """Without an interval there is no drawing, rather than one at zero."""
    assert estimate(None, None, None, scale=1.0) is None
    assert differences([(None, None, None)]) == (None,)


def test_differences_share_one_scale_around_zero():
    """No difference is in the middle; a difference is as far from it as its mirror."""
    left, right = differences([(-0.1, -0.2, 0.0), (0.1, 0.0, 0.2)])
    assert left is not None
    assert right is not None
    assert math.isclose(50 - left.at, right.at - 50)
    assert math.isclose(left.low + left.width, 50)


@given(counts, counts)
def test_heat_has_six_steps(value: int, highest: int):
    """Nothing is step 0, something at least 1, the highest cell 5."""
    level = heat_level(value, highest)
    assert 0 <= level <= 5
    assert (level == 0) == (value <= 0 or highest <= 0)
    if highest > 0:
        assert heat_level(highest, highest) == 5


ends = st.tuples(*[st.floats(-1, 1, allow_nan=False)] * 3).map(sorted)


@given(st.lists(st.tuples(st.integers(0, 29), st.integers(1, 3), ends), max_size=60))
def test_intervals_over_time_lie_inside_their_drawing(found: list[tuple[int, int, list[float]]]):
    """Whatever is known, bars are inside, dots are on their bar, and none means no drawing."""
    readings = [
        Reading(moment, series, value, low, high, "")
        for moment, series, (low, value, high) in found
    ]
    chart = whisker_chart([str(day) for day in range(30)], readings, shown=str)
    if not readings:
        assert chart is None
        return
    assert chart is not None
    for each in chart.whiskers:
        assert each.left >= 0
        assert each.left + each.width <= 100 + 1e-9
        assert 0 <= each.top <= each.top + each.height <= chart.bottom + 1.01
        if each.at >= 0:
            assert each.top - 0.02 <= each.at <= each.top + each.height + 1.01
    assert 0 < chart.zero < chart.bottom
