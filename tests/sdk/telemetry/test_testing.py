"""The helpers for the tests of agents."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import toolfault
from toolfault.testing import MemoryTransport, capture_events


@toolfault.tool
def divide(a: int, b: int) -> float:
    """A tool that can fail in two ways."""
    return a / b


def test_events_of_a_block_are_captured() -> None:
    """Inside the block everything reported is at hand, and failures on their own."""
    with capture_events(agent="bot") as events:
        with toolfault.conversation("c1", ends=True):
            divide.call({"a": 1, "b": 2})
            divide.call({"a": 1, "b": "x"})
            divide.call({"a": 1, "b": 0})
        codes = [failure["error"]["code"] for failure in events.failures]
        assert codes == ["wrong_type", "internal_error"]
    assert [event["type"] for event in events] == ["tool_call"] * 3 + ["conversation_end"]
    assert {event["agent"] for event in events[:3]} == {"bot"}


def test_the_client_before_is_put_back() -> None:
    """A block inside another one borrows the calls and gives them back."""
    with capture_events() as outer:
        divide.call({"a": 1, "b": 1})
        with capture_events() as inner:
            divide.call({"a": 2, "b": 1})
        divide.call({"a": 3, "b": 1})
    assert (len(outer), len(inner)) == (2, 1)
    assert toolfault.client() is None


def test_an_error_of_the_test_passes_through() -> None:
    """What a test raises is not swallowed, and the block cleans up."""
    with pytest.raises(ZeroDivisionError), capture_events():
        raise ZeroDivisionError
    assert toolfault.client() is None


def test_every_path_of_a_call_is_one_event() -> None:
    """Success, rejected arguments, crash, failure dict, unavailable: each call is one event."""

    @toolfault.tool
    def returns_failure() -> dict[str, object]:
        return {"success": False, "error": "no seats left"}

    @toolfault.tool
    def reports_and_raises() -> None:
        error = toolfault.ToolError("reports_and_raises", "twice told", "not_found")
        toolfault.capture_failure(error, tool="reports_and_raises")
        raise error

    registry = toolfault.ToolRegistry([divide, returns_failure, reports_and_raises])
    manager = toolfault.ToolManager(registry)
    with capture_events() as events:
        divide.call({"a": 1, "b": 1})
        divide.call("{not json")
        divide.call({"a": 1, "b": 0})
        returns_failure.call({})
        reports_and_raises.call({})
        manager.call_tool_sync("no_such_tool", {})
        events.flush()
    assert len(events) == 6
    assert [event["success"] for event in events] == [True] + [False] * 5
    codes = [event["error"]["code"] for event in events[1:]]
    assert codes[0] == "malformed_json"
    assert codes[-2:] == ["not_found", "not_available"]


def test_memory_transport_keeps_envelopes() -> None:
    """The transport shows batches as the collector would read them."""
    transport = MemoryTransport()
    toolfault.init(transport=transport, successes="all", environment="test")
    try:
        divide.call({"a": 1, "b": 1})
        assert toolfault.flush()
    finally:
        toolfault.close()
    assert transport.batches[0]["resource"]["environment"] == "test"
    assert transport.events == transport.batches[0]["events"]


class Order(BaseModel):
    """Arguments of an agent that validates by itself."""

    item: str
    count: int


def test_own_loop_reports_validation_errors_issue_by_issue() -> None:
    """An error of a validation library, given with its arguments, is about the arguments."""
    arguments = {"count": "many"}
    with capture_events() as events:
        try:
            Order.model_validate(arguments)
        except ValidationError as error:
            toolfault.capture_failure(error, tool="order", arguments=arguments)
            toolfault.capture_failure(error, tool="order")
    about_arguments, about_something = events
    assert {issue["field"] for issue in about_arguments["error"]["issues"]} == {"item", "count"}
    assert about_arguments["error"]["category"] == "parameter"
    assert about_something["error"]["category"] == "internal"


@toolfault.tool
def refuse(error: Any) -> None:
    """Raise what it is given."""
    raise error


FAILURES = [toolfault.ToolError("refuse", "no", "not_found"), ValueError("boom"), KeyError()]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("how", ["itself", "as ToolError", "raised from it", "by another name"])
def test_failure_of_a_tool_is_not_reported_again(failure: Exception, how: str) -> None:
    """A host that captures what a decorated function has raised makes no second event."""
    with capture_events() as events, toolfault.conversation("c", ends=True):
        for _ in range(2):
            try:
                refuse(failure)
            except Exception as error:
                given: BaseException = error
                if how == "as ToolError":
                    given = toolfault.ToolError.from_exception("refuse", error)
                elif how == "raised from it":
                    given = RuntimeError("the agent gave up")
                    given.__cause__ = error
                name = "my.refuse" if how == "by another name" else "refuse"
                assert toolfault.capture_failure(given, tool=name) is None
    assert [bool(event.get("error")) for event in events] == [True, True, False]
    assert events[-1]["calls"] == {"refuse": 2}


def test_failure_of_a_call_is_not_reported_again_by_its_cause() -> None:
    """Nor does one that takes the exception out of the result."""
    with capture_events() as events:
        result = refuse.call({"error": None})
        assert result.error is not None
        toolfault.capture_failure(result.error.cause, tool="refuse")  # type: ignore[arg-type]
    assert len(events) == 1


def test_another_failure_is_reported_although_it_met_a_reported_one() -> None:
    """What was raised from, or while another tool failed after it, is a failure of its own."""
    with capture_events() as events:
        try:
            raise LookupError("of a function that is no tool")
        except LookupError as first:
            try:
                refuse(ValueError("of a tool"))
            except ValueError as second:
                wrapped = RuntimeError("the agent, as a tool, has failed")
                wrapped.__cause__ = second
                assert toolfault.capture_failure(wrapped, tool="agent") is not None
            assert toolfault.capture_failure(first, tool="plain") is not None
    assert [event["tool"] for event in events] == ["refuse", "agent", "plain"]
