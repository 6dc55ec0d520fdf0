"""Microsoft Agent Framework, 1.19 up to 1.23: the tool calls that its chat clients run for a model.

Older versions say nowhere which calls failed: none of theirs is reported, and the doctor says so.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations._threads import Thread, thread_of
from toolfault.integrations.seen import Call, Seen, note

__all__ = ["install"]

# The run whose batch of calls is executed: the calls of one batch are those of one model turn.
_run: ContextVar[Thread | None] = ContextVar("toolfault_agent_framework_run", default=None)


def install(module: Any) -> None:
    """Hook ``agent_framework._tools``."""
    for name, stage in (("argument_validation", "validation"), ("execution", "exec")):
        explains = functools.partial(_explains, stage)
        if not hook("agent_framework", module, f"_function_{name}_error_result", explains):
            return  # a failure would count as a success
    hook("agent_framework", module, "_auto_invoke_function", _invokes)
    hook("agent_framework", module, "_execute_function_calls", _executes)


async def _executes(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Count the turns of a run."""
    token = _run.set(_thread(kwargs.get("host_payload_budget")))
    try:
        return await original(*args, **kwargs)
    finally:
        _run.reset(token)


def _thread(budget: Any) -> Thread | None:
    """Return the run, of which its budget is the one object that all its batches share."""
    if budget is None:
        return None
    try:
        thread = thread_of(budget)
    except TypeError:
        return None
    thread.turns += 1
    return thread


def _explains(stage: str, original: Any, *args: Any, **kwargs: Any) -> Any:
    """Note the exception that is made an answer."""
    given = (*args, *kwargs.values())
    error = next((each for each in given if isinstance(each, Exception)), None)
    note(error=error, stage=stage)
    return original(*args, **kwargs)


async def _invokes(original: Any, function_call_content: Any, *args: Any, **kwargs: Any) -> Any:
    """Observe one call."""
    with Call(lambda: _seen(function_call_content, kwargs)) as call:
        result = await original(function_call_content, *args, **kwargs)
        text = call.ended(lambda seen: _answered(seen, result, kwargs))
        if text is not None:
            result.result, result.items = text, [type(result).from_text(text)]
        return result


def _seen(content: Any, given: dict[str, Any]) -> Seen:
    asked = content.function_call if content.type != "function_call" else content
    run = _run.get()
    session = getattr(given.get("invocation_session"), "session_id", None)
    return Seen(
        "agent_framework",
        asked.name,
        call_id=asked.call_id,
        turn=None if run is None else run.turn,
        conversation=session or (None if run is None else run.id),
        arguments=asked.arguments or {},
        known_tools=tuple(given.get("tool_map") or ()),
    )


def _answered(seen: Seen, content: Any, given: dict[str, Any]) -> None:
    """Fill in what came of the call; an exception was noted on the way."""
    if content.type != "function_result":  # a person is asked first, or the host runs the tool
        seen.stage = "control"
        return
    told = content.result if isinstance(content.result, str) else str(content.result)
    tool = (given.get("tool_map") or {}).get(seen.tool)
    if tool is None:
        seen.stage, seen.told = "unknown", told
    elif seen.stage == "ok":
        seen.result = content.result
    else:
        parameters = tool.parameters
        seen.schema = parameters() if callable(parameters) else parameters
        seen.told, seen.fn = told, getattr(tool, "func", None)
