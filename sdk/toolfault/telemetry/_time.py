"""Wire times: RFC 3339 in UTC with microseconds, without importing ``datetime``."""

from __future__ import annotations

import time

__all__ = ["rfc3339"]

_LATEST = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second RFC 3339 can write


def rfc3339(unix_seconds: float) -> str:
    """Return ``unix_seconds`` as RFC 3339 UTC text with microseconds and ``Z``.

    Args:
        unix_seconds: Seconds since the epoch; times outside years 1970-9999 are clamped, since a
            host's clock seam must not be able to break an event.
    """
    micros = round(min(max(unix_seconds, 0.0), float(_LATEST)) * 1_000_000)
    seconds, fraction = divmod(micros, 1_000_000)
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:06d}Z"
