"""An ``Agent`` of Strands with a scripted model; Strands writes spans by itself."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry import trace
from strands import Agent, tool
from strands.models import Model
from tests.integrations.exporters.senders.common import (
    CONVERSATION,
    Case,
    book,
    lookup,
    played,
    provider,
)


class Script(Model):
    """Makes the call of a case, then says that it is done."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def get_config(self) -> Any:
        return {"model_id": "script"}

    def update_config(self, **model_config: Any) -> None:
        pass

    async def structured_output(self, *arguments: Any, **options: Any) -> Any:
        # Strands asks every model to have it; no case asks for a value of a given shape.
        raise NotImplementedError("the scripted model answers with calls and text alone")
        yield

    async def stream(self, messages: Any, *arguments: Any, **options: Any) -> Any:
        answered = any("toolResult" in block for each in messages for block in each["content"])
        start: dict[str, Any] = {}
        delta: dict[str, Any] = {"text": "done"}
        if not answered:
            start = {"toolUse": {"name": self.case.tool, "toolUseId": self.case.call_id}}
            delta = {"toolUse": {"input": json.dumps(self.case.arguments)}}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if answered else "tool_use"}}


def run(case: Case) -> None:
    """Run one case."""
    agent = Agent(
        model=Script(case),
        tools=[tool(book), tool(lookup)],
        callback_handler=None,
        trace_attributes={"session.id": CONVERSATION},
    )
    agent("go")


def main() -> None:
    """Run all cases and send."""
    sending = provider()
    trace.set_tracer_provider(sending)
    played(run)
    sending.shutdown()


if __name__ == "__main__":
    main()
