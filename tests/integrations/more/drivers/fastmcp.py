"""A server of FastMCP and its client, in one process."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP
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

FRAMEWORKS = ("mcp", "fastmcp")
OWN_IDS = True  # the protocol has none that would be the model's
LACKS = {"unparsable JSON": "the host parses the arguments before it makes a request"}


async def _call(client: Any, call: ModelCall) -> str:
    result = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
    return "\n".join(block.text for block in result.content)


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    server = FastMCP("stub")
    for tool in tools_of(scenario):
        server.tool(tool)
    conversation = toolfault.conversation(CONVERSATION, agent=AGENT, model=MODEL)
    async with Client(server) as client, conversation:
        await client.list_tools()
        for number, turn in enumerate(scenario.turns):
            with conversation.turn(f"t{number}"):
                outcome.told += await asyncio.gather(*(_call(client, call) for call in turn))


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a host does that has a conversation open."""
    asyncio.run(_run(scenario, outcome))
