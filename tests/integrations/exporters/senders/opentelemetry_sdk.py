"""An agent of no framework that writes spans of the GenAI conventions by hand."""

from __future__ import annotations

from opentelemetry.trace import Status, StatusCode, Tracer
from pydantic import ValidationError, validate_call
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    lookup,
    played,
    provider,
)

TOOLS = {each.__name__: validate_call(each) for each in (book, lookup)}


def run(case: Case, tracer: Tracer) -> None:
    """Run one case as the conventions want it."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": CONVERSATION}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": case.tool,
        "gen_ai.tool.call.id": case.call_id,
    }
    with (
        tracer.start_as_current_span("invoke_agent travel", attributes=agent),
        tracer.start_as_current_span(f"execute_tool {case.tool}", attributes=tool) as span,
    ):
        try:
            result = TOOLS[case.tool](**case.arguments)
        except (ValidationError, ConnectionError) as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        except KeyError:
            span.set_attribute("error.type", "tool_not_found")
            span.set_status(Status(StatusCode.ERROR, f"Unknown tool: {case.tool}"))
        else:
            span.set_attribute("gen_ai.tool.call.result", result)


def main() -> None:
    """Run all cases and send."""
    sending = provider()
    played(lambda case: run(case, sending.get_tracer("travel")))
    sending.shutdown()


if __name__ == "__main__":
    main()
