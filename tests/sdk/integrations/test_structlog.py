"""The structlog processor."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

import toolfault
from toolfault import ToolError, tool
from toolfault.integrations.structlog import toolfault_processor
from toolfault.testing import CapturedEvents


@pytest.fixture
def log() -> Any:
    """A structlog logger that keeps what it renders."""
    lines: list[dict[str, Any]] = []

    def keep(logger: Any, name: str, line: Any) -> Any:
        lines.append(dict(line))
        raise structlog.DropEvent

    logger = structlog.wrap_logger(None, processors=[toolfault_processor, keep])
    logger.__dict__["lines"] = lines
    return logger


def test_a_line_inside_a_call_says_where_it_stands(log: Any, events: CapturedEvents) -> None:
    """Tool and conversation are added; what the line says itself stays."""

    @tool
    def search(q: str) -> None:
        log.info("searching", q=q)
        log.info("searching", tool="own")

    with toolfault.conversation("conv-1"):
        search.call(q="a")

    first, second = log.__dict__["lines"]
    assert (first["tool"], first["conversation"], first["q"]) == ("search", "conv-1", "a")
    assert second["tool"] == "own"


def test_a_line_outside_says_nothing_more(log: Any) -> None:
    """Without a call, a conversation or an error the line stays as it is."""
    log.info("hello", a=1)

    assert log.__dict__["lines"] == [{"event": "hello", "a": 1}]


@pytest.mark.parametrize("form", ["exc_info", "true", "triple", "error", "cause"])
def test_a_logged_failure_is_reported_once(log: Any, events: CapturedEvents, form: str) -> None:
    """However it is logged, the code is added and one event is sent."""
    failure = ToolError("search", "nothing found", "not_found")
    try:
        if form == "cause":
            raise RuntimeError("around it") from failure
        raise failure
    except Exception as error:
        given: Any = {
            "true": True,
            "triple": (type(error), error, error.__traceback__),
        }.get(form, error)
        key = "error" if form == "error" else "exc_info"
        log.error("search failed", **{key: given})
        log.error("again", **{key: given})

    assert [line["code"] for line in log.__dict__["lines"]] == ["not_found"] * 2
    [event] = events.failures
    assert (event["tool"], event["error"]["code"]) == ("search", "not_found")


def test_a_failed_call_that_is_logged_is_one_event(log: Any, events: CapturedEvents) -> None:
    """[T08] Inside the handler, by the caller of the function, and from the result."""

    @tool
    def search(q: str) -> None:
        error = ToolError("search", "nothing found", "not_found")
        log.error("inside", error=error)
        raise error

    result = search.call(q="a")
    log.error("from the result", error=result.error)
    try:
        search("b")
    except ToolError as error:
        log.error("by the caller", error=error)

    assert [event["type"] for event in events.failures] == ["tool_call"] * 2


@pytest.mark.parametrize("around", [True, False])
def test_a_failed_direct_call_that_is_logged_is_one_event(
    log: Any, events: CapturedEvents, around: bool
) -> None:
    """[T08] The caller who catches and logs the exception does not report it again."""

    @tool
    def search(q: str) -> None:
        error = ToolError("search", "nothing found", "not_found")
        if around:
            raise RuntimeError("around it") from error
        raise error

    try:
        search("b")
    except Exception as error:
        log.error("by the caller", exc_info=error)

    assert [event["type"] for event in events.failures] == ["tool_call"]


def test_the_processor_never_raises() -> None:
    """A line that cannot be read is passed on as it is."""

    class Broken(dict):
        def get(self, *given: Any) -> Any:
            raise RuntimeError("no")

    line = Broken(event="x")

    assert toolfault_processor(None, "info", line) is line
