"""Client and server of MCP as programs, which import nothing but what they are made of."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters

import toolfault

__all__ = ["call", "serve"]

# By conversation, the arguments of its calls: 0 fails. Of the third nobody knows the conversation.
CALLS = {"c1": (1, 2, 3, 0, 4, 0, 0, 5, 6), "c2": (1, 2, 3, 4), "": (7, 0, 8)}
_SERVE = "from tests.dashboard.api.sides import serve; serve()"


def serve() -> None:
    """Be a server of tools that sends what it has to report when it is asked to."""
    from mcp.server.mcpserver import MCPServer

    toolfault.init(os.environ["SERVER_DSN"], integrations=["mcp"])
    tools = MCPServer("stub")

    @tools.tool()
    def book(seats: int) -> str:
        if seats == 0:
            raise ValueError("no seats")
        return "booked"

    @tools.resource("toolfault://reported")
    def reported() -> str:
        return str(toolfault.close(60))

    tools.run()


def call() -> None:
    """Be a client that makes all calls; the side that is named first reports first."""
    toolfault.init(os.environ["CLIENT_DSN"], integrations=["mcp"])
    asyncio.run(_call(os.environ["FIRST"]))


async def _call(first: str) -> None:
    program = StdioServerParameters(
        command=sys.executable, args=["-c", _SERVE], env=dict(os.environ)
    )
    async with Client(program) as client:
        for name, calls in CALLS.items():
            if name:
                with toolfault.conversation(name):
                    await _each(client, calls)
            else:
                await _each(client, calls)
        if first == "client":
            assert toolfault.close(60)
        answer = await client.read_resource("toolfault://reported")
        assert answer.contents[0].text == "True"  # type: ignore[union-attr]
        assert toolfault.close(60)


async def _each(client: Any, calls: tuple[int, ...]) -> None:
    for seats in calls:
        result = await client.call_tool("book", {"seats": seats})
        assert result.is_error == (seats == 0), result
