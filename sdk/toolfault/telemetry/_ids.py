"""Identifiers that depend on what they identify, beside the random ones of ``uuid7``."""

from __future__ import annotations

from collections.abc import Sequence

from toolfault._uuid7 import text_of, uuid7

__all__ = ["counter_id", "uuid7"]


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
    return text_of(unix_seconds, int.from_bytes(digest, "big"))
