"""A client and a high-level server of the MCP SDK, 1.x or 2.x, in one process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import mcp
from tests.integrations.scenarios import AGENT, CONVERSATION, MODEL, Expected, Outcome, Scenario
from tests.integrations.tools import cancelled_inside, functions

import toolfault

FRAMEWORKS = ("mcp",)
MODES = ("async",)
NAMES_MODEL = True
NAMES_CONVERSATION = True
RUNG = None  # the host has a conversation open
OWN_IDS = True  # the protocol has none that would be the model's
LACKS = {
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "interrupt": "a server that has to ask a person has not answered yet",
}
EXPECTED: dict[str, tuple[Expected, ...]] = {}

_IS_2 = hasattr(mcp, "Client")


def server_of(**options: Any) -> Any:
    """Return a high-level server."""
    if _IS_2:
        from mcp.server.mcpserver import MCPServer

        return MCPServer("stub", **options)
    from mcp.server.fastmcp import FastMCP

    return FastMCP("stub", **options)


@asynccontextmanager
async def connected(server: Any) -> Any:
    """Yield a client of *server* that has listed its tools."""
    if _IS_2:
        async with mcp.Client(server) as client:
            await client.list_tools()
            yield client
        return
    from mcp.shared.memory import create_connected_server_and_client_session

    async with create_connected_server_and_client_session(server._mcp_server) as session:
        await session.list_tools()
        yield session


@asynccontextmanager
async def _connected(scenario: Scenario) -> Any:
    server = server_of()
    for name, tool in functions(scenario, asynchronous=True).items():
        server.tool(name)(tool)
    async with connected(server) as client:
        yield client


async def play(scenario: Scenario, outcome: Outcome, client: Any, **more: Any) -> None:
    """Make the calls of every turn, as a host does that has a conversation open."""

    async def call(made: Any) -> None:
        result = await client.call_tool(made.tool, made.arguments, **more)
        outcome.told[made.call_id] = "\n".join(block.text for block in result.content)

    conversation = toolfault.conversation(CONVERSATION, agent=AGENT, model=MODEL)
    async with conversation:
        for number, turn in enumerate(scenario.turns):
            with conversation.turn(f"t{number}"):
                calls = asyncio.gather(*(call(made) for made in turn))
                await (cancelled_inside(_all(calls)) if scenario.cancelled else calls)


async def _all(calls: Any) -> Any:
    return await calls


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    more: dict[str, Any] = {}
    if scenario.limit and not scenario.decorated:
        limit = scenario.limit
        more["read_timeout_seconds"] = limit if _IS_2 else timedelta(seconds=limit)
    async with _connected(scenario) as client:
        await play(scenario, outcome, client, **more)


def run(scenario: Scenario, *, mode: str) -> Outcome:
    """Run a scenario as a host that has a conversation open."""
    outcome = Outcome()
    try:
        asyncio.run(_run(scenario, outcome))
        outcome.answer = "done"
    except BaseException as error:
        outcome.error = f"{type(error).__name__}: {error}"
    return outcome
