"""Finds the lists of chat messages in a JSON value: bare, wrapped, or wrapped several times.

Benchmarks and logs put the messages under many names; what decides is that a list's members have a
``role``, not the name alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Found", "find_conversations", "is_message"]

# In order of preference: where an object has several of them, they are views of one conversation.
MESSAGE_KEYS: Final = (
    "traj",
    "messages",
    "trajectory",
    "conversation",
    "conversations",
    "dialogue",
    "history",
    "chat_history",
)
MAX_DEPTH: Final = 4
_ITEM_TYPES: Final = frozenset({"function_call", "function_call_output", "message", "reasoning"})
_LOOK_AT: Final = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A list of messages, where it stands, and the object around it.

    Args:
        places: Position of each message, where these are no members of one list in the file.
    """

    pointer: str
    messages: list[object]
    wrapper: Mapping[str, object]
    places: Sequence[str] = ()

    def place(self, index: int) -> str:
        """Give the position of one message."""
        return self.places[index] if self.places else f"{self.pointer}/{index}"


def is_message(value: object) -> bool:
    """Tell a chat message (or an item of the Responses API) from other objects."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("role"), str):
        return not any(_is_messages(value.get(key)) for key in MESSAGE_KEYS)
    return value.get("type") in _ITEM_TYPES and ("call_id" in value or "content" in value)


def find_conversations(value: object, pointer: str) -> Iterator[Found]:
    """Yield the conversations within *value*.

    Args:
        value: Any JSON value.
        pointer: Position of the value, to which JSON pointers are appended.
    """
    yield from _find(value, pointer, {}, 0)


def _find(
    value: object, pointer: str, wrapper: Mapping[str, object], depth: int
) -> Iterator[Found]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        if _is_messages(value):
            yield Found(pointer, value, wrapper)
            return
        for index, member in enumerate(value):
            if isinstance(member, dict | list):
                yield from _find(member, f"{pointer}/{index}", wrapper, depth + 1)
    elif isinstance(value, dict):
        known = _message_key(value)
        if known is not None:
            yield Found(f"{pointer}/{known}", value[known], value)
            return
        for name, member in value.items():
            if isinstance(member, dict | list):
                yield from _find(member, f"{pointer}/{_escaped(name)}", value, depth + 1)


def _is_messages(value: object) -> bool:
    return isinstance(value, list) and any(is_message(member) for member in value[:_LOOK_AT])


def _message_key(wrapper: Mapping[str, object]) -> str | None:
    """Name the member that holds the messages; an empty list is a conversation without any."""
    for holds in (_is_messages, lambda value: value == []):
        for key in MESSAGE_KEYS:
            if holds(wrapper.get(key)):
                return key
    return None


def _escaped(name: str) -> str:
    """Escape a member name for a JSON pointer (RFC 6901), cut so that no data is repeated."""
    return name[:32].replace("~", "~0").replace("/", "~1")
