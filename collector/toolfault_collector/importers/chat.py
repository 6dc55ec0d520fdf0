"""Chat transcripts: OpenAI and Anthropic messages, bare or wrapped as benchmarks do.

A transcript has no failure flag of its own in the OpenAI shape: a ``tool`` message that starts with
``Error`` is the failure. In the Anthropic shape it is ``is_error: true``. Such transcripts are
finished, so their conversations end with them. They seldom carry times; the order is then all there
is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from toolfault_collector.clean import clean_text
from toolfault_collector.importers._assembly import Assembly, Issued
from toolfault_collector.importers._conversations import Found, find_conversations, is_message
from toolfault_collector.importers._reading import Broken, Piece
from toolfault_collector.importers._shapes import (
    Shape,
    anthropic_entries,
    chat_entries,
    openai_entries,
)
from toolfault_collector.importers._source import Source
from toolfault_collector.importers._text import cut
from toolfault_collector.importers._transcript import Conversation, Item
from toolfault_collector.importers.livemcpbench import NAME as LIVEMCPBENCH
from toolfault_collector.importers.livemcpbench import is_livemcpbench, livemcpbench_entries

__all__ = ["ANTHROPIC", "OPENAI", "holds_chat", "read_chat"]

OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
SHAPES: Final[Mapping[str, Shape]] = {
    OPENAI: openai_entries,
    ANTHROPIC: anthropic_entries,
    LIVEMCPBENCH: livemcpbench_entries,
}
# An id of the conversation itself; names such as task_id or id are shared by other runs.
_CONVERSATION_IDS: Final = ("conversation_id", "session_id", "thread_id", "chat_id")
_LABELS: Final = (*_CONVERSATION_IDS, "task_id", "id")
_BLOCK_TYPES: Final = frozenset({"tool_use", "tool_result"})


def holds_chat(values: list[object]) -> bool:
    """Tell whether sampled values are messages or hold conversations."""
    return any(
        is_message(value) or next(find_conversations(value, ""), None) is not None
        for value in values
    )


def read_chat(source: Source, shape: str | None = None) -> Iterator[Item]:
    """Yield the conversations and problems of the file.

    Args:
        source: The file.
        shape: Name of the format, or None to recognise it conversation by conversation.
    """
    reader = _Reader(source, shape)
    bare: list[Piece] = []
    for read in source.values():
        if isinstance(read, Broken):
            yield source.problem(read)
        elif is_message(read.value) or (bare and not isinstance(read.value, dict)):
            bare.append(read)
        else:
            yield from reader.conversations(read)
    if bare:
        messages, places = [read.value for read in bare], [read.position for read in bare]
        yield from reader.conversation(Found("", messages, {}, places))


class _Reader:
    """Reads the conversations of one file and tells apart those that are equal."""

    def __init__(self, source: Source, shape: str | None) -> None:
        self._source = source
        self._shape = shape
        self._met: Counter[bytes] = Counter()

    def conversations(self, read: Piece) -> Iterator[Item]:
        """Yield what one top-level value holds."""
        count = 0
        for found in find_conversations(read.value, read.position):
            count += 1
            yield from self.conversation(found)
        if not count:
            yield self._source.mismatch(read.position, "holds no list of messages; skipped")

    def conversation(self, found: Found) -> Iterator[Item]:
        """Yield one conversation and what is wrong with it."""
        name = self._shape or _recognise(found.messages)
        entries = SHAPES[name] if self._shape or name == LIVEMCPBENCH else chat_entries
        key, label = self._identity(name, found)
        assembly = Assembly(key=key)
        timed = True
        turn: str | None = None  # of items that belong to no message: until the next answer
        for index, message in enumerate(found.messages):
            if not isinstance(message, dict):
                broken = Broken(found.place(index), "not a message object; skipped")
                yield self._source.problem(broken)
                continue
            for entry in entries(message, index):
                if isinstance(entry, Issued):
                    timed = timed and entry.at is not None
                    turn = entry.turn or turn or str(index)
                    assembly.issue(entry if entry.turn else replace(entry, turn=turn))
                else:
                    turn = None
                    assembly.answer(entry)
            turn = None if "role" in message else turn
        timed = timed and len(assembly) > 0
        if assembly.orphans:
            yield self._source.note(found.pointer, f"{assembly.orphans} results without their call")
        yield Conversation(
            format=name,
            key=key,
            label=label,
            position=found.pointer,
            calls=assembly.finish(timed=timed),
            timed=timed,
        )

    def _identity(self, name: str, found: Found) -> tuple[bytes, str]:
        """Give the key and the label of a conversation.

        An id of the conversation is trusted together with its messages up to the first one that
        calls a tool, so that a conversation which has grown stays the same. Without such an id it
        is the whole of its messages, and the how-manieth equal one in the file: trials of one task
        may begin alike, and repeat each other's call ids.
        """
        wrapper = found.wrapper
        own_id = next((str(wrapper[k]) for k in _CONVERSATION_IDS if wrapper.get(k)), None)
        trial = (wrapper.get("task_id"), wrapper.get("trial"))
        hashed = blake2b(repr((name, own_id, *map(str, trial))).encode(errors="replace"))
        for message in found.messages:
            hashed.update(_essence(message))
            if own_id and isinstance(message, dict) and _calls_a_tool(message):
                break
        key = hashed.digest()[:16]
        if own_id is None:
            self._met[key] += 1
            key = blake2b(key + str(self._met[key]).encode(), digest_size=16).digest()
        return key, _label(wrapper)


def _label(wrapper: Mapping[str, object]) -> str:
    if wrapper.get("task_id") is not None and wrapper.get("trial") is not None:
        return cut(clean_text(f"task{wrapper['task_id']}-trial{wrapper['trial']}"), 80)
    for key in _LABELS:
        value = wrapper.get(key)
        if isinstance(value, str | int) and str(value):
            return cut(clean_text(str(value)), 80)
    return "conversation"


def _calls_a_tool(message: Mapping[str, object]) -> bool:
    return any(isinstance(entry, Issued) for entry in chat_entries(message, 0))


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


def _recognise(messages: list[object]) -> str:
    if is_livemcpbench(messages):
        return LIVEMCPBENCH
    for message in messages:
        blocks = message.get("content") if isinstance(message, dict) else None
        if isinstance(blocks, list) and any(
            isinstance(block, dict) and block.get("type") in _BLOCK_TYPES for block in blocks
        ):
            return ANTHROPIC
    return OPENAI
