"""How a call of a server ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolfault.integrations._failure import causes
from toolfault.integrations.seen import Call, Seen, open_call

__all__ = ["observed"]

_CONTROL = "InputRequiredToolResult"


async def observed(
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
            text = call.ended(improve=improve or None)
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
