"""The hook of the Claude Agent SDK: one event for each message, by what its text says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolfault.integrations.claude_agent_sdk import observed
from toolfault.testing import capture_events

REFUSED = (
    "<tool_use_error>InputValidationError: Edit failed due to the following issues:\n"
    "The required parameter `file_path` is missing\n"
    "The parameter `people` type is expected as `number` but provided as `string`"
    "</tool_use_error>"
)


def _message(**more: Any) -> dict[str, Any]:
    base = {"session_id": "s1", "tool_use_id": "toolu_1", "tool_name": "Edit"}
    return {**base, "tool_input": {"people": "four"}, **more}


def _event(message: dict[str, Any]) -> dict[str, Any]:
    with capture_events() as events:
        assert asyncio.run(observed(message, "toolu_1", None)) == {}
    (event,) = [event for event in events if event["type"] == "tool_call"]
    return event


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (REFUSED, "invalid_input"),
        ("Input validation error: 'four' is not of type 'integer'", "invalid_input"),
        ("<tool_use_error>Error: No such tool available: Edit</tool_use_error>", "not_available"),
        ("Command timed out after 120s", "timeout"),
        ("something else went wrong", "unclassified"),
    ],
)
def test_a_failure_has_the_code_that_its_text_says(text: str, code: str) -> None:
    """The code comes from the text, and the event has the ids and the text itself."""
    event = _event(_message(hook_event_name="PostToolUseFailure", error=text))

    assert event["error"]["code"] == code
    assert (event["session_id"], event["call_id"]) == ("s1", "toolu_1")
    assert (event["framework"], event["conversation_rung"]) == ("claude_agent_sdk", "framework")


def test_each_issue_is_reported() -> None:
    """Every fault that the text names is an issue."""
    event = _event(_message(hook_event_name="PostToolUseFailure", error=REFUSED))

    issues = [(issue["field"], issue["code"]) for issue in event["error"]["issues"]]
    assert issues == [("file_path", "missing_field"), ("people", "wrong_type")]


def test_a_success_and_a_sub_agent_have_their_own_conversations() -> None:
    """A sub-agent talks on its own, under its own name."""
    done = _event(_message(hook_event_name="PostToolUse", tool_response={"content": "ok"}))
    sub = _event(
        _message(
            hook_event_name="PostToolUse",
            tool_response="ok",
            agent_id="a1",
            agent_type="reviewer",
        )
    )

    assert done["success"]
    assert (sub["session_id"], sub["agent"]) == ("s1/a1", "reviewer")


def test_a_message_of_an_unusual_form_harms_nobody() -> None:
    """What cannot be read is left out; the hook still answers."""
    with capture_events() as events:
        assert asyncio.run(observed({}, None, None)) == {}

    assert not events
