"""Events as bytes: what is done on the sender thread so that the caller need not."""

from __future__ import annotations

import json
import platform
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolfault import __version__
from toolfault.errors import redact_json, to_jsonable
from toolfault.telemetry._capture import Snapshot, error_member
from toolfault.telemetry._conversations import ATTEMPT, Attempt
from toolfault.telemetry._traceback import head_and_tail

# Ids and settings of the host, and the failure, whose parts were cleaned before they were composed
# into texts: cleaned again, `password: should be text` would lose its words.
_KEPT = """
    agent args_fingerprint call_id chain_id counted_by environment error event_id minute model
    occurred_at release schema_hash session_id span_id trace_id turn type user variant
"""
_AS_IT_IS = frozenset(_KEPT.split())

_LATEST = 253_402_300_799  # 9999-12-31T23:59:59Z, the last second RFC 3339 can write
_DEEPEST = 9  # levels of an event that no JSON writer takes as it is
_LONGEST = 1_000_000  # characters of its texts
_SHORTEST = 64  # characters; shorter texts of an event are never cut
_GZIP = 31  # zlib window bits that write a gzip header (zlib manual, deflateInit2)
_LEVEL = 5


def sdk_info() -> dict[str, str]:
    """Return name, version and runtime for the envelope."""
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
    if isinstance(error, Snapshot):
        wire["error"] = error_member(error)
    for name in ("occurred_at", "minute"):
        moment = wire.get(name)
        if isinstance(moment, (int, float)):
            wire[name] = rfc3339(moment)
    return {
        name: value if name in _AS_IT_IS else redact_json(value)[0] for name, value in wire.items()
    }


def encode(event: Mapping[str, Any]) -> bytes:
    """Return an event as captured in its wire form, as UTF-8 JSON."""
    return _written(finish(event))


def _written(wire: Mapping[str, Any]) -> bytes:
    """Return a finished event as UTF-8 JSON.

    Lone surrogates become question marks, NUL becomes U+FFFD and NaN becomes text: JSON, UTF-8
    or a database cannot carry them, and none of them may cost the event.

    Control characters are escaped: the text has no line feed, as the spool needs it.
    """
    try:
        text = _dumps(wire)
    except (ValueError, TypeError, RecursionError):
        text = ""
    if not text or "\\u0000" in text:
        plain = to_jsonable(wire, max_depth=_DEEPEST, max_items=1_000, max_string=_LONGEST)
        text = _dumps(plain)
    return text.encode("utf-8", "replace")


_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


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


def shortened(body: bytes, limit: int) -> bytes | None:
    """Return an encoded event within ``limit`` bytes, or None where that cannot be done.

    The names of what was cut are in its member ``truncated``: a stored event is never changed
    silently.

    Args:
        body: An encoded event.
        limit: Bytes.
    """
    event = json.loads(body)
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
        body = _written(event)
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


def rfc3339(unix_seconds: float) -> str:
    """Return ``unix_seconds`` as RFC 3339 UTC text with microseconds and ``Z``.

    Args:
        unix_seconds: Seconds since the epoch; times outside years 1970-9999 are clamped, since a
            host's clock seam must not be able to break an event.
    """
    micros = round(min(max(unix_seconds, 0.0), float(_LATEST)) * 1_000_000)
    seconds, fraction = divmod(micros, 1_000_000)
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:06d}Z"
