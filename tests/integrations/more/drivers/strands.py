"""An agent of Strands with a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from strands import Agent, tool
from strands.models import Model
from tests.integrations.more.scenes import (
    AGENT,
    MODEL,
    MODES,
    SCENARIOS,
    Expected,
    ModelCall,
    Outcome,
    Scenario,
    played,
    tools_of,
)

__all__ = ["EXPECTED", "FRAMEWORKS", "LACKS", "MODES", "model_of", "run"]

FRAMEWORKS = ("strands",)
LACKS = {
    "time-out": "Strands has no time limit for tools",
    "cancelled, sync": "the run is in a thread of its own, which the host cannot cancel",
}
EXPECTED = {
    "unparsable JSON": SCENARIOS["missing"].expected,  # it has become an empty object
    "unknown argument": [Expected("book", phantoms=("terrace",))],
}


@tool(context=True)
def ask(question: str, tool_context: Any) -> str:
    """Ask a person."""
    return str(tool_context.interrupt("asked", reason=question))


def _text(call: ModelCall) -> str:
    arguments = call.arguments
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class _Scripted(Model):  # type: ignore[misc]
    def __init__(self, scenario: Scenario) -> None:
        self.waiting = list(scenario.turns)
        self.told: list[str] = []

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {"model_id": MODEL}

    async def structured_output(self, *_: Any, **__: Any) -> Any:
        yield {}

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        results = [
            part["toolResult"]
            for message in messages
            for part in message["content"]
            if "toolResult" in part
        ]
        self.told = ["\n".join(part["text"] for part in each["content"]) for each in results]
        calls = self.waiting.pop(0) if self.waiting else []
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            named = {"name": call.tool, "toolUseId": call.call_id}
            yield {"contentBlockStart": {"start": {"toolUse": named}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": _text(call)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return _Scripted(scenario)


async def _stream(agent: Any) -> Any:
    return [event async for event in agent.stream_async("go")][-1]["result"]


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "sync") -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    model = _Scripted(scenario)
    tools = [*(tool(fn) for fn in tools_of(scenario, asynchronous=mode != "sync")), ask]
    agent = Agent(model=model, tools=tools, name=AGENT, callback_handler=None)
    if mode == "sync":
        outcome.output = str(agent("go"))
    else:
        run = _stream(agent) if mode == "stream" else agent.invoke_async("go")
        outcome.output = str(asyncio.run(played(scenario, run)))
    outcome.told = model.told
