"""An ``LlmAgent`` of Google ADK with a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from tests.integrations.more.scenes import (
    AGENT,
    CONVERSATION,
    MODEL,
    MODES,
    Expected,
    Outcome,
    Scenario,
    played,
    tools_of,
)

__all__ = ["EXPECTED", "FRAMEWORKS", "LACKS", "MODES", "model_of", "run"]

FRAMEWORKS = ("google_adk",)
LACKS = {
    "unparsable JSON": "the class of the model parses the arguments",
    "time-out": "ADK has no time limit for functions",
    "cancelled, sync": "the run is in a thread of its own, which the host cannot cancel",
}
EXPECTED = {
    "wrong type": [Expected("book")],  # handed to the tool, as it is
    "secret in arguments": [Expected("login")],
    "unknown argument": [Expected("book")],  # dropped without a word
}


def ask(question: str) -> str:
    """Ask a person, who has to confirm it."""
    return question


def _answers(*_: Any, **__: Any) -> dict[str, str]:
    return {"error": "the tool cannot be used now"}


class _Scripted(BaseLlm):  # type: ignore[misc]
    waiting: list[Any]
    told: list[str]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        responses = [
            part.function_response.response
            for content in llm_request.contents
            for part in content.parts
            if part.function_response
        ]
        self.told[:] = [
            each["error"] if set(each) == {"error"} else json.dumps(each) for each in responses
        ]
        done = [types.Part(text="done")]
        parts = self.waiting.pop(0) if self.waiting else done
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    turns = [
        [
            types.Part(
                function_call=types.FunctionCall(
                    name=call.tool, args=call.arguments, id=call.call_id
                )
            )
            for call in turn
        ]
        for turn in scenario.turns
    ]
    return _Scripted(model=MODEL, waiting=turns, told=[])


async def _run(runner: Any, outcome: Outcome, asked: dict[str, Any]) -> None:
    async for event in runner.run_async(**asked):
        _said(outcome, event)


def _said(outcome: Outcome, event: Any) -> None:
    text = event.content.parts[0].text if event.content else None
    outcome.output = text or outcome.output


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    model = model_of(scenario)
    tools = [FunctionTool(fn) for fn in tools_of(scenario, asynchronous=mode != "sync")]
    tools.append(FunctionTool(ask, require_confirmation=True))
    handles = {"on_tool_error_callback": _answers} if scenario.handled else {}
    agent = LlmAgent(name=AGENT, model=model, tools=tools, **handles)
    runner = InMemoryRunner(agent, app_name="app")
    named = {"user_id": "ann", "session_id": CONVERSATION}
    asyncio.run(runner.session_service.create_session(app_name="app", **named))
    message = types.Content(role="user", parts=[types.Part(text="go")])
    asked: dict[str, Any] = {**named, "new_message": message}
    if mode == "stream":
        asked["run_config"] = RunConfig(streaming_mode=StreamingMode.SSE)
    try:
        if mode == "sync":
            for event in runner.run(**asked):
                _said(outcome, event)
            if outcome.output is None:  # ADK 1.18 keeps the exception in its own thread
                outcome.error = "the run ended without a word"
        else:
            asyncio.run(played(scenario, _run(runner, outcome, asked)))
    finally:
        outcome.told = list(model.told)
