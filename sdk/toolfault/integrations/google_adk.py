"""Google ADK, 1.x and 2.x: the tool calls of every agent but those of live (audio) sessions.

ADK lets values of the wrong type through to the tool; what the tool makes of them is what counts.
"""

from __future__ import annotations

import functools
from typing import Any

from toolfault.errors import ToolError
from toolfault.integrations._discover import hook
from toolfault.integrations._schemas import of_google
from toolfault.integrations.seen import Call, Seen, note

__all__ = ["install"]

# What ADK answers itself, by its first words or a sentence in it, and what that means.
_CONFIRMATION = "This tool call requires confirmation"
_REJECTED = "This tool call is rejected"
_REFUSED = ("mandatory input parameters are not present", "due to argument validation errors")


def install(module: Any) -> None:
    """Hook where a call is executed, in 2.x or in 1.x, and where its exception passes."""
    name = module.__name__
    if name.endswith("._caller"):
        executes = functools.partial(_executes, _in_2)
        hook("google_adk", module, "_execute_single_prepared_call", executes)
    elif name.endswith(".functions"):
        executes = functools.partial(_executes, _in_1)
        hook("google_adk", module, "_execute_single_function_call_async", executes, optional=True)
    else:
        hook("google_adk", module.PluginManager, "run_on_tool_error_callback", _fails)


def _in_2(prepared: Any, agent: Any) -> tuple[Any, Any, Any]:
    return prepared.function_call, prepared.tools_dict, agent


def _in_1(function_call: Any, tools: Any, agent: Any, *_: Any) -> tuple[Any, Any, Any]:
    return function_call, tools, agent


async def _executes(parts: Any, original: Any, invocation: Any, *given: Any, **kwargs: Any) -> Any:
    """Observe a call; ``parts`` finds what it is about in what this version is given."""
    with Call(lambda: _seen(invocation, *parts(*given))) as call:
        event = await original(invocation, *given, **kwargs)
        text = call.ended(lambda seen: _answered(seen, event))
        if text is not None:
            _response_of(event).response = {"error": text}
        return event


async def _fails(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Note an exception, which a plugin may turn into an answer."""
    note(error=kwargs.get("error"))
    return await original(*args, **kwargs)


def _seen(invocation: Any, function_call: Any, tools: Any, agent: Any) -> Seen:
    model = getattr(agent, "model", None)
    tool = tools.get(function_call.name)
    return Seen(
        "google_adk",
        function_call.name,
        call_id=function_call.id,
        turn=_turn(invocation, function_call.id),
        conversation=invocation.session.id,
        model=model if isinstance(model, str) else getattr(model, "model", None),
        agent=getattr(agent, "name", None),
        arguments=function_call.args or {},
        known_tools=tuple(tools),
        fn=tool,
        stage="unknown" if tool is None else "ok",
    )


def _turn(invocation: Any, call_id: str) -> str:
    """Return the id of the event in which the model made the call, with its siblings."""
    for event in reversed(invocation.session.events):
        if any(call.id == call_id for call in event.get_function_calls()):
            return str(event.id)
    return str(invocation.invocation_id)


def _answered(seen: Seen, event: Any) -> None:
    """Fill in what the answer tells; an exception was noted on the way."""
    tool, seen.fn = seen.fn, getattr(seen.fn, "func", None)
    if event is None:  # the answer comes later, from outside
        seen.stage = "control"
        return
    answer = _response_of(event).response
    told = answer.get("error") if isinstance(answer, dict) else None
    if seen.error is not None and seen.stage == "ok":
        seen.stage = "exec"
    elif isinstance(told, str) and seen.stage == "ok":
        _tell(seen, told)
    if seen.stage == "ok":
        seen.result = answer.get("result") if set(answer) == {"result"} else answer
        return
    seen.told = told or str(answer)
    seen.schema = of_google(tool)


def _tell(seen: Seen, told: str) -> None:
    """Fill in what an answer of ADK itself means, or a tool's that says ``error``."""
    if told.startswith(_CONFIRMATION):
        seen.stage = "control"
    elif told.startswith(_REJECTED):
        seen.stage = "exec"
        seen.error = ToolError(
            seen.tool, told, "rejected_by_user", category="availability", audience="user"
        )
    else:
        seen.stage = "validation" if any(words in told for words in _REFUSED) else "returned"


def _response_of(event: Any) -> Any:
    return event.get_function_responses()[0]
