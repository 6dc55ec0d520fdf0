"""Tools for ``Agent(tools=...)`` of Pydantic AI.

A failure is what the tool returns, so it does not count against the budget of retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import Tool

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["tool_maker"]


def tool_maker(manager: ToolManager) -> Any:
    """Return what makes a tool of Pydantic AI."""

    def make(name: str, description: str | None, parameters: Any) -> Any:
        async def function(context: Any, **arguments: Any) -> str:
            result = await manager.call_tool(name, arguments, call_id=context.tool_call_id)
            return result.to_openai_text()

        return Tool.from_schema(
            function, name=name, description=description, json_schema=parameters, takes_ctx=True
        )

    return make
