"""Ids for conversations whose framework has none: the object that holds the messages is the thread.

A framework keeps what the model has read in some object: an agent, a memory. As long as the object
lives and is used again, the conversation goes on.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Sequence
from typing import Any


class Thread:
    """One conversation.

    Attributes:
        id: Random, 16 hex digits.
        turns: Model turns so far, counted by the integration.
    """

    __slots__ = ("id", "turns")

    def __init__(self) -> None:
        self.id = secrets.token_hex(8)
        self.turns = 0

    @property
    def turn(self) -> str:
        """Id of the latest model turn."""
        return f"{self.id}/{self.turns}"


# By id(), since holders may have no hash; a dead holder takes its entry with it.
_threads: dict[int, tuple[weakref.ref[object], Thread]] = {}


def thread_of(holder: object) -> Thread:
    """Return the thread of the object that holds the messages.

    Raises:
        TypeError: The object cannot be referred to weakly.
    """
    key = id(holder)
    known = _threads.get(key)
    if known is not None and known[0]() is holder:
        return known[1]
    thread = Thread()
    _threads[key] = (weakref.ref(holder, lambda _: _threads.pop(key, None)), thread)
    return thread


def latest_answer(messages: Sequence[Any]) -> int:
    """Return the index of the model's latest message: calls of one turn are parallel."""
    latest = reversed(range(len(messages)))
    return next((at for at in latest if messages[at].get("role") == "assistant"), 0)
