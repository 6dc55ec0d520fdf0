"""OpenAI chat messages: ``tool_calls`` and ``tool`` messages, and their legacy shape.

Failure rule: there is no flag in this shape; a result that starts with ``Error`` is the failure.
Dialects that do flag a message (``error``, ``is_error``, ``status``) are believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, objects_of, read_time, text_of

__all__ = ["DIALECT", "ERROR_PREFIX", "call_of", "entries", "message_time"]

ERROR_PREFIX: Final = "Error"
_TIME_KEYS: Final = ("timestamp", "created_at", "time")
_ARGUMENT_KEYS: Final = ("arguments", "args", "input", "params")


def _sign(message: Json) -> str:
    role = message.get("role")
    return '"role" of a message' if isinstance(role, str) else ""


def entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    """Yield the calls and results of one message.

    Args:
        message: The message.
        index: Its place in the conversation; names the turn.
    """
    if message.get("role") in ("tool", "function"):
        for answer in objects_of(message.get("tool_messages")) or [message]:
            yield _outcome(answer, text_of(answer.get("content")))
    elif message.get("role") == "assistant":
        yield from _calls(message, index)


def _calls(message: Json, index: int) -> Iterator[Call]:
    calls, legacy = objects_of(message.get("tool_calls")), message.get("function_call")
    for place, call in enumerate(calls):
        inner = call.get("function", call.get("custom", call))
        whole = {**call, **inner} if isinstance(inner, dict) else call
        yield call_of(message, whole, identity=f"{index}.{place}", turn=str(index))
    if not calls and isinstance(legacy, dict):
        yield call_of(message, legacy, identity=f"{index}.f", turn=str(index))


def call_of(message: Json, call: Json, *, identity: str, turn: str | None) -> Call:
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


def _outcome(message: Json, text: str) -> Outcome:
    error = name_of(message.get("error"))
    flagged = (
        message.get("error") is True
        or error is not None
        or message.get("is_error", message.get("isError")) is True
        or message.get("status") == "error"
    )
    # The legacy answer names no call; an id it may have is its own.
    keys = () if message.get("role") == "function" else ("tool_call_id", "call_id", "id")
    return Outcome(
        call_id=next((found for key in keys if (found := name_of(message.get(key)))), None),
        text=text or error or "",
        failed=flagged or text.startswith(ERROR_PREFIX),
        tool=name_of(message.get("name"))
        or name_of(message.get("tool_name")),  # the latter: Ollama
        at=message_time(message),
    )


def message_time(message: Json) -> int | None:
    """Read the time of a message, where it has one."""
    times = (read_time(message[key]) for key in _TIME_KEYS if key in message)
    return next((at for at in times if at is not None), None)


DIALECT: Final = Dialect(
    name="openai",
    title="OpenAI chat messages, also the legacy function_call",
    failure='a text that starts with `Error`, or on the message `"error": true` or a text of it,'
    ' `"is_error": true`, `"isError": true` or `"status": "error"`',
    members=("role", "content", "tool_calls"),
    sign=_sign,
    entries=entries,
)
