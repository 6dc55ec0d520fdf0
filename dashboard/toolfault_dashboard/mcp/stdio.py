"""``toolfault mcp``: the tools over standard input and output, for an agent on this machine."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from toolfault_dashboard.mcp.sdk import Ask, create_server

__all__ = ["serve_stdio"]


def serve_stdio(ask: Ask) -> None:
    """Answer with *ask* until standard input ends."""
    anyio.run(_serve, ask)


async def _serve(ask: Ask) -> None:
    server = create_server(ask)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
