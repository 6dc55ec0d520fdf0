"""What is kept of refused events: redacted and capped, and made before any transaction begins.

What is kept is JSON wherever the event was, with the members of the batch's resource that the event
left out: that is all it needs to be stored like any other event once its fault is understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from toolfault_collector.protocol.decode import INHERITED
from toolfault_collector.protocol.redaction.rules import redact_bluntly, redact_value
from toolfault_collector.protocol.repair import clean_text

__all__ = ["MAX_BODY", "MAX_PER_BATCH", "Rejection", "event_id_of", "with_bodies"]

# Kept of one event; enough to see what the sender built.
MAX_BODY: Final = 16_384
# Kept of one batch: a sender that is wrong is wrong in every event.
MAX_PER_BATCH: Final = 100
# Characters of one batch that are redacted. A quarter of a millisecond each thousand, during which
# no other project is stored: of what is beyond only id, code and pointer are kept.
MAX_REDACTED: Final = 262_144
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_NAMED_UUID: Final = re.compile(rb'"event_id"\s*:\s*"(' + _UUID.pattern.encode() + rb')"')


class _Named(msgspec.Struct):
    event_id: Any = None


_NAMED: Final = msgspec.json.Decoder(_Named)


@dataclass(frozen=True, slots=True)
class Rejection:
    """One event that is not stored: where it stood in its batch, why, and what is kept of it."""

    index: int
    event_id: str | None
    code: str
    pointer: str
    source: bytes | Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    body: str | None = field(default=None, repr=False, compare=False)


def event_id_of(source: bytes | Mapping[str, Any]) -> str | None:
    """Return the id that a refused event names, if it is one; nothing else of it is repeated."""
    if isinstance(source, Mapping):
        named = source.get("event_id")
    else:
        try:
            named = _NAMED.decode(source).event_id
        except (msgspec.MsgspecError, RecursionError):  # no JSON of this kind: what looks like it
            match = _NAMED_UUID.search(source)
            return match.group(1).decode() if match else None
    return named if isinstance(named, str) and _UUID.fullmatch(named) else None


def with_bodies(rejected: Iterable[Rejection], resource: Mapping[str, str]) -> list[Rejection]:
    """Return *rejected* with what is kept of each, as far as the limits of one batch go.

    Args:
        rejected: The refused events of one batch.
        resource: What the batch says of its sender.
    """
    left, found = MAX_REDACTED, list[Rejection]()
    for number, rejection in enumerate(rejected):
        text = _text(rejection.source) if number < MAX_PER_BATCH else None
        if text is None or left <= 0:
            found.append(rejection)
            continue
        left -= min(len(text), 4 * MAX_BODY)
        found.append(replace(rejection, body=_body(text, resource)))
    return found


def _text(source: bytes | Mapping[str, Any] | None) -> str | None:
    if source is None:
        return None
    return (
        _encode(source) if isinstance(source, Mapping) else str(bytes(source), "utf-8", "replace")
    )


def _body(text: str, resource: Mapping[str, str]) -> str:
    if len(text) <= 4 * MAX_BODY:
        with suppress(ValueError, RecursionError):  # no JSON, or too deep even to be looked at
            return _whole(json.loads(text), resource)[:MAX_BODY]
    return clean_text(redact_bluntly(text[: 4 * MAX_BODY])[:MAX_BODY])


def _whole(event: Any, resource: Mapping[str, str]) -> str:
    if isinstance(event, dict):
        event = {name: resource[name] for name in INHERITED if name in resource} | event
    # Escaped: a lone surrogate, for which it may have been refused, is no text for a database.
    return json.dumps(redact_value(event, clean=redact_bluntly), separators=(",", ":"))


def _encode(source: Mapping[str, Any]) -> str:
    try:
        return json.dumps(source, default=str)
    except (ValueError, TypeError, RecursionError):
        return repr(dict(source))
