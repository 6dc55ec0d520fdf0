"""A ``ToolCallingAgent`` of smolagents with a scripted model."""

from __future__ import annotations

from typing import Any

from smolagents import ChatMessage, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import LogLevel
from tests.integrations.more.scenes import AGENT, MODEL, ModelCall, Outcome, Scenario, tools_of

FRAMEWORKS = ("smolagents",)
MODES = ("sync", "stream")
LACKS = {
    "async": "smolagents is synchronous",
    "time-out": "smolagents limits the time of code, not that of a tool",
    "interrupt": "smolagents has no interrupts",
}


class _Scripted(Model):  # type: ignore[misc]
    def __init__(self, scenario: Scenario) -> None:
        super().__init__(model_id=MODEL)
        self.waiting = [*scenario.turns, [ModelCall("final_answer", {"answer": "done"}, "end")]]
        self.read: list[Any] = []

    def generate(self, messages: Any, **_: Any) -> Any:
        self.read = messages
        calls = [
            ChatMessageToolCall(
                id=call.call_id,
                type="function",
                function=ChatMessageToolCallFunction(name=call.tool, arguments=call.arguments),
            )
            for call in self.waiting.pop(0)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return _Scripted(scenario)


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "sync") -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    model = _Scripted(scenario)
    agent = ToolCallingAgent(
        tools=[tool(fn) for fn in tools_of(scenario)],
        model=model,
        name=AGENT,
        max_steps=4,
        verbosity_level=LogLevel.OFF,
    )
    if mode == "stream":
        outcome.output = str([*agent.run("go", stream=True)][-1].output)
    else:
        outcome.output = str(agent.run("go"))
    answers = [message for message in model.read if message.role == MessageRole.TOOL_RESPONSE]
    outcome.told = [block["text"] for answer in answers for block in answer.content]
