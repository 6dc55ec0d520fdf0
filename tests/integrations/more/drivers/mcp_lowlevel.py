"""A low-level server of the MCP SDK, 1.x or 2.x, with a client that reports to another place.

The client says of each call what a hooked one says, so that the server can name conversation,
turn and call; but its ``sink`` is not the server's, so that the server reports the call, too.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from contextlib import asynccontextmanager
from typing import Any

import mcp
from mcp.server.lowlevel import Server
from tests.integrations.more.scenes import (
    CONVERSATION,
    SCENARIOS,
    Expected,
    ModelCall,
    Outcome,
    Scenario,
    played,
    tools_of,
)

FRAMEWORKS = ("mcp",)
SIDE = "server"
JOINED = True
NAMES_AGENT = False
MODES = ("sync", "async")  # what the tools are; requests are asynchronous
LACKS = {
    "stream": "a request has one result",
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "time-out": "a server limits no time; the limit of a client is among the rows of the MCP SDK",
    "interrupt": "a server that has to ask a person has not answered yet",
    "cancelled, sync": "the body holds up the loop, so that nobody can cancel",
}
# A low-level server checks nothing: what Python refuses is an error that the handler answers.
_REFUSED = Expected("book", "internal_error")
EXPECTED = {
    "wrong type": [Expected("book")],
    "missing": [_REFUSED],
    "three faults at once": [_REFUSED],
    "unknown argument": [_REFUSED],
    "secret in arguments": [Expected("login")],
    "parallel, one failing": [_REFUSED, Expected("lookup")],
    "retry until success": [_REFUSED, Expected("book")],
}
DECORATED: dict[str, list[Expected]] = {}
if hasattr(mcp, "Client"):  # in 2.x the handler answers exceptions, and only its text is known
    EXPECTED["time-out in the body"] = [Expected("lookup", "internal_error")]
    # Of a decorated tool it is known what Python refused; 1.x only knows the exception.
    _MISSES = Expected("book", "missing_field", (("restaurant", "missing_field"),))
    DECORATED |= {
        **{name: SCENARIOS[name].expected for name in ("missing", "unknown argument")},
        "three faults at once": [_MISSES],
        "parallel, one failing": [_MISSES, Expected("lookup")],
        "retry until success": [_MISSES, Expected("book")],
        "time-out in the body": [Expected("lookup", "timeout")],
    }


def _answers(scenario: Scenario, mode: str) -> Any:
    made = tools_of(scenario, asynchronous=mode == "async")
    tools = {tool.__name__: tool for tool in made}

    async def answer(name: str, arguments: dict[str, Any]) -> str:
        if name not in tools:
            raise ValueError(f"Unknown tool: {name}")
        result = tools[name](**arguments)
        result = await result if inspect.isawaitable(result) else result
        return result if isinstance(result, str) else json.dumps(result)

    return answer


def _listed(tool: Any) -> list[Any]:
    """Return the tools as a server lists them that says nothing of their arguments."""
    names = [each.__name__ for each in tools_of(Scenario([], []))]
    shown = ({"name": name, "inputSchema": {"type": "object"}} for name in names)
    return [tool.model_validate(each) for each in shown]


@asynccontextmanager
async def _connected(answer: Any) -> Any:
    if "on_call_tool" in inspect.signature(Server.__init__).parameters:
        import mcp_types as types

        async def call(_: Any, params: Any) -> Any:
            try:
                text, failed = await answer(params.name, params.arguments or {}), False
            except Exception as error:
                text, failed = str(error), True
            blocks = [types.TextContent(type="text", text=text)]
            return types.CallToolResult(content=blocks, is_error=failed)

        async def listed(*_: Any) -> Any:
            return types.ListToolsResult(tools=_listed(types.Tool))

        async with mcp.Client(Server("stub", on_call_tool=call, on_list_tools=listed)) as client:
            yield client
        return
    from mcp.shared.memory import create_connected_server_and_client_session
    from mcp.types import TextContent, Tool

    server: Any = Server("stub")

    @server.list_tools()
    async def list_1() -> Any:
        return _listed(Tool)

    @server.call_tool()
    async def call_1(name: str, arguments: dict[str, Any]) -> Any:
        return [TextContent(type="text", text=await answer(name, arguments))]

    async with create_connected_server_and_client_session(server) as session:
        yield session


async def _call(client: Any, call: ModelCall, turn: int) -> str:
    join = {"call": call.call_id, "conversation": CONVERSATION, "turn": f"t{turn}"}
    meta = {"toolfault": {**join, "sink": "0123456789abcdef"}}
    result = await client.call_tool(call.tool, call.arguments, meta=meta)
    return "\n".join(block.text for block in result.content)


async def _calls(client: Any, turn: list[ModelCall], number: int) -> list[str]:
    return await asyncio.gather(*(_call(client, call, number) for call in turn))


async def _run(scenario: Scenario, outcome: Outcome, mode: str) -> None:
    hooked = mcp.ClientSession.call_tool
    mcp.ClientSession.call_tool = inspect.unwrap(hooked)
    try:
        async with _connected(_answers(scenario, mode)) as client:
            for number, turn in enumerate(scenario.turns):
                outcome.told += await played(scenario, _calls(client, turn, number))
    finally:
        mcp.ClientSession.call_tool = hooked


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Make the calls as a program does that knows nothing of toolfault."""
    asyncio.run(_run(scenario, outcome, mode))
