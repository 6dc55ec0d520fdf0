"""What LangChain's messages and configurations tell of a call: who asked for it, and where."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

__all__ = ["NAME", "asking", "message_of", "model_of", "remember", "thread_of"]

NAME = "langchain"
_REMEMBERED = 512
_asked: OrderedDict[Any, Any] = OrderedDict()  # call id -> the model's message


def thread_of(config: Any) -> str | None:
    """Return the ``thread_id`` of a configuration."""
    thread = ((config or {}).get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


def message_of(state: Any, call_id: str) -> Any:
    """Return the model's message that made the call, from a state of any form."""
    messages = state if isinstance(state, list) else None
    if messages is None:
        messages = (
            state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
        )
    for message in reversed(messages or []):
        calls = getattr(message, "tool_calls", None) or ()
        if any(made.get("id") == call_id for made in calls):
            return message
    return None


def model_of(message: Any) -> str | None:
    """Return the name of the model that wrote a message."""
    told = getattr(message, "response_metadata", None) or {}
    return told.get("model_name") or told.get("model")


def remember(message: Any) -> None:
    """Note which message asked for a call, for versions that do not say."""
    for call in getattr(message, "tool_calls", None) or ():
        _asked[call.get("id")] = message
    while len(_asked) > _REMEMBERED:
        _asked.popitem(last=False)


def asking(call_id: Any) -> Any:
    """Return the message that asked for a call, if it was remembered."""
    return _asked.get(call_id)
