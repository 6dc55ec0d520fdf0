"""Pydantic AI with a function as its model."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from tests.integrations.scenarios import AGENT, CONVERSATION, MODEL, Expected, Outcome, Scenario
from tests.integrations.tools import cancelled_inside, functions

FRAMEWORKS = ("pydantic_ai",)
MODES = ("sync", "async", "stream")
NAMES_MODEL = True
NAMES_CONVERSATION = "conversation_id" in inspect.signature(Agent.run).parameters
RUNG = "framework"
OWN_IDS = False
LACKS = {
    "raise handled by the framework": "exceptions of a tool always end the run",
}
EXPECTED = {
    "unknown argument": (Expected("c1", "book", "unknown_field", (("terrace", "unknown_field"),)),),
}


def ask(question: str) -> Any:
    """Leave the answer to somebody else."""
    raise CallDeferred


def model_of(scenario: Scenario, read: list[Any] | None = None) -> FunctionModel:
    """Return a model that makes the calls of each turn, then says that it is done.

    Args:
        scenario: What it plays.
        read: Gets the messages of each request.
    """
    read = [] if read is None else read

    def answer(messages: Any, info: Any) -> ModelResponse:
        at = len(read)
        read.append(messages)
        if at >= len(scenario.turns):
            return ModelResponse([TextPart("done")])
        calls = scenario.turns[at]
        return ModelResponse([ToolCallPart(c.tool, c.arguments, c.call_id) for c in calls])

    async def stream(messages: Any, info: Any) -> Any:
        for index, part in enumerate(answer(messages, info).parts):
            if isinstance(part, TextPart):
                yield part.content
            else:
                raw = part.args
                text = raw if isinstance(raw, str) else part.args_as_json_str()
                call = DeltaToolCall(part.tool_name, text, tool_call_id=part.tool_call_id)
                yield {index: call}

    return FunctionModel(answer, stream_function=stream, model_name=MODEL)


def run(scenario: Scenario, *, mode: str) -> Outcome:
    """Run a scenario as a user of Pydantic AI would."""
    read: list[Any] = []
    outcome = Outcome()
    made = functions(scenario, asynchronous=mode != "sync")
    limit = scenario.limit if not scenario.decorated else None
    tools = [Tool(fn, name=name, timeout=limit) for name, fn in made.items()]
    tools.append(Tool(ask))
    agent: Any = Agent(model_of(scenario, read), tools=tools, name=AGENT)
    more = {"conversation_id": CONVERSATION} if NAMES_CONVERSATION else {}
    try:
        if mode == "sync":
            result = agent.run_sync("go", **more)
        else:
            awaited = _stream(agent, more) if mode == "stream" else _call(agent, more)
            result = asyncio.run(cancelled_inside(awaited) if scenario.cancelled else awaited)
        outcome.answer = str(result)
    except BaseException as error:
        outcome.error = f"{type(error).__name__}: {error}"
    for message in read[-1] if len(read) > 1 else ():
        for part in message.parts:
            if part.part_kind in ("tool-return", "retry-prompt") and part.tool_call_id:
                text = (
                    getattr(part, "model_response", None)
                    if part.part_kind == "retry-prompt"
                    else None
                )
                shown = text() if text is not None else part.model_response_str()
                outcome.told[part.tool_call_id] = str(shown)
    return outcome


async def _call(agent: Any, more: Any) -> Any:
    return (await agent.run("go", **more)).output


async def _stream(agent: Any, more: Any) -> Any:
    async with agent.run_stream("go", **more) as result:
        return await result.get_output()
