"""CrewAI, 1.15.9 up to 1.15.30: the native tool calls of every agent.

Not seen are calls that a model without native tool calls writes as text (ReAct), and calls in the
steps of a plan: CrewAI keeps nothing of them but texts.
"""

from __future__ import annotations

import functools
from typing import Any

from toolfault.errors import ToolError
from toolfault.integrations._discover import hook
from toolfault.integrations._threads import latest_answer
from toolfault.integrations.seen import Call, Seen, note, schema_of

__all__ = ["install"]

_STAGES = {"unknown_tool": "unknown", "invalid_input": "parse", "exception": "exec"}
_BLOCKED = "Tool execution blocked by hook"


def install(module: Any) -> None:
    """Hook ``crewai.agents.agent_executor``, which was in ``crewai.experimental`` up to 1.15.28."""
    executes = functools.partial(_executes, module.extract_tool_call_info)
    hook("crewai", module.AgentExecutor, "_execute_single_native_tool_call", executes)
    hook("crewai", module, "failure_from_exception", functools.partial(_keeps, "error"))
    hook("crewai", module, "detect_tool_failure", functools.partial(_keeps, "result"))


def _keeps(detail: str, original: Any, subject: Any, *args: Any, **kwargs: Any) -> Any:
    """Note an exception or a returned value, of which the executor keeps only the text."""
    note(**{detail: subject})
    return original(subject, *args, **kwargs)


def _executes(read: Any, original: Any, executor: Any, tool_call: Any) -> Any:
    """Observe one native tool call of an executor.

    Args:
        read: CrewAI's reader of a provider's form of a call: id, name and arguments, or None.
        original: CrewAI's method.
        executor: Whose method it is.
        tool_call: The call in a provider's form.
    """
    with Call(lambda: _seen(executor, read(tool_call))) as call:
        answer = original(executor, tool_call)
        text = call.ended(lambda seen: _answered(executor, seen, answer))
        if text is not None:
            answer["result"] = text
        return answer


def _seen(executor: Any, read: Any) -> Seen:
    call_id, name, arguments = read or (None, "unknown", None)
    tool = _tools(executor).get(name)
    conversation = _conversation(executor)
    return Seen(
        "crewai",
        name,
        call_id=call_id,
        turn=f"{conversation}/{latest_answer(executor.state.messages)}",
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
    seen.schema = schema_of(getattr(tools.get(seen.tool), "args_schema", None))


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
