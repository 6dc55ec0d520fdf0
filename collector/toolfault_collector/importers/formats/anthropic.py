"""Anthropic messages: ``tool_use`` and ``tool_result`` blocks among their content.

Failure rule: ``is_error: true`` on the ``tool_result``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolfault_collector.importers.formats.openai import call_of, message_time
from toolfault_collector.importers.items import Call, Outcome
from toolfault_collector.importers.members import name_of, text_of

__all__ = ["NAME", "TITLE", "detect", "entries"]

NAME: Final = "anthropic"
TITLE: Final = "Anthropic messages, bare or wrapped"


def detect(messages: list[object]) -> bool:
    """Tell whether a message holds a block of either kind."""
    return any(
        block.get("type") in ("tool_use", "tool_result")
        for message in messages
        if isinstance(message, dict)
        for _, block in _blocks(message)
    )


def entries(
    message: Mapping[str, object], index: object, role: object = None
) -> Iterator[Call | Outcome]:
    """Yield the calls and results among the content blocks of one message.

    Args:
        message: The message.
        index: Its place in the conversation, or what else names the turn.
        role: Who wrote it, where that is known and the blocks are Anthropic's own; chats say it in
            the message, and their blocks may be of a dialect.
    """
    writer = role or message.get("role")
    for place, block in _blocks(message):
        if (writer, block.get("type")) == ("assistant", "tool_use"):
            call = {name: block.get(name) for name in ("id", "name", "input")} if role else block
            yield call_of(message, call, identity=f"{index}.{place}", turn=str(index))
        elif (writer, block.get("type")) == ("user", "tool_result"):
            yield Outcome(
                call_id=name_of(block.get("tool_use_id")),
                text=text_of(block.get("content")),
                failed=block.get("is_error") is True,
                at=message_time(message),
            )


def _blocks(message: Mapping[str, object]) -> Iterator[tuple[int, Mapping[str, object]]]:
    content = message.get("content")
    for place, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            yield place, block
