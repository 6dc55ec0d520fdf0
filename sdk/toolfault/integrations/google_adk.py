"""Google ADK, 1.x and 2.x: the tool calls of every agent but those of live (audio) sessions.

ADK lets values of the wrong type through to the tool; what the tool makes of them is what counts.
"""

from __future__ import annotations

import functools
from typing import Any

from toolfault.errors import ToolError
from toolfault.integrations._discover import hook, improves
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
        hook("google_adk", module, "_execute_single_prepared_call", _executes_prepared)
    elif name.endswith(".functions"):
        hook("google_adk", module, "_execute_single_function_call_async", _executes, optional=True)
    else:
        hook("google_adk", module.PluginManager, "run_on_tool_error_callback", _fails)


def _executes_prepared(original: Any) -> Any:
    """Observe a call of 2.x."""

    @functools.wraps(original)
    async def execute(invocation: Any, prepared: Any, agent: Any, **kwargs: Any) -> Any:
        def build() -> Seen:
            return _seen(invocation, prepared.function_call, prepared.tools_dict, agent)

        return await _observed(build, lambda: original(invocation, prepared, agent, **kwargs))

    return execute


def _executes(original: Any) -> Any:
    """Observe a call of 1.x."""

    @functools.wraps(original)
    async def execute(
        invocation: Any, function_call: Any, tools: Any, agent: Any, *args: Any, **kwargs: Any
    ) -> Any:
        def build() -> Seen:
            return _seen(invocation, function_call, tools, agent)

        return await _observed(
            build, lambda: original(invocation, function_call, tools, agent, *args, **kwargs)
        )

    return execute


def _fails(original: Any) -> Any:
    """Note an exception, which a plugin may turn into an answer."""

    @functools.wraps(original)
    async def run_on_tool_error_callback(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(error=kwargs.get("error"))
        return await original(self, *args, **kwargs)

    return run_on_tool_error_callback


async def _observed(build: Any, run: Any) -> Any:
    with Call(build, refused=_refused) as call:
        event = await run()
        text = call.ended(lambda seen: _answered(seen, event), improve=improves("google_adk"))
        if text is not None:
            _response_of(event).response = {"error": text}
        return event


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
    )


def _turn(invocation: Any, call_id: str) -> str:
    """Return the id of the event in which the model made the call, with its siblings."""
    for event in reversed(invocation.session.events):
        if any(call.id == call_id for call in event.get_function_calls()):
            return str(event.id)
    return str(invocation.invocation_id)


def _refused(seen: Seen) -> None:
    if seen.tool not in seen.known_tools:
        seen.stage = "unknown"


def _answered(seen: Seen, event: Any) -> None:
    """Fill in what the answer tells; an exception was noted on the way."""
    tool, seen.fn = seen.fn, getattr(seen.fn, "func", None)
    if event is None:  # the answer comes later, from outside
        seen.stage = "control"
        return
    answer = _response_of(event).response
    told = answer.get("error") if isinstance(answer, dict) else None
    if seen.tool not in seen.known_tools:
        seen.stage = "unknown"
    elif seen.error is not None:
        seen.stage = "exec"
    elif not isinstance(told, str):
        seen.result = answer.get("result") if set(answer) == {"result"} else answer
        return
    elif told.startswith(_CONFIRMATION):
        seen.stage = "control"
    elif told.startswith(_REJECTED):
        seen.stage, seen.error = (
            "exec",
            ToolError(
                seen.tool, told, "rejected_by_user", category="availability", audience="user"
            ),
        )
    else:
        seen.stage = "validation" if any(words in told for words in _REFUSED) else "returned"
    seen.told = told or str(answer)
    seen.schema = _schema(tool)


def _response_of(event: Any) -> Any:
    return event.get_function_responses()[0]


def _schema(tool: Any) -> Any:
    """Return the JSON schema of a tool's declaration, which may be in Google's own form."""
    declaration = None if tool is None else tool._get_declaration()  # noqa: SLF001
    schema = getattr(declaration, "parameters_json_schema", None)
    googles = getattr(declaration, "parameters", None)
    if schema is not None or googles is None:
        return schema
    return _in_lower_case(googles.model_dump(exclude_none=True, mode="json"))


def _in_lower_case(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_lower_case(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: part.lower() if name == "type" and isinstance(part, str) else _in_lower_case(part)
        for name, part in schema.items()
    }
