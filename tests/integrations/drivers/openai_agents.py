"""OpenAI Agents SDK with its own scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool, set_trace_processors
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.integrations.scenarios import AGENT, CONVERSATION, MODEL, Expected, Outcome, Scenario
from tests.integrations.tools import cancelled_inside, functions

set_trace_processors([])

FRAMEWORKS = ("openai_agents",)
MODES = ("async", "stream")
NAMES_MODEL = True
NAMES_CONVERSATION = True
RUNG = "framework"
OWN_IDS = False
LACKS = {
    "interrupt": "approvals stop the run before a call begins",
}
EXPECTED: dict[str, tuple[Expected, ...]] = {}


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    turns = [
        [function_call(c.tool, _text(c.arguments), call_id=c.call_id) for c in turn]
        for turn in scenario.turns
    ]
    model: Any = ScriptedModel([*turns, [assistant_message("done")]])
    model.model = MODEL
    return model


def run(scenario: Scenario, *, mode: str) -> Outcome:
    """Run a scenario as a user of the SDK would."""
    tools = [
        _tool(scenario, name, fn) for name, fn in functions(scenario, asynchronous=True).items()
    ]
    model = model_of(scenario)
    agent: Any = Agent(name=AGENT, model=model, tools=tools)
    config = RunConfig(group_id=CONVERSATION)
    outcome = Outcome()
    try:
        awaited = _stream(agent, config) if mode == "stream" else _call(agent, config)
        answer = asyncio.run(cancelled_inside(awaited) if scenario.cancelled else awaited)
        outcome.answer = str(answer.final_output)
    except BaseException as error:
        outcome.error = f"{type(error).__name__}: {error}"
    read = model.last_call.input if model.last_call is not None else []
    for item in read if isinstance(read, list) else []:
        if isinstance(item, dict) and item.get("type") == "function_call_output":
            outcome.told[item["call_id"]] = str(item["output"])
    return outcome


async def _call(agent: Any, config: Any) -> Any:
    return await Runner.run(agent, "go", run_config=config)


async def _stream(agent: Any, config: Any) -> Any:
    result = Runner.run_streamed(agent, "go", run_config=config)
    async for _ in result.stream_events():
        pass
    return result


def _tool(scenario: Scenario, name: str, fn: Any) -> Any:
    more: dict[str, Any] = {}
    if scenario.limit and not scenario.decorated:
        more["timeout"] = scenario.limit
    if scenario.name == "raise":
        more["failure_error_function"] = None
    return function_tool(fn, name_override=name, **more)


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
