"""An agent of Strands with a scripted model."""

from __future__ import annotations

import json
from typing import Any

from strands import Agent, tool
from strands.models import Model
from tests.integrations.more.scenes import AGENT, MODEL, ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ("strands",)
LACKS = {
    "unparsable JSON": "Strands replaces it by an object without arguments",
    "unknown argument": "Strands drops it without a word",
}


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


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    model = _Scripted(scenario)
    tools = [tool(fn) for fn in tools_of(scenario)]
    agent = Agent(model=model, tools=tools, name=AGENT, callback_handler=None)
    outcome.output = str(agent("go"))
    outcome.told = model.told
