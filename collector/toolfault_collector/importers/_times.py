"""Times of a transcript in the collector's unit: microseconds since the Unix epoch, UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Final

from toolfault_collector.clock import SECOND_US, parse_time

__all__ = ["read_time"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Years 2000 to 2100: outside it a number or a text is not a time of an agent run.
_EARLIEST: Final = 946_684_800 * SECOND_US
_LATEST: Final = 4_102_444_800 * SECOND_US
# Sources write epochs in seconds, milli-, micro- or nanoseconds; the range above tells which.
_SCALES: Final = (1_000_000.0, 1_000.0, 1.0, 0.001)


def read_time(value: object) -> int | None:
    """Read a time as transcripts write it: RFC 3339, ISO 8601 without offset (UTC), or an epoch.

    Returns:
        Microseconds since the epoch, or None for anything that is no time between 2000 and 2100.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _epoch(float(value)) if math.isfinite(value) else None
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        read = parse_time(value)
    except ValueError:
        try:
            moment = datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            read = (moment - _EPOCH) // timedelta(microseconds=1)
        except (ValueError, OverflowError):
            return None
    return read if _EARLIEST <= read <= _LATEST else None


def _epoch(value: float) -> int | None:
    for scale in _SCALES:
        read = value * scale
        if _EARLIEST <= read <= _LATEST:
            return int(read)
    return None
