"""Tools for ``FastMCP(tools=...)`` or ``server.add_tool`` of FastMCP.

A failure is raised as FastMCP's ``ToolError``, whose text its clients read unchanged.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from fastmcp.exceptions import ToolError
from fastmcp.tools import Tool

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["tool_maker"]

_made_of: Any = sys.modules[Tool.__module__]  # the module has another name in 2.x


def tool_maker(manager: ToolManager) -> Any:
    """Return what makes a tool of a FastMCP server."""

    class Handed(Tool):
        """A tool of a ``ToolManager``."""

        async def run(self, arguments: dict[str, Any]) -> Any:
            result = await manager.call_tool(self.name, arguments)
            if not result.success:
                raise ToolError(result.to_openai_text()) from result.error
            return _made_of.ToolResult(content=result.to_openai_text())

    def make(name: str, description: str | None, parameters: Any) -> Any:
        return Handed(name=name, description=description, parameters=parameters)

    return make
