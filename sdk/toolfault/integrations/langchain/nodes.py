"""Calls that a ``ToolNode`` makes."""

from __future__ import annotations

from typing import Any

from toolfault.integrations.langchain.messages import (
    NAME,
    asking,
    message_of,
    model_of,
    thread_of,
)
from toolfault.integrations.seen import Call, Seen, note, schema_of

__all__ = ["arun_one", "notes", "run_one"]


def run_one(
    original: Any, node: Any, call: Any, input_type: Any, runtime: Any, *a: Any, **k: Any
) -> Any:
    """Observe one call."""
    with Call(lambda: _seen(node, call, runtime)) as opened:
        answer = original(node, call, input_type, runtime, *a, **k)
        return _answered(opened, answer, node.tools_by_name.get(call["name"]))


async def arun_one(
    original: Any, node: Any, call: Any, input_type: Any, runtime: Any, *a: Any, **k: Any
) -> Any:
    """Observe one call."""
    with Call(lambda: _seen(node, call, runtime)) as opened:
        answer = await original(node, call, input_type, runtime, *a, **k)
        return _answered(opened, answer, node.tools_by_name.get(call["name"]))


def _seen(node: Any, call: Any, runtime: Any) -> Seen:
    """Return what is known before the body runs; older versions give the config, but no state."""
    config = runtime if isinstance(runtime, dict) else getattr(runtime, "config", None)
    tool = node.tools_by_name.get(call["name"])
    seen = Seen(NAME, call["name"], call_id=call["id"], arguments=call["args"])
    seen.known_tools = tuple(node.tools_by_name)
    seen.conversation = thread_of(config)
    seen.agent = ((config or {}).get("metadata") or {}).get("lc_agent_name")
    seen.fn = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    _name_arguments(seen, getattr(tool, "args_schema", None))
    message = message_of(getattr(runtime, "state", None), call["id"]) or asking(call["id"])
    seen.turn = getattr(message, "id", None)
    seen.agent = getattr(message, "name", None) or seen.agent
    seen.model = model_of(message)
    if tool is None:
        seen.stage = "unknown"
    return seen


def _name_arguments(seen: Seen, schema: Any) -> None:
    """Say what names the arguments: a schema, or the class that one is made of."""
    if isinstance(schema, dict):
        seen.schema = schema
    else:
        seen.model_class = schema


def notes(stage: str, original: Any, e: Any, *a: Any, **k: Any) -> Any:
    """Keep the exception that the framework is about to turn into a text."""
    refused = type(e).__name__ == "ToolInvocationError"
    note(error=e, stage="validation" if refused else stage)
    return original(e, *a, **k)


def _answered(opened: Call, answer: Any, tool: Any) -> Any:
    """Report a call that was answered; return the answer, or a copy with a better text."""

    def fill(seen: Seen) -> None:
        if getattr(answer, "status", None) == "error":
            seen.told = answer.content if isinstance(answer.content, str) else str(answer.content)
            if seen.stage == "ok":
                seen.stage = "returned"
            seen.error = getattr(seen.error, "source", None) or seen.error
            if seen.stage == "validation":
                seen.schema = _schema(tool)
        else:
            seen.stage, seen.error = "ok", None
            seen.result = getattr(answer, "content", answer)
            seen.told = seen.result if type(seen.result) is str else None

    text = opened.ended(fill)
    return answer if text is None else answer.model_copy(update={"content": text})


def _schema(tool: Any) -> Any:
    """Return the JSON schema that the model was shown; made for failures alone."""
    shown = tool.tool_call_schema
    return shown if isinstance(shown, dict) else schema_of(shown)
