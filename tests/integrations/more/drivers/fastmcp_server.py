"""A server of FastMCP with ``ToolfaultMiddleware`` alone, and a client that reports nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp import Client, FastMCP
from tests.integrations.more.scenes import ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ()  # nothing is hooked
SIDE = "server"
IDEMPOTENT = {"lookup": True, "book": False}
LACKS = {"unparsable JSON": "the host parses the arguments before it makes a request"}


async def _call(client: Any, call: ModelCall) -> str:
    result = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
    return "\n".join(block.text for block in result.content)


def add_tools(server: Any, scenario: Scenario) -> None:
    """Add the tools of a scenario to a server, which declares what `IDEMPOTENT` says."""
    for tool in tools_of(scenario):
        mark = IDEMPOTENT.get(tool.__name__)
        server.tool(tool, annotations=None if mark is None else {"idempotentHint": mark})


async def call_tools(
    server: Any, scenario: Scenario, outcome: Outcome, *, listed: bool = True
) -> None:
    """Make the calls of every turn as a client that has listed the tools, or has not."""
    async with Client(server) as client:
        if listed:
            await client.list_tools()
        for turn in scenario.turns:
            outcome.told += await asyncio.gather(*(_call(client, call) for call in turn))


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    from toolfault.integrations.fastmcp import ToolfaultMiddleware

    server = FastMCP("stub", middleware=[ToolfaultMiddleware(improve=scenario.improve)])
    add_tools(server, scenario)
    await call_tools(server, scenario, outcome)


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    asyncio.run(_run(scenario, outcome))
