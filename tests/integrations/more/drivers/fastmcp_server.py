"""A server of FastMCP with ``ToolfaultMiddleware`` alone, and a client that reports nothing."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from fastmcp import Client, FastMCP
from tests.integrations.more.scenes import (
    Expected,
    ModelCall,
    Outcome,
    Scenario,
    played,
    tools_of,
)

FRAMEWORKS = ()  # nothing is hooked
SIDE = "server"
IDEMPOTENT = {"lookup": True, "book": False}
MODES = ("sync", "async")  # what the tools are; requests are asynchronous
_HAS_LIMIT = "timeout" in inspect.signature(FastMCP.tool).parameters
LACKS = {
    "stream": "a request has one result",
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "interrupt": "a server that has to ask a person has not answered yet",
    "cancelled, sync": "a thread runs the tool, whose call goes on",
}
if _HAS_LIMIT:
    LACKS["time-out, sync"] = "FastMCP limits the time of coroutines alone"
else:
    LACKS["time-out"] = "this version has no time limit for tools"
EXPECTED: dict[str, list[Expected]] = {}


async def _call(client: Any, call: ModelCall) -> str:
    result = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
    return "\n".join(block.text for block in result.content)


def server_of(scenario: Scenario, mode: str, **options: Any) -> Any:
    """Return a server with the tools of a scenario, which declares what `IDEMPOTENT` says."""
    server = FastMCP("stub", mask_error_details=scenario.handled, **options)
    limit = {} if scenario.limit is None else {"timeout": scenario.limit}
    for tool in tools_of(scenario, asynchronous=mode == "async"):
        mark = IDEMPOTENT.get(tool.__name__)
        server.tool(tool, annotations=None if mark is None else {"idempotentHint": mark}, **limit)
    return server


async def call_tools(
    server: Any, scenario: Scenario, outcome: Outcome, *, listed: bool = True
) -> None:
    """Make the calls of every turn as a client that has listed the tools, or has not."""
    async with Client(server) as client:
        if listed:
            await client.list_tools()
        for turn in scenario.turns:
            outcome.told += await played(scenario, _calls(client, turn))


async def _calls(client: Any, turn: list[ModelCall]) -> list[str]:
    return await asyncio.gather(*(_call(client, call) for call in turn))


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    options: dict[str, Any] = {}
    if scenario.observed:
        from toolfault.integrations.fastmcp import ToolfaultMiddleware

        options["middleware"] = [ToolfaultMiddleware(improve=scenario.improve)]
    server = server_of(scenario, mode, **options)
    asyncio.run(call_tools(server, scenario, outcome))
