"""Pydantic AI with a function as its model, instrumented by itself or through Logfire."""

from __future__ import annotations

import sys
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    lookup,
    played,
    provider,
)


def run(case: Case, instrument: Any) -> None:
    """Run one case."""

    def answer(messages: Any, info: Any) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(case.tool, case.arguments, case.call_id)])

    agent: Any = Agent(FunctionModel(answer), tools=[Tool(book), Tool(lookup)], name="travel")
    agent.instrument = instrument
    agent.run_sync("go", conversation_id=CONVERSATION)


def main(instrumentation: str) -> None:
    """Instrument, run all cases and send."""
    if instrumentation == "logfire":
        import logfire

        logfire.configure(send_to_logfire=False, service_name="travel-bot", console=False)
        logfire.instrument_pydantic_ai()
        played(lambda case: run(case, True))
        logfire.shutdown()
        return
    sending = provider()
    settings = InstrumentationSettings(tracer_provider=sending)
    played(lambda case: run(case, settings))
    sending.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
