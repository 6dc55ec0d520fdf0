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
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from tests.integrations.more.scenes import (
    AGENT,
    Expected,
    ModelCall,
    Outcome,
    Scenario,
    played,
    tools_of,
)

FRAMEWORKS = ("agent_framework",)
NAMES_AGENT = False  # what runs a tool is not told for whom
MODES = ("async", "stream")
LACKS = {
    "sync": "the framework is asynchronous",
    "time-out": "the framework has no time limit for tools",
}
EXPECTED = {"unknown argument": [Expected("book")]}  # dropped without a word


def ask(question: str) -> str:
    """Ask a person, who has to approve of it."""
    return question


def _content(call: ModelCall) -> Any:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Content.from_function_call(call_id=call.call_id, name=call.tool, arguments=text)


class _Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    def __init__(self, scenario: Scenario) -> None:
        super().__init__()
        self.waiting = [[_content(call) for call in turn] for turn in scenario.turns]
        self.read: list[Any] = []

    def _said(self, messages: Any) -> Any:
        self.read = list(messages)
        return self.waiting.pop(0) if self.waiting else [Content.from_text(text="done")]

    def _inner_get_response(self, *, messages: Any, stream: bool = False, **_: Any) -> Any:
        async def answer() -> Any:
            said = [Message("assistant", self._said(messages))]
            return ChatResponse(messages=said, response_id="r")

        async def parts() -> Any:
            said = self._said(messages)
            yield ChatResponseUpdate(contents=said, role="assistant", response_id="r")

        return self._build_response_stream(parts()) if stream else answer()


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return _Scripted(scenario)


async def _call(agent: Any) -> Any:
    return await agent.run("go")


async def _stream(agent: Any) -> Any:
    stream = agent.run("go", stream=True)
    async for _ in stream:
        pass
    return await stream.get_final_response()


async def _run(scenario: Scenario, outcome: Outcome, mode: str) -> None:
    model = _Scripted(scenario)
    if scenario.handled:
        model.function_invocation_configuration["include_detailed_errors"] = True
    made = tools_of(scenario, asynchronous=mode == "stream" or scenario.cancelled)
    tools = [tool(fn, approval_mode="never_require") for fn in made]
    tools.append(tool(ask, approval_mode="always_require"))
    agent = Agent(client=model, name=AGENT, tools=tools)
    run = _stream(agent) if mode == "stream" else _call(agent)
    outcome.output = str(await played(scenario, run))
    outcome.told = [
        content.result
        for message in model.read
        for content in message.contents
        if content.type == "function_result"
    ]


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    asyncio.run(_run(scenario, outcome, mode))
