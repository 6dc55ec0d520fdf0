"""How providers write a tool call and its answer into the messages of a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["PROVIDERS", "Part"]

Part = dict[str, Any]
"""A call (its id, turn, tool and arguments) or its answer (id, content and failed)."""


def _openai(message: Any, index: int) -> Iterator[Part]:
    if _get(message, "role") == "tool":
        content = _text(_get(message, "content"))
        yield {"id": _get(message, "tool_call_id"), "content": content, "failed": False}
        return
    for call in _get(message, "tool_calls") or ():
        function = _get(call, "function")
        yield {
            "id": _get(call, "id"),
            "turn": f"m{index}",
            "tool": str(_get(function, "name")),
            "arguments": _get(function, "arguments"),
        }


def _anthropic(message: Any, index: int) -> Iterator[Part]:
    content = _get(message, "content")
    for block in content if isinstance(content, (list, tuple)) else ():
        kind = _get(block, "type")
        if kind == "tool_use":
            yield {
                "id": _get(block, "id"),
                "turn": f"m{index}",
                "tool": str(_get(block, "name")),
                "arguments": _get(block, "input"),
            }
        elif kind == "tool_result":
            yield {
                "id": _get(block, "tool_use_id"),
                "content": _text(_get(block, "content")),
                "failed": _get(block, "is_error") is True,
            }


PROVIDERS = {"openai": _openai, "anthropic": _anthropic}
"""Reads the calls and answers of the message with an index: Chat Completions, Messages."""


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _text(content: Any) -> str:
    """Return the text of an answer: plain, or the text blocks of a list."""
    if isinstance(content, (list, tuple)):
        texts = (_get(block, "text") for block in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
