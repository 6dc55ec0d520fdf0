"""For frameworks that validate arguments before any tool body runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolfault.errors import ToolResult, safe_text
from toolfault.tools._arguments import parsed
from toolfault.tools._call import Call
from toolfault.tools._decorator import as_tool
from toolfault.tools._outcome import failed, fallback_failure
from toolfault.tools._tool import Tool


def report_validation_error(
    tool_name: str | Callable[..., Any],
    exc: Exception,
    args: object = None,
    *,
    context: str = "parameters",
    call_id: str | None = None,
    turn: str | None = None,
) -> ToolResult[Any]:
    """Record a call that a framework rejected before the tool ran, and return what to tell.

    Args:
        tool_name: Name of the tool, or the decorated function, whose hints and ``adapt_error``
            then apply.
        exc: The framework's validation error: pydantic's or alike.
        args: Arguments as the model sent them, parsed or as a JSON string.
        context: What error texts call the arguments.
        call_id: The provider's id of the call.
        turn: Opaque model turn.

    Returns:
        The failed result: ``result.message`` is the text for the model. Never raises.
    """
    tool = _tool_of(tool_name)
    name = safe_text(tool_name, 256) if tool is None else tool.name
    call = Call(name, name, args)
    call.call_id = call_id
    call.turn = turn
    call.validation_mode = "comprehensive"
    try:
        call.arguments = parsed(args)
        label = context if tool is None else tool.label
        return failed(call, exc, tool, label=label)
    except Exception as broken:  # noqa: BLE001 - the SDK never raises into the host
        return fallback_failure(call, exc, broken)


def _tool_of(named: object) -> Tool | None:
    """Return the tool behind a decorated function; None for a name, or for what is neither."""
    try:
        return None if isinstance(named, str) else as_tool(named)
    except Exception:  # noqa: BLE001 - nothing that can be called; the failure is told all the same
        return None
