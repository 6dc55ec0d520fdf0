"""An agent of Microsoft Agent Framework with a scripted chat client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from tests.integrations.more.scenes import AGENT, ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ("agent_framework",)
NAMES_AGENT = False  # what runs a tool is not told for whom
LACKS = {"unknown argument": "the framework drops it without a word"}


def _content(call: ModelCall) -> Any:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Content.from_function_call(call_id=call.call_id, name=call.tool, arguments=text)


class _Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        self.waiting = [[_content(call) for call in turn] for turn in scenario.turns]
        self.read: list[Any] = []

    def _inner_get_response(self, *, messages: Any, **_: Any) -> Any:
        async def answer() -> Any:
            self.read = list(messages)
            said = self.waiting.pop(0) if self.waiting else ["done"]
            return ChatResponse(messages=[Message("assistant", said)], response_id="r")

        return answer()


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return _Scripted(scenario)


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    model = _Scripted(scenario)
    tools = [tool(fn, approval_mode="never_require") for fn in tools_of(scenario)]
    agent = Agent(client=model, name=AGENT, tools=tools)
    outcome.output = str(await agent.run("go"))
    outcome.told = [
        content.result
        for message in model.read
        for content in message.contents
        if content.type == "function_result"
    ]


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    asyncio.run(_run(scenario, outcome))
