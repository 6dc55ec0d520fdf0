"""Failures over time as a chart with its table and the changes that fall into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated as Doc
from typing import Final

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.charts import (
    BarChart,
    RateChart,
    Spark,
    bar_chart,
    rate_chart,
    sparkline,
)
from toolfault_dashboard.formats import day, percent, percent_interval, plural, timestamp
from toolfault_dashboard.pages.shared.ask import Ask
from toolfault_dashboard.queries.rows import ChangeRow, FailuresOverTime, Series
from toolfault_dashboard.search import Query, parse

__all__ = ["TOP_CODES", "spark", "time_chart"]


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


TOP_CODES: Final = 6  # one colour and pattern each; the seventh is "other"
_OTHER: Final = 7
_WIDTH: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _label(bucket: str, start: int, now: int) -> str:
    moment = _moment(start)
    return f"{day(moment, now)}, {moment:%H:%M}" if bucket == "hour" else day(moment, now)


def spark(bucket: str, starts: Sequence[int], counts: Sequence[int], now: int) -> Spark:
    """Draw *counts* of the buckets that begin at *starts*, without an axis."""
    return Spark(sparkline(counts), len(starts), _peak(bucket, starts, counts, now))


def _peak(bucket: str, starts: Sequence[int], counts: Sequence[int], now: int) -> str:
    """Say in which of the buckets that begin at *starts* most failures were; empty for none."""
    highest = max(counts, default=0)
    if not highest:
        return ""
    start = starts[counts.index(highest)]
    return f"most: {plural(highest, 'failure')}, {_words(bucket, start, now)}"


def _words(bucket: str, start: int, now: int) -> str:
    """Name the bucket that begins at *start*, in UTC."""
    label = _label(bucket, start, now)
    return {"hour": f"{label} UTC", "week": f"Week of {label}"}.get(bucket, label)


def time_chart(
    ask: Ask, found: FailuresOverTime, changes: Sequence[ChangeRow] = (), *, at: str = "/failures"
) -> TimeChart | None:
    """Return the chart of failures over time, None when no failure has a time.

    Args:
        ask: The request; links keep its query.
        found: The counts.
        changes: Changes to mark; those outside the buckets are left out.
        at: The page that the table's links open.
    """
    if not found.starts or (found.untimed and not found.series):
        return None
    series = [*found.series[:TOP_CODES]]
    numbers = list(range(1, len(series) + 1))
    if found.other is not None:
        series.append(found.other)
        numbers.append(_OTHER)
    starts, bucket = found.starts, found.bucket
    width = _WIDTH[bucket] // timedelta(microseconds=1)
    end = starts[-1] + width
    marked = sorted(
        (each for each in changes if starts[0] <= each.occurred_at < end),
        key=lambda each: each.occurred_at,
    )
    failures = [sum(line.counts[i] for line in series) for i in range(len(starts))]
    rest = ask.query.without("since", "until")
    links = [
        ask.link(at, rest.and_(_between(start, start + width)), window="") if failures[i] else ""
        for i, start in enumerate(starts)
    ]
    words = [
        _words(bucket, start, ask.now) + (f", a part of the {bucket}" if at in found.cut else "")
        for at, start in enumerate(starts)
    ]
    chart = bar_chart(
        [_label(bucket, start, ask.now) for start in starts],
        [(line.name or "no code", line.counts) for line in series],
        titles=[
            f"{name}: {plural(failures[i], 'failure')} of {plural(found.calls[i], 'call')}"
            for i, name in enumerate(words)
        ],
        marks=[(each.occurred_at - starts[0]) / (end - starts[0]) for each in marked],
        numbers=numbers,
        links=links,
        spans=[(_moment_text(start), _moment_text(start + width)) for start in starts],
        cut=found.cut,
    )
    return TimeChart(
        chart=chart,
        rates=rate_chart(
            found.rates,
            titles=[
                f"{name}: {percent(each.value)} of {plural(each.n, 'call')} failed,"
                f" 95% interval {percent_interval(each)}"
                for name, each in zip(words, found.rates, strict=True)
            ],
        ),
        bucket=bucket,
        names=tuple(line.name or "no code" for line in series),
        rows=_rows(found, series, links, ask.now),
        untimed=found.untimed,
        earlier=found.earlier,
        marks=tuple(
            (each.label, ask.link(f"/changes/{each.event_id}", "", window="")) for each in marked
        ),
        changes=ask.link("/changes", "", window=""),
        csv=ask.export("/over-time.csv"),
    )


def _rows(
    found: FailuresOverTime, series: Sequence[Series], links: Sequence[str], now: int
) -> tuple[TimeRow, ...]:
    counts = [tuple(line.counts[i] for line in series) for i in range(len(links))]
    return tuple(
        TimeRow(
            label=_words(found.bucket, start, now),
            start=timestamp(start),
            href=link,
            counts=each,
            failures=sum(each),
            calls=found.calls[at],
            rate=found.rates[at],
            cut=at in found.cut,
        )
        for at, (start, link, each) in enumerate(zip(found.starts, links, counts, strict=True))
    )


def _moment_text(at: int) -> str:
    return f"{_moment(at):%Y-%m-%dT%H:%M:%S}Z"


def _between(start: int, end: int) -> Query:
    return parse(f"since:{_moment_text(start)} until:{_moment_text(end)}")
