"""Buckets of time: hours, days and ISO weeks, all in UTC, and which of them fit a window."""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import ColumnElement, literal

from toolfault_collector.clock import DAY_US, MINUTE_US

__all__ = [
    "MOST",
    "WEEK_OFFSET",
    "WIDTH",
    "Bucket",
    "TooManyBucketsError",
    "bucket_of",
    "bucket_start",
    "buckets",
    "is_drawn_whole",
    "start_of",
]

Bucket = Literal["hour", "day", "week"]
WIDTH: Final[dict[Bucket, int]] = {"hour": 60 * MINUTE_US, "day": DAY_US, "week": 7 * DAY_US}
"""Microseconds of each bucket."""
WEEK_OFFSET: Final = 4 * DAY_US  # 5 January 1970 was a Monday (ISO 8601 weeks)
MOST: Final = 1_000
"""Buckets that an axis has at most."""


class TooManyBucketsError(ValueError):
    """A width was asked for that would make more than `MOST` buckets; says what to ask for."""


def is_drawn_whole(begin: int, end: int, bucket: Bucket | None) -> bool:
    """Say whether an axis from *begin* to *end* has no more buckets than are drawn."""
    return (end - begin) // WIDTH[bucket or _fitting(begin, end)] <= MOST


def buckets(
    begin: int,
    end: int,
    bucket: Bucket | None,
    *,
    first: int | None,
    last: int | None,
    most: int | None = MOST,
) -> tuple[Bucket, tuple[int, ...]]:
    """Return the width of the buckets between two moments, and the start of each.

    Args:
        begin: Where the axis begins, microseconds.
        end: Where it ends.
        bucket: The width; None picks one that fits.
        first: The first row, where the axis may be cut to it.
        last: The last row.
        most: How many buckets there may be; None for any number. Where the width was picked and
            there are more, even by the week, the last ones are returned.

    Raises:
        TooManyBucketsError: The width was asked for and there would be more than *most*.
    """
    asked, bucket = bucket, bucket or _fitting(begin, end)
    width = WIDTH[bucket]
    if most is not None and (end - begin) // width > most:  # a window far wider than the data
        begin = max(begin, first if first is not None else end)
        end = min(end, last if last is not None else begin)
        if asked is not None and (end - begin) // width > most:
            raise TooManyBucketsError(_advice(asked, end - begin, most))
        begin = max(begin, end - most * width)
    return bucket, tuple(range(start_of(begin, bucket), end + 1, width))


def _fitting(begin: int, end: int) -> Bucket:
    days = (end - begin) / DAY_US
    return "hour" if days <= 3 else "day" if days <= 120 else "week"


def _advice(asked: Bucket, length: int, most: int) -> str:
    """Say what to ask for instead of buckets of which there are too many."""
    fits = [each for each, width in WIDTH.items() if length // width <= most]
    instead = f"Ask with bucket={fits[0]}, or for a" if fits else "Ask for a"
    return (
        f"{instead} shorter window (since:, until:): the time asked for has"
        f" {length // WIDTH[asked] + 1:,} {asked}s, and one answer holds {most:,}."
    )


def start_of(at: int, bucket: Bucket) -> int:
    """Return the start of the bucket that *at* falls into."""
    offset = WEEK_OFFSET if bucket == "week" else 0
    return (at - offset) // WIDTH[bucket] * WIDTH[bucket] + offset


def bucket_of(column: ColumnElement[int], bucket: Bucket) -> ColumnElement[int]:
    """Return the number of the bucket that a column of moments falls into."""
    offset = literal(WEEK_OFFSET if bucket == "week" else 0)
    width = literal(WIDTH[bucket])
    return (column - offset) // width


def bucket_start(found: int, bucket: Bucket) -> int:
    """Return the start of a bucket from its number."""
    return found * WIDTH[bucket] + (WEEK_OFFSET if bucket == "week" else 0)
