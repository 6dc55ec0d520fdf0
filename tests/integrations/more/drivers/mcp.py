"""A client and a high-level server of the MCP SDK, 1.x or 2.x, in one process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import mcp
from tests.integrations.more.scenes import (
    AGENT,
    CONVERSATION,
    MODEL,
    ModelCall,
    Outcome,
    Scenario,
    tools_of,
)

import toolfault

FRAMEWORKS = ("mcp",)
OWN_IDS = True  # the protocol has none that would be the model's
LACKS = {
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "unknown argument": "the server drops it without a word",
}


@asynccontextmanager
async def _connected(scenario: Scenario) -> Any:
    if hasattr(mcp, "Client"):
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("stub")
        for tool in tools_of(scenario):
            server.tool()(tool)
        async with mcp.Client(server) as client:
            await client.list_tools()
            yield client
        return
    from mcp.server.fastmcp import FastMCP
    from mcp.shared.memory import create_connected_server_and_client_session

    old = FastMCP("stub")
    for tool in tools_of(scenario):
        old.tool()(tool)
    async with create_connected_server_and_client_session(old._mcp_server) as session:
        await session.list_tools()
        yield session


async def _call(client: Any, call: ModelCall) -> str:
    result = await client.call_tool(call.tool, call.arguments)
    return "\n".join(block.text for block in result.content)


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    conversation = toolfault.conversation(CONVERSATION, agent=AGENT, model=MODEL)
    async with _connected(scenario) as client, conversation:
        for number, turn in enumerate(scenario.turns):
            with conversation.turn(f"t{number}"):
                told = await asyncio.gather(*(_call(client, call) for call in turn))
                outcome.told += told


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a host does that has a conversation open."""
    asyncio.run(_run(scenario, outcome))
