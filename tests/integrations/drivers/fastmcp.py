"""A server of FastMCP and its client, in one process."""

from __future__ import annotations

import asyncio
import inspect

from fastmcp import Client, FastMCP
from tests.integrations.drivers.mcp import play
from tests.integrations.scenarios import Expected, Outcome, Scenario
from tests.integrations.tools import functions

FRAMEWORKS = ("mcp", "fastmcp")
MODES = ("async",)
NAMES_MODEL = True
NAMES_CONVERSATION = True
RUNG = None  # the host has a conversation open
OWN_IDS = True  # the protocol has none that would be the model's
LACKS = {
    "unparsable JSON": "the host parses the arguments before it makes a request",
    "interrupt": "a server that has to ask a person has not answered yet",
}
EXPECTED = {
    "unknown argument": (Expected("c1", "book", "unknown_field", (("terrace", "unknown_field"),)),),
}
_HAS_LIMIT = "timeout" in inspect.signature(FastMCP.tool).parameters
if not _HAS_LIMIT:
    LACKS["time-out"] = "this version has no time limit for tools"


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    server = FastMCP("stub")
    limit = scenario.limit if not scenario.decorated else None
    for name, tool in functions(scenario, asynchronous=True).items():
        server.tool(tool, name=name, **({"timeout": limit} if _HAS_LIMIT else {}))
    async with Client(server) as client:
        await client.list_tools()
        await play(scenario, outcome, client, raise_on_error=False)


def run(scenario: Scenario, *, mode: str) -> Outcome:
    """Run a scenario as a host that has a conversation open."""
    outcome = Outcome()
    try:
        asyncio.run(_run(scenario, outcome))
        outcome.answer = "done"
    except BaseException as error:
        outcome.error = f"{type(error).__name__}: {error}"
    return outcome
