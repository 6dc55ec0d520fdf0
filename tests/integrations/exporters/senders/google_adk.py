"""An ``LlmAgent`` of Google ADK with a scripted model; ADK writes spans by itself."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from opentelemetry import trace
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    lookup,
    played,
    provider,
)


class Script(BaseLlm):
    """Makes the call of a case, then says that it is done."""

    case: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        answered = any(
            part.function_response for each in llm_request.contents for part in each.parts
        )
        call = types.FunctionCall(
            name=self.case.tool, args=self.case.arguments, id=self.case.call_id
        )
        part = types.Part(text="done") if answered else types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def run(case: Case) -> None:
    """Run one case."""

    async def play() -> None:
        tools = [FunctionTool(book), FunctionTool(lookup)]
        agent = LlmAgent(name="travel", model=Script(model="script", case=case), tools=tools)
        runner = InMemoryRunner(agent, app_name="app")
        await runner.session_service.create_session(
            app_name="app", user_id="ann", session_id=CONVERSATION
        )
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(
            user_id="ann", session_id=CONVERSATION, new_message=message
        ):
            pass

    asyncio.run(play())


def main() -> None:
    """Run all cases and send."""
    sending = provider()
    trace.set_tracer_provider(sending)
    played(run)
    sending.shutdown()


if __name__ == "__main__":
    main()
