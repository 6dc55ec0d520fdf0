"""Anthropic messages: tools called and answered by blocks among their content.

A call is a ``tool_use``, ``server_tool_use`` or ``mcp_tool_use`` block; its result a block whose
type ends with ``tool_result``. Failure rule: ``is_error: true`` on it, or, for the tools that
Anthropic runs itself, a content whose type ends with ``_error``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats.openai import call_of, message_time
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, text_of

__all__ = ["DIALECT", "entries"]


def _sign(message: Json) -> str:
    kinds = (block["type"] for _, block in _blocks(message))
    return next((f'"type": "{kind}"' for kind in kinds), "")


def entries(message: Json, index: object, role: object = None) -> Iterator[Call | Outcome]:
    """Yield the calls and results among the content blocks of one message.

    Args:
        message: The message.
        index: Its place in the conversation, or what else names the turn.
        role: Who wrote it, where that is known and the blocks are Anthropic's own; chats say it in
            the message, and their blocks may be of a dialect.
    """
    by_model = (role or message.get("role")) == "assistant"
    for place, block in _blocks(message):
        kind = str(block["type"])
        if kind.endswith("tool_use") and by_model:
            call = {name: block.get(name) for name in ("id", "name", "input")} if role else block
            found = call_of(message, call, identity=f"{index}.{place}", turn=str(index))
            server = name_of(block.get("server_name"))
            found.tool = f"{server}/{found.tool}" if server else found.tool
            yield found
        elif kind.endswith("tool_result") and (kind != "tool_result" or not by_model):
            yield _outcome(message, block)


def _outcome(message: Json, block: Json) -> Outcome:
    content = block.get("content")
    text, failed = text_of(content), block.get("is_error") is True
    if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
        failed = True
        text = name_of(content.get("error_message")) or str(content.get("error_code", "error"))
    return Outcome(
        call_id=name_of(block.get("tool_use_id")),
        text=text,
        failed=failed,
        at=message_time(message),
    )


def _blocks(message: Json) -> Iterator[tuple[int, Json]]:
    """Yield the blocks that call a tool or answer, with their place."""
    content = message.get("content")
    for place, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict):
            kind = block.get("type")
            if isinstance(kind, str) and kind.endswith(("tool_use", "tool_result")):
                yield place, block


DIALECT: Final = Dialect(
    name="anthropic",
    title="Anthropic messages",
    failure='`"is_error": true` on the result block; for tools that Anthropic runs itself, a result'
    " whose `type` ends with `_error`",
    members=("content", "role", "tool_use_id"),
    sign=_sign,
    entries=entries,
)
