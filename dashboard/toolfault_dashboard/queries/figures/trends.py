"""When the failures of every tool were, for a small drawing beside its figures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.tables import tool_call
from toolfault_dashboard.queries.buckets import Bucket, bucket_of, bucket_start, buckets
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = ["Trends", "trends_by_tool"]

_LONG: Final = 120  # days from which they are drawn by the week
_HOURS: Final = 3  # days up to which they are drawn by the hour

_Counted = Counter[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Trends:
    """Failures by tool and bucket of time."""

    bucket: Bucket
    starts: tuple[int, ...]  # start of each bucket
    counts: Mapping[str, tuple[int, ...]]  # of a tool: its failures in each of them


def trends_by_tool(conn: Connection, scope: Scope) -> Trends:
    """Count the failures of every tool over time, each once, as it was sent.

    Those whose source has no times are in no bucket. Where the window is open the buckets go from
    the first failure to the last.
    """
    since, until = window(scope)
    end = scope.now if until is None else until - 1
    bucket = _fitting(None if since is None else (end - since) / DAY_US)
    found = _together(
        in_segments(conn, scope, _per_bucket, bucket, together=_together, stored=True)
    )
    if not found:
        return Trends(bucket, (), {})
    times = [start for _, start in found]
    first, last = min(times), max(times)
    begin = first if since is None else since
    end = last if since is None and until is None else max(begin, end)
    _, starts = buckets(begin, end, bucket, first=first, last=last)
    tools: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for (tool, start), failures in found.items():
        tools[tool][start] += failures
    return Trends(
        bucket,
        starts,
        {tool: tuple(own[start] for start in starts) for tool, own in tools.items()},
    )


def _fitting(days: float | None) -> Bucket:
    """Return the width of a bucket for a window of so many *days*; None where it is open."""
    if days is None:
        return "day"
    return "hour" if days <= _HOURS else "day" if days <= _LONG else "week"


def _per_bucket(conn: Connection, scope: Scope, bucket: Bucket) -> _Counted:
    number = bucket_of(tool_call.c.occurred_at, bucket).label("bucket")
    rows = conn.execute(
        select(tool_call.c.tool, number, func.count())
        .where(failures_of(scope), tool_call.c.time_source != "none")
        .group_by(tool_call.c.tool, number)
    )
    return Counter({(tool, bucket_start(at, bucket)): failures for tool, at, failures in rows})


def _together(segments: Sequence[_Counted], *_args: object) -> _Counted:
    found: _Counted = Counter()
    for segment in segments:
        found.update(segment)
    return found
