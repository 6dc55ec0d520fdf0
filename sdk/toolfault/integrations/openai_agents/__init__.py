"""OpenAI Agents SDK: every function tool, whatever its ``failure_error_function``.

Checked with 0.23 and 0.24. The framework hides why it refused arguments, so they are checked again
against the schema that the model was shown (with the package ``jsonschema``, which it installs).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations.openai_agents.responses import (
    NAME,
    name_run,
    not_found,
    process,
    turn_of,
)
from toolfault.integrations.seen import Call, Seen, current_call

__all__ = ["install"]


def install(module: ModuleType) -> None:
    """Hook a module of the OpenAI Agents SDK."""
    part = module.__name__.rpartition(".")[2]
    if part in ("tool", "tool_execution"):
        hook(NAME, module, "maybe_invoke_function_tool_failure_error_function", _failure)
    if part == "tool_execution":
        hook(NAME, module, "_invoke_function_tool_with_metadata", _invoke)
    if part in ("turn_resolution", "run_loop"):
        hook(NAME, module, "process_model_response", process)
    if part == "turn_resolution":
        hook(NAME, module, "_build_tool_not_found_output_items", not_found)


async def _invoke(original: Any, *, function_tool: Any, context: Any, **k: Any) -> Any:
    with Call(lambda: _seen(function_tool, context), refused=_overdue) as opened:
        answer = await original(function_tool=function_tool, context=context, **k)
        opened.ended(lambda seen: _filled(seen, answer))
        return answer


def _seen(tool: Any, context: Any) -> Seen:
    seen = Seen(NAME, context.tool_name, call_id=context.tool_call_id)
    seen.arguments = context.tool_arguments
    seen.schema = tool.params_json_schema
    seen.turn = turn_of(context.tool_call_id)
    name_run(seen, getattr(context, "agent", None), getattr(context, "run_config", None))
    return seen


def _overdue(seen: Seen) -> None:
    if type(seen.error).__name__ == "ToolTimeoutError":
        seen.stage = "timeout"


def _filled(seen: Seen, answer: Any) -> None:
    seen.result = answer.output
    if answer.is_sdk_generated_error:  # a failure would have ended the call before
        seen.stage, seen.told = "timeout", str(answer.output)
    elif type(answer.output) is dict:
        seen.told = str(answer.output)


async def _failure(original: Any, *, function_tool: Any, context: Any, error: BaseException) -> Any:
    """What the failure handler of a tool says to the model."""
    told = await original(function_tool=function_tool, context=context, error=error)
    opened = current_call()
    if opened is None or told is None:
        return told

    def fill(seen: Seen) -> None:
        refused = type(error).__name__ == "ModelBehaviorError" and "Invalid JSON" in str(error)
        seen.error = error
        seen.stage = "validation" if refused else "exec"
        if not isinstance(error, Exception) or type(error).__name__ == "CancelledError":
            seen.stage = "cancelled"
        seen.told = str(told)

    return opened.ended(fill) or told
