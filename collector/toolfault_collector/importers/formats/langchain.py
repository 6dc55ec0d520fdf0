"""LangChain messages as dumped: by ``messages_to_dict``, ``dumps`` or ``model_dump``.

The first wraps each in ``{"type": "ai", "data": {...}}``, the second in ``{"lc": 1, "type":
"constructor", "id": [..., "AIMessage"], "kwargs": {...}}``, the third not at all. Failure rule:
``status: error`` of a tool message; an entry of ``invalid_tool_calls`` is a call that failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolfault_collector.importers.formats.openai import call_of, message_time
from toolfault_collector.importers.items import Call, Dialect, Json, Outcome
from toolfault_collector.importers.members import name_of, objects_of, text_of

__all__ = ["DIALECT", "unwrapped"]

_KINDS: Final = ("human", "ai", "system", "tool", "function", "chat", "AIMessageChunk")
_BARE_KINDS: Final = ("human", "ai", "tool", "AIMessageChunk")
_CLASSES: Final = {
    "AIMessage": "ai",
    "AIMessageChunk": "ai",
    "HumanMessage": "human",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
}
_MADE: Final = "constructor"


def unwrapped(message: Json) -> tuple[str, Json]:
    """Give the kind of a message (``ai``, ``tool`` and others) and its members; or nothing."""
    if "role" in message:
        return "", message
    kind, data, inner = message.get("type"), message.get("data"), message.get("kwargs")
    if kind == _MADE and isinstance(inner, dict):
        path = message.get("id")
        name = path[-1] if isinstance(path, list) and path else None
        return (_CLASSES.get(name, ""), inner) if isinstance(name, str) else ("", inner)
    if kind in _KINDS and isinstance(data, dict) and "content" in data:
        return str(kind), data
    if kind in _BARE_KINDS and "content" in message:
        return str(kind), message
    return "", message


def _sign(message: Json) -> str:
    kind, _ = unwrapped(message)
    if kind and message.get("type") == _MADE:
        return f'"id": [..., "{next(name for name, of in _CLASSES.items() if of == kind)}"]'
    return f'"type": "{kind}"' if kind else ""


def _entries(message: Json, index: int) -> Iterator[Call | Outcome]:
    kind, members = unwrapped(message)
    if kind in ("ai", "AIMessageChunk"):
        yield from _calls(members, index)
    elif kind in ("tool", "function"):
        yield Outcome(
            call_id=name_of(members.get("tool_call_id")),
            text=text_of(members.get("content")),
            failed=members.get("status") == "error",
            tool=name_of(members.get("name")),
            at=message_time(members),
        )


def _calls(members: Json, index: int) -> Iterator[Call | Outcome]:
    for name in ("tool_calls", "invalid_tool_calls"):
        for place, call in enumerate(objects_of(members.get(name))):
            issued = call_of(members, call, identity=f"{index}.{name[0]}{place}", turn=f"{index}")
            yield issued
            if name == "invalid_tool_calls":
                # No tool message follows: the agent stops, or tells the model by other means.
                text = text_of(call.get("error")) or "the arguments are not valid JSON"
                yield Outcome(issued.call_id, text, True, issued.tool, at=issued.started_at)


DIALECT: Final = Dialect(
    name="langchain",
    title="LangChain message dumps",
    failure='`"status": "error"` of the tool message; an entry of `invalid_tool_calls`',
    members=("type", "data", "tool_call_id"),
    sign=_sign,
    entries=_entries,
)
