"""A server of FastMCP with ``ToolfaultMiddleware`` alone, and a client that reports nothing."""

from __future__ import annotations

import asyncio

from fastmcp import Client, FastMCP
from tests.integrations.more.drivers.fastmcp import LACKS, _call
from tests.integrations.more.scenes import Outcome, Scenario, tools_of

FRAMEWORKS = ()  # nothing is hooked
SIDE = "server"
__all__ = ["FRAMEWORKS", "LACKS", "SIDE", "run"]


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
