"""Run tools that a ``ToolManager`` hands over to a framework."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integrations.scenarios import RIGHT, WRONG, ModelCall, Scenario
from tests.integrations.tools import book

import toolfault
from toolfault.testing import capture_events

TURNS = (
    (ModelCall("book", {**RIGHT, "people": "4"}, "c1"),),
    (ModelCall("book", WRONG, "c2"),),
)
SCENARIO = Scenario("handed over", TURNS, ())


def _langchain(driver: Any, manager: toolfault.ToolManager) -> dict[str, str]:
    model = driver.model_of(SCENARIO)
    agent = driver.create_agent(model, manager.as_langchain())
    agent.invoke({"messages": [driver.HumanMessage("go")]})
    read = [each for each in model.read[-1] if isinstance(each, driver.ToolMessage)]
    return {each.tool_call_id: str(each.content) for each in read}


def _openai_agents(driver: Any, manager: toolfault.ToolManager) -> dict[str, str]:
    model = driver.model_of(SCENARIO)
    agent = driver.Agent(name="travel", model=model, tools=manager.as_openai_agents())
    asyncio.run(driver.Runner.run(agent, "go"))
    return {
        each["call_id"]: str(each["output"])
        for each in model.last_call.input
        if each.get("type") == "function_call_output"
    }


def _pydantic_ai(driver: Any, manager: toolfault.ToolManager) -> dict[str, str]:
    read: list[Any] = []
    driver.Agent(driver.model_of(SCENARIO, read), tools=manager.as_pydantic_ai()).run_sync("go")
    parts = [part for message in read[-1] for part in message.parts]
    return {
        part.tool_call_id: part.model_response_str()
        for part in parts
        if part.part_kind == "tool-return"
    }


def _fastmcp(driver: Any, manager: toolfault.ToolManager) -> dict[str, str]:
    async def run() -> dict[str, str]:
        told = {}
        async with driver.Client(driver.FastMCP("stub", tools=manager.as_fastmcp())) as client:
            for (call,) in TURNS:
                result = await client.call_tool(call.tool, call.arguments, raise_on_error=False)
                told[call.call_id] = result.content[0].text
        return told

    return asyncio.run(run())


def _mcp(driver: Any, manager: toolfault.ToolManager) -> dict[str, str]:
    async def run() -> dict[str, str]:
        told = {}
        async with driver.connected(driver.server_of(tools=manager.as_mcp())) as client:
            for (call,) in TURNS:
                result = await client.call_tool(call.tool, call.arguments)
                told[call.call_id] = result.content[0].text
        return told

    return asyncio.run(run())


_RUNS = {
    "langchain": _langchain,
    "openai_agents": _openai_agents,
    "pydantic_ai": _pydantic_ai,
    "fastmcp": _fastmcp,
    "mcp": _mcp,
}


def handed_over(driver: Any, name: str) -> dict[str, Any] | None:
    """Return what the model read and the events of a call that is repaired and one of three faults.

    Args:
        driver: The module of the driver.
        name: Its name; None is returned where tools cannot be handed over.
    """
    if name not in _RUNS:
        return None
    manager = toolfault.ToolManager([toolfault.tool(coerce=True)(book)])
    with capture_events(capture_values=True, integrations=False) as events:
        told = _RUNS[name](driver, manager)
    return {"told": told, "events": [each for each in events if each["type"] == "tool_call"]}
