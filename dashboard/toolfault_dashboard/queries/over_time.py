"""Failures and calls by code and time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, Literal

from sqlalchemy import ColumnElement, Connection, func, literal, select, union_all

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.tables import call_counts, tool_call
from toolfault_dashboard.queries import rollups
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.rows import FailuresOverTime, Series
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = ["Bucket", "failures_over_time"]

Bucket = Literal["hour", "day", "week"]
_WIDTH: Final[dict[Bucket, int]] = {"hour": 60 * MINUTE_US, "day": DAY_US, "week": 7 * DAY_US}
_WEEK_OFFSET: Final = 4 * DAY_US  # 5 January 1970 was a Monday (ISO 8601 weeks)
_MOST_BUCKETS: Final = 1_000


def failures_over_time(
    conn: Connection, scope: Scope, *, bucket: Bucket | None = None, top: int = 8
) -> FailuresOverTime:
    """Count failures by code and time bucket (UTC), and the calls beside them.

    Failures whose source has no times are in no bucket; ``untimed`` counts them.

    Args:
        conn: Open connection.
        scope: What to count.
        bucket: Width of a bucket; None picks one that fits the window.
        top: Codes with a line of their own; all others are added up as ``other``.
    """
    quick = rollups.usable(conn, scope)
    first, last, untimed = (*rollups.extent(conn, scope), 0) if quick else _extent(conn, scope)
    since, until = window(scope)
    begin = since if since is not None else first
    end = until - 1 if until is not None else (scope.now if since is not None else last)
    if begin is None or end is None or end < begin:
        return FailuresOverTime(bucket or "day", (), (), (), None, untimed)
    bucket, starts = _buckets(begin, end, bucket, first=first, last=last)
    counts = _failures_by_bucket(conn, scope, bucket, quick=quick)
    calls = _calls_by_bucket(conn, scope, bucket, quick=quick and bucket == "day")
    lines = [_line(code, found, starts) for code, found in counts.items()]
    lines.sort(key=lambda line: (-line.total, line.name))
    return FailuresOverTime(
        bucket=bucket,
        starts=starts,
        calls=tuple(calls[start] for start in starts),
        series=tuple(lines[:top]),
        other=_added(lines[top:]),
        untimed=untimed,
    )


def _buckets(
    begin: int, end: int, bucket: Bucket | None, *, first: int | None, last: int | None
) -> tuple[Bucket, tuple[int, ...]]:
    if bucket is None:
        days = (end - begin) / DAY_US
        bucket = "hour" if days <= 3 else "day" if days <= 120 else "week"
    width = _WIDTH[bucket]
    if (end - begin) // width > _MOST_BUCKETS:  # a window far wider than the data
        begin = max(begin, first if first is not None else end)
        end = min(end, last if last is not None else begin)
        begin = max(begin, end - _MOST_BUCKETS * width)
    return bucket, tuple(range(_start(begin, bucket), end + 1, width))


def _start(at: int, bucket: Bucket) -> int:
    offset = _WEEK_OFFSET if bucket == "week" else 0
    return (at - offset) // _WIDTH[bucket] * _WIDTH[bucket] + offset


def _bucket_of(column: ColumnElement[int], bucket: Bucket) -> ColumnElement[int]:
    offset = literal(_WEEK_OFFSET if bucket == "week" else 0)
    width = literal(_WIDTH[bucket])
    return (column - offset) // width


def _number(found: int, bucket: Bucket) -> int:
    return found * _WIDTH[bucket] + (_WEEK_OFFSET if bucket == "week" else 0)


def _extent(conn: Connection, scope: Scope) -> tuple[int | None, int | None, int]:
    """Return the first and last time of a failure, and how many have none."""
    timed = tool_call.c.time_source != "none"
    row = conn.execute(
        select(
            func.min(tool_call.c.occurred_at).filter(timed),
            func.max(tool_call.c.occurred_at).filter(timed),
            func.count().filter(tool_call.c.time_source == "none"),
        ).where(failures_of(scope))
    ).one()
    return row[0], row[1], row[2]


def _failures_by_bucket(
    conn: Connection, scope: Scope, bucket: Bucket, *, quick: bool
) -> dict[str, Counter[int]]:
    counted: Iterable[tuple[str, int, int]]
    if quick:
        offset = _WEEK_OFFSET if bucket == "week" else 0
        added = rollups.failures_per_bucket(conn, scope, width=_WIDTH[bucket], offset=offset)
        counted = ((code, number, failures) for (code, number), failures in added.items())
    else:
        at = _bucket_of(tool_call.c.occurred_at, bucket).label("bucket")
        rows = conn.execute(
            select(tool_call.c.code, at, func.count())
            .where(failures_of(scope), tool_call.c.time_source != "none")
            .group_by(tool_call.c.code, at)
        )
        counted = ((row[0] or "", row[1], row[2]) for row in rows)
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for code, number, failures in counted:
        found[code][_number(number, bucket)] += failures
    return found


def _calls_by_bucket(
    conn: Connection, scope: Scope, bucket: Bucket, *, quick: bool
) -> Counter[int]:
    if quick:
        by_day = rollups.calls_per_day(conn, scope)
        return Counter({_number(day, bucket): calls for day, calls in by_day.items()})
    minute = _bucket_of(call_counts.c.minute, bucket).label("bucket")
    folded = (
        select(minute, func.sum(call_counts.c.calls))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(minute)
    )
    at = _bucket_of(tool_call.c.occurred_at, bucket).label("bucket")
    reported = (
        select(at, func.count())
        .where(calls_of(scope), tool_call.c.time_source != "none")
        .group_by(at)
    )
    found: Counter[int] = Counter()
    for number, calls in conn.execute(union_all(reported, folded)):
        found[_number(number, bucket)] += int(calls)
    return found


def _line(name: str, counts: Counter[int], starts: tuple[int, ...]) -> Series:
    values = tuple(counts[start] for start in starts)
    return Series(name=name, counts=values, total=sum(values))


def _added(lines: list[Series]) -> Series | None:
    if not lines:
        return None
    columns = zip(*(line.counts for line in lines), strict=True)
    counts = tuple(sum(column) for column in columns)
    return Series(name="other", counts=counts, total=sum(counts))
