"""A middleware of FastMCP that reports the calls of one server, where nothing is hooked."""

from __future__ import annotations

from typing import Any

from fastmcp.server.middleware import Middleware

from toolfault.integrations.fastmcp.calls import observed
from toolfault.integrations.mcp import requested
from toolfault.integrations.mcp.tools import idempotent
from toolfault.integrations.seen import Seen
from toolfault.telemetry._guard import debug

__all__ = ["ToolfaultMiddleware"]


class ToolfaultMiddleware(Middleware):
    """Reports every tool call of the servers it is added to.

    Args:
        improve: Whether better texts take the place of FastMCP's.
    """

    def __init__(self, *, improve: bool = False) -> None:
        self.improve = improve
        self._marks: dict[str, bool | None] = {}  # of the tools that were listed

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        """Keep which tools are idempotent: to ask a server later may ask others in turn."""
        tools = await call_next(context)
        try:
            self._marks.update((tool.name, idempotent(tool)) for tool in tools)
        except Exception:  # noqa: BLE001 - a list of an unusual form
            debug("a list of tools could not be read")
        return tools

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Run the rest of the chain and report the call."""
        server = context.fastmcp_context

        def build() -> Seen:
            request = context.fastmcp_context.request_context
            seen = requested(context.message, getattr(request, "meta", None))
            seen.framework = "fastmcp"
            seen.idempotent = self._marks.get(seen.tool)
            return seen

        return await observed(
            getattr(server, "fastmcp", None),
            build,
            lambda: call_next(context),
            improve=self.improve,
        )
