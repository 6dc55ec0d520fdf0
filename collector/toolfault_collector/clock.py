"""Time as the collector keeps it: ``int`` microseconds since the Unix epoch, UTC."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

__all__ = [
    "DAY_US",
    "MILLISECOND_US",
    "MINUTE_US",
    "SECOND_US",
    "ClockWatch",
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


class ClockWatch:
    """Says whether the clock can be believed when it says that something is old.

    A clock is believed while it goes on from a time that was right: the newest event that is
    stored, later itself, counted on by the monotonic clock. One that is more than a day from there
    (it was set wrong, or nothing came for a long time) is believed again after it has run for a
    day without another jump: time enough for somebody, or NTP, to set it.

    Args:
        monotonic: Returns microseconds that never jump.
    """

    def __init__(self, monotonic: Callable[[], int] = lambda: time.monotonic_ns() // 1_000) -> None:
        self._monotonic = monotonic
        self._right: int | None = None
        self._doubted: tuple[int, int] | None = None

    def believes(self, now: int, *, newest: int | None) -> bool:
        """Return whether *now*, what the clock says, can be believed.

        Args:
            now: Microseconds since the epoch.
            newest: When the newest stored event was received; None if there is none.
        """
        passed = self._monotonic()
        if self._right is None:
            self._right = (now if newest is None else newest) - passed
        ahead = now - passed
        if abs(ahead - self._right) <= DAY_US:
            self._doubted = None
        elif self._doubted is None or abs(ahead - self._doubted[0]) > DAY_US:
            self._doubted = ahead, passed
            return False
        elif passed - self._doubted[1] < DAY_US:
            return False
        self._right = ahead
        return True


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
