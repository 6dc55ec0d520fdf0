"""Chance by conversation: the same conversation always draws the same lot, in every process."""

from __future__ import annotations

__all__ = ["draw"]


def draw(unit: str, lottery: str) -> float:
    """Return a number from [0, 1) that depends on ``unit`` and ``lottery`` alone.

    Two lotteries are independent of each other. Source: BLAKE2b in keyed mode (RFC 7693); the
    first 53 bits make a float, as ``random.random`` does.

    Args:
        unit: Who draws, as a rule a conversation id.
        lottery: What is drawn for; the key of the hash.
    """
    from hashlib import blake2b

    key = lottery.encode("utf-8", "replace")
    if len(key) > 64:
        key = blake2b(key).digest()
    digest = blake2b(unit.encode("utf-8", "replace"), key=key, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / float(1 << 53)
