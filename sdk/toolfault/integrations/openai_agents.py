"""OpenAI Agents SDK: every function tool, whatever its ``failure_error_function``.

Checked with 0.23 and 0.24. The framework hides why it refused arguments, so they are checked again
against the schema that the model was shown (with the package ``jsonschema``, which it installs).
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from types import ModuleType
from typing import Any

from toolfault.integrations._discover import hook, improves
from toolfault.integrations.seen import Call, Seen, current_call, observe

__all__ = ["install"]

_NAME = "openai_agents"
_TURNS = 4_096
_turns: OrderedDict[str, str] = OrderedDict()  # call id -> the model's response that made it


def install(module: ModuleType) -> None:
    """Hook a module of the OpenAI Agents SDK."""
    part = module.__name__.rpartition(".")[2]
    if part in ("tool", "tool_execution"):
        hook(_NAME, module, "maybe_invoke_function_tool_failure_error_function", _failure)
    if part == "tool_execution":
        hook(_NAME, module, "_invoke_function_tool_with_metadata", _invoke)
    if part in ("turn_resolution", "run_loop"):
        hook(_NAME, module, "process_model_response", _process)
    if part == "turn_resolution":
        hook(_NAME, module, "_build_tool_not_found_output_items", _not_found)


def _invoke(original: Any) -> Any:
    @functools.wraps(original)
    async def invoke(*, function_tool: Any, context: Any, **k: Any) -> Any:
        with Call(lambda: _seen(function_tool, context), refused=_overdue) as opened:
            answer = await original(function_tool=function_tool, context=context, **k)
            opened.ended(lambda seen: _filled(seen, answer))
            return answer

    return invoke


def _seen(tool: Any, context: Any) -> Seen:
    seen = Seen(_NAME, context.tool_name, call_id=context.tool_call_id)
    seen.arguments = context.tool_arguments
    seen.schema = tool.params_json_schema
    seen.turn = _turns.get(context.tool_call_id)
    _name_run(seen, getattr(context, "agent", None), getattr(context, "run_config", None))
    return seen


def _name_run(seen: Seen, agent: Any, run_config: Any) -> None:
    """Add the conversation (group of traces, else trace), the agent and its model."""
    from agents.tracing import get_current_trace

    trace = get_current_trace()
    trace_id = getattr(trace, "trace_id", None)
    seen.conversation = (
        getattr(run_config, "group_id", None)
        or getattr(trace, "group_id", None)
        or (trace_id if trace_id != "no-op" else None)
    )
    seen.agent = getattr(agent, "name", None)
    model = getattr(run_config, "model", None) or getattr(agent, "model", None)
    named = model if isinstance(model, str) else getattr(model, "model", None)
    seen.model = named if isinstance(named, str) else None


def _overdue(seen: Seen) -> None:
    if type(seen.error).__name__ == "ToolTimeoutError":
        seen.stage = "timeout"


def _filled(seen: Seen, answer: Any) -> None:
    seen.result = answer.output
    if answer.is_sdk_generated_error:  # a failure would have ended the call before
        seen.stage, seen.told = "timeout", str(answer.output)
    elif type(answer.output) is dict:
        seen.told = str(answer.output)


def _failure(original: Any) -> Any:
    """What the failure handler of a tool says to the model."""

    @functools.wraps(original)
    async def handle(*, function_tool: Any, context: Any, error: BaseException) -> Any:
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

        return opened.ended(fill, improve=improves(_NAME)) or told

    return handle


def _process(original: Any) -> Any:
    """What a model's response asks for; by default an unknown tool ends the run here."""

    @functools.wraps(original)
    def process(*a: Any, **k: Any) -> Any:
        response = k.get("response")
        _remember(response)
        try:
            return original(*a, **k)
        except Exception as error:
            text = str(error)
            for item in getattr(response, "output", ()):
                if f"Tool {getattr(item, 'name', None)} not found" in text:
                    observe(functools.partial(_unknown, item, k, error))
                    break
            raise

    return process


def _remember(response: Any) -> None:
    """Note which calls came in one response."""
    try:
        calls = [i.call_id for i in response.output if getattr(i, "type", "") == "function_call"]
        for call_id in calls:
            # With the first call's id: some providers' adapters give every response one id.
            _turns[call_id] = f"{response.response_id or 'response'}/{calls[0]}"[:128]
        while len(_turns) > _TURNS:
            _turns.popitem(last=False)
    except Exception:  # noqa: BLE001 - the promise to the host
        return


def _unknown(item: Any, k: Any, error: Any) -> Seen:
    seen = Seen(_NAME, item.name, call_id=item.call_id, arguments=item.arguments)
    seen.turn = _turns.get(item.call_id)
    seen.stage = "unknown"
    seen.known_tools = [tool.name for tool in k.get("all_tools") or ()]
    _name_run(seen, k.get("agent"), k.get("run_config"))
    return seen


def _not_found(original: Any) -> Any:
    """What the model is told of unknown tools, where the host has asked for it."""

    @functools.wraps(original)
    async def build(*, agent: Any, calls: Any, **k: Any) -> Any:
        items = await original(agent=agent, calls=calls, **k)
        for call, item in zip(calls, items, strict=False):

            def seen(call: Any = call, item: Any = item) -> Seen:
                found = _unknown(
                    call.tool_call, {"agent": agent, "run_config": k.get("run_config")}, None
                )
                found.tool = call.tool_name
                found.known_tools = [tool.name for tool in agent.tools]
                found.told = str(item.output)
                return found

            better = observe(seen, improve=improves(_NAME))
            if better is not None:
                item.output = better
                item.raw_item["output"] = better
        return items

    return build
