"""Tools of a ``ToolManager`` as tools of an agent framework: ``manager.as_langchain()`` and others.

The framework sees tools of its own kind with the manager's names, descriptions and schemas; what
the model sends goes to the manager as it is. So parsing, repair, validation of everything at once,
time limits, availability and the text for the model are the manager's, and every call is one
event, whether the framework is hooked or not.

A framework checks nothing here: the schema is only shown. Unknown tools, and arguments that are no
JSON where the framework parses them, never reach a tool; the hooks report those.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolfault.tools import ToolManager

__all__ = ["as_fastmcp", "as_langchain", "as_mcp", "as_openai_agents", "as_pydantic_ai"]

_call_id: ContextVar[str | None] = ContextVar("toolfault_native_call_id", default=None)


def _specs(manager: ToolManager) -> Iterator[dict[str, Any]]:
    """Yield name, description and schema of every tool that may be called now."""
    for spec in manager.registry.specs("openai"):
        function = spec["function"]
        if manager.availability(function["name"]) is None:
            yield function


def as_langchain(manager: ToolManager) -> list[Any]:
    """Return the tools for ``create_agent``, ``ToolNode`` or ``bind_tools`` of LangChain.

    A failure is a ``ToolMessage`` with ``status="error"`` and the text for the model.

    Args:
        manager: Whose tools; those that are available now.

    Raises:
        ImportError: LangChain is not installed.
    """
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import StructuredTool

    class Handed(StructuredTool):
        """A tool of a ``ToolManager``; keeps the id of the call for it."""

        def run(self, *args: Any, **kwargs: Any) -> Any:
            token = _call_id.set(kwargs.get("tool_call_id"))
            try:
                return super().run(*args, **kwargs)
            finally:
                _call_id.reset(token)

        async def arun(self, *args: Any, **kwargs: Any) -> Any:
            token = _call_id.set(kwargs.get("tool_call_id"))
            try:
                return await super().arun(*args, **kwargs)
            finally:
                _call_id.reset(token)

    def answered(name: str, result: Any) -> Any:
        call_id = _call_id.get()
        if result.success or call_id is None:
            return result.to_openai_text()
        text = result.to_openai_text()
        return ToolMessage(text, tool_call_id=call_id, name=name, status="error")

    def handed(spec: dict[str, Any]) -> Any:
        name = spec["name"]

        def func(**arguments: Any) -> Any:
            result = manager.call_tool_sync(name, arguments, call_id=_call_id.get())
            return answered(name, result)

        async def coroutine(**arguments: Any) -> Any:
            result = await manager.call_tool(name, arguments, call_id=_call_id.get())
            return answered(name, result)

        return Handed(
            name=name,
            description=spec.get("description") or name,
            args_schema=spec["parameters"],
            func=func,
            coroutine=coroutine,
        )

    return [handed(spec) for spec in _specs(manager)]


def as_openai_agents(manager: ToolManager) -> list[Any]:
    """Return the tools for ``Agent(tools=...)`` of the OpenAI Agents SDK.

    Arguments that are no JSON reach the manager, too.

    Args:
        manager: Whose tools; those that are available now.

    Raises:
        ImportError: The SDK is not installed.
    """
    from agents import FunctionTool

    def handed(spec: dict[str, Any]) -> Any:
        async def invoke(context: Any, arguments: str) -> str:
            call_id = getattr(context, "tool_call_id", None)
            result = await manager.call_tool(spec["name"], arguments, call_id=call_id)
            return result.to_openai_text()

        return FunctionTool(
            name=spec["name"],
            description=spec.get("description") or "",
            params_json_schema=spec["parameters"],
            on_invoke_tool=invoke,
            strict_json_schema=False,
        )

    return [handed(spec) for spec in _specs(manager)]


def as_pydantic_ai(manager: ToolManager) -> list[Any]:
    """Return the tools for ``Agent(tools=...)`` of Pydantic AI.

    A failure is what the tool returns, so it does not count against the budget of retries.

    Args:
        manager: Whose tools; those that are available now.

    Raises:
        ImportError: Pydantic AI is not installed.
    """
    from pydantic_ai import Tool

    def handed(spec: dict[str, Any]) -> Any:
        async def function(context: Any, **arguments: Any) -> str:
            call_id = context.tool_call_id
            result = await manager.call_tool(spec["name"], arguments, call_id=call_id)
            return result.to_openai_text()

        return Tool.from_schema(
            function,
            name=spec["name"],
            description=spec.get("description"),
            json_schema=spec["parameters"],
            takes_ctx=True,
        )

    return [handed(spec) for spec in _specs(manager)]


def as_mcp(manager: ToolManager) -> list[Any]:
    """Return the tools for ``MCPServer(tools=...)`` of the MCP SDK (``FastMCP`` in 1.x).

    A failure is a result with ``isError`` and the text for the model; a client reads it unchanged.

    Args:
        manager: Whose tools; those that are available now.

    Raises:
        ImportError: The MCP SDK is not installed.
    """
    from importlib import import_module
    from importlib.util import find_spec

    from mcp.types import CallToolResult

    in_2 = find_spec("mcp.server.mcpserver") is not None
    module = "mcp.server.mcpserver.tools" if in_2 else "mcp.server.fastmcp.tools"
    Tool: Any = import_module(module).Tool  # noqa: N806 - a class

    class Handed(Tool):
        """A tool of a ``ToolManager``; what Tool keeps of a function is of none."""

        async def run(self, arguments: dict[str, Any], *_args: Any, **_kwargs: Any) -> Any:
            result = await manager.call_tool(self.name, arguments)
            return CallToolResult.model_validate(result.to_mcp())

    def unused() -> None:
        """Stand for the function of a tool."""

    def handed(spec: dict[str, Any]) -> Any:
        made = Tool.from_function(
            unused,
            spec["name"],
            description=spec.get("description") or spec["name"],
            structured_output=False,
        )
        known = {name: getattr(made, name) for name in type(made).model_fields}
        return Handed(**{**known, "parameters": spec["parameters"]})

    return [handed(spec) for spec in _specs(manager)]


def as_fastmcp(manager: ToolManager) -> list[Any]:
    """Return the tools for ``FastMCP(tools=...)`` or ``server.add_tool``.

    A failure is raised as FastMCP's ``ToolError``, whose text its clients read unchanged.

    Args:
        manager: Whose tools; those that are available now.

    Raises:
        ImportError: FastMCP is not installed.
    """
    from fastmcp.exceptions import ToolError
    from fastmcp.tools import Tool

    made_of: Any = sys.modules[Tool.__module__]  # the module has another name in 2.x

    class Handed(Tool):
        """A tool of a ``ToolManager``."""

        async def run(self, arguments: dict[str, Any]) -> Any:
            result = await manager.call_tool(self.name, arguments)
            if not result.success:
                raise ToolError(result.to_openai_text()) from result.error
            return made_of.ToolResult(content=result.to_openai_text())

    return [
        Handed(
            name=spec["name"],
            description=spec.get("description"),
            parameters=spec["parameters"],
        )
        for spec in _specs(manager)
    ]
