"""Bytes to events: the typed decoder first, the repairing one for what it refuses.

One event never spoils its neighbours: the batch is split into raw events by one pass that checks
that the whole is JSON, and each is decoded alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import msgspec

from toolfault_collector import wire
from toolfault_collector.clean import (
    Refused,
    Repeated,
    clean_event,
    clean_text,
    refuse_unsafe,
    repeats,
)
from toolfault_collector.steps import Steps, finish

__all__ = [
    "INHERITED",
    "BadBatch",
    "Batch",
    "Decoded",
    "Rejection",
    "decode_batch",
    "decode_events",
    "decode_in_steps",
    "event_id_of",
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
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_NAMED_UUID: Final = re.compile(rb'"event_id"\s*:\s*"(' + _UUID.pattern.encode() + rb')"')
_NUL: Final = b"\\u0000"
_QUOTE: Final = b"\\u0022"


class BadBatch(Exception):  # noqa: N818 - becomes an answer, names no fault of ours
    """The batch as a whole cannot be read.

    Attributes:
        status: HTTP status: 400 not JSON, 413 too many events, 422 JSON of another shape.
        code: Stable name of what is wrong.
        pointer: JSON pointer of where, if it is JSON.
    """

    def __init__(self, status: int, code: str, pointer: str = "") -> None:
        super().__init__(f"{code} at {pointer or '/'}")
        self.status = status
        self.code = code
        self.pointer = pointer


@dataclass(slots=True)
class Decoded:
    """One event that can be stored: what arrived, and what was changed on the way in."""

    index: int
    event: wire.Event | wire.ImportedEvent
    source: bytes | Mapping[str, Any]
    flags: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejection:
    """One event that is not stored: where it stood in its batch, why, and what is kept of it."""

    index: int
    event_id: str | None
    code: str
    pointer: str
    source: bytes | Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    body: str | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class Batch:
    """One decoded batch; ``events`` and ``rejected`` together are everything that was sent."""

    events: list[Decoded]
    rejected: list[Rejection]
    resource: dict[str, Any]
    dropped: dict[str, int]
    size: int


def decode_batch(
    body: bytes, *, max_events: int = MAX_EVENTS, max_event_bytes: int = MAX_EVENT_BYTES
) -> Batch:
    """Return the events of the JSON *body* of a request.

    Args:
        body: The decompressed body.
        max_events: Events it may have.
        max_event_bytes: Bytes one event may have.

    Raises:
        BadBatch: It is not JSON, not a batch, or too long.
    """
    return finish(decode_in_steps(body, max_events=max_events, max_event_bytes=max_event_bytes))


def decode_in_steps(body: bytes, *, max_events: int, max_event_bytes: int) -> Steps[Batch]:
    """As `decode_batch`, but leaving off after each event."""
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise BadBatch(413, "too_many_values")
    envelope = _envelope(body)
    if len(envelope.events) > max_events:
        raise BadBatch(413, "too_many_events", "/events")
    batch = yield from _decode_events(envelope.events, False, max_event_bytes)
    batch.resource, changed = _resource(envelope.resource)
    for decoded in batch.events if changed else ():
        own = decoded.event
        # An event without such a member inherits none.
        decoded.flags += [flag for name, flag in changed.items() if not getattr(own, name, "-")]
    batch.dropped = _dropped(envelope.dropped)
    if envelope.schema_version > wire.SCHEMA_VERSION:
        # What a newer sender means by a member this version misreads is unknown.
        batch.rejected = [
            Rejection(bad.index, bad.event_id, "schema_too_new", "/schema_version", bad.source)
            for bad in batch.rejected
        ]
    return batch


def decode_events(
    sources: list[Any], *, imported: bool, max_event_bytes: int = MAX_EVENT_BYTES
) -> Batch:
    """Return the events of *sources*, each a JSON object as bytes or as a mapping.

    Args:
        sources: What arrived, in order.
        imported: Whether the members that only importers may set are accepted.
        max_event_bytes: Bytes one event may have.
    """
    return finish(_decode_events(sources, imported, max_event_bytes))


def _decode_events(sources: list[Any], imported: bool, max_event_bytes: int) -> Steps[Batch]:
    batch = Batch([], [], {}, {}, len(sources))
    for index, source in enumerate(sources):
        try:
            decoded = _decode(index, source, imported=imported, max_bytes=max_event_bytes)
            batch.events.append(decoded)
        except Refused as refused:
            pointer = f"/events/{index}{refused.pointer}"[:256]
            kept = bytes(source) if isinstance(source, msgspec.Raw) else source
            batch.rejected.append(Rejection(index, event_id_of(kept), refused.code, pointer, kept))
        yield
    return batch


def event_id_of(source: object) -> str | None:
    """Return the id that a refused event names, if it is one; nothing else of it is repeated."""
    if isinstance(source, Mapping):
        named = source.get("event_id")
        return named if isinstance(named, str) and _UUID.fullmatch(named) else None
    match = _NAMED_UUID.search(bytes(source)) if isinstance(source, bytes | msgspec.Raw) else None
    return match.group(1).decode() if match else None


def _decode(index: int, source: Any, *, imported: bool, max_bytes: int) -> Decoded:
    if isinstance(source, Mapping):
        return _decode_mapping(index, source, imported=imported, max_bytes=max_bytes)
    raw = source if isinstance(source, bytes) else bytes(source)
    if len(raw) > max_bytes:
        raise Refused("event_too_large")
    if _NUL not in raw:
        try:
            event = (_IMPORTED if imported else _EVENT).decode(raw)
        except (msgspec.MsgspecError, ValueError):
            return _repair(index, raw, imported=imported)
        if _is_plain(event) and not _may_be_minus_zero(event, raw) and not _repeats(event, raw):
            return Decoded(index, event, raw)
    return _repair(index, raw, imported=imported)


def _decode_mapping(
    index: int, source: Mapping[str, Any], *, imported: bool, max_bytes: int
) -> Decoded:
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
                return Decoded(index, event, source)
    value = source if isinstance(source, dict) else dict(source)
    event, flags, extra = clean_event(value, imported=imported)
    return Decoded(index, event, source, flags, extra)  # type: ignore[arg-type]


def _repair(index: int, raw: bytes, *, imported: bool) -> Decoded:
    event, flags, extra = clean_event(_load(raw), imported=imported)
    return Decoded(index, event, raw, flags, extra)  # type: ignore[arg-type]


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


def _repeats(event: Any, raw: bytes) -> bool:
    """Return whether *raw*, from which *event* was read, has a key twice in one object.

    Two readers could then see two different events. A value that was read has each key once, so
    written again it has fewer quotation marks: *event* itself, if *raw* says nothing needlessly,
    else a value that leaves nothing out.
    """
    if _QUOTE in raw:  # a quotation mark in another spelling
        return True
    said = raw.count(b'"')
    return said != _ENCODER.encode(event).count(b'"') and said != _ENCODER.encode(
        _ANYTHING.decode(raw)
    ).count(b'"')


def _may_be_minus_zero(event: Any, raw: bytes) -> bool:
    """Return whether an integer that is 0 may have been written ``-0``, which is none."""
    return getattr(event, "seq", 0) == 0 and (b":-0" in raw or b": -0" in raw)


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


def _resource(resource: dict[str, Any] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return what events inherit of *resource*, and a flag for each member that was changed."""
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
