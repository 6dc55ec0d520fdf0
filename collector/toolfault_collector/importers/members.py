"""Members of JSON objects as sources write them: names, texts, times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from toolfault_collector.clock import SECOND_US, parse_time

__all__ = ["cut", "name_of", "objects_of", "read_time", "result_text", "text_of"]

_BLOCK_LIMIT: Final = 1_000
_DEPTH: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Years 2000 to 2100: outside it a number or a text is not a time of an agent run.
_EARLIEST: Final = 946_684_800 * SECOND_US
_LATEST: Final = 4_102_444_800 * SECOND_US
# Sources write epochs in seconds, milli-, micro- or nanoseconds; the range above tells which.
_SCALES: Final = (1_000_000.0, 1_000.0, 1.0, 0.001)


def name_of(value: object) -> str | None:
    """Give a string that says something; anything else is no name."""
    return value if isinstance(value, str) and value else None


def objects_of(value: object) -> list[Mapping[str, object]]:
    """Give the objects in a list, or nothing where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def cut(text: str, limit: int) -> str:
    """Shorten to at most *limit* characters, keeping the beginning and saying that it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_of(content: object) -> str:
    """Give the text of a message's content: a string, a list of text blocks, a number, or nothing.

    Blocks that carry no text (images, documents) are passed over.
    """
    if isinstance(content, list):
        parts = (_block_text(block) for block in content[:_BLOCK_LIMIT])
        return "\n".join(part for part in parts if part)
    return _block_text(content)


def result_text(value: object) -> str:
    """Give the text of a result or an error, which may be an object with a message, or any JSON."""
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        return str(value["message"])
    text = text_of(value)
    try:
        return text if text or value is None else json.dumps(value, default=str)
    except (RecursionError, ValueError):
        return text


def _block_text(block: object) -> str:
    """Give the text of one block, which may hold its text one or two levels down."""
    for _ in range(_DEPTH):
        if not isinstance(block, dict):
            break
        block = block.get("text", block.get("content"))
    if isinstance(block, str):
        return block
    if isinstance(block, int | float) and not isinstance(block, bool):
        return str(block)
    return ""


def read_time(value: object) -> int | None:
    """Read a time as transcripts write it: RFC 3339, ISO 8601 without offset (UTC), or an epoch.

    Returns:
        Microseconds since the epoch, or None for anything that is no time between 2000 and 2100.
    """
    try:
        if isinstance(value, str) and 10 <= len(value) <= 40:
            times = [_text_time(value)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            times = [value * scale for scale in _SCALES]
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return next((int(time) for time in times if _EARLIEST <= time <= _LATEST), None)


def _text_time(text: str) -> float:
    try:
        return parse_time(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
