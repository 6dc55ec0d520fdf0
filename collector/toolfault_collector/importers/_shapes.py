"""Shapes of a chat message: how calls and results stand in it, and when a result is a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from toolfault_collector.importers._assembly import Issued, Outcome
from toolfault_collector.importers._text import text_of
from toolfault_collector.importers._times import read_time

__all__ = ["Entry", "Shape", "anthropic_entries", "chat_entries", "message_time", "openai_entries"]

Entry: TypeAlias = Issued | Outcome
Shape: TypeAlias = Callable[[Mapping[str, object], int], Iterator[Entry]]

UNKNOWN_TOOL: Final = "unknown"
# The rule of this format: there is no flag, a tool that fails answers with such a text.
ERROR_PREFIX: Final = "Error"
_TIME_KEYS: Final = ("timestamp", "created_at", "time")

_Json = Mapping[str, object]


def message_time(message: _Json) -> int | None:
    """Read the time of a message, where it has one."""
    for key in _TIME_KEYS:
        at = read_time(message.get(key))
        if at is not None:
            return at
    return None


def openai_entries(message: _Json, index: int) -> Iterator[Entry]:
    """Yield the calls and results of one OpenAI message or Responses API item.

    Args:
        message: The message.
        index: Its place in the conversation; names the turn.
    """
    kind = message.get("type")
    if kind == "function_call":
        yield _issued(message, message, identity=f"{index}", turn=None)
    elif kind == "function_call_output":
        yield _outcome(message, text_of(message.get("output")))
    elif message.get("role") in ("tool", "function"):
        several = message.get("tool_messages")
        for answer in several if isinstance(several, list) else [message]:
            if isinstance(answer, dict):
                yield _outcome(answer, text_of(answer.get("content")))
    elif message.get("role") == "assistant":
        yield from _calls(message, index)


def _calls(message: _Json, index: int) -> Iterator[Issued]:
    turn = str(index)
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        for place, call in enumerate(calls):
            if isinstance(call, dict):
                inner = call.get("function", call.get("custom", call))
                function = inner if isinstance(inner, dict) else {}
                yield _issued(message, {**call, **function}, identity=f"{index}.{place}", turn=turn)
        return
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        yield _issued(message, legacy, identity=f"{index}.f", turn=turn)


def _issued(message: _Json, call: _Json, *, identity: str, turn: str | None) -> Issued:
    arguments = next(
        (call[key] for key in ("arguments", "args", "input", "params") if key in call), None
    )
    model = message.get("model")
    return Issued(
        identity=identity,
        tool=_string(call.get("name")) or UNKNOWN_TOOL,
        arguments=arguments,
        call_id=_string(call.get("call_id")) or _string(call.get("id")),
        turn=turn,
        at=message_time(message),
        model=model if isinstance(model, str) and model else None,
    )


def _outcome(message: _Json, text: str) -> Outcome:
    flagged = (
        message.get("error") is True
        or message.get("is_error") is True
        or message.get("status") == "error"
    )
    # The legacy answer names no call; an id it may have is its own.
    keys = () if message.get("role") == "function" else ("tool_call_id", "call_id", "id")
    return Outcome(
        call_id=next((found for key in keys if (found := _string(message.get(key)))), None),
        text=text,
        failed=flagged or text.startswith(ERROR_PREFIX),
        tool=_string(message.get("name")),
        at=message_time(message),
    )


def anthropic_entries(message: _Json, index: int) -> Iterator[Entry]:
    """Yield the calls and results among the content blocks of one Anthropic message.

    Args:
        message: The message.
        index: Its place in the conversation; names the turn.
    """
    blocks = message.get("content")
    for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use" and message.get("role") == "assistant":
            yield _issued(message, block, identity=f"{index}.{place}", turn=str(index))
        elif block.get("type") == "tool_result" and message.get("role") == "user":
            yield Outcome(
                call_id=_string(block.get("tool_use_id")),
                text=text_of(block.get("content")),
                failed=block.get("is_error") is True,
                at=message_time(message),
            )


def chat_entries(message: _Json, index: int) -> Iterator[Entry]:
    """Yield the calls and results of a message in either shape.

    Some libraries write a call in both, as a content block and under ``tool_calls``; it is one.

    Args:
        message: The message.
        index: Its place in the conversation; names the turn.
    """
    ids: set[str | None] = set()
    for entry in openai_entries(message, index):
        ids.add(entry.call_id if isinstance(entry, Issued) else None)
        yield entry
    for entry in anthropic_entries(message, index):
        if isinstance(entry, Outcome) or entry.call_id is None or entry.call_id not in ids:
            yield entry


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
