"""Charts as geometry: numbers in, positions out; templates draw them as SVG.

Horizontal positions are percentages of the drawing's width and vertical ones are pixels, so one
SVG fits every screen without scaling its text and without any script or inline style. Every chart
is followed by its table on the page (WCAG 1.1.1), so titles here are short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.formats import count, percent

__all__ = [
    "Axis",
    "Bar",
    "BarChart",
    "Estimate",
    "Mark",
    "RateChart",
    "RatePoint",
    "Slot",
    "Spark",
    "Stack",
    "Tick",
    "bar_chart",
    "differences",
    "estimate",
    "heat_level",
    "nice_ceiling",
    "rate_chart",
    "sparkline",
]

PLOT_HEIGHT: Final = 180.0  # px between baseline and the highest gridline
PLOT_TOP: Final = 14.0  # px above the highest gridline, room for the labels of marks
_SHORT: Final = 8  # letters of a label that fits anywhere
# Labels that stand beside each other, by their letters: ``7 Jul``, ``7 Jul 2025``, and longer. A
# phone leaves out every other one; what is left must not touch where the first grows inwards.
_NARROW: Final = 3  # letters of numbers, all of which fit on a phone
_TICKS: Final = ((_NARROW, 13), (_SHORT, 7), (12, 5))
_FEWEST_TICKS: Final = 4
_MOST_PARTS: Final = 5
"""Into how many parts an axis of counts is divided."""
_TOGETHER: Final = 0.07  # share of the width that the number of a mark takes on a phone
_RATE_HEIGHT: Final = 56.0  # px between 0 and the end of the axis of rates
_RATE_TOP: Final = 8.0
_GAP: Final = 0.22  # share of a slot left free beside its bar


@dataclass(frozen=True, slots=True)
class Tick:
    """One label of an axis."""

    at: float  # percent of the width, or px from the top
    label: str
    anchor: str = "middle"  # start | middle | end
    extra: bool = False  # left out on narrow screens


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis with its gridlines."""

    ticks: tuple[Tick, ...]
    highest: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle of a stack."""

    x: float  # percent
    width: float  # percent
    y: float  # px
    height: float  # px
    series: int  # 1 to 7: colour and pattern
    cut: bool = False  # of a bucket of which only a part is counted


@dataclass(frozen=True, slots=True)
class Slot:
    """The full-height area of one bucket, which carries the tooltip."""

    x: float
    width: float
    title: str
    href: str = ""  # the rows in it
    begin: str = ""  # RFC 3339, for a range drawn over a chart of time
    end: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at a moment, for example a change."""

    x: float
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One series of a stacked chart, as the legend names it."""

    name: str
    series: int
    total: int


@dataclass(frozen=True, slots=True)
class BarChart:
    """A stacked bar chart."""

    bars: tuple[Bar, ...]
    slots: tuple[Slot, ...]
    x_ticks: tuple[Tick, ...]
    axis: Axis
    marks: tuple[Mark, ...]
    stacks: tuple[Stack, ...]
    top: float  # px of the highest gridline
    baseline: float  # px
    height: float  # px of the whole drawing


@dataclass(frozen=True, slots=True)
class RatePoint:
    """The rate of one bucket with its interval."""

    x: float  # percent
    at: float  # px of the rate
    top: float  # px of the upper end of its interval
    bottom: float  # px of the lower end
    title: str


@dataclass(frozen=True, slots=True)
class RateChart:
    """The rates of the buckets of a bar chart, drawn below it."""

    points: tuple[RatePoint, ...]
    ticks: tuple[Tick, ...]
    top: float  # px of the highest gridline
    baseline: float  # px
    height: float  # px of the whole drawing
    is_cut: bool  # an interval goes on beyond the drawing


def _step(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10 and so on of which at most five reach *value*.

    Whole counts below 1 do not exist, so it is at least 1.
    Source: P. S. Heckbert, Nice numbers for graph labels, Graphics Gems (1990) 61-63.
    """
    least = max(1.0, value / _MOST_PARTS)
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def nice_ceiling(value: float) -> float:
    """Return where an axis for *value* ends: at a round number that is at least *value*."""
    step = _step(value)
    return step * max(1, math.ceil(value / step - 1e-9))


def _axis(highest_value: float) -> Axis:
    highest = nice_ceiling(highest_value)
    parts = round(highest / _step(highest_value))
    ticks = tuple(
        Tick(
            at=PLOT_TOP + PLOT_HEIGHT * (1 - part / parts),
            label=count(round(highest * part / parts)),
            anchor="end",
        )
        for part in range(parts + 1)
    )
    return Axis(ticks=ticks, highest=highest)


def _x_ticks(labels: Sequence[str]) -> tuple[Tick, ...]:
    if not labels:
        return ()
    width = 100 / len(labels)
    longest = max(map(len, labels))
    wanted = next((ticks for letters, ticks in _TICKS if longest <= letters), _FEWEST_TICKS)
    step = max(1, math.ceil(len(labels) / wanted))
    narrow = longest <= _NARROW
    chosen = range(0, len(labels), step)
    return tuple(
        _x_tick((index + 0.5) * width, labels[index], extra=bool(number % 2) and not narrow)
        for number, index in enumerate(chosen)
    )


def _x_tick(at: float, label: str, *, extra: bool) -> Tick:
    """Place a label; a long one next to an edge grows inwards, so that a phone shows all of it."""
    reach = len(label) if len(label) > _SHORT else 0  # percent of the width of a phone, about
    anchor = "start" if at < reach else "end" if at > 100 - reach else "middle"
    return Tick(at={"start": 0.0, "end": 100.0}.get(anchor, at), label=label, anchor=anchor,
                extra=extra)  # fmt: skip


def bar_chart(
    labels: Sequence[str],
    series: Sequence[tuple[str, Sequence[int]]],
    *,
    titles: Sequence[str],
    marks: Sequence[float] = (),
    numbers: Sequence[int] | None = None,
    links: Sequence[str] = (),
    spans: Sequence[tuple[str, str]] = (),
    cut: Sequence[int] = (),
) -> BarChart:
    """Lay out a stacked bar chart.

    Args:
        labels: The name of each bucket, in order.
        series: (name, one count per bucket) from the bottom of the stack up; at most 7 are told
            apart by colour and pattern.
        titles: The tooltip of each bucket.
        marks: Where lines stand, shares of the width from 0 to 1; they are numbered.
        numbers: The colour and pattern (1 to 7) of each series; 1, 2, 3 ... by default.
        links: The rows behind each bucket, empty where there are none.
        spans: Begin and end of each bucket, RFC 3339, where buckets are times.
        cut: Places of the buckets of which only a part is counted.
    """
    shown = tuple(numbers) if numbers is not None else tuple(range(1, len(series) + 1))
    totals = [sum(counts[i] for _, counts in series) for i in range(len(labels))]
    axis = _axis(max(totals, default=0))
    width = 100 / max(1, len(labels))
    bars: list[Bar] = []
    for index in range(len(labels)):
        below = PLOT_TOP + PLOT_HEIGHT
        for (_, counts), number in zip(series, shown, strict=True):
            height = PLOT_HEIGHT * counts[index] / axis.highest
            if height <= 0:
                continue
            below -= height
            x = index * width + width * _GAP / 2
            y, tall = round(below, 2), round(height, 2)
            bars.append(Bar(x, width * (1 - _GAP), y, tall, number, index in cut))
    return BarChart(
        bars=tuple(bars),
        slots=tuple(
            Slot(
                i * width,
                width,
                title,
                links[i] if links else "",
                *(spans[i] if spans else ("", "")),
            )
            for i, title in enumerate(titles)
        ),
        x_ticks=_x_ticks(labels),
        axis=axis,
        marks=_marks(marks),
        stacks=tuple(
            Stack(name, number, sum(counts))
            for (name, counts), number in zip(series, shown, strict=True)
        ),
        top=PLOT_TOP,
        baseline=PLOT_TOP + PLOT_HEIGHT,
        height=PLOT_TOP + PLOT_HEIGHT + 22,
    )


def _marks(moments: Sequence[float]) -> tuple[Mark, ...]:
    """Number lines from left to right; the first of some that stand close says ``2–4``."""
    ordered = sorted(moments)
    groups: list[list[int]] = []
    for index, at in enumerate(ordered):
        if groups and at - ordered[groups[-1][0]] < _TOGETHER:
            groups[-1].append(index)
        else:
            groups.append([index])
    labels = {
        group[0]: str(group[0] + 1) if len(group) == 1 else f"{group[0] + 1}–{group[-1] + 1}"
        for group in groups
    }
    return tuple(
        Mark(100 * at, labels.get(index, ""), "end" if at > 1 - _TOGETHER / 2 else "start")
        for index, at in enumerate(ordered)
    )


def rate_chart(rates: Sequence[Rate], *, titles: Sequence[str]) -> RateChart | None:
    """Lay out the rate of each bucket with its interval, on an axis that begins at 0.

    The axis ends above every rate and above half of the intervals: those of buckets with a few
    calls reach far and would flatten all others, so they are cut at the edge.

    Args:
        rates: One per bucket; those without a value are left out.
        titles: The tooltip of each bucket.
    """
    drawn = [
        (place, each.value, each.low, each.high)
        for place, each in enumerate(rates)
        if each.value is not None and each.low is not None and each.high is not None
    ]
    if not drawn:
        return None
    half = sorted(high for *_, high in drawn)[(len(drawn) - 1) // 2]
    wanted = max(half, *(value for _, value, *_ in drawn))
    scale = min(1.0, nice_ceiling(100 * wanted) / 100)
    baseline = _RATE_TOP + _RATE_HEIGHT

    def y(share: float) -> float:
        return round(baseline - _RATE_HEIGHT * min(share, scale) / scale, 2)

    width = 100 / len(rates)
    return RateChart(
        points=tuple(
            RatePoint((place + 0.5) * width, y(value), y(high), y(low), titles[place])
            for place, value, low, high in drawn
        ),
        ticks=(
            Tick(baseline, "0%", "end"),
            Tick(_RATE_TOP, f"{100 * scale:.3g}%", "end"),
        ),
        top=_RATE_TOP,
        baseline=baseline,
        height=baseline + 8,
        is_cut=any(high > scale for *_, high in drawn),
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval on a horizontal track, all in percent of the track."""

    at: float
    low: float
    width: float
    title: str
    end: str = ""  # where the track ends, for one that ends before 100%


def _clamped(value: float) -> float:
    return min(100.0, max(0.0, value))


def estimate(
    value: float | None, low: float | None, high: float | None, *, scale: float
) -> Estimate | None:
    """Place one share and its interval on a track that ends at *scale* (0 < scale <= 1)."""
    if value is None or low is None or high is None or scale <= 0:
        return None
    left, right = _clamped(100 * low / scale), _clamped(100 * high / scale)
    title = f"{percent(value)}, 95% interval {percent(low)} to {percent(high)}"
    end = f"{100 * scale:.3g}%" if scale < 1 else ""
    title += f"; the track ends at {end}" if end else ""
    return Estimate(_clamped(100 * value / scale), left, max(0.5, right - left), title, end)


def differences(
    values: Sequence[tuple[float | None, float | None, float | None]],
) -> tuple[Estimate | None, ...]:
    """Place differences (value, low, high) on one symmetric scale; zero is in the middle."""
    ends = [abs(end) for _, low, high in values for end in (low, high) if end is not None]
    reach = max(ends, default=1.0) * 1.05 or 1.0

    def place(x: float) -> float:
        return _clamped(50 + 50 * x / reach)

    return tuple(
        None
        if value is None or low is None or high is None
        else Estimate(place(value), place(low), max(0.4, place(high) - place(low)), "")
        for value, low, high in values
    )


@dataclass(frozen=True, slots=True)
class Spark:
    """When failures were, as bars without an axis."""

    path: str  # that draws it; empty where no times are known
    buckets: int
    peak: str  # when most of them happened, in words


def sparkline(counts: Sequence[int]) -> str:
    """Return the path of a small bar chart in a box as wide as there are counts, and 1 high.

    Each chart has its own scale: it shows when, the number beside it how many.
    """
    highest = max(counts, default=0)
    return "".join(
        f"M{at} 1v-{max(count / highest, 0.06):.2f}h.8V1z"
        for at, count in enumerate(counts)
        if count
    )


def heat_level(value: int, highest: int) -> int:
    """Return a step from 0 (nothing) to 5 (the highest cell) on a square-root scale.

    The root keeps rare combinations visible beside one dominant cell.
    """
    if value <= 0 or highest <= 0:
        return 0
    return min(5, 1 + int(4.999 * math.sqrt(value / highest)))
