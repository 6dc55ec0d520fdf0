"""FastMCP, 2.9 up to 4.x: the calls that its servers answer.

A server of FastMCP answers requests through the MCP SDK, whose integration reports them (see
``mcp.py``); here is noted what only FastMCP knows: the exception and the tool. Calls that a program
makes of a server object itself are reported here.

``ToolfaultMiddleware`` is the same for one server, where nothing is to be hooked::

    server.add_middleware(ToolfaultMiddleware())
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from toolfault.integrations._discover import hook, improves
from toolfault.integrations._failure import causes
from toolfault.integrations.mcp import requested
from toolfault.integrations.mcp.results import idempotent
from toolfault.integrations.seen import Call, Seen, note, open_call
from toolfault.telemetry._guard import debug

__all__ = ["ToolfaultMiddleware", "install"]  # noqa: F822 - see __getattr__

_METHODS = ("call_tool", "_call_tool_middleware")  # of 3.x and later, of 2.x
_CONTROL = "InputRequiredToolResult"


def install(module: Any) -> None:
    """Hook ``FastMCP`` of ``fastmcp.server.server``."""
    present = (method for method in _METHODS if hasattr(module.FastMCP, method))
    hook("fastmcp", module.FastMCP, next(present, _METHODS[0]), _calls)
    # A server of 2.x finds its tools elsewhere; the MCP SDK below it knows what they declare.
    hook("fastmcp", module.FastMCP, "get_tool", _finds)


def _finds(original: Any) -> Any:
    """Note what the tool that a server finds for the open call declares."""

    @functools.wraps(original)
    async def get_tool(self: Any, *args: Any, **kwargs: Any) -> Any:
        tool = await original(self, *args, **kwargs)
        around = open_call()
        # Of another name is a tool that the body calls.
        if around is not None and around.tool == getattr(tool, "name", None):
            note(idempotent=idempotent(tool))
        return tool

    return get_tool


def _calls(original: Any) -> Any:
    """Observe a call of a server before its middleware."""

    @functools.wraps(original)
    async def call_tool(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("run_middleware", True):
            return await original(self, *args, **kwargs)
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

        return await _observed(self, build, lambda: original(self, *args, **kwargs))

    return call_tool


async def _observed(
    server: Any,
    build: Callable[[], Seen],
    run: Callable[[], Awaitable[Any]],
    *,
    improve: bool = False,
) -> Any:
    """Run a call: note how it ended on the call of the request, or report it."""
    around = open_call()
    request = None if around is None else around.seen
    if request is not None and request.side == "server":
        request.framework = "fastmcp"
        try:
            return await run()
        except Exception as error:
            await _note(request, server, error)
            raise
    with Call(build) as call:
        try:
            result = await run()
        except Exception as error:
            if call.seen is not None:
                await _note(call.seen, server, error)
            text = call.ended(improve=improve or improves("fastmcp"))
            if text is not None:
                raise _told(error, text) from error
            raise
        call.ended(lambda seen: _answered(seen, result))
        return result


async def _note(seen: Seen, server: Any, error: Exception) -> None:
    """Note how a call failed; the innermost of mounted servers speaks first."""
    if seen.error is not None:
        return
    seen.error, seen.told = error, str(error)
    seen.stage = _stage_of(error)
    try:
        if seen.stage == "unknown":
            listed = await (getattr(server, "list_tools", None) or server.get_tools)()
            seen.known_tools = [getattr(tool, "name", tool) for tool in listed]
        else:
            tool = await server.get_tool(seen.tool)
            seen.schema, seen.fn = tool.parameters, getattr(tool, "fn", None)
    except Exception:  # noqa: BLE001 - a failure of which less is known is still one
        return


def _stage_of(error: Exception) -> str:
    names = {type(each).__name__ for each in causes(error)}
    if names & {"NotFoundError", "DisabledError"} or str(error).startswith("Unknown tool"):
        return "unknown"
    if "TimeoutError" in names or "timed out after" in str(error):
        return "timeout"
    return "validation" if type(error).__name__ == "ValidationError" else "exec"


def _answered(seen: Seen, result: Any) -> None:
    if type(result).__name__ == _CONTROL:
        seen.stage = "control"
        return
    value = getattr(result, "structured_content", None)
    seen.result = value
    if isinstance(value, dict) and set(value) == {"result"}:
        seen.result = value["result"]
    if getattr(result, "is_error", False):
        seen.stage = "returned"
        seen.told = "\n".join(getattr(block, "text", "") for block in result.content)


def _told(error: Exception, text: str) -> Exception:
    from fastmcp.exceptions import ToolError

    made: Exception = ToolError(text)
    return made


def __getattr__(name: str) -> Any:
    """Make the middleware on first use: its base is FastMCP's."""
    if name != "ToolfaultMiddleware":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fastmcp.server.middleware import Middleware

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

            return await _observed(
                getattr(server, "fastmcp", None),
                build,
                lambda: call_next(context),
                improve=self.improve,
            )

    globals()[name] = ToolfaultMiddleware
    return ToolfaultMiddleware
