"""Tools for ``Agent(tools=...)`` of the OpenAI Agents SDK.

Arguments that are no JSON reach the manager, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import FunctionTool

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["tool_maker"]


def tool_maker(manager: ToolManager) -> Any:
    """Return what makes a tool of the SDK."""

    def make(name: str, description: str | None, parameters: Any) -> Any:
        async def invoke(context: Any, arguments: str) -> str:
            call_id = getattr(context, "tool_call_id", None)
            result = await manager.call_tool(name, arguments, call_id=call_id)
            return result.to_openai_text()

        return FunctionTool(
            name=name,
            description=description or "",
            params_json_schema=parameters,
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return make
