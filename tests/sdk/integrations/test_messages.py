"""Tool calls out of the messages of a loop that is written by hand."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import toolfault
from toolfault import ConfigError
from toolfault.testing import capture_events


def asked(call_id: str, arguments: Any, tool: str = "book") -> dict[str, Any]:
    """A call as Chat Completions write it."""
    function = {"name": tool, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


OPENAI: list[Any] = [
    {"role": "user", "content": "Book it"},
    {"role": "assistant", "tool_calls": [asked("c1", '{"day": 31}'), asked("c2", '{"day":')]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"success": false, "error": "no such day"}'},
    {"role": "tool", "tool_call_id": "c2", "content": "Error: not JSON"},
    {"role": "assistant", "tool_calls": [asked("c3", '{"day": 30}')]},
    {"role": "tool", "tool_call_id": "c3", "content": "booked"},
    {"role": "assistant", "tool_calls": [asked("c4", "{}")]},
]
ANTHROPIC: list[Any] = [
    {"role": "user", "content": "Book it"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I will"},
            {"type": "tool_use", "id": "t1", "name": "book", "input": {"day": 31}},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "is_error": True,
                "content": [{"type": "text", "text": "no such day"}],
            }
        ],
    },
]


def _calls(events: Any) -> list[dict[str, Any]]:
    return [event for event in events.flush() if event["type"] == "tool_call"]


def test_the_calls_of_a_chat_are_reported_once() -> None:
    """Each answered call is one event with id and turn; a second look at the history adds none."""
    with capture_events() as events, toolfault.conversation("chat-1"):
        assert toolfault.capture_messages(OPENAI) == 3
        assert toolfault.capture_messages(OPENAI) == 0
        more = [*OPENAI, {"role": "tool", "tool_call_id": "c4", "content": "done"}]
        assert toolfault.capture_messages(more) == 1
    first, second, third, fourth = _calls(events)
    assert [each["call_id"] for each in (first, second, third, fourth)] == ["c1", "c2", "c3", "c4"]
    assert first["turn"] == second["turn"] != third["turn"]
    assert {each["session_id"] for each in (first, second, third, fourth)} == {"chat-1"}
    assert "no such day" in first["error"]["renderings"]["llm"]
    assert second["error"]["code"] == "malformed_json"
    assert (third["success"], fourth["success"]) == (True, True)


def test_the_objects_of_a_client_are_read_like_dictionaries() -> None:
    """Anthropic marks an answer as an error; blocks may be objects."""

    def as_objects(value: Any) -> Any:
        return json.loads(json.dumps(value), object_hook=lambda each: SimpleNamespace(**each))

    for conversation, messages in (("k1", ANTHROPIC), ("k2", as_objects(ANTHROPIC))):
        with capture_events() as events:
            found = toolfault.capture_messages(
                messages, provider="anthropic", conversation=conversation
            )
        assert found == 1
        (event,) = _calls(events)
        assert (event["session_id"], event["call_id"], event["success"]) == (
            conversation,
            "t1",
            False,
        )
        assert "no such day" in event["error"]["renderings"]["llm"]


@pytest.mark.parametrize(
    "messages", [[None, 1, "x"], [{"role": "tool"}], [{"tool_calls": 5}], [{"content": [3]}]]
)
def test_odd_messages_hurt_nobody(messages: list[Any]) -> None:
    """What is no message is passed over."""
    for provider in ("openai", "anthropic"):
        assert toolfault.capture_messages(messages, provider=provider) == 0


def test_another_provider_is_refused() -> None:
    """The message names those that are known."""
    with pytest.raises(ConfigError, match="openai, anthropic"):
        toolfault.capture_messages([], provider="gemini")
