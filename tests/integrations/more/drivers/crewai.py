"""A crew of one agent with a scripted model that makes native tool calls."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.events.types.llm_events import LLMCallType
from crewai.tools import tool
from tests.integrations.more.scenes import (
    AGENT,
    MODEL,
    MODES,
    Expected,
    ModelCall,
    Outcome,
    Scenario,
    tools_of,
)

__all__ = ["EXPECTED", "FRAMEWORKS", "LACKS", "MODES", "model_of", "run"]

FRAMEWORKS = ("crewai",)
LACKS = {
    "time-out": "CrewAI limits the time of a task, not that of a tool",
    "cancelled": "tools run in threads, whose calls go on when the run is cancelled",
    "interrupt": "CrewAI asks a person between tasks, not in a tool",
}
EXPECTED = {"unknown argument": [Expected("book", phantoms=("terrace",))]}


def _native(call: ModelCall) -> dict[str, Any]:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": call.tool, "arguments": text}
    return {"id": call.call_id, "type": "function", "function": function}


class _Scripted(BaseLLM):  # type: ignore[misc]
    waiting: list[Any]
    read: list[Any]

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_: Any, **given: Any) -> Any:
        self.read[:] = [dict(message) for message in messages]
        of = {name: given.get(name) for name in ("from_task", "from_agent")}
        # As CrewAI's own models do; without the second its tracing waits five seconds for it.
        self._emit_call_started_event(messages, **of)
        answer = self.waiting.pop(0) if self.waiting else "Final Answer: done"
        self._emit_call_completed_event(answer, LLMCallType.LLM_CALL, **of)
        return answer

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    turns = [[_native(call) for call in turn] for turn in scenario.turns]
    return _Scripted(model=MODEL, waiting=turns, read=[])


def _streamed(crew: Any) -> Any:
    streaming = crew.kickoff()
    for _ in streaming:
        pass
    return streaming.result


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "sync") -> None:
    """Run a crew whose model makes the calls of each turn, then says that it is done."""
    model = model_of(scenario)
    tools = [tool(fn) for fn in tools_of(scenario, asynchronous=mode == "async")]
    agent = Agent(role=AGENT, goal="g", backstory="b", llm=model, tools=tools)
    tasks = [Task(description="d", expected_output="e", agent=agent)]
    crew = Crew(agents=[agent], tasks=tasks, stream=mode == "stream")
    if mode == "async":
        outcome.output = str(asyncio.run(crew.akickoff()))
    else:
        outcome.output = str(_streamed(crew) if mode == "stream" else crew.kickoff())
    outcome.told = [each["content"] for each in model.read if each.get("role") == "tool"]
