"""A low-level server of the MCP SDK, 1.x or 2.x, with a client that reports to another place.

The client says of each call what a hooked one says, so that the server can name conversation,
turn and call; but its ``sink`` is not the server's, so that the server reports the call, too.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from typing import Any

import mcp
from mcp.server.lowlevel import Server
from tests.integrations.more.scenes import CONVERSATION, ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ("mcp",)
SIDE = "server"
JOINED = True
NAMES_AGENT = False
LACKS = {
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "unknown argument": "the schema allows it",
    "wrong type": "the server checks nothing in 2.x",
    "missing": "the server checks nothing in 2.x",
    "three faults at once": "the server checks nothing in 2.x",
    "secret": "the server checks nothing in 2.x",
    "parallel, one failing": "the server checks nothing in 2.x",
    "retry until success": "the server checks nothing in 2.x",
    "returned error": "a low-level server answers with a text",
}


def _answers(scenario: Scenario) -> Any:
    tools = {tool.__name__: tool for tool in tools_of(scenario)}

    def answer(name: str, arguments: dict[str, Any]) -> str:
        if name not in tools:
            raise ValueError(f"Unknown tool: {name}")
        return str(tools[name](**arguments))

    return answer


@asynccontextmanager
async def _connected(scenario: Scenario) -> Any:
    answer = _answers(scenario)
    if "on_call_tool" in inspect.signature(Server.__init__).parameters:
        import mcp_types as types

        async def call(_: Any, params: Any) -> Any:
            try:
                text, failed = answer(params.name, params.arguments or {}), False
            except Exception as error:
                text, failed = str(error), True
            blocks = [types.TextContent(type="text", text=text)]
            return types.CallToolResult(content=blocks, is_error=failed)

        async with mcp.Client(Server("stub", on_call_tool=call)) as client:
            yield client
        return
    from mcp.shared.memory import create_connected_server_and_client_session
    from mcp.types import TextContent

    server: Any = Server("stub")

    @server.call_tool()
    async def call_1(name: str, arguments: dict[str, Any]) -> Any:
        return [TextContent(type="text", text=answer(name, arguments))]

    async with create_connected_server_and_client_session(server) as session:
        yield session


async def _call(client: Any, call: ModelCall, turn: int) -> str:
    join = {"call": call.call_id, "conversation": CONVERSATION, "turn": f"t{turn}"}
    meta = {"toolfault": {**join, "sink": "0123456789abcdef"}}
    result = await client.call_tool(call.tool, call.arguments, meta=meta)
    return "\n".join(block.text for block in result.content)


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    hooked = mcp.ClientSession.call_tool
    mcp.ClientSession.call_tool = inspect.unwrap(hooked)
    try:
        async with _connected(scenario) as client:
            for number, turn in enumerate(scenario.turns):
                calls = (_call(client, call, number) for call in turn)
                outcome.told += await asyncio.gather(*calls)
    finally:
        mcp.ClientSession.call_tool = hooked


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    asyncio.run(_run(scenario, outcome))
