"""CrewAI 1.15: the native tool calls of every agent.

Not seen are calls that a model without native tool calls writes as text (ReAct), and calls in the
steps of a plan: CrewAI keeps nothing of them but texts.
"""

from __future__ import annotations

import functools
from typing import Any

from toolfault.errors import ToolError
from toolfault.integrations._discover import hook, improves
from toolfault.integrations.seen import Call, Seen, note

__all__ = ["install"]

_STAGES = {"unknown_tool": "unknown", "invalid_input": "parse", "exception": "exec"}
_BLOCKED = "Tool execution blocked by hook"


def install(module: Any) -> None:
    """Hook ``crewai.agents.agent_executor``."""
    read = module.extract_tool_call_info
    executes = functools.partial(_executes, read=read)
    hook("crewai", module.AgentExecutor, "_execute_single_native_tool_call", executes)
    hook("crewai", module, "failure_from_exception", lambda explain: _keeps("error", explain))
    hook("crewai", module, "detect_tool_failure", lambda detect: _keeps("result", detect))


def _keeps(detail: str, original: Any) -> Any:
    """Note an exception or a returned value, of which the executor keeps only the text."""

    @functools.wraps(original)
    def noting(subject: Any, *args: Any, **kwargs: Any) -> Any:
        note(**{detail: subject})
        return original(subject, *args, **kwargs)

    return noting


def _executes(original: Any, *, read: Any) -> Any:
    """Observe one native tool call of an executor.

    Args:
        original: CrewAI's method.
        read: CrewAI's reader of a provider's form of a call: id, name and arguments, or None.
    """

    @functools.wraps(original)
    def execute(self: Any, tool_call: Any) -> Any:
        with Call(lambda: _seen(self, read(tool_call))) as call:
            answer = original(self, tool_call)
            text = call.ended(
                lambda seen: _answered(self, seen, answer), improve=improves("crewai")
            )
            if text is not None:
                answer["result"] = text
            return answer

    return execute


def _seen(executor: Any, read: Any) -> Seen:
    call_id, name, arguments = read or (None, "unknown", None)
    tool = _tools(executor).get(name)
    conversation = _conversation(executor)
    return Seen(
        "crewai",
        name,
        call_id=call_id,
        turn=f"{conversation}/{_turn(executor.state.messages)}",
        conversation=conversation,
        model=getattr(executor.llm, "model", None),
        agent=getattr(executor.agent, "role", None),
        arguments=arguments,
        model_class=getattr(tool, "args_schema", None),
        fn=getattr(tool, "func", None),
    )


def _answered(executor: Any, seen: Seen, answer: Any) -> None:
    """Fill in what came of a call; exception and value were noted on the way."""
    told = str(answer.get("result"))
    reason = getattr(getattr(answer.get("tool_failure"), "reason", None), "value", None)
    if seen.error is not None:
        wrong = "arguments validation failed" in str(seen.error)[:300]
        seen.stage = "validation" if wrong else "exec"
    elif told.startswith(_BLOCKED):
        seen.stage, seen.error = "exec", ToolError.unavailable(seen.tool, "blocked_by_hook")
    elif reason is not None:
        seen.stage = _STAGES.get(reason, "returned")
    if seen.stage == "ok":
        return
    seen.told = told
    tools = _tools(executor)
    seen.known_tools = tuple(tools)
    schema = getattr(tools.get(seen.tool), "args_schema", None)
    seen.schema = None if schema is None else schema.model_json_schema()


def _tools(executor: Any) -> dict[str, Any]:
    return {_sanitized(tool.name): tool for tool in executor.original_tools or ()}


def _sanitized(name: str) -> str:
    from crewai.utilities.string_utils import sanitize_tool_name

    return str(sanitize_tool_name(name))


def _conversation(executor: Any) -> str:
    """Return an id for one execution of one task: an executor is used for many."""
    task = executor.task
    if task is None:
        return str(executor.state.id)
    return f"{task.id}@{task.start_time:%Y%m%dT%H%M%S.%f}"


def _turn(messages: Any) -> int:
    """Return the index of the model's latest message: calls of one turn are parallel."""
    latest = reversed(range(len(messages)))
    return next((at for at in latest if messages[at].get("role") == "assistant"), 0)
