"""Pydantic AI: refused arguments, unknown tools and the run of every tool, with the exact texts.

Checked with 1.80 and 2.68; before 1.70 the ``ToolManager`` had no step of validation. Calls of
output tools are answers, not tool calls, and are left alone.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from toolfault.integrations._discover import hook, improves
from toolfault.integrations.pydantic_ai.retries import (
    ValidationError,
    part_of,
    text_of,
    text_with,
)
from toolfault.integrations.seen import Call, Seen, observe

__all__ = ["install"]

_NAME = "pydantic_ai"
_RETRIES = ("ToolRetryError", "ToolFailedError")


def install(module: ModuleType) -> None:
    """Hook the module of the tool manager."""
    hook(_NAME, module.ToolManager, "validate_tool_call", _validate)
    hook(_NAME, module.ToolManager, "execute_tool_call", _execute)


def _seen(manager: Any, call: Any) -> Seen:
    ctx = manager.ctx
    seen = Seen(_NAME, call.tool_name, call_id=call.tool_call_id, arguments=call.args)
    seen.conversation = getattr(ctx, "conversation_id", None) or ctx.run_id
    seen.turn = f"{ctx.run_id}/{ctx.run_step}"
    seen.model = getattr(ctx.model, "model_name", None)
    seen.agent = getattr(getattr(ctx, "agent", None), "name", None)
    seen.known_tools = tuple(manager.tools or ())
    tool = (manager.tools or {}).get(call.tool_name)
    seen.schema = None if tool is None else tool.tool_def.parameters_json_schema
    return seen


def _is_output(manager: Any, call: Any) -> bool:
    tool = (getattr(manager, "tools", None) or {}).get(getattr(call, "tool_name", None))
    return getattr(getattr(tool, "tool_def", None), "kind", None) == "output"


async def _validate(original: Any, manager: Any, call: Any, *a: Any, **k: Any) -> Any:
    if k.get("allow_partial") or _is_output(manager, call):
        return await original(manager, call, *a, **k)
    try:
        validated = await original(manager, call, *a, **k)
    except Exception as error:  # the budget of retries is used up: the run ends here
        observe(functools.partial(_refused, manager, call, error))
        raise
    refusal = getattr(validated, "validation_error", None)
    if refusal is not None:
        part = part_of(refusal)
        refused = functools.partial(_refused, manager, call, refusal, part)
        better = observe(refused, improve=improves(_NAME))
        if better is not None and part is not None:
            part.content = better
    return validated


async def _execute(original: Any, manager: Any, validated: Any, *a: Any, **k: Any) -> Any:
    is_refused = getattr(validated, "validation_error", None) is not None
    if is_refused or _is_output(manager, validated.call):
        return await original(manager, validated, *a, **k)  # reported when it was refused
    with Call(lambda: _seen(manager, validated.call), refused=_raised) as opened:
        result = await original(manager, validated, *a, **k)
        opened.ended(functools.partial(_returned, result))
        return result


def _returned(result: Any, seen: Seen) -> None:
    seen.result = result
    if type(result) is dict:  # of a failure, what the model reads
        from pydantic_core import to_json

        seen.told = to_json(result).decode()


def _raised(seen: Seen) -> None:
    """Say what the framework's own exceptions mean."""
    error = seen.error
    if type(error).__name__ not in _RETRIES:
        return
    part = part_of(error)
    seen.told = text_of(part)
    if str(getattr(part, "content", "")).startswith("Timed out after"):
        seen.stage, seen.error = "timeout", None
    elif type(error).__name__ == "ToolFailedError":
        seen.stage, seen.error = "returned", None


def _refused(manager: Any, call: Any, error: Any, part: Any = None) -> Seen:
    """Return what became of a call that did not reach its tool."""
    seen = _seen(manager, call)
    seen.stage = "validation" if seen.schema is not None else "unknown"
    seen.error = error.__cause__ or error
    if part is not None:
        seen.told = part.content if isinstance(part.content, str) else text_of(part)
        seen.told_as = functools.partial(text_with, part, text_of(part))
        rows = part.content if isinstance(part.content, list) else None
        seen.error = ValidationError(rows) if rows else None
        cause = getattr(getattr(part, "retry", None), "cause", None)
        if cause in ("unknown_tool", "unavailable_tool"):
            seen.stage = "unknown"
    return seen
