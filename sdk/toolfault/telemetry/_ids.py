"""Identifiers made by the sender: event ids, chain ids, conversation ids.

``uuid`` is not imported: it costs 12 ms at import time and asks the operating system for more
than one random number needs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["counter_id", "uuid7"]


def uuid7(unix_seconds: float) -> str:
    """Return a UUID version 7 (RFC 9562, section 5.7) in its 36-character text form.

    Args:
        unix_seconds: Time the id carries, seconds since the epoch (the event's own time, so that
            rows of one hour lie together in an index).

    Returns:
        48 bits of milliseconds, the version, and 74 random bits of the operating system. Those
        for the next ids are kept; a forked child forgets them, so two processes never share any.
    """
    try:
        noise = _noise.pop()
    except IndexError:
        noise = _more_noise()
    moment = f"{_milliseconds(unix_seconds):012x}"
    variant = _VARIANTS[noise[3]]
    return f"{moment[:8]}-{moment[8:]}-7{noise[:3]}-{variant}{noise[4:7]}-{noise[7:19]}"


def counter_id(unix_seconds: float, segment: str, key: Sequence[object]) -> str:
    """Return the id of a counter made from the steps in a spool segment.

    It depends on its arguments alone: the process that folds the steps again after a crash gives
    the counter the same id, and the collector keeps one of the two.

    Args:
        unix_seconds: Start of the counter's minute.
        segment: Name of the segment.
        key: What the counter counts.
    """
    from hashlib import blake2b

    digest = blake2b(repr((segment, tuple(key))).encode(), digest_size=10).digest()
    return _text(unix_seconds, int.from_bytes(digest, "big"))


def _more_noise() -> str:
    """Keep random digits for the next ids, and return those for this one.

    Asking the operating system costs a failure as much as all its texts do, so it is asked rarely.
    """
    digits = os.urandom(10 * _AT_ONCE).hex()
    _noise.extend(digits[at : at + 20] for at in range(20, len(digits), 20))
    return digits[:20]


_AT_ONCE = 64
_noise: list[str] = []  # taking one is atomic; threads that find none left may both ask for more
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_noise.clear)


# The two variant bits (10) with two random bits behind them, by a random hexadecimal digit.
_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def _milliseconds(unix_seconds: float) -> int:
    return min(max(int(unix_seconds * 1000), 0), (1 << 48) - 1)


def _text(unix_seconds: float, noise: int) -> str:
    value = (
        (_milliseconds(unix_seconds) << 80)
        | (0x7 << 76)
        | ((noise >> 68) << 64)
        | (0b10 << 62)
        | (noise & ((1 << 62) - 1))
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
