"""Failures and calls by code and time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, Select, func, literal, select, union_all

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.weights import rate_within, whole
from toolfault_dashboard.queries.buckets import (
    MOST,
    WEEK_OFFSET,
    WIDTH,
    Bucket,
    bucket_of,
    bucket_start,
    buckets,
    is_drawn_whole,
    start_of,
)
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.memoise import answered
from toolfault_dashboard.queries.counting.sampling_weights import Sampling, sampling, weight
from toolfault_dashboard.queries.figures.summaries import calls_per_trial
from toolfault_dashboard.queries.figures.totals import calls_by, extent
from toolfault_dashboard.queries.periods import ends_of_calls
from toolfault_dashboard.queries.rows import FailuresOverTime, Series
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = ["Bucket", "failures_over_time"]


def failures_over_time(
    conn: Connection,
    scope: Scope,
    *,
    bucket: Bucket | None = None,
    top: int = 8,
    most: int | None = MOST,
) -> FailuresOverTime:
    """Count failures by code and time bucket (UTC), and the calls beside them.

    Failures whose source has no times are in no bucket; ``untimed`` counts them. Where the window
    is open the buckets go from the first call to the last, whether they failed or not.

    Args:
        conn: Open connection.
        scope: What to count.
        bucket: Width of a bucket; None picks one that fits the window.
        top: Codes with a line of their own; all others are added up as ``other``.
        most: How many buckets there may be; None for any number.

    Raises:
        TooManyBucketsError: *bucket* is given and there would be more than *most*.
    """
    since, until = window(scope)
    quick = rollups.usable(conn, scope, keys=rollups.PAIR_KEYS)
    first: int | None = None
    last: int | None = None
    # Where it is known that there is no call, an index need not be read through to find none.
    none = answered(conn, calls_by, scope, "tool") == {}
    if not none and (since is None or not is_drawn_whole(since, until or scope.now, bucket)):
        first, last = ends_of_calls(conn, scope)
    begin = since if since is not None else first
    end = until - 1 if until is not None else (scope.now if since is not None else last)
    if begin is None or end is None or end < begin:
        return FailuresOverTime(
            bucket or "day", (), (), (), None, 0 if quick else extent(conn, scope).untimed
        )
    bucket, starts = buckets(begin, end, bucket, first=first, last=last, most=most)
    sampled = sampling(conn, scope.project_id)
    # Of sampled failures the rollups have days and tools, not hours.
    if quick and not sampled.failures and (bucket != "hour" or rollups.usable(conn, scope)):
        counts = _from_rollups(conn, scope, bucket)
        calls = _calls_from_rollups(conn, scope, bucket, sampled)
        untimed = 0
    else:
        counts, calls, untimed = _from_rows(conn, scope, bucket, sampled)
    lines = [_line(code, found, starts) for code, found in counts.items()]
    lines.sort(key=lambda line: (-line.total, line.name))
    failed = {start: sum(found[start] for found in counts.values()) for start in starts}
    per_trial = calls_per_trial(conn, scope)
    return FailuresOverTime(
        bucket=bucket,
        starts=starts,
        calls=tuple(whole(calls[start]) for start in starts),
        series=tuple(lines[:top]),
        other=_added(lines[top:]),
        untimed=untimed,
        rates=tuple(
            rate_within(failed[start], calls[start], per_trial, weighed=sampled.calls)
            for start in starts
        ),
        cut=_cut(starts, WIDTH[bucket], since, min(scope.now, until or scope.now)),
        earlier=whole(
            sum(n for each in counts.values() for at, n in each.items() if at < starts[0])
        ),
    )


def _cut(starts: tuple[int, ...], width: int, since: int | None, until: int) -> tuple[int, ...]:
    """Return the places of buckets of which the window holds a part; *until* is at most now."""
    return tuple(
        at
        for at, start in enumerate(starts)
        if (since is not None and start < since) or start < until < start + width
    )


_Numbers = dict[int, float]
_Counts = dict[str, _Numbers]


def _from_rollups(conn: Connection, scope: Scope, bucket: Bucket) -> _Counts:
    """Return failures by code and start of their bucket."""
    offset = WEEK_OFFSET if bucket == "week" else 0
    found: defaultdict[str, _Numbers] = defaultdict(_numbers)
    added = rollups.failures_per_bucket(conn, scope, width=WIDTH[bucket], offset=offset)
    for (code, number), failures in added.items():
        found[code][bucket_start(number, bucket)] += failures
    return found


def _numbers() -> defaultdict[int, float]:
    return defaultdict(int)


def _calls_from_rollups(
    conn: Connection, scope: Scope, bucket: Bucket, sampled: Sampling
) -> _Numbers:
    """Return calls by start of their bucket; by the hour there is no rollup of them."""
    if bucket == "hour":
        return _from_rows(conn, scope, bucket, sampled, failures=False)[1]
    found = _numbers()
    for day, calls in rollups.calls_per_day(conn, scope).items():
        found[start_of(day * DAY_US, bucket)] += calls
    return found


def _from_rows(
    conn: Connection, scope: Scope, bucket: Bucket, sampled: Sampling, *, failures: bool = True
) -> tuple[_Counts, _Numbers, int]:
    """Return failures by code and bucket (its start), calls by bucket, and failures untimed."""
    at = bucket_of(tool_call.c.occurred_at, bucket).label("bucket")
    minute = bucket_of(call_counts.c.minute, bucket).label("bucket")
    timed = tool_call.c.time_source != "none"
    call: Any = literal("call").label("kind")
    failure: Any = literal("failure").label("kind")
    code: Any = literal("").label("code")
    called, failed = (
        func.sum(weight()) if each else func.count() for each in (sampled.calls, sampled.failures)
    )
    parts: list[Select[Any]] = [
        select(call, code, at, called).where(calls_of(scope), timed).group_by(at),
        select(call, code, minute, func.sum(call_counts.c.calls))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(minute),
    ]
    if failures:
        parts += [
            select(failure, tool_call.c.code, at, failed)
            .where(failures_of(scope), timed)
            .group_by(tool_call.c.code, at),
            select(literal("untimed").label("kind"), code, literal(0), func.count()).where(
                failures_of(scope), tool_call.c.time_source == "none"
            ),
        ]
    counts: defaultdict[str, _Numbers] = defaultdict(_numbers)
    calls = _numbers()
    untimed = 0
    for kind, name, number, found in conn.execute(union_all(*parts)):
        if kind == "call":
            calls[bucket_start(number, bucket)] += float(found) if sampled.calls else int(found)
        elif kind == "untimed":
            untimed = int(found)
        else:
            each = float(found) if sampled.failures else int(found)
            counts[name or ""][bucket_start(number, bucket)] += each
    return counts, calls, untimed


def _line(name: str, counts: _Numbers, starts: tuple[int, ...]) -> Series:
    values = tuple(whole(counts[start]) for start in starts)
    return Series(name=name, counts=values, total=sum(values))


def _added(lines: list[Series]) -> Series | None:
    if not lines:
        return None
    columns = zip(*(line.counts for line in lines), strict=True)
    counts = tuple(sum(column) for column in columns)
    return Series(name="other", counts=counts, total=sum(counts))
