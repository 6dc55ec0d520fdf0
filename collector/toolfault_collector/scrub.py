"""The second net under stored events: their texts without recognised secrets, flagged if changed.

Which texts a person may read is settled here once: what the model or the user was told, what was
received, exceptions, tags, and members nobody knows. Names and ids are left alone, since they are
what everything is counted by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from toolfault_collector import wire
from toolfault_collector.hints import may_hold_secret
from toolfault_collector.redact import redact_value

__all__ = ["scrub"]

_TEXTS: Final[dict[type[msgspec.Struct], tuple[str, ...]]] = {
    wire.Failure: ("expected", "received", "snippet", "retry_hint", "retry_context"),
    wire.Renderings: ("user", "llm", "system"),
    wire.RaisedException: ("message", "traceback"),
    wire.Issue: ("message", "expected", "received"),
}


def scrub(
    event: wire.ToolCall | wire.ToolError, extra: dict[str, Any], source: bytes | Mapping[str, Any]
) -> bool:
    """Redact the texts of *event* and *extra* in place; return whether any was changed.

    Args:
        event: The decoded event.
        extra: Its members that this version does not know.
        source: What it was decoded from: most events need no look at their texts.
    """
    if isinstance(source, bytes) and not may_hold_secret(source):
        return False
    changed = _texts(event, ("tags",))
    cleaned = redact_value(extra)
    if cleaned != extra:
        extra.update(cleaned)
        changed = True
    error = event.error
    if error is None:
        return changed
    for part in (error, error.renderings, error.exception):
        if part is not None:
            changed |= _texts(part, _TEXTS[type(part)], field=error.field)
    for issue in error.issues:
        changed |= _texts(issue, _TEXTS[wire.Issue], field=issue.field)
    return changed


def _texts(part: msgspec.Struct, names: tuple[str, ...], *, field: str | None = None) -> bool:
    changed = False
    for name in names:
        value = getattr(part, name)
        if value:
            # What was received for "password" is one, whatever it looks like.
            of = (field or "").rpartition(".")[2] if name == "received" else ""
            cleaned = redact_value(value, name=of)
            if cleaned != value:
                setattr(part, name, cleaned)
                changed = True
    return changed
