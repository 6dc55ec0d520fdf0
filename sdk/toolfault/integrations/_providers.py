"""How providers write a tool call and its answer into the messages of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

Part = dict[str, Any]
"""A call (its id, tool and arguments) or its answer (id, content and failed)."""
_LATEST = 200  # messages: what a request costs does not grow with its history
_OF_HOST = frozenset({"user", "tool", "system", "developer"})


def _openai(message: Any) -> Iterator[Part]:
    if _get(message, "role") == "tool":
        content = _text(_get(message, "content"))
        yield {"id": _get(message, "tool_call_id"), "content": content, "failed": False}
        return
    for call in _get(message, "tool_calls") or ():
        function = _get(call, "function")
        yield {
            "id": _get(call, "id"),
            "tool": str(_get(function, "name")),
            "arguments": _get(function, "arguments"),
        }


def _anthropic(message: Any) -> Iterator[Part]:
    content = _get(message, "content")
    for block in content if isinstance(content, (list, tuple)) else ():
        kind = _get(block, "type")
        if kind == "tool_use":
            yield {
                "id": _get(block, "id"),
                "tool": str(_get(block, "name")),
                "arguments": _get(block, "input"),
            }
        elif kind == "tool_result":
            yield {
                "id": _get(block, "tool_use_id"),
                "content": _text(_get(block, "content")),
                "failed": _get(block, "is_error") is True,
            }


def _openai_responses(item: Any) -> Iterator[Part]:
    kind = _get(item, "type")
    if kind == "function_call":
        yield {
            "id": _get(item, "call_id"),
            "tool": str(_get(item, "name")),
            "arguments": _get(item, "arguments"),
        }
    elif kind == "function_call_output":
        content = _text(_get(item, "output"))
        yield {"id": _get(item, "call_id"), "content": content, "failed": False}


PROVIDERS = {"openai": _openai, "anthropic": _anthropic, "openai_responses": _openai_responses}
"""Reads the calls and answers of a message: Chat Completions, Messages, an item of Responses."""


def answered(
    read: Callable[[Any], Iterator[Part]], messages: Iterable[Any], first: int = 0
) -> list[tuple[Part, Part]]:
    """Return each call, with its turn, and its answer, in the order of the answers.

    Calls of which none was answered before the next are those of one turn.

    Args:
        read: One of ``PROVIDERS``.
        messages: The history, or its end.
        first: Index of the first of them in the history.
    """
    pairs: list[tuple[Part, Part]] = []
    open_calls: dict[str, Part] = {}
    turn: str | None = None
    for index, message in enumerate(messages, first):
        for part in read(message):
            if "tool" in part:
                turn = turn or f"m{index} {part['id']}"
                open_calls[part["id"]] = {**part, "turn": turn}
            else:
                turn = None
                if part["id"] in open_calls:
                    pairs.append((open_calls.pop(part["id"]), part))
    return pairs


def latest_run(read: Callable[[Any], Iterator[Part]], messages: Sequence[Any]) -> int:
    """Return the index of the message with which the latest run of the agent began.

    It is the latest of the user that follows a word of the model, or one of the latest 200: a
    request answers no more calls. What stands before was in earlier requests, maybe of another
    process.
    """
    oldest = max(0, len(messages) - _LATEST)
    for index in range(len(messages) - 1, oldest, -1):
        message, before = messages[index], messages[index - 1]
        is_told = _get(message, "role") == "user" and _get(before, "role") not in _OF_HOST
        if is_told and not _is_answer(read, message) and not _is_answer(read, before):
            return index
    return oldest


def _is_answer(read: Callable[[Any], Iterator[Part]], message: Any) -> bool:
    return any("tool" not in part for part in read(message))


def _get(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def _text(content: Any) -> str:
    """Return the text of an answer: plain, or the text blocks of a list."""
    if isinstance(content, (list, tuple)):
        texts = (_get(block, "text") for block in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""
