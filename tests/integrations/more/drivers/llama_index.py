"""A ``FunctionAgent`` of LlamaIndex with a scripted model."""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from tests.integrations.more.scenes import (
    AGENT,
    MODEL,
    Expected,
    Outcome,
    Scenario,
    tools_of,
    until_entered,
)

FRAMEWORKS = ("llama_index",)
MODES = ("async", "stream")
LACKS = {
    "sync": "a workflow is asynchronous",
    "unparsable JSON": "the class of the model parses the arguments",
    "time-out": "LlamaIndex limits the time of a run, not that of a tool",
}
EXPECTED = {
    "wrong type": [Expected("book")],  # handed to the tool, as it is
    "secret in arguments": [Expected("login")],
    "interrupt": [Expected("ask")],  # the person answers, and the tool is run again
}


async def ask(ctx: Context, question: str) -> str:
    """Ask a person."""
    asks = InputRequiredEvent(prefix=question)
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_event=asks)
    return str(answer.response)


ask.__annotations__.update(ctx=Context, question=str)  # LlamaIndex reads no annotations in texts


def _scripted(scenario: Scenario, read: list[Any]) -> Any:
    waiting = [
        [
            ToolSelection(tool_id=call.call_id, tool_name=call.tool, tool_kwargs=call.arguments)
            for call in turn
        ]
        for turn in scenario.turns
    ]

    def unused(self: Any, *_: Any, **__: Any) -> Any:
        raise AssertionError("the agent calls a member of its model that this test does not play")

    async def achat_with_tools(self: Any, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        read[:] = chat_history
        calls = waiting.pop(0) if waiting else []
        message = ChatMessage(role="assistant", content="" if calls else "done")
        return ChatResponse(message=message, additional_kwargs={"calls": calls})

    methods: dict[str, Any] = dict.fromkeys(FunctionCallingLLM.__abstractmethods__, unused)
    methods["metadata"] = property(
        lambda self: LLMMetadata(is_function_calling_model=True, model_name=MODEL)
    )

    async def astream_chat_with_tools(self: Any, *args: Any, **kwargs: Any) -> Any:
        async def parts() -> Any:
            yield await achat_with_tools(self, *args, **kwargs)

        return parts()

    methods["achat_with_tools"] = achat_with_tools
    methods["astream_chat_with_tools"] = astream_chat_with_tools
    methods["get_tool_calls_from_response"] = lambda self, response, *_, **__: (
        response.additional_kwargs["calls"]
    )
    return type("Scripted", (FunctionCallingLLM,), methods)()


def model_of(scenario: Scenario) -> Any:
    """Return a model that makes the calls of each turn, then says that it is done."""
    return _scripted(scenario, [])


def _tool(fn: Any) -> Any:
    return FunctionTool.from_defaults(**{"async_fn" if iscoroutinefunction(fn) else "fn": fn})


async def _run(scenario: Scenario, outcome: Outcome, mode: str) -> None:
    read: list[Any] = []
    asynchronous = mode == "stream" or scenario.cancelled
    made = [*tools_of(scenario, asynchronous=asynchronous), ask]
    agent = FunctionAgent(
        name=AGENT,
        tools=[_tool(fn) for fn in made],
        llm=_scripted(scenario, read),
        streaming=mode == "stream",
    )
    handler = agent.run("go")
    if scenario.cancelled:
        await until_entered(handler)
        await handler.cancel_run()
    elif mode == "stream" or scenario.interrupts:
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                handler.ctx.send_event(HumanResponseEvent(response="yes"))
    outcome.output = str(await handler)
    outcome.told = [message.content for message in read if message.role.value == "tool"]


def run(scenario: Scenario, outcome: Outcome, *, mode: str = "async") -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    asyncio.run(_run(scenario, outcome, mode))
