"""Tools for ``MCPServer(tools=...)`` of the MCP SDK (``FastMCP`` in 1.x).

A failure is a result with ``isError`` and the text for the model; a client reads it unchanged.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["tool_maker"]

_IN_2 = find_spec("mcp.server.mcpserver") is not None
_MODULE = "mcp.server.mcpserver.tools" if _IN_2 else "mcp.server.fastmcp.tools"
_Tool: Any = import_module(_MODULE).Tool


def tool_maker(manager: ToolManager) -> Any:
    """Return what makes a tool of a high-level server."""

    class Handed(_Tool):
        """A tool of a ``ToolManager``; what Tool keeps of a function is of none."""

        async def run(self, arguments: dict[str, Any], *_args: Any, **_kwargs: Any) -> Any:
            result = await manager.call_tool(self.name, arguments)
            return CallToolResult.model_validate(result.to_mcp())

    def make(name: str, description: str | None, parameters: Any) -> Any:
        made = _Tool.from_function(
            _unused, name, description=description or name, structured_output=False
        )
        known = {field: getattr(made, field) for field in type(made).model_fields}
        return Handed(**{**known, "parameters": parameters})

    return make


def _unused() -> None:
    """Stand for the function of a tool."""
