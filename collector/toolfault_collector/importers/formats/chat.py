"""Chats: lists of messages, bare or wrapped as benchmarks and logs do, in one of several dialects.

What decides is that the members of a list have a ``role``, not the name of the list alone. A file
may hold conversations of several dialects, so each conversation is told by itself, unless the
caller named the format. Chats seldom carry times; the order is then all there is.

A new dialect is one file with ``NAME``, ``TITLE`` and ``entries`` (the calls and results of a
message), and one line in ``_DIALECTS``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, TypeAlias

from toolfault_collector.importers.assembly import Assembly
from toolfault_collector.importers.files import Source
from toolfault_collector.importers.formats import anthropic, livemcpbench, openai
from toolfault_collector.importers.items import Call, Conversation, Format, Outcome
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
_ITEM_TYPES: Final = ("function_call", "function_call_output", "message", "reasoning")
_ITEMS_BY_MODEL: Final = ("function_call", "reasoning")
# An id of the conversation itself; names such as task_id or id are shared by other runs.
_CONVERSATION_IDS: Final = ("conversation_id", "session_id", "thread_id", "chat_id")
_LABELS: Final = (*_CONVERSATION_IDS, "task_id", "id")

_Json = Mapping[str, object]
_Entries: TypeAlias = Callable[[_Json, int], Iterator[Call | Outcome]]
_DIALECTS: Final[tuple[tuple[str, str, _Entries], ...]] = (
    (openai.NAME, openai.TITLE, openai.entries),
    (anthropic.NAME, anthropic.TITLE, anthropic.entries),
    (livemcpbench.NAME, livemcpbench.TITLE, livemcpbench.entries),
)


@dataclass(frozen=True, slots=True)
class _Found:
    """A list of messages, where it stands, and the object around it.

    Args:
        places: Position of each message, where these are no members of one list in the file.
    """

    pointer: str
    messages: list[object]
    wrapper: _Json
    places: Sequence[str] = ()

    def place(self, index: int) -> str:
        return self.places[index] if self.places else f"{self.pointer}/{index}"


def _detect(head: list[object]) -> bool:
    return any(
        _is_message(value) or next(_conversations(value, ""), None) is not None for value in head
    )


def _is_message(value: object) -> bool:
    """Tell a chat message (or an item of the Responses API) from other objects."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str):
        return not any(_is_messages(value.get(key)) for key in MESSAGE_KEYS)
    return value.get("type") in _ITEM_TYPES and ("call_id" in value or "content" in value)


def _is_messages(value: object) -> bool:
    return isinstance(value, list) and any(_is_message(member) for member in value[:_LOOK_AT])


def _conversations(
    value: object, pointer: str, wrapper: _Json | None = None, depth: int = 0
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


def _message_key(wrapper: _Json) -> str | None:
    """Name the member that holds the messages; an empty list is a conversation without any."""
    for holds in (_is_messages, lambda value: value == []):
        for key in MESSAGE_KEYS:
            if holds(wrapper.get(key)):
                return key
    return None


def _escaped(name: object) -> str:
    """Escape a member name for a JSON pointer (RFC 6901), cut so that no data is repeated."""
    return str(name)[:32].replace("~", "~0").replace("/", "~1")


def _read(source: Source, name: str, entries: _Entries) -> Iterator[Conversation]:
    reader = _Reader(source, (name, entries) if source.forced else None)
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
        yield reader.conversation(_Found("", messages, {}, places))


class _Reader:
    """Reads the conversations of one file and tells apart those that are equal."""

    def __init__(self, source: Source, dialect: tuple[str, _Entries] | None) -> None:
        self._source = source
        self._dialect = dialect
        self._met: Counter[bytes] = Counter()

    def conversation(self, found: _Found) -> Conversation:
        """Read one conversation and report what is wrong with it."""
        name, entries = self._dialect or _dialect_of(found.messages)
        own_id = _own_id(found.wrapper)
        key = self._key(name, found, own_id)
        assembly = Assembly(key=key)
        by_model = False
        turn: str | None = None  # of items that belong to no message: until the next answer
        for index, message in enumerate(found.messages):
            if not isinstance(message, dict):
                self._source.report(found.place(index), "not a message object; skipped")
                continue
            # Several messages of the model in a row may be one turn, written in parts.
            before, by_model = by_model, _is_by_model(message)
            if by_model and not before:
                assembly.next_turn()
            for entry in entries(message, index):
                if isinstance(entry, Outcome):
                    turn = None
                    assembly.answer(entry)
                else:
                    turn = entry.turn = entry.turn or turn or str(index)
                    assembly.issue(entry)
            turn = None if "role" in message else turn
        if assembly.orphans:
            orphans = f"{assembly.orphans} results without their call"
            self._source.report(found.pointer, orphans, "note")
        label = _label(found.wrapper)
        # Without an id of its own, a chat that has grown is another conversation.
        calls, pending = assembly.finish(grows=own_id is not None)
        return Conversation(name, key, label, found.pointer, calls, pending=pending)

    def _key(self, name: str, found: _Found, own_id: str | None) -> bytes:
        """Give the identity of a conversation.

        An id of the conversation is trusted together with its messages up to the first one that
        calls a tool, so that a conversation which has grown stays the same. Without such an id it
        is the whole of its messages, and the how-manieth equal one in the file: trials of one task
        may begin alike, and repeat each other's call ids.
        """
        trial = (found.wrapper.get("task_id"), found.wrapper.get("trial"))
        hashed = blake2b(repr((name, own_id, *map(str, trial))).encode(errors="replace"))
        for message in found.messages:
            hashed.update(_essence(message))
            if own_id and isinstance(message, dict) and _calls_a_tool(message):
                break
        key = hashed.digest()[:16]
        if own_id is None:
            self._met[key] += 1
            key = blake2b(key + str(self._met[key]).encode(), digest_size=16).digest()
        return key


def _own_id(wrapper: _Json) -> str | None:
    return next((str(wrapper[key]) for key in _CONVERSATION_IDS if wrapper.get(key)), None)


def _is_by_model(message: _Json) -> bool:
    return message.get("role") == "assistant" or message.get("type") in _ITEMS_BY_MODEL


def _dialect_of(messages: list[object]) -> tuple[str, _Entries]:
    if livemcpbench.detect(messages):
        return livemcpbench.NAME, livemcpbench.entries
    return anthropic.NAME if anthropic.detect(messages) else openai.NAME, _either


def _either(message: _Json, index: int) -> Iterator[Call | Outcome]:
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


def _calls_a_tool(message: _Json) -> bool:
    return any(isinstance(entry, Call) for entry in _either(message, 0))


def _essence(message: object) -> bytes:
    """Reduce a message to what was said and called, without annotations added later."""
    if not isinstance(message, dict):
        return b"null"
    keys = ("role", "content", "tool_calls", "function_call", "tool_call_id", "name")
    items = ("type", "call_id", "arguments", "output") if "role" not in message else ()
    parts = [message.get(key) for key in (*keys, *items)]
    try:
        return json.dumps(parts, sort_keys=True, default=str).encode()
    except RecursionError:
        return str(message.get("role")).encode(errors="replace")


def _label(wrapper: _Json) -> str:
    if wrapper.get("task_id") is not None and wrapper.get("trial") is not None:
        return cut(clean_text(f"task{wrapper['task_id']}-trial{wrapper['trial']}"), 80)
    for key in _LABELS:
        value = wrapper.get(key)
        if isinstance(value, str | int) and str(value):
            return cut(clean_text(str(value)), 80)
    return "conversation"


FORMATS: Final = tuple(
    Format(name, title, _detect, partial(_read, name=name, entries=entries))
    for name, title, entries in _DIALECTS
)
