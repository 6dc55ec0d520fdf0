"""Clients of providers that are wrapped for a loop of one's own, by stand-ins of their form.

``tests/integrations/test_clients.py`` does the same with the clients themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integrations.example import example
from tests.sdk.integrations import test_messages
from tests.sdk.integrations.test_messages import asked

import toolfault
from toolfault.integrations.seen import Seen, observe
from toolfault.testing import CapturedEvents


def _of_loop(messages: list[Any]) -> list[Any]:
    """Name the tool as no decorated one of other tests is named: those report themselves."""
    return list(json.loads(json.dumps(messages).replace('"book"', '"seat"')))


OPENAI, ANTHROPIC = _of_loop(test_messages.OPENAI), _of_loop(test_messages.ANTHROPIC)


class Chat:
    """A client with the places of OpenAI's and Anthropic's; it keeps what was asked of it."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        create = partial(self._create)
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=create))
        self.responses = SimpleNamespace(create=create)
        self.messages = SimpleNamespace(create=create, stream=create)
        self.name = "mine"

    def _create(self, **request: Any) -> list[dict[str, Any]]:
        self.requests.append(request)
        return self.requests


def _calls(events: CapturedEvents) -> list[dict[str, Any]]:
    return [event for event in events.flush() if event["type"] == "tool_call"]


def test_each_answered_call_of_a_loop_is_reported_once(events: CapturedEvents) -> None:
    """Before the request, with id, turn, conversation, model and text; request and result stay."""
    client = Chat()
    wrapped = toolfault.wrap_openai(client)
    with toolfault.conversation("loop-1"):
        for end in (2, 4, 6, 7):
            given = {"model": "gpt-x", "messages": OPENAI[:end], "stream": True}
            assert wrapped.chat.completions.create(**given) is client.requests
            assert client.requests[-1] == given
    first, second, third = _calls(events)
    assert [each["call_id"] for each in (first, second, third)] == ["c1", "c2", "c3"]
    assert first["turn"] == second["turn"] != third["turn"]
    assert (first["session_id"], first["model"]) == ("loop-1", "gpt-x")
    assert "no such day" in first["error"]["renderings"]["llm"]
    assert second["error"]["code"] == "malformed_json"
    assert isinstance(wrapped, Chat)
    assert wrapped.name == "mine"
    client.chat.completions.create(messages=[*OPENAI[:4], OPENAI[2]])  # the client itself
    assert _calls(events) == [first, second, third]


def test_the_other_forms_of_requests_are_followed(events: CapturedEvents) -> None:
    """Messages of Anthropic, streamed too, and the items of Responses."""
    anthropic = toolfault.wrap_anthropic(Chat(), conversation="loop-2")
    anthropic.messages.stream(messages=ANTHROPIC)
    items = [
        {"role": "user", "content": "Book it"},
        {"type": "function_call", "call_id": "r1", "name": "seat", "arguments": "{"},
        {"type": "function_call", "call_id": "r2", "name": "seat", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "r1", "output": "Error: not JSON"},
        {"type": "function_call_output", "call_id": "r2", "output": "booked"},
    ]
    toolfault.wrap_openai(Chat(), conversation="loop-3").responses.create(input=items)
    told = [(e["session_id"], e["call_id"], e["success"]) for e in _calls(events)]
    assert told == [("loop-2", "t1", False), ("loop-3", "r1", False), ("loop-3", "r2", True)]
    assert len({event["turn"] for event in _calls(events)[1:]}) == 1


def test_chats_without_a_name_are_not_made_one(events: CapturedEvents) -> None:
    """The calls of a client that nobody has named are of no conversation, and all are there."""
    wrapped = toolfault.wrap_openai(Chat())
    for day in ("1", "2"):  # two chats, whose model numbers its calls alike
        call = asked("call_0", f'{{"day": {day}}}', "seat")
        answer = {"role": "tool", "tool_call_id": "call_0", "content": '{"success": false}'}
        wrapped.chat.completions.create(messages=[{"tool_calls": [call]}, answer])
    assert [event.get("session_id") for event in _calls(events)] == [None, None]


def test_what_an_earlier_run_called_is_left_to_its_process(events: CapturedEvents) -> None:
    """The history of a chat that goes on in another process is not reported by that one again."""
    done = [{"role": "assistant", "content": "Done"}, {"role": "user", "content": "One more"}]
    call = {"role": "assistant", "tool_calls": [asked("n1", "{}", "seat")]}
    answer = {"role": "tool", "tool_call_id": "n1", "content": "booked"}
    wrapped = toolfault.wrap_openai(Chat(), conversation="loop-4")
    wrapped.chat.completions.create(messages=[*OPENAI[:6], *done])
    wrapped.chat.completions.create(messages=[*OPENAI[:6], *done, call, answer])
    assert [event["call_id"] for event in _calls(events)] == ["n1"]


def test_tools_that_report_themselves_are_left_out(events: CapturedEvents) -> None:
    """A decorated tool, and one that a client of MCP calls, is not counted a second time."""
    wrapped = toolfault.wrap_openai(Chat(), conversation="loop-5")

    @toolfault.tool
    def reserve(day: int) -> str:
        return "ok"

    reserve.call('{"day": 31}')
    observe(lambda: Seen("mcp", "of_mcp", conversation="loop-5"))
    calls = [asked(f"o{i}", "{}", tool) for i, tool in enumerate(("reserve", "of_mcp", "else"))]
    answers = [{"role": "tool", "tool_call_id": f"o{i}", "content": "no"} for i in range(3)]
    wrapped.chat.completions.create(messages=[{"tool_calls": calls}, *answers])
    told = [(event["tool"], event.get("call_id")) for event in _calls(events)]
    assert told == [("reserve", None), ("of_mcp", None), ("else", "o2")]


@pytest.mark.parametrize("messages", [None, 5, "text", [None, 3], [{"tool_calls": 5}]])
def test_a_request_of_any_form_goes_out(messages: Any) -> None:
    """What cannot be read is for the provider to refuse; an iterator is not used up."""
    client = Chat()
    toolfault.wrap_openai(client).chat.completions.create(messages=messages)
    assert client.requests == [{"messages": messages}]
    once: Iterator[Any] = iter(OPENAI)
    toolfault.wrap_anthropic(client).messages.create(messages=once)
    assert next(once) is OPENAI[0]


def test_what_is_no_client_is_given_back(caplog: pytest.LogCaptureFixture) -> None:
    """And the operator is told; the host goes on with what it has."""
    other = object()
    assert toolfault.wrap_openai(other) is other
    assert "no requests of object can be followed" in caplog.text


def test_the_example_of_the_documentation_reports_its_failed_call() -> None:
    """It runs as it stands; of two calls the one without a restaurant is a failed event."""
    answers = iter(['{"people": 4}', '{"restaurant": "Da Enzo", "people": 4}', None])

    def create(**request: Any) -> Any:
        arguments = next(answers)
        function = SimpleNamespace(name="book_table", arguments=arguments)
        calls = [SimpleNamespace(id=f"d{len(request['messages'])}", function=function)]
        message = SimpleNamespace(
            role="assistant", content="done", tool_calls=calls if arguments else None
        )
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    ran = example(
        "own_loop",
        SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create))),
    )
    failed, booked = ran["events"]
    assert (ran["returned"], failed["call_id"], booked["success"]) == ("done", "d1", True)
    assert "restaurant" in failed["error"]["renderings"]["llm"]
    assert booked["chain_id"] == failed["chain_id"]
