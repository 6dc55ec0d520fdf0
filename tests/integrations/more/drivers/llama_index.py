"""A ``FunctionAgent`` of LlamaIndex with a scripted model."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import FunctionTool
from tests.integrations.more.scenes import AGENT, MODEL, Outcome, Scenario, tools_of

FRAMEWORKS = ("llama_index",)
LACKS = {
    "unparsable JSON": "the class of the model parses the arguments",
    "wrong type": "LlamaIndex hands it to the tool, which succeeds",
    "secret": "LlamaIndex hands it to the tool, which succeeds",
}


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


async def _run(scenario: Scenario, outcome: Outcome) -> None:
    read: list[Any] = []
    agent = FunctionAgent(
        name=AGENT,
        tools=[FunctionTool.from_defaults(fn) for fn in tools_of(scenario)],
        llm=_scripted(scenario, read),
        streaming=False,
    )
    outcome.output = str(await agent.run("go"))
    outcome.told = [message.content for message in read if message.role.value == "tool"]


def run(scenario: Scenario, outcome: Outcome) -> None:
    """Run an agent whose model makes the calls of each turn, then says that it is done."""
    asyncio.run(_run(scenario, outcome))
