"""Intervals side by side, as geometry: how a difference was known at one moment after another.

Like ``charts``: horizontal positions are percentages, vertical ones pixels, the table follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Final

from toolfault_dashboard.charts import Tick

__all__ = ["Reading", "Whisker", "WhiskerChart", "whisker_chart"]

HEIGHT: Final = 200.0  # px from the highest to the lowest value that is drawn
TOP: Final = 10.0
_FEET: Final = 24.0  # px below, for the labels of moments
_WIDEST: Final = 3.0  # how much wider than the last interval an early one is drawn
_SHARE: Final = 0.7  # of a moment's width that its intervals take together
_LABELS: Final = 7
_LEAST: Final = 1e-9  # intervals that are narrower are points


def _nice(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten, the highest that is at most *value*."""
    power = 10.0 ** floor(log10(value))
    return max(factor * power for factor in (1, 2, 5) if factor * power <= value * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Reading:
    """One interval at one moment."""

    moment: int  # place on the axis, from 0
    series: int  # 1 to 7: colour and pattern
    value: float
    low: float
    high: float
    title: str


@dataclass(frozen=True, slots=True)
class Whisker:
    """One interval, drawn: a bar from end to end and a dot at the estimate."""

    x: float  # percent, of the middle
    left: float  # percent
    width: float  # percent
    top: float  # px
    height: float  # px
    at: float  # px, of the estimate; outside of the drawing where it lies beyond
    series: int
    title: str


@dataclass(frozen=True, slots=True)
class WhiskerChart:
    """Intervals over time around a line of no difference."""

    whiskers: tuple[Whisker, ...]
    ticks: tuple[Tick, ...]
    x_ticks: tuple[Tick, ...]
    zero: float  # px
    bottom: float  # px
    height: float  # px
    cut: bool  # an interval goes beyond the edge


def whisker_chart(
    labels: Sequence[str],
    readings: Sequence[Reading],
    *,
    shown: Callable[[float], str],
) -> WhiskerChart | None:
    """Lay out intervals around zero; None without any.

    The first days know so little that their intervals would flatten all others: what is wider than
    three times the last ones is cut at the edge, and the table has its ends.

    Args:
        labels: The moments, in order.
        readings: The intervals.
        shown: How a value is written at the axis.
    """
    if not readings:
        return None
    last = max(each.moment for each in readings)
    newest = [abs(end) for each in readings if each.moment == last for end in (each.low, each.high)]
    widest = max(abs(end) for each in readings for end in (each.low, each.high))
    reach = min(widest, _WIDEST * max(newest)) * 1.05
    reach = reach if reach > _LEAST else 1.0
    step = _nice(reach / 2.5)

    def y(value: float) -> float:
        return round(TOP + HEIGHT * (1 - (min(reach, max(-reach, value)) + reach) / (2 * reach)), 2)

    order = sorted({each.series for each in readings})
    slot = 100 / max(1, len(labels))
    part = slot * _SHARE / len(order)

    def drawn(each: Reading) -> Whisker:
        left = each.moment * slot + slot * (1 - _SHARE) / 2 + order.index(each.series) * part
        top, bottom = y(each.high), y(each.low)
        inner = part * 0.8
        return Whisker(
            x=left + inner / 2,
            left=left,
            width=inner,
            top=top,
            height=max(1.0, round(bottom - top, 2)),
            at=y(each.value) if abs(each.value) <= reach else -100.0,
            series=each.series,
            title=each.title,
        )

    every = max(1, -(-len(labels) // _LABELS))
    return WhiskerChart(
        whiskers=tuple(drawn(each) for each in readings),
        ticks=tuple(
            Tick(at=y(times * step), label=shown(times * step), anchor="end")
            for times in range(-int(reach / step), int(reach / step) + 1)
            if times
        ),
        x_ticks=tuple(
            Tick((index + 0.5) * slot, labels[index], extra=bool(number % 2))
            for number, index in enumerate(range(0, len(labels), every))
        ),
        zero=y(0.0),
        bottom=TOP + HEIGHT,
        height=TOP + HEIGHT + _FEET,
        cut=widest > reach,
    )
