"""FastMCP, 2.9 up to 4.x: the calls that its servers answer.

A server of FastMCP answers requests through the MCP SDK, whose integration reports them (see
``mcp``); here is noted what only FastMCP knows: the exception and the tool. Calls that a program
makes of a server object itself are reported here.

``ToolfaultMiddleware`` is the same for one server, where nothing is to be hooked::

    server.add_middleware(ToolfaultMiddleware())
"""

from __future__ import annotations

import secrets
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations.fastmcp.calls import observed
from toolfault.integrations.mcp.tools import idempotent
from toolfault.integrations.seen import Seen, note, open_call

__all__ = ["ToolfaultMiddleware", "install"]

_METHODS = ("call_tool", "_call_tool_middleware")  # of 3.x and later, of 2.x


def install(module: Any) -> None:
    """Hook ``FastMCP`` of ``fastmcp.server.server``."""
    present = (method for method in _METHODS if hasattr(module.FastMCP, method))
    hook("fastmcp", module.FastMCP, next(present, _METHODS[0]), _calls)
    # A server of 2.x finds its tools elsewhere; the MCP SDK below it knows what they declare.
    hook("fastmcp", module.FastMCP, "get_tool", _finds)


async def _finds(original: Any, server: Any, *args: Any, **kwargs: Any) -> Any:
    """Note what the tool that a server finds for the open call declares."""
    tool = await original(server, *args, **kwargs)
    around = open_call()
    # Of another name is a tool that the body calls.
    if around is not None and around.tool == getattr(tool, "name", None):
        note(idempotent=idempotent(tool))
    return tool


async def _calls(original: Any, server: Any, *args: Any, **kwargs: Any) -> Any:
    """Observe a call of a server before its middleware."""
    if not kwargs.get("run_middleware", True):
        return await original(server, *args, **kwargs)
    name = kwargs.get("name", kwargs.get("key", args[0] if args else None))
    arguments = kwargs.get("arguments", args[1] if len(args) > 1 else None)

    def build() -> Seen:
        return Seen(
            "fastmcp",
            str(name),
            side="server",
            call_id=secrets.token_hex(8),
            arguments=arguments or {},
        )

    return await observed(server, build, lambda: original(server, *args, **kwargs))


def __getattr__(name: str) -> Any:
    """Make the middleware on first use: its base is FastMCP's."""
    if name != "ToolfaultMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolfault.integrations.fastmcp.middleware import ToolfaultMiddleware

    return ToolfaultMiddleware
