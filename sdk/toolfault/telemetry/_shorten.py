"""Events that are too large lose the middle of their longest texts, and say so."""

from __future__ import annotations

import json
from typing import Any

from toolfault.telemetry._encode import encode_event
from toolfault.telemetry._frames import head_and_tail

__all__ = ["shortened"]

_SHORTEST = 64


def shortened(body: bytes, limit: int) -> bytes | None:
    """Return an encoded event within ``limit`` bytes, or None where that cannot be done.

    The names of what was cut are in its member ``truncated``: a stored event is never changed
    silently.

    Args:
        body: An encoded event.
        limit: Bytes.
    """
    event = json.loads(body)
    ascii_only = body.isascii()
    cut: list[str] = []
    while len(body) > limit:
        texts = sorted(_texts(event, "", []), key=lambda found: -len(found[1][found[2]]))
        longest = [found for found in texts[:8] if len(found[1][found[2]]) > _SHORTEST]
        if longest:
            for name, holder, key in longest:
                holder[key] = head_and_tail(holder[key], max(len(holder[key]) // 2, _SHORTEST))
                cut.append(name)
        elif not _drop_issues(event):
            return None
        event["truncated"] = sorted(set(cut))
        body = encode_event(event, ascii_only=ascii_only)
    return body


def _texts(value: Any, path: str, found: list[Any]) -> list[tuple[str, Any, Any]]:
    """Return every text with where it stands; ids are left alone, they are short."""
    pairs = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, member in pairs:
        name = f"{path}.{key}" if path else str(key)
        if isinstance(member, str):
            found.append((name, value, key))
        else:
            _texts(member, name, found)
    return found


def _drop_issues(event: dict[str, Any]) -> bool:
    """Halve the list of issues; False when there is nothing left to drop."""
    error = event.get("error")
    issues = error.get("issues") if isinstance(error, dict) else None
    if not issues:
        return False
    del issues[len(issues) // 2 :]
    return True
