"""The OpenAI Agents SDK with its own scripted model, instrumented in one of three ways."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool, set_trace_processors
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    lookup,
    played,
    provider,
)


def run(case: Case) -> None:
    """Run one case."""
    call = function_call(case.tool, json.dumps(case.arguments), call_id=case.call_id)
    model: Any = ScriptedModel([[call], [assistant_message("done")]])
    agent: Any = Agent(
        name="travel", model=model, tools=[function_tool(book), function_tool(lookup)]
    )
    asyncio.run(Runner.run(agent, "go", run_config=RunConfig(group_id=CONVERSATION)))


def main(instrumentation: str) -> None:
    """Instrument, run all cases and send."""
    set_trace_processors([])  # its own exporter, which sends elsewhere
    if instrumentation == "logfire":
        import logfire

        logfire.configure(send_to_logfire=False, service_name="travel-bot", console=False)
        logfire.instrument_openai_agents()
        played(run)
        logfire.shutdown()
        return
    sending = provider()
    if instrumentation == "opentelemetry":
        from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor
    else:
        from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    OpenAIAgentsInstrumentor().instrument(tracer_provider=sending)
    played(run)
    sending.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
