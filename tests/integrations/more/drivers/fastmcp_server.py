"""A server of FastMCP with ``ToolfaultMiddleware`` alone, and a client that reports nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP
from tests.integrations.more.scenes import ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ()  # nothing is hooked
SIDE = "server"
LACKS = {"unparsable JSON": "the host parses the arguments before it makes a request"}


async def _call(client: Any, call: ModelCall) -> str:
    result = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
    return "\n".join(block.text for block in result.content)


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    from toolfault.integrations.fastmcp import ToolfaultMiddleware

    server = FastMCP("stub", middleware=[ToolfaultMiddleware(improve=scenario.improve)])
    for tool in tools_of(scenario):
        server.tool(tool)
    async with Client(server) as client:
        for turn in scenario.turns:
            outcome.told += await asyncio.gather(*(_call(client, call) for call in turn))


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    asyncio.run(_run(scenario, outcome))
