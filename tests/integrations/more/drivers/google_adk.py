"""An ``LlmAgent`` of Google ADK with a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from tests.integrations.more.scenes import AGENT, CONVERSATION, MODEL, Outcome, Scenario, tools_of

FRAMEWORKS = ("google_adk",)
CONVERSATION_IS = CONVERSATION
LACKS = {
    "unparsable JSON": "the class of the model parses the arguments",
    "wrong type": "ADK hands it to the tool, which succeeds",
    "secret": "ADK hands it to the tool, which succeeds",
    "unknown argument": "ADK drops it without a word",
}


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


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    model = model_of(scenario)
    outcome.told = model.told
    tools = [FunctionTool(fn) for fn in tools_of(scenario)]
    runner = InMemoryRunner(LlmAgent(name=AGENT, model=model, tools=tools), app_name="app")
    session = await runner.session_service.create_session(
        app_name="app", user_id="ann", session_id=CONVERSATION
    )
    message = types.Content(role="user", parts=[types.Part(text="go")])
    try:
        async for event in runner.run_async(
            user_id="ann", session_id=session.id, new_message=message
        ):
            text = event.content.parts[0].text if event.content else None
            outcome.output = text or outcome.output
    finally:
        outcome.told = list(model.told)


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    asyncio.run(_run(scenario, outcome))
