"""The tools as a server of the official MCP SDK (``mcp`` on PyPI, 2.x).

The SDK speaks both eras of the protocol: 2026-07-28, whose every request stands for itself, and the
earlier ones that begin with ``initialize``. Nothing is kept between two requests in either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server

from toolfault_dashboard.mcp.tools import INSTRUCTIONS, TOOLS, Refused, refusal
from toolfault_dashboard.queries import CursorError
from toolfault_dashboard.queries.counting.deadline import TooSlow
from toolfault_dashboard.search import QueryError

__all__ = ["FAULT", "Ask", "create_server", "definitions"]

FAULT: Final = '{"error":"A fault of the server; its log says more. Nothing was changed."}'

# The standard library's: over stdio, standard output belongs to the protocol.
_log = logging.getLogger(__name__)

Ask = Callable[[str, Mapping[str, Any]], str]
"""(tool, arguments) -> answer; it blocks, and raises what `tools.answered` raises."""


def definitions() -> list[types.Tool]:
    """Return the tools as clients list them."""
    hints = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.schema(),
            annotations=hints,
        )
        for tool in TOOLS.values()
    ]


def create_server(ask: Ask) -> Server[Any]:
    """Return a server that answers with *ask*, for one reader."""

    async def list_tools(_context: Any, _page: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions())

    async def call_tool(_context: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        # What a model may correct is an answer of the tool, not an error of the protocol.
        try:
            text = await run_sync(ask, call.name, call.arguments or {})
        except (Refused, QueryError, CursorError, TooSlow) as error:
            return _said(refusal(error), failed=True)
        except Exception:  # noqa: BLE001 - it is logged
            # In the protocol before 2026-07-28 the SDK would send what the exception says, such as
            # the statement of the database.
            _log.exception("mcp_tool_failed")
            return _said(FAULT, failed=True)
        return _said(text, failed=False)

    return Server(
        "toolfault",
        version=version("toolfault-server"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _said(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=failed
    )
