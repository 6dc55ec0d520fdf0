"""Time as the collector keeps it: ``int`` microseconds since the Unix epoch, UTC."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

__all__ = [
    "DAY_US",
    "MILLISECOND_US",
    "MINUTE_US",
    "SECOND_US",
    "format_time",
    "now_us",
    "parse_time",
]

MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
DAY_US: Final = 24 * 60 * MINUTE_US

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

# RFC 3339 section 5.6. The offset is required: a time without one is a guess.
_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_LEAP_SECOND: Final = 60


def now_us() -> int:
    """Return the current time in microseconds since the epoch."""
    return time.time_ns() // 1_000


def parse_time(text: str) -> int:
    """Return the microseconds since the epoch of an RFC 3339 *text*.

    Digits beyond microseconds are cut; a leap second is the first instant of the next minute, as
    POSIX time has none.

    Raises:
        ValueError: *text* is no RFC 3339 time, has no UTC offset, or names a day that never was.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        message = "not an RFC 3339 time with a UTC offset, such as 2026-01-31T12:00:00Z"
        raise ValueError(message)
    day, minute, second, fraction, offset = match.groups()
    seconds = int(second)
    if seconds > _LEAP_SECOND:
        message = "seconds must be 00 to 60"
        raise ValueError(message)
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return _minute(f"{day}T{minute}:00{'+00:00' if offset in 'Zz' else offset}") + (
        seconds * SECOND_US + micros
    )


@lru_cache(maxsize=1_024)
def _minute(text: str) -> int:
    """Return the microseconds since the epoch of the minute *text*; most events share a few."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def format_time(us: int) -> str:
    """Return *us* (microseconds since the epoch) as RFC 3339 UTC with microseconds."""
    return (_EPOCH + timedelta(microseconds=us)).isoformat(timespec="microseconds")[:-6] + "Z"
