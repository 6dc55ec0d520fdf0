"""The ``ToolManager`` of a high-level server, which knows what the text to a client leaves out."""

from __future__ import annotations

from typing import Any

from toolfault.integrations._failure import causes
from toolfault.integrations.mcp.tools import idempotent
from toolfault.integrations.seen import note

__all__ = ["manages"]


async def manages(
    original: Any, manager: Any, name: str, arguments: Any, *args: Any, **kwargs: Any
) -> Any:
    """Note what the ``ToolManager`` of a high-level server knows of a call."""
    tool = manager.get_tool(name)
    note(
        schema=getattr(tool, "parameters", None),
        known_tools=tuple(each.name for each in manager.list_tools()),
        fn=getattr(tool, "fn", None),
        idempotent=idempotent(tool),
    )
    try:
        return await original(manager, name, arguments, *args, **kwargs)
    except Exception as error:
        note(error=error, stage="unknown" if tool is None else _stage_of(error))
        raise


def _stage_of(error: Exception) -> str:
    if type(error.__cause__).__name__ == "ValidationError":
        # 2.x says whose it was: what a body raises is unexpected. In 1.x the schema decides.
        return "exec" if type(error).__name__ == "UnexpectedToolError" else "validation"
    return "timeout" if any(isinstance(each, TimeoutError) for each in causes(error)) else "exec"
