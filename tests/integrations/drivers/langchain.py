"""LangChain: ``create_agent`` and, where exceptions are handled, a graph with a ``ToolNode``."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import MemorySaver
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import interrupt
from tests.integrations.scenarios import AGENT, CONVERSATION, MODEL, Expected, Outcome, Scenario
from tests.integrations.tools import cancelled_inside, functions

FRAMEWORKS = ("langchain",)
MODES = ("sync", "async", "stream")
NAMES_MODEL = True
NAMES_CONVERSATION = True
RUNG = "framework"
OWN_IDS = False
LACKS = {"time-out": "LangChain has no time limit for tools"}
EXPECTED: dict[str, tuple[Expected, ...]] = {}


class Script(BaseChatModel):
    """Plays the turns of a scenario and keeps what it was given."""

    turns: list[Any]
    read: list[Any]

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        at = len(self.read)
        self.read.append(list(messages))
        message = self.turns[at] if at < len(self.turns) else AIMessage("done")
        message.response_metadata = {"model_name": MODEL}
        return ChatResult(generations=[ChatGeneration(message=message)])


def ask(question: str) -> Any:
    """Ask the person."""
    return interrupt(question)


def model_of(scenario: Scenario) -> Script:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return Script(turns=[_message(turn) for turn in scenario.turns], read=[])


def run(scenario: Scenario, *, mode: str) -> Outcome:
    """Run a scenario as a user of LangChain would."""
    asynchronous = mode != "sync"
    tools = [_tool(name, fn) for name, fn in functions(scenario, asynchronous=asynchronous).items()]
    tools.append(StructuredTool.from_function(ask))
    model = model_of(scenario)
    if scenario.handled:
        agent: Any = create_react_agent(
            model, ToolNode(tools, handle_tool_errors=True), checkpointer=MemorySaver(), name=AGENT
        )
    else:
        agent = create_agent(model, tools, checkpointer=MemorySaver(), name=AGENT)
    config = {"configurable": {"thread_id": CONVERSATION}}
    given = {"messages": [HumanMessage("go", id=str(uuid.uuid4()))]}
    outcome = Outcome()
    try:
        if mode == "sync":
            answer = agent.invoke(given, config)
        else:
            awaited = (
                _stream(agent, given, config) if mode == "stream" else _call(agent, given, config)
            )
            answer = asyncio.run(cancelled_inside(awaited) if scenario.cancelled else awaited)
        outcome.answer = str(answer["messages"][-1].content)
    except BaseException as error:
        outcome.error = f"{type(error).__name__}: {error}"
    for message in model.read[-1]:
        if isinstance(message, ToolMessage):
            outcome.told[message.tool_call_id] = str(message.content)
    return outcome


async def _call(agent: Any, given: Any, config: Any) -> Any:
    return await agent.ainvoke(given, config)


async def _stream(agent: Any, given: Any, config: Any) -> Any:
    return [state async for state in agent.astream(given, config, stream_mode="values")][-1]


def _tool(name: str, fn: Any) -> Any:
    if asyncio.iscoroutinefunction(fn):
        return StructuredTool.from_function(coroutine=fn, name=name)
    return StructuredTool.from_function(fn, name=name)


def _message(turn: Any) -> AIMessage:
    good, bad = [], []
    for call in turn:
        if isinstance(call.arguments, str):
            bad.append(
                {
                    "name": call.tool,
                    "args": call.arguments,
                    "id": call.call_id,
                    "error": "not JSON",
                    "type": "invalid_tool_call",
                }
            )
        else:
            good.append(
                {
                    "name": call.tool,
                    "args": dict(call.arguments),
                    "id": call.call_id,
                    "type": "tool_call",
                }
            )
    return AIMessage("", tool_calls=good, invalid_tool_calls=bad, name=AGENT)
