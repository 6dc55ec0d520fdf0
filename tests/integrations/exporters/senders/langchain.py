"""LangChain's ``create_agent``, instrumented in one of four ways."""

from __future__ import annotations

import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    exporter,
    lookup,
    played,
    provider,
)


class Script(BaseChatModel):
    """Makes the call of a case, then says that it is done."""

    case: Any

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        message = AIMessage("done")
        if not isinstance(messages[-1], HumanMessage):
            return ChatResult(generations=[ChatGeneration(message=message)])
        call = {"name": self.case.tool, "args": self.case.arguments, "id": self.case.call_id}
        message = AIMessage("", tool_calls=[{**call, "type": "tool_call"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


def run(case: Case, callbacks: Any) -> None:
    """Run one case."""
    tools = [StructuredTool.from_function(each) for each in (book, lookup)]
    agent = create_agent(Script(case=case), tools, name="travel")
    config = {
        "configurable": {"thread_id": CONVERSATION},
        "metadata": {"session_id": CONVERSATION},
        "callbacks": callbacks,
    }
    agent.invoke({"messages": [HumanMessage("go")]}, config)


def main(instrumentation: str) -> None:
    """Instrument, run all cases and send."""
    sending, callbacks = provider(), []
    if instrumentation == "opentelemetry":
        from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=sending)
    elif instrumentation == "openinference":
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=sending)
    elif instrumentation == "traceloop":
        from opentelemetry.instrumentation.langchain import LangchainInstrumentor

        LangchainInstrumentor().instrument(tracer_provider=sending)
    else:
        from langfuse import Langfuse
        from langfuse.langchain import CallbackHandler

        keys = {"public_key": "pk-lf-1", "secret_key": "sk-lf-1", "host": "http://127.0.0.1:9"}
        langfuse = Langfuse(**keys, tracer_provider=sending, span_exporter=exporter())
        callbacks = [CallbackHandler(public_key="pk-lf-1")]
        played(lambda case: run(case, callbacks))
        langfuse.flush()
        return
    played(lambda case: run(case, callbacks))
    sending.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
