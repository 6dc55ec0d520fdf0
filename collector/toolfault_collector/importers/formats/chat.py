"""Chats: lists of messages, bare or wrapped as benchmarks and logs do, in one of several dialects.

What decides is that the members of a list have a ``role``, not the name of the list alone. A file
may hold conversations of several dialects, so each conversation is told by itself, unless the
caller named the format. Chats seldom carry times; the order is then all there is.

A new dialect is one file with a :class:`~toolfault_collector.importers.items.Dialect`, by which
sign its messages are known and what they call and answer, and one line in ``_OWN_SHAPE``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Final, TypeGuard

from toolfault_collector.importers.assembly import Assembly
from toolfault_collector.importers.files import Source
from toolfault_collector.importers.formats import (
    anthropic,
    gemini,
    inspect,
    langchain,
    livemcpbench,
    openai,
    responses,
)
from toolfault_collector.importers.items import Call, Conversation, Dialect, Format, Json, Outcome
from toolfault_collector.importers.json_values import Piece
from toolfault_collector.importers.members import cut
from toolfault_collector.protocol.repair import clean_text

__all__ = ["FORMATS"]

# In order of preference: where an object has several of them, they are views of one conversation.
MESSAGE_KEYS: Final = (
    *("traj", "messages", "trajectory", "conversation", "conversations", "dialogue"),
    *("history", "chat_history"),
)
MAX_DEPTH: Final = 4
_LOOK_AT: Final = 5
_LOOK_AT_CONVERSATIONS: Final = 20
_LOOK_AT_MESSAGES: Final = 200
_LOOK_AT_ID: Final = 200
# An id of the conversation itself; names such as task_id or id are shared by other runs.
_CONVERSATION_IDS: Final = ("conversation_id", "session_id", "thread_id", "chat_id", "uuid")
# What tells apart the runs of a benchmark, which are over when they are written.
_RUN_IDS: Final = ("task_id", "trial")
# A run of a benchmark, and one of Inspect's.
_RUN_LABELS: Final = (("task_id", "trial"), ("id", "epoch"))
_LABELS: Final = (*_CONVERSATION_IDS, "task_id", "id")
# An id of a call that no other call of the world has: a UUID, or as much chance in letters and
# digits as OpenAI, Anthropic and others draw.
_UNIQUE_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[A-Za-z]*\d[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}"
)
_OF_MODEL: Final = ("assistant", "model", "ai", "AIMessage", "AIMessageChunk", "reasoning")

# The first one that knows a message decides; those before the last two know all of it.
_OWN_SHAPE: Final = (
    *(livemcpbench.DIALECT, inspect.DIALECT, langchain.DIALECT, gemini.DIALECT),
    responses.DIALECT,
)
_DIALECTS: Final[tuple[Dialect, ...]] = (*_OWN_SHAPE, anthropic.DIALECT, openai.DIALECT)
_BY_FREQUENCY: Final = _DIALECTS[::-1]


@dataclass(frozen=True, slots=True)
class _Found:
    """A list of messages, where it stands, and the object around it.

    Args:
        places: Position of each message, where these are no members of one list in the file.
    """

    pointer: str
    messages: list[object]
    wrapper: Json
    places: Sequence[str] = ()

    def place(self, index: int) -> str:
        return self.places[index] if self.places else f"{self.pointer}/{index}"


def _detect(value: object, dialect: Dialect) -> tuple[str, str] | None:
    """Tell by the messages in a value whether it is of a dialect, and which one shows it."""
    whole = [_Found("", [value], {}, [""])] if _is_message(value) else _conversations(value, "")
    for found in islice(whole, _LOOK_AT_CONVERSATIONS):
        for index, message in enumerate(found.messages[:_LOOK_AT_MESSAGES]):
            if isinstance(message, dict) and (sign := dialect.sign(message)):
                return sign, found.place(index)
    return None


def _is_message(value: object) -> bool:
    """Tell a message of any dialect from other objects, also from those that hold messages."""
    return _has_sign(value) and not any(
        any(map(_has_sign, _first_of(value.get(key)))) for key in MESSAGE_KEYS
    )


def _has_sign(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and any(dialect.sign(value) for dialect in _BY_FREQUENCY)


def _is_messages(value: object) -> bool:
    return any(map(_is_message, _first_of(value)))


def _first_of(value: object) -> list[object]:
    return value[:_LOOK_AT] if isinstance(value, list) else []


def _conversations(
    value: object, pointer: str, wrapper: Json | None = None, depth: int = 0
) -> Iterator[_Found]:
    """Yield the lists of messages within a JSON value at the position *pointer*."""
    if depth > MAX_DEPTH:
        return
    members: Iterator[tuple[object, object]] = iter(())
    if isinstance(value, list):
        if _is_messages(value):
            yield _Found(pointer, value, wrapper or {})
            return
        members = enumerate(value)
    elif isinstance(value, dict):
        known = _message_key(value)
        if known is not None:
            yield _Found(f"{pointer}/{known}", value[known], value)
            return
        members, wrapper = iter(value.items()), value
    for name, member in members:
        if isinstance(member, dict | list):
            yield from _conversations(member, f"{pointer}/{_escaped(name)}", wrapper, depth + 1)


def _message_key(wrapper: Json) -> str | None:
    """Name the member that holds the messages; an empty list is a conversation without any."""
    for holds in (_is_messages, lambda value: value == []):
        for key in MESSAGE_KEYS:
            if holds(wrapper.get(key)):
                return key
    return None


def _escaped(name: object) -> str:
    """Escape a member name for a JSON pointer (RFC 6901), cut so that no data is repeated."""
    return str(name)[:32].replace("~", "~0").replace("/", "~1")


def _read(source: Source, dialect: Dialect) -> Iterator[Conversation]:
    reader = _Reader(source, dialect if source.forced else None)
    bare: list[Piece] = []  # messages that are values of the file themselves: one conversation
    for read in source.values():
        if _is_message(read.value) or (bare and not isinstance(read.value, dict)):
            bare.append(read)
            continue
        found = list(_conversations(read.value, read.position))
        if not found:
            source.mismatch(read.position, "holds no list of messages; skipped")
        yield from map(reader.conversation, found)
    if bare:
        messages, places = [read.value for read in bare], [read.position for read in bare]
        yield reader.conversation(_Found("", messages, _head_of(messages[0]), places))


def _head_of(message: object) -> Json:
    """Give what the first line of a Codex session says of it."""
    payload = message.get("payload") if isinstance(message, dict) else None
    return {"session_id": payload.get("id")} if isinstance(payload, dict) else {}


class _Reader:
    """Reads the conversations of one file and tells apart those that are equal."""

    def __init__(self, source: Source, dialect: Dialect | None) -> None:
        self._source = source
        self._dialect = dialect
        self._met: Counter[bytes] = Counter()

    def conversation(self, found: _Found) -> Conversation:
        """Read one conversation and report what is wrong with it."""
        shapes = [_shape(message) for message in found.messages]
        dialect = self._dialect or min(
            filter(None, shapes), key=_DIALECTS.index, default=openai.DIALECT
        )
        # A chat may mix shapes; LiveMCPBench and Inspect read OpenAI's in their own way.
        own = dialect is livemcpbench.DIALECT or (
            dialect is inspect.DIALECT and inspect.is_sample(found.wrapper)
        )
        if self._dialect is not None or own:
            shapes = [dialect] * len(shapes)
        key, grows = self._key(dialect.name, found)
        assembly = Assembly(key=key)
        self._pair(found, shapes, assembly, by_id=grows)
        if assembly.orphans:
            orphans = f"{assembly.orphans} results without their call"
            self._source.report(found.pointer, orphans, "note")
        # An epoch is that of a sample of Inspect, which is written when it is over.
        calls, pending = assembly.finish(grows=grows and not inspect.is_sample(found.wrapper))
        label = _label(found.wrapper)
        return Conversation(dialect.name, key, label, found.pointer, calls, pending=pending)

    def _pair(
        self, found: _Found, shapes: Sequence[Dialect | None], assembly: Assembly, *, by_id: bool
    ) -> None:
        """Tell the assembly of the calls and results; *by_id* names calls by their unique ids."""
        attachments, times = found.wrapper.get("attachments"), inspect.times_of(found.wrapper)
        identities: set[str] = set()
        by_model = False
        turn: str | None = None  # of items that belong to no message: until the next answer
        for index, (message, shape) in enumerate(zip(found.messages, shapes, strict=True)):
            if not isinstance(message, dict) or shape is None:
                self._source.report(found.place(index), "not a message object; skipped")
                continue
            # Several messages of the model in a row may be one turn, written in parts.
            before, by_model = by_model, _is_by_model(message)
            if by_model and not before:
                assembly.next_turn()
            for entry in self._entries(message, index, shape):
                started, ended = times.get(entry.call_id or "", (None, None))
                if isinstance(entry, Outcome):
                    turn = None
                    entry.at = entry.at or ended
                    entry.text = _attached(entry.text, attachments)
                    assembly.answer(entry)
                    continue
                entry.started_at = entry.started_at or started
                turn = entry.turn = entry.turn or turn or str(index)
                if by_id and _is_unique(entry.call_id) and entry.call_id not in identities:
                    entry.identity = str(entry.call_id)
                    identities.add(entry.identity)
                assembly.issue(entry)
            turn = None if "role" in message else turn

    def _entries(self, message: Json, index: int, shape: Dialect) -> Iterator[Call | Outcome]:
        """Yield the calls and results of a message; a format that was forced reads only its own."""
        if self._dialect is None and shape in (anthropic.DIALECT, openai.DIALECT):
            return _either(message, index)
        return shape.entries(message, index)

    def _key(self, name: str, found: _Found) -> tuple[bytes, bool]:
        """Give the identity of a conversation, and whether it stays the same when it grows.

        An id of the conversation, or one of its first call that is unique by chance, is trusted
        together with its messages up to that call. Without such an id, and for the runs of a
        benchmark, it is the whole of its messages, and the how-manieth equal one in the file:
        trials of one task may begin alike, and repeat each other's call ids.
        """
        own_id = _own_id(found.wrapper)
        is_run = any(found.wrapper.get(key) is not None for key in _RUN_IDS)
        # Samples of an archive have a file each; old ones have no id of their own.
        of_sample = ("id", "epoch") if inspect.is_sample(found.wrapper) else ()
        run = [str(found.wrapper.get(key)) for key in (*_RUN_IDS, *of_sample)]
        hashed = blake2b(repr((name, own_id, *run)).encode(errors="replace"))
        grows = own_id is not None
        for message in found.messages:
            hashed.update(_essence(message))
            first = _first_call(message) if grows or not is_run else None
            if first is not None and (grows or _is_unique(first.call_id)):
                grows = True
                break
            is_run = is_run or first is not None
        key = hashed.digest()[:16]
        if not grows:
            self._met[key] += 1
            key = blake2b(key + str(self._met[key]).encode(), digest_size=16).digest()
        return key, grows


def _own_id(wrapper: Json) -> str | None:
    return next((str(wrapper[key]) for key in _CONVERSATION_IDS if wrapper.get(key)), None)


def _is_unique(call_id: str | None) -> bool:
    # Cut, since the search looks ahead at every place.
    return call_id is not None and _UNIQUE_ID.search(call_id[:_LOOK_AT_ID]) is not None


def _attached(text: str, attachments: object) -> str:
    """Give the text that Inspect keeps apart from its message, where it does."""
    if isinstance(attachments, dict) and text.startswith("attachment://"):
        return str(attachments.get(text.removeprefix("attachment://"), text))
    return text


def _is_by_model(message: Json) -> bool:
    item = responses.item_of(message)
    path = item.get("id")
    kinds = (item.get("role"), item.get("type"), path[-1] if isinstance(path, list) and path else 0)
    return any(isinstance(kind, str) and _is_model_kind(kind) for kind in kinds)


def _is_model_kind(kind: str) -> bool:
    return kind in _OF_MODEL or kind.endswith("_call")


def _shape(message: object) -> Dialect | None:
    """Give the first dialect that a message is of; else OpenAI's; None for no object."""
    if not isinstance(message, dict):
        return None
    return next((dialect for dialect in _DIALECTS if dialect.sign(message)), openai.DIALECT)


def _either(message: Json, index: int) -> Iterator[Call | Outcome]:
    """Yield the calls and results of a message in OpenAI's or Anthropic's shape.

    Some libraries write a call in both, as a content block and under ``tool_calls``; it is one.
    """
    ids: set[str | None] = set()
    for entry in openai.entries(message, index):
        ids.add(entry.call_id if isinstance(entry, Call) else None)
        yield entry
    for entry in anthropic.entries(message, index):
        if isinstance(entry, Outcome) or entry.call_id is None or entry.call_id not in ids:
            yield entry


def _first_call(message: object) -> Call | None:
    shape = _shape(message)
    if not isinstance(message, dict) or shape is None:
        return None
    entries = _either if shape in (anthropic.DIALECT, openai.DIALECT) else shape.entries
    return next((entry for entry in entries(message, 0) if isinstance(entry, Call)), None)


def _essence(message: object) -> bytes:
    """Reduce a message to what was said and called, without annotations added later."""
    if not isinstance(message, dict):
        return b"null"
    keys = ("role", "content", "tool_calls", "function_call", "tool_call_id", "name")
    others = ("type", "call_id", "arguments", "output", "data", "kwargs", "parts", "payload")
    parts = [message.get(key) for key in (*keys, *(() if "content" in message else others))]
    try:
        return json.dumps(parts, sort_keys=True, default=str).encode()
    except RecursionError:
        return str(message.get("role")).encode(errors="replace")


def _label(wrapper: Json) -> str:
    for first, second in _RUN_LABELS:
        if wrapper.get(first) is not None and wrapper.get(second) is not None:
            label = f"{first.removesuffix('_id')}{wrapper[first]}-{second}{wrapper[second]}"
            return cut(clean_text(label), 80)
    for key in _LABELS:
        value = wrapper.get(key)
        if isinstance(value, str | int) and str(value):
            return cut(clean_text(str(value)), 80)
    return "conversation"


FORMATS: Final = tuple(
    Format(
        dialect.name,
        dialect.title,
        dialect.failure,
        dialect.members,
        partial(_detect, dialect=dialect),
        partial(_read, dialect=dialect),
    )
    for dialect in _DIALECTS
)
