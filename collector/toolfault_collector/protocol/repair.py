"""Repair of events that the typed decoder refuses: cut, replace and flag, or reject.

The types of `wire` drive this too, so that both ways agree on every limit. Values are never put
into a rejection: its pointer names known members and list positions only.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import inspect

from toolfault_collector.protocol import wire

__all__ = [
    "MAX_DEPTH",
    "MAX_KEYS",
    "Refused",
    "Repeated",
    "clean_event",
    "clean_text",
    "refuse_unsafe",
    "repeats",
]

# Deeper values come from loops, not from tools; SDKs send at most 8 levels.
MAX_DEPTH: Final = 32
# Members of one object: arguments of real tools have fewer than 50.
MAX_KEYS: Final = 200
# Members this version does not know are kept, so that an older collector loses nothing small.
MAX_EXTRA_BYTES: Final = 16_384
MAX_EXTRA_NAME: Final = 256
INT64: Final = 2**63

# No failure is lost because something beside it was measured wrong: member, most, flag.
_IMPOSSIBLE: Final = (
    ("duration_ms", wire.MOST_MILLISECONDS, "duration"),
    ("tokens", wire.MOST_AMOUNT, "tokens"),
)
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
# Cutting an identifier would make two of them one; a digest of the rest keeps them apart.
_IDS: Final = frozenset(
    {"session_id", "turn", "run_id", "request_id", "call_id", "trace_id", "span_id", "variant"}
    | {"args_fingerprint", "schema_hash", "fingerprint"}
)
_TYPES: Final[dict[str, dict[bool, type[msgspec.Struct]]]] = {
    "tool_call": {False: wire.ToolCall, True: wire.ImportedCall},
    "tool_error": {False: wire.ToolError, True: wire.ImportedError},
    "tool_call_counts": {False: wire.CallCounts, True: wire.CallCounts},
    "conversation_end": {False: wire.ConversationEnd, True: wire.ConversationEnd},
    "change": {False: wire.Change, True: wire.Change},
}


class Refused(Exception):  # noqa: N818 - carries a verdict, names no fault of ours
    """The event cannot be stored: a stable code and the JSON pointer (within the event) of why."""

    def __init__(self, code: str, pointer: str = "") -> None:
        super().__init__(f"{code} at {pointer or '/'}")
        self.code = code
        self.pointer = pointer


class Repeated(dict[str, Any]):
    """A JSON object in which some key stands more than once; the last of each is here."""


def repeats(value: object) -> bool:
    """Return whether *value* is or holds an object that was `Repeated`."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Repeated):
            return True
        if isinstance(item, Mapping | list):
            pending.extend(item.values() if isinstance(item, Mapping) else item)
    return False


def clean_text(text: str) -> str:
    """Return *text* with NUL and lone surrogates, which PostgreSQL refuses, as U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def clean_event(value: object, *, imported: bool) -> tuple[Any, list[str], dict[str, Any]]:
    """Return the event that *value* can be made into, the flags of what changed, unknown members.

    Raises:
        Refused: Not without guessing what the sender meant.
    """
    if not isinstance(value, dict):
        raise Refused("wrong_type")
    refuse_unsafe(value)
    kind = value.get("type")
    if not isinstance(kind, str):
        raise Refused("missing_field" if kind is None else "wrong_type", "/type")
    if kind not in _TYPES:
        raise Refused("unknown_type", "/type")
    cleaner = _Cleaner()
    if repeats(value):
        cleaner.flags.append("duplicate_key")
    if kind in ("tool_call", "tool_error"):
        value = _soften(value, cleaner.flags)
    struct = _TYPES[kind][imported]
    repaired = cleaner.struct(value, _info(struct), "")
    repaired["type"] = kind
    try:
        event = msgspec.convert(repaired, struct)
    except msgspec.ValidationError as error:  # the repair and the types disagree: refuse, not fail
        raise Refused("invalid_value") from error
    extra = _keep_extra(cleaner)
    return event, list(dict.fromkeys(cleaner.flags)), extra


def refuse_unsafe(value: object) -> None:
    """Refuse what no column can hold, wherever it stands in *value*.

    Raises:
        Refused: ``too_deep``, ``too_many_keys``, ``int_range`` or ``non_finite``.
    """
    pending: list[tuple[object, int, _Place]] = [(value, 1, ("", True))]
    while pending:
        item, depth, place = pending.pop()
        pointer = place[0]
        if isinstance(item, dict | list):
            if depth > MAX_DEPTH:
                raise Refused("too_deep", pointer)
            if isinstance(item, dict) and len(item) > MAX_KEYS:
                raise Refused("too_many_keys", pointer)
            pending.extend((child, depth + 1, at) for child, at in _children(item, place))
        elif isinstance(item, int) and not -INT64 <= item < INT64:
            raise Refused("int_range", pointer)
        elif isinstance(item, float) and not math.isfinite(item):
            raise Refused("non_finite", pointer)


# A pointer, and whether it may grow: only members of the protocol are named, since every other key
# is the sender's own data.
_Place = tuple[str, bool]


def _children(item: dict[str, Any] | list[Any], place: _Place) -> Iterator[tuple[object, _Place]]:
    pointer, growing = place
    if not growing:
        yield from ((child, place) for child in (item.values() if isinstance(item, dict) else item))
    elif isinstance(item, list):
        yield from ((child, (f"{pointer}/{index}", True)) for index, child in enumerate(item))
    else:
        for key, child in item.items():
            known = key in _NAMES
            yield child, (f"{pointer}/{key}" if known else pointer, known)


def _soften(event: dict[str, Any], flags: list[str]) -> dict[str, Any]:
    """Return the call *event* with the members replaced that are repaired rather than refused."""
    event = dict(event)
    for member, most, flag in _IMPOSSIBLE:
        number = event.get(member)
        if _is_number(number) and not 0 <= number <= most:
            event[member] = None
            flags.append(flag)
    tags = event.get("tags")
    if isinstance(tags, dict):
        event["tags"] = {
            key: _scalar_text(value) for key, value in tags.items() if value is not None
        }
        if None in tags.values():
            flags.append("tags")
    if isinstance(event.get("error"), dict):
        # A failure is kept whatever it is called: what is no name counts as unknown.
        error = event["error"] = dict(event["error"])
        for member in ("audience", "category"):
            if not isinstance(error.get(member), str | None):
                error[member] = None
                flags.append(member)
    return event


def _scalar_text(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _keep_extra(cleaner: _Cleaner) -> dict[str, Any]:
    if not cleaner.extra:
        return {}
    if len(msgspec.json.encode(cleaner.extra)) > MAX_EXTRA_BYTES:
        cleaner.flags.append("extra_dropped")
        return {}
    return cleaner.extra


class _Cleaner:
    """Walks one event along its type, collecting flags and unknown members on the way."""

    def __init__(self) -> None:
        self.flags: list[str] = []
        self.extra: dict[str, Any] = {}

    def struct(self, value: object, info: inspect.StructType, pointer: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refused("wrong_type", pointer)
        fields = {field.encode_name: field for field in info.fields}
        result = {}
        for key, child in value.items():
            if key in fields:
                result[key] = self.value(child, fields[key].type, f"{pointer}/{key}")
            elif key != info.tag_field:
                self.unknown(f"{_dotted(pointer)}.{key}" if pointer else key, child)
        for name, field in fields.items():
            if field.required and name not in value:
                raise Refused("missing_field", f"{pointer}/{name}")
        return result

    def unknown(self, name: str, value: Any) -> None:
        """Keep a member that this version does not know, by its dotted *name*."""
        kept = clean_text(name)[:MAX_EXTRA_NAME]
        if kept in self.extra:  # a name of the sender's looks like a place in the event
            self.flags.append("extra_dropped")
            return
        if kept != name:
            self.flags.append("truncated:extra")
        self.extra[kept] = self.anything(value, pointer="/extra")

    def value(self, value: Any, info: inspect.Type, pointer: str) -> Any:
        if isinstance(info, inspect.UnionType):
            if value is None and info.includes_none:
                return None
            info = next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))
        return _CLEANERS[type(info)](self, value, info, pointer)

    def text(self, value: Any, info: inspect.StrType, pointer: str) -> str:
        if not isinstance(value, str):
            raise Refused("wrong_type", pointer)
        if info.min_length and not value:
            raise Refused("empty", pointer)
        text = clean_text(value)
        if text != value:
            self.flags.append(f"replaced:{_dotted(pointer)}")
        if info.pattern and re.search(info.pattern, text) is None:
            raise Refused("invalid_value", pointer)
        if info.max_length and len(text) > info.max_length:
            self.flags.append(f"truncated:{_dotted(pointer)}")
            return _cut(text, info.max_length, keep_distinct=pointer.rpartition("/")[2] in _IDS)
        return text

    def whole(self, value: Any, info: inspect.IntType, pointer: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Refused("wrong_type", pointer)
        low = info.ge is not None and value < info.ge
        if low or (info.le is not None and value > info.le):
            raise Refused("out_of_range", pointer)
        return value

    def number(self, value: Any, info: inspect.FloatType, pointer: str) -> float:
        if not _is_number(value):
            raise Refused("wrong_type", pointer)
        low = value < info.ge if info.ge is not None else info.gt is not None and value <= info.gt
        if low or (info.le is not None and value > info.le):
            raise Refused("out_of_range", pointer)
        return float(value)

    def flag(self, value: Any, _info: inspect.BoolType, pointer: str) -> bool:
        if not isinstance(value, bool):
            raise Refused("wrong_type", pointer)
        return value

    def sequence(self, value: Any, info: inspect.ListType, pointer: str) -> list[Any]:
        if not isinstance(value, list):
            raise Refused("wrong_type", pointer)
        if info.max_length is not None and len(value) > info.max_length:
            self.flags.append(f"truncated:{_dotted(pointer)}")
            value = value[: info.max_length]
        return [
            self.value(item, info.item_type, f"{pointer}/{index}")
            for index, item in enumerate(value)
        ]

    def tuple(self, value: Any, info: inspect.TupleType, pointer: str) -> list[Any]:
        if not isinstance(value, list) or len(value) != len(info.item_types):
            raise Refused("wrong_type", pointer)
        return [
            self.value(item, kind, f"{pointer}/{index}")
            for index, (item, kind) in enumerate(zip(value, info.item_types, strict=True))
        ]

    def mapping(self, value: Any, info: inspect.DictType, pointer: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refused("wrong_type", pointer)
        items = list(value.items())
        if info.max_length is not None and len(items) > info.max_length:
            self.flags.append(f"truncated:{_dotted(pointer)}")
            items = items[: info.max_length]
        return {
            self.value(key, info.key_type, pointer): self.value(item, info.value_type, pointer)
            for key, item in items
        }

    def anything(self, value: Any, _info: object = None, pointer: str = "") -> Any:
        if isinstance(value, str):
            text = clean_text(value)
            if text != value:
                self.flags.append(f"replaced:{_dotted(pointer)}")
            return text
        if isinstance(value, list):
            return [self.anything(item, pointer=pointer) for item in value]
        if isinstance(value, dict):
            return {
                self.anything(key, pointer=pointer): self.anything(item, pointer=pointer)
                for key, item in value.items()
            }
        return value


def _cut(text: str, limit: int, *, keep_distinct: bool) -> str:
    if keep_distinct:
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return f"{text[: limit - 17]}~{digest}"
    marker = f"…[{len(text)} characters]"
    return text[: limit - len(marker)] + marker if len(marker) < limit // 2 else text[:limit]


def _dotted(pointer: str) -> str:
    return pointer[1:].replace("/", ".")


@cache
def _info(struct: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def _member_names() -> frozenset[str]:
    """Return every member name of the protocol, for pointers."""
    names: set[str] = set()
    pending: list[inspect.Type] = [_info(kinds[True]) for kinds in _TYPES.values()]
    while pending:
        info = pending.pop()
        if isinstance(info, inspect.StructType):
            names.update(field.encode_name for field in info.fields)
            pending.extend(field.type for field in info.fields)
        elif isinstance(info, inspect.UnionType):
            pending.extend(info.types)
        elif isinstance(info, inspect.ListType):
            pending.append(info.item_type)
    return frozenset(names)


_NAMES: Final = _member_names()
_CLEANERS: Final[dict[type[inspect.Type], Any]] = {
    inspect.StructType: _Cleaner.struct,
    inspect.StrType: _Cleaner.text,
    inspect.IntType: _Cleaner.whole,
    inspect.FloatType: _Cleaner.number,
    inspect.BoolType: _Cleaner.flag,
    inspect.ListType: _Cleaner.sequence,
    inspect.TupleType: _Cleaner.tuple,
    inspect.DictType: _Cleaner.mapping,
    inspect.AnyType: _Cleaner.anything,
}
