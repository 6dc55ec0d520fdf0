"""``python -m tests.integrations.more.claude_code``: the example, with a scripted Claude Code.

Claude Code runs the tools, so the script says what it says of calls that ended; the client, the
options and the hooks are the SDK's. Stdout gets the results and the events, as JSON.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import Transport, query
from tests.integrations.example import EXAMPLES

import toolfault
from toolfault.testing import MemoryTransport

NO_TOOL = "<tool_use_error>Error: No such tool available: bookk</tool_use_error>"
SAID: tuple[dict[str, Any], ...] = (
    {"tool_name": "Read", "tool_use_id": "c1", "tool_response": {"content": "text"}},
    {"tool_name": "bookk", "tool_use_id": "c2", "error": NO_TOOL},
)
RESULT = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 1,
    "is_error": False,
    "num_turns": 1,
    "session_id": "s1",
    "result": "done",
}


class ClaudeCode(Transport):  # type: ignore[misc]
    """Speaks the control protocol: takes the hooks, then calls the right one for each call."""

    def __init__(self) -> None:
        self.written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def connect(self) -> None: ...

    async def close(self) -> None: ...

    async def end_input(self) -> None: ...

    def is_ready(self) -> bool:
        """Say that it runs."""
        return True

    async def write(self, data: str) -> None:
        """Take what the client writes."""
        self.written.put_nowait(json.loads(data))

    async def _written(self, kind: str) -> dict[str, Any]:
        while (message := await self.written.get())["type"] != kind:
            pass
        return message

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Answer the client's first request, then have its hooks called."""
        asked = await self._written("control_request")
        response = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
        yield {"type": "control_response", "response": response}
        for said in SAID:
            event = "PostToolUseFailure" if "error" in said else "PostToolUse"
            request = {
                "subtype": "hook_callback",
                "callback_id": asked["request"]["hooks"][event][0]["hookCallbackIds"][0],
                "input": {"hook_event_name": event, "session_id": "s1", "tool_input": {}, **said},
                "tool_use_id": said["tool_use_id"],
            }
            yield {"type": "control_request", "request_id": "r", "request": request}
            answer = (await self._written("control_response"))["response"]
            assert answer["subtype"] == "success", answer
        yield RESULT


def main() -> dict[str, Any]:
    """Run the example; return the results it got and the events."""
    transport = MemoryTransport()
    toolfault.init = functools.partial(toolfault.init, transport=transport, successes="all")
    example: dict[str, Any] = {}
    exec((EXAMPLES / "claude_agent_sdk.py").read_text(), example)
    example["query"] = functools.partial(query, transport=ClaudeCode())
    messages = asyncio.run(example["run"]())
    toolfault.close()
    calls = [event for event in transport.events if event["type"] == "tool_call"]
    return {"results": [message.result for message in messages], "events": calls}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()))
