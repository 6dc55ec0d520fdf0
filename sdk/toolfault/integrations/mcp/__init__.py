"""MCP SDK, client and server, 1.9 up to 2.x: every ``tools/call`` is one event.

The side nearest the model counts. A client says in ``_meta["toolfault"]`` which call, conversation
and turn a request belongs to and where its own events go (``sink``). A server whose events go to
the same place reports nothing for that call; it answers with the code and the issues in the
``_meta["toolfault"]`` of its result, and the client's event gets them. A server that finds another
sink or none reports the call as ``side=server``. The two sides are never added up.

On the server the request handler is wrapped, where the text that goes to the client is final; the
``ToolManager`` below it only notes what that text no longer tells: exception, schema, known tools.
"""

from __future__ import annotations

import functools
from typing import Any

from toolfault.integrations._discover import hook
from toolfault.integrations.mcp.client import client_calls, lists
from toolfault.integrations.mcp.handlers import finds_handler, handles, registers
from toolfault.integrations.mcp.manager import manages
from toolfault.integrations.mcp.server import requested

__all__ = ["install", "requested"]


def install(module: Any) -> None:
    """Hook one module of the SDK: the client's session, the server, or a manager of tools."""
    if module.__name__ == "mcp.client.session":
        hook("mcp", module.ClientSession, "call_tool", client_calls)
        hook("mcp", module.ClientSession, "list_tools", lists)
    elif module.__name__ == "mcp.server.lowlevel.server":
        if hasattr(module.Server, "get_request_handler"):
            hook("mcp", module.Server, "get_request_handler", finds_handler)
        else:
            kind = module.types.CallToolRequest
            hook("mcp", module.Server, "_handle_request", functools.partial(handles, kind))
            hook("mcp", module.Server, "call_tool", registers)
    else:
        hook("mcp", module.ToolManager, "call_tool", manages)
