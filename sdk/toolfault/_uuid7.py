"""UUIDs of version 7 without ``uuid``, which costs 12 ms at import.

Every id that the SDK makes comes from here: of events, chains and conversations.
"""

from __future__ import annotations

import os


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


def text_of(unix_seconds: float, noise: int) -> str:
    """Return the id of a time and 80 bits of noise, 74 of which it has room for."""
    value = (
        (_milliseconds(unix_seconds) << 80)
        | (0x7 << 76)
        | ((noise >> 68) << 64)
        | (0b10 << 62)
        | (noise & ((1 << 62) - 1))
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
