"""Bytes to events: the typed decoder first, the repairing one for what it refuses.

One event never spoils its neighbours: the batch is split into raw events by one pass that checks
that the whole is JSON, and each is decoded alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from toolfault_collector.protocol import wire
from toolfault_collector.protocol.repair import (
    Refused,
    Repeated,
    clean_event,
    clean_text,
    refuse_unsafe,
    repeats,
)

__all__ = [
    "INHERITED",
    "BadBatch",
    "Decoded",
    "OpenBatch",
    "clean_resource",
    "decode_event",
    "open_batch",
]

# One event: a failure with every text at its limit is about 190 KiB.
MAX_EVENT_BYTES: Final = 256 * 1024
# One batch: SDKs send 200; a request of 1,000 is stored in some 100 ms.
MAX_EVENTS: Final = 1_000
# One batch: commas and opening brackets, in texts too, which are no fewer than its values. Each
# value costs up to two microseconds, so 20 MiB of them would be 20 s. SDKs send a MiB in all.
MAX_VALUES: Final = 1_048_576
# Reasons for which a sender may say it dropped events, and characters of one.
MAX_REASONS: Final = 100
MAX_LABEL: Final = 64
# What an event takes from the resource of its batch where it has none, and characters of one.
INHERITED: Final = ("agent", "model", "provider", "environment", "release", "variant", "user")
MAX_RESOURCE: Final = 128

_ENVELOPE: Final = msgspec.json.Decoder(wire.Envelope)
_EVENT: Final = msgspec.json.Decoder(wire.Event)
_ANYTHING: Final = msgspec.json.Decoder()
_ENCODER: Final = msgspec.json.Encoder()
_IMPORTED: Final = msgspec.json.Decoder(wire.ImportedEvent)
_NUL: Final = b"\\u0000"
_QUOTE: Final = b"\\u0022"


class BadBatch(Exception):  # noqa: N818 - becomes an answer, names no fault of ours
    """The batch as a whole cannot be read.

    Attributes:
        status: HTTP status: 400 not JSON, 413 too many events, 422 JSON of another shape.
        code: Stable name of what is wrong.
        pointer: JSON pointer of where, if it is JSON.
        detail: What is wrong and what to do, for people.
    """

    def __init__(self, status: int, code: str, pointer: str = "", *, detail: str = "") -> None:
        super().__init__(f"{code} at {pointer or '/'}")
        self.status = status
        self.code = code
        self.pointer = pointer
        self.detail = detail or _DETAILS[status]


_DETAILS: Final = {
    400: "the body is not one JSON document in UTF-8",
    413: "too many events or values in one batch; split it and send the parts",
    422: 'the body is no batch; send {"schema_version": 1, "events": [...]}',
}


# An event, the flags of what was changed on the way in, and its members that nobody knows.
Decoded = tuple[wire.Event | wire.ImportedEvent, list[str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """One batch whose events are not looked at yet.

    Attributes:
        events: Each a JSON object.
        too_new: Whether a newer version wrote it.
        resource: What events inherit.
        resource_flags: By name, the flag of a member of the resource that was changed.
        dropped: What the sender says it lost, by reason.
    """

    events: list[Any]
    too_new: bool
    resource: dict[str, str]
    resource_flags: dict[str, str]
    dropped: dict[str, int]


def open_batch(body: bytes, *, max_events: int = MAX_EVENTS) -> OpenBatch:
    """Return the batch in the JSON *body* of a request.

    Args:
        body: The decompressed body.
        max_events: Events it may have.

    Raises:
        BadBatch: It is not JSON, not a batch, or too long.
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadBatch(413, "too_many_values")
    envelope = _envelope(body)
    if len(envelope.events) > max_events:
        raise BadBatch(413, "too_many_events", "/events")
    too_new = envelope.schema_version > wire.SCHEMA_VERSION
    resource, changed = clean_resource(envelope.resource)
    return OpenBatch(envelope.events, too_new, resource, changed, _dropped(envelope.dropped))


def decode_event(
    source: bytes | Mapping[str, Any], *, imported: bool, max_bytes: int = MAX_EVENT_BYTES
) -> Decoded:
    """Return the event of *source*, the flags of what was changed, and its unknown members.

    Args:
        source: One JSON object, as bytes or as a mapping.
        imported: Whether the members that only importers may set are accepted.
        max_bytes: Bytes it may have.

    Raises:
        Refused: It cannot be stored.
        BadBatch: It is no JSON, so nothing around it is.
    """
    if isinstance(source, Mapping):
        return _decode_mapping(source, imported=imported, max_bytes=max_bytes)
    if len(source) > max_bytes:
        raise Refused("event_too_large")
    if _NUL not in source:
        try:
            event = (_IMPORTED if imported else _EVENT).decode(source)
        except (msgspec.MsgspecError, ValueError):
            return clean_event(_load(source), imported=imported)
        if _is_plain(event) and not _may_say_more(event, source):
            return event, [], {}
    return clean_event(_load(source), imported=imported)


def _decode_mapping(source: Mapping[str, Any], *, imported: bool, max_bytes: int) -> Decoded:
    try:
        raw = msgspec.json.encode(source)
    except (UnicodeEncodeError, TypeError, msgspec.MsgspecError, RecursionError):
        raw = b""
    if len(raw) > max_bytes:
        raise Refused("event_too_large")
    if raw and _NUL not in raw and not repeats(source):
        try:
            event = msgspec.convert(source, wire.ImportedEvent if imported else wire.Event)
        except msgspec.MsgspecError:
            pass
        else:
            if _is_plain(event):
                return event, [], {}
    return clean_event(source if isinstance(source, dict) else dict(source), imported=imported)


def _load(text: str | bytes) -> Any:
    """Return the JSON value of *text*, and in it what Python would not tell: -0, a key twice.

    Raises:
        BadBatch: It is not JSON.
    """
    try:
        return json.loads(text, object_pairs_hook=_members, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise BadBatch(400, "not_json") from error


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Repeated(members)


def _integer(digits: str) -> int | float:
    return -0.0 if digits == "-0" else int(digits)


def _may_say_more(event: Any, raw: bytes) -> bool:
    """Return whether *raw*, from which *event* was read, may say -0, or a key twice.

    Integers are never -0, and of a key that is there twice two readers could see two events. A
    value that was read has each key once, so written again it has fewer quotation marks: *event*
    itself, if *raw* says nothing needlessly, else a value that leaves nothing out.
    """
    if _QUOTE in raw:  # a quotation mark in another spelling
        return True
    if getattr(event, "seq", 0) == 0 and (b":-0" in raw or b": -0" in raw):
        return True
    said = raw.count(b'"')
    return said != _ENCODER.encode(event).count(b'"') and said != _ENCODER.encode(
        _ANYTHING.decode(raw)
    ).count(b'"')


def _is_plain(event: Any) -> bool:
    """Return whether the members of any shape, which the types do not check, are storable."""
    error = getattr(event, "error", None)
    context = None if error is None else error.retry_context
    difference = getattr(event, "args_diff", None)
    if context is None and difference is None:
        return True
    try:
        refuse_unsafe([[context], difference])  # as deep as they are in the event
    except Refused:
        return False
    return True


def _envelope(body: bytes) -> wire.Envelope:
    body = body.removeprefix(b"\xef\xbb\xbf")  # a byte order mark says nothing in UTF-8
    try:
        # msgspec looks at the strings of raw events only when they are decoded.
        text = str(body, "utf-8")
    except UnicodeDecodeError as error:
        raise BadBatch(400, "not_utf8") from error
    if not text.strip():
        raise BadBatch(422, "empty")
    try:
        return _ENVELOPE.decode(body)
    except msgspec.ValidationError as error:
        _load(text)  # the typed decoder stops at a wrong type, before the end
        raise BadBatch(422, "wrong_shape", _envelope_pointer(error)) from error
    except (msgspec.DecodeError, RecursionError):
        return _lenient_envelope(text)


def _lenient_envelope(text: str) -> wire.Envelope:
    """Read what only Python's reader accepts (NaN, lone surrogates), so that one event suffers."""
    value = _load(text)
    if not isinstance(value, dict) or not isinstance(value.get("events"), list):
        raise BadBatch(422, "wrong_shape", "/events" if isinstance(value, dict) else "")
    events: list[Any] = [
        event if isinstance(event, dict) else b"null" for event in value.pop("events")
    ]
    version = value.get("schema_version", wire.SCHEMA_VERSION)
    if type(version) is not int:
        raise BadBatch(422, "wrong_shape", "/schema_version")
    resource = value.get("resource")
    if not isinstance(resource, dict | None):
        raise BadBatch(422, "wrong_shape", "/resource")
    return wire.Envelope(
        events=events, schema_version=version, resource=resource, dropped=value.get("dropped")
    )


def _envelope_pointer(error: msgspec.ValidationError) -> str:
    _, _, path = str(error).partition(" - at `$")
    member = path.strip("`").lstrip(".").split("[")[0].split(".")[0]
    if member in wire.Envelope.__struct_fields__:
        return f"/{member}"
    return "/events" if "required field" in str(error) else ""


def clean_resource(resource: Mapping[str, Any] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return what events inherit of *resource*, and a flag for each member that was changed.

    Args:
        resource: The member ``resource`` of an envelope.
    """
    kept: dict[str, str] = {}
    changed: dict[str, str] = {}
    for name in INHERITED:
        value = (resource or {}).get(name)
        if isinstance(value, str) and value.isprintable():
            kept[name] = value[:MAX_RESOURCE]
            if kept[name] != value:
                changed[name] = f"truncated:resource.{name}"
        elif value is not None:
            changed[name] = f"resource.{name}"
    return kept, changed


def _dropped(dropped: object) -> dict[str, int]:
    """Return what a sender says it dropped, by reason; a number alone is of unknown reason.

    Counts are cut at the largest that the database and a metric can add up.
    """
    if isinstance(dropped, int) and not isinstance(dropped, bool):
        dropped = {"unknown": dropped}
    if not isinstance(dropped, dict):
        return {}
    return {
        clean_text(str(reason))[:MAX_LABEL]: min(count, wire.MOST_AMOUNT)
        for reason, count in islice(dropped.items(), MAX_REASONS)
        if type(count) is int and count > 0
    }
