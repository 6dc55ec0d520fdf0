"""OpenAI messages: ``tool_calls`` and ``tool`` messages, their legacy shape, the Responses API.

Failure rule: there is no flag in this shape; a result that starts with ``Error`` is the failure.
Dialects that do flag a message (``error``, ``is_error``, ``status``) are believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolfault_collector.importers.items import Call, Outcome
from toolfault_collector.importers.members import name_of, read_time, text_of

__all__ = ["NAME", "TITLE", "call_of", "entries", "message_time"]

NAME: Final = "openai"
TITLE: Final = "OpenAI chat messages, bare or wrapped"
ERROR_PREFIX: Final = "Error"
_TIME_KEYS: Final = ("timestamp", "created_at", "time")
_ARGUMENT_KEYS: Final = ("arguments", "args", "input", "params")

_Json = Mapping[str, object]


def entries(message: _Json, index: int) -> Iterator[Call | Outcome]:
    """Yield the calls and results of one message or Responses API item.

    Args:
        message: The message.
        index: Its place in the conversation; names the turn.
    """
    kind = message.get("type")
    if kind == "function_call":
        yield call_of(message, message, identity=f"{index}", turn=None)
    elif kind == "function_call_output":
        yield _outcome(message, text_of(message.get("output")))
    elif message.get("role") in ("tool", "function"):
        several = message.get("tool_messages")
        for answer in several if isinstance(several, list) else [message]:
            if isinstance(answer, dict):
                yield _outcome(answer, text_of(answer.get("content")))
    elif message.get("role") == "assistant":
        yield from _calls(message, index)


def _calls(message: _Json, index: int) -> Iterator[Call]:
    calls, legacy = message.get("tool_calls"), message.get("function_call")
    if isinstance(calls, list) and calls:
        for place, call in enumerate(calls):
            if isinstance(call, dict):
                inner = call.get("function", call.get("custom", call))
                whole = {**call, **inner} if isinstance(inner, dict) else call
                yield call_of(message, whole, identity=f"{index}.{place}", turn=str(index))
    elif isinstance(legacy, dict):
        yield call_of(message, legacy, identity=f"{index}.f", turn=str(index))


def call_of(message: _Json, call: _Json, *, identity: str, turn: str | None) -> Call:
    """Read a call that stands in *message* under the names that any of the dialects use."""
    return Call(
        identity=identity,
        tool=name_of(call.get("name")) or "unknown",
        arguments=next((call[key] for key in _ARGUMENT_KEYS if key in call), None),
        call_id=name_of(call.get("call_id")) or name_of(call.get("id")),
        turn=turn,
        started_at=message_time(message),
        model=name_of(message.get("model")),
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
        call_id=next((found for key in keys if (found := name_of(message.get(key)))), None),
        text=text,
        failed=flagged or text.startswith(ERROR_PREFIX),
        tool=name_of(message.get("name")),
        at=message_time(message),
    )


def message_time(message: _Json) -> int | None:
    """Read the time of a message, where it has one."""
    times = (read_time(message.get(key)) for key in _TIME_KEYS)
    return next((at for at in times if at is not None), None)
