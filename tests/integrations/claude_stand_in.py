#!/usr/bin/env python3
"""Stands in for Claude Code below the Claude Agent SDK: it makes one wrong call, then is done.

It speaks the SDK's protocol on stdin and stdout (one JSON object a line) and uses the standard
library alone. No model is asked and nothing leaves the process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FAILED = {
    "session_id": "s1",
    "transcript_path": "none",
    "cwd": "/",
    "hook_event_name": "PostToolUseFailure",
    "tool_name": "book",
    "tool_input": {"people": 4},
    "tool_use_id": "toolu_1",
    "error": "InputValidationError: book failed due to the following issue:\n"
    "The required parameter `restaurant` is missing",
}
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


def say(**message: Any) -> None:
    """Write one message to the SDK."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer the SDK until it has nothing more to say."""
    hooks: dict[str, Any] = {}
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "control_request":
            hooks = message["request"].get("hooks") or hooks
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            say(type="control_response", response=answer)
        elif message["type"] == "user":
            (callback,) = hooks["PostToolUseFailure"][0]["hookCallbackIds"]
            asked = {"callback_id": callback, "input": FAILED, "tool_use_id": "toolu_1"}
            request = {"subtype": "hook_callback", **asked}
            say(type="control_request", request_id="r1", request=request)
        elif message["type"] == "control_response":
            assert message["response"]["response"] == {}  # the hook changes nothing
            say(**RESULT)


if __name__ == "__main__":
    main()
