"""Event ids: UUID version 7 without importing `uuid`, which costs more than the whole SDK."""

from __future__ import annotations

import os
import time

__all__ = ["new_event_id"]


def new_event_id() -> str:
    """A new UUIDv7 in its canonical text form, sortable by time.

    48 bits of milliseconds since 1970, 74 random bits, version 7 and variant 10 (RFC 9562,
    section 5.7). Random bits come from the system at each call, so ids stay unique after a fork.
    """
    stamp = (time.time_ns() // 1_000_000) & 0xFFFF_FFFF_FFFF
    noise = int.from_bytes(os.urandom(10), "big")
    rand_a = noise >> 68
    rand_b = noise & 0x3FFF_FFFF_FFFF_FFFF
    number = (stamp << 80) | (0x7 << 76) | (rand_a << 64) | (0b10 << 62) | rand_b
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
