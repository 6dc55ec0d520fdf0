"""Failures over time, which several pages draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import BarChart, RateChart

__all__ = ["TimeChart", "TimeRow"]


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One bucket of a time chart as its table shows it."""

    label: Doc[str, "The bucket in words, UTC."]
    start: Doc[str, "Its start, RFC 3339."]
    href: Doc[str, "The failures in it."]
    counts: Doc[tuple[int, ...], "Failures per series."]
    failures: Doc[int, "All failures in it."]
    calls: Doc[int, "All calls in it."]
    rate: Doc[Rate, "Failures of its calls."]
    cut: Doc[bool, "Only a part of the bucket is counted."]


@dataclass(frozen=True, slots=True)
class TimeChart:
    """Failures over time by code: the drawing and its table."""

    chart: Doc[BarChart, "The drawing."]
    rates: Doc[RateChart | None, "The failure rate of each bucket, below it."]
    bucket: Doc[str, "Width of a bucket: `hour`, `day` or `week`."]
    names: Doc[tuple[str, ...], "Codes, in the order of the stack."]
    rows: Doc[tuple[TimeRow, ...], "The table behind the drawing."]
    untimed: Doc[int, "Failures without a time, which no bucket holds."]
    earlier: Doc[int, "Failures before the first bucket: the time has too many weeks."]
    marks: Doc[
        tuple[tuple[str, str], ...], "Changes in the window, oldest first: label and address."
    ]
    changes: Doc[str, "Where all changes are listed."]
    csv: Doc[str, "The counts as CSV."]
