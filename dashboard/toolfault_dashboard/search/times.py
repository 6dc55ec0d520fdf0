"""Moments in a query: an age (``7d``) or a date (``2026-11-01T10:00``), both UTC."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US

__all__ = ["Moment", "parse_moment"]

_UNITS: Final = {
    "s": SECOND_US,
    "m": MINUTE_US,
    "h": 60 * MINUTE_US,
    "d": DAY_US,
    "w": 7 * DAY_US,
}
_AGE = re.compile(r"(\d{1,6})([smhdw])")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time: an age counted back from now, or microseconds since the epoch."""

    age: tuple[int, str] | None = None  # (amount, unit)
    at: int | None = None

    def resolve(self, now: int) -> int:
        """Return the moment in microseconds since the epoch, seen from *now*."""
        if self.age is not None:
            amount, unit = self.age
            return now - amount * _UNITS[unit]
        assert self.at is not None, "a moment is an age or a date"
        return self.at

    def __str__(self) -> str:
        if self.age is not None:
            return f"{self.age[0]}{self.age[1]}"
        assert self.at is not None, "a moment is an age or a date"
        when = _EPOCH + timedelta(microseconds=self.at)
        if self.at % _UNITS["d"] == 0:
            return when.date().isoformat()
        return when.replace(tzinfo=None).isoformat() + "Z"


def parse_moment(text: str) -> Moment | None:
    """Read an age (``30m``, ``24h``, ``7d``, ``2w``) or an ISO 8601 date or time; None if neither.

    A time without an offset is UTC, as everything a reader sees.
    """
    age = _AGE.fullmatch(text)
    if age is not None:
        return Moment(age=(int(age[1]), age[2]))
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        at = (when.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return Moment(at=at)
