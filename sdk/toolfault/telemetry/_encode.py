"""Events as bytes: what is done on the sender thread so that the caller need not."""

from __future__ import annotations

import json
import platform
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolfault.errors import redact_json
from toolfault.telemetry._arguments import Attempt
from toolfault.telemetry._sealed import Sealed, error_member
from toolfault.telemetry._time import rfc3339

__all__ = ["ATTEMPT", "encode_event", "envelope", "finish", "sdk_info"]

ATTEMPT = "(arguments)"  # member of an unfinished event that never travels

# Ids and settings of the host, and the failure, whose parts were cleaned before they were composed
# into texts: cleaned again, `password: should be text` would lose its words.
_KEPT = """
    agent args_fingerprint call_id chain_id environment error event_id minute model occurred_at
    release schema_hash session_id span_id trace_id turn type user variant
"""
_AS_IT_IS = frozenset(_KEPT.split())

_GZIP = 31  # zlib window bits that write a gzip header (zlib manual, deflateInit2)
_LEVEL = 5


def sdk_info() -> dict[str, str]:
    """Return name, version and runtime for the envelope."""
    from toolfault import __version__

    runtime = f"{platform.python_implementation()} {platform.python_version()}"
    return {"name": "toolfault-python", "version": __version__, "runtime": runtime}


def finish(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event in its wire form: no empty members, times as text, the error composed.

    Every name and text in it is cleaned of secrets here, whoever wrote it, so that no member can
    be forgotten. An event that is finished already stays as it is but for empty members.
    """
    wire = {name: value for name, value in event.items() if not _is_empty(value)}
    compared = wire.pop(ATTEMPT, None)
    if isinstance(compared, Attempt):
        wire.update((name, told) for name, told in compared.members().items() if told)
    error = wire.get("error")
    if isinstance(error, Sealed):
        wire["error"] = error_member(error)
    for name in ("occurred_at", "minute"):
        moment = wire.get(name)
        if isinstance(moment, (int, float)):
            wire[name] = rfc3339(moment)
    return {
        name: value if name in _AS_IT_IS else redact_json(value)[0] for name, value in wire.items()
    }


def encode_event(wire: Mapping[str, Any], *, ascii_only: bool = False) -> bytes:
    """Return a finished event as UTF-8 JSON.

    Lone surrogates become question marks, NUL becomes U+FFFD and NaN becomes text: JSON, UTF-8
    or a database cannot carry them, and none of them may cost the event.

    Args:
        wire: A finished event.
        ascii_only: Escape everything else, as the spool needs it.
    """
    try:
        text = _dumps(wire, ascii_only=ascii_only)
    except (ValueError, TypeError, RecursionError):
        text = _dumps(_plain(wire, 0), ascii_only=ascii_only)
    if "\\u0000" in text or (ascii_only and "\\ud" in text):
        text = _dumps(_plain(wire, 0), ascii_only=ascii_only)
    return text.encode("utf-8", "replace")


_WIRE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_ASCII = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode


def _dumps(value: object, *, ascii_only: bool) -> str:
    return _ASCII(value) if ascii_only else _WIRE(value)


def envelope(
    head: Mapping[str, Any],
    events: Sequence[bytes],
    pause: Callable[[], None] = lambda: None,
) -> bytes:
    """Return a gzip-compressed request body.

    Args:
        head: Everything of the envelope but its events.
        events: Encoded events.
        pause: Called between events; the sender lets other threads run there.
    """
    start = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    pack = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    parts = [pack.compress(start[:-1] + b',"events":[')]
    for index, event in enumerate(events):
        parts.append(pack.compress(b"," + event if index else event))
        pause()
    parts.append(pack.compress(b"]}"))
    parts.append(pack.flush())
    return b"".join(parts)


def _is_empty(value: object) -> bool:
    return value is None or (type(value) in (list, tuple, dict) and not value)


def _plain(value: object, depth: int) -> Any:
    """Return ``value`` in JSON types and encodable text, whatever it was."""
    if value is None or type(value) in (int, bool):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if isinstance(value, float):
        finite = value == value and abs(value) != float("inf")  # noqa: PLR0124 - NaN test
        return value if finite else str(value)
    if depth > 8:
        return "…"
    if isinstance(value, dict):
        return {
            str(_plain(str(key), depth)): _plain(member, depth + 1)
            for key, member in list(value.items())[:200]
        }
    if isinstance(value, (list, tuple)):
        return [_plain(member, depth + 1) for member in value[:1000]]
    return f"<{type(value).__name__}>"
