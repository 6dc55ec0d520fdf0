"""smolagents, 1.21 up to 1.26: the calls of every ``ToolCallingAgent``.

A ``CodeAgent`` calls tools from code that it writes: there is no call, no id and no arguments to
validate, and what fails is the code. Its decorated tools report themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations._schemas import of_smolagents
from toolfault.integrations._threads import thread_of
from toolfault.integrations.seen import Call, Seen
from toolfault.telemetry._conversations import current_scope

__all__ = ["install"]

_STEP = "_toolfault_step"


def install(module: Any) -> None:
    """Hook ``smolagents.agents``."""
    hook("smolagents", module.ToolCallingAgent, "process_tool_calls", _processes)
    hook("smolagents", module.ToolCallingAgent, "execute_tool_call", _executes)


def _processes(original: Any, agent: Any, chat_message: Any, memory_step: Any) -> Iterator[Any]:
    """Keep the ids of the calls of one step, which ``execute_tool_call`` is not given."""
    try:
        setattr(agent, _STEP, _Step(agent, chat_message.tool_calls, memory_step.step_number))
    except Exception:  # noqa: BLE001 - calls without ids are better than none
        setattr(agent, _STEP, None)
    yield from original(agent, chat_message, memory_step)


def _executes(original: Any, agent: Any, tool_name: str, arguments: Any) -> Any:
    """Observe one call. What its exception says, the model reads at the end of the step."""
    if tool_name == "final_answer":
        return original(agent, tool_name, arguments)
    with Call(lambda: _seen(agent, tool_name, arguments)) as call:
        try:
            result = original(agent, tool_name, arguments)
        except Exception as error:
            text = call.ended(functools.partial(_failed, error=error))
            if text is not None:
                error.message, error.args = text, (text,)  # type: ignore[attr-defined]
            raise
        call.ended(functools.partial(_succeeded, result=result))
        return result


class _Step:
    """The calls of one model turn, which ``execute_tool_call`` gets without their ids.

    Args:
        agent: The agent.
        calls: What the model asked for.
        number: Number of the step in the run.
    """

    def __init__(self, agent: Any, calls: Any, number: int) -> None:
        self.waiting = [(each.function.name, each.function.arguments, each.id) for each in calls]
        # Parallel calls run in threads, which knew nothing of the caller's context up to 1.22.
        scope = current_scope()
        run = thread_of(agent.memory.steps[0]).id
        self.conversation = run if scope is None else scope.conversation.id
        self.turn = f"{run}/{number}"

    def take(self, name: str, arguments: Any) -> str | None:
        """Return the id of the call with these arguments: the very object, else an equal one."""
        same = (call for call in self.waiting if call[0] == name and call[1] is arguments)
        equal = (call for call in self.waiting if call[0] == name and (call[1] or {}) == arguments)
        found = next(same, None) or next(equal, None)
        if found is None:
            return None
        self.waiting.remove(found)
        return str(found[2])


def _seen(agent: Any, name: str, arguments: Any) -> Seen:
    step: _Step | None = getattr(agent, _STEP, None)
    tool = agent.tools.get(name)
    return Seen(
        "smolagents",
        name,
        call_id=None if step is None else step.take(name, arguments),
        turn=None if step is None else step.turn,
        conversation=None if step is None else step.conversation,
        model=getattr(agent.model, "model_id", None),
        agent=agent.name,
        arguments=arguments,
        schema=None if tool is None else of_smolagents(tool.inputs),
        known_tools=(*agent.tools, *agent.managed_agents),
        fn=getattr(tool, "forward", None),
    )


def _failed(seen: Seen, *, error: Exception) -> None:
    seen.error, seen.told = error, str(error)
    if seen.tool not in seen.known_tools:
        seen.stage = "unknown"
    elif isinstance(seen.arguments, str) and seen.arguments.lstrip().startswith(("{", "[")):
        seen.stage = "parse"  # JSON that could not be read is passed on as a text
    else:
        seen.stage = "validation" if type(error).__name__ == "AgentToolCallError" else "exec"


def _succeeded(seen: Seen, *, result: Any) -> None:
    # A text output is wrapped; what the tool returned may have been a mapping.
    seen.result = result.to_raw() if type(result).__name__ == "AgentText" else result
