"""The standard library's logging: a filter and a handler."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

import toolfault
from toolfault import ToolError, tool
from toolfault.integrations.logging import ToolCallFilter, ToolFaultHandler
from toolfault.testing import CapturedEvents


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What a logger of the host writes, with our filter and our handler in place."""
    text = io.StringIO()
    writing = logging.StreamHandler(text)
    writing.setFormatter(
        logging.Formatter("%(tool)s|%(conversation)s|%(code)s|%(message)s", validate=False)
    )
    writing.addFilter(ToolCallFilter())
    logger = logging.getLogger("host")
    reporting = ToolFaultHandler()
    logger.addHandler(writing)
    logger.addHandler(reporting)
    logger.propagate = False
    logger.setLevel("INFO")
    yield text
    logger.removeHandler(writing)
    logger.removeHandler(reporting)


LOG = logging.getLogger("host")


def test_the_fields_of_a_line(stream: io.StringIO, events: CapturedEvents) -> None:
    """Tool, conversation and code stand on the line; empty where they are not known."""

    @tool
    def search(q: str) -> None:
        LOG.info("inside")
        LOG.error("failed", extra={"error": ToolError("search", "x", "not_found")})
        LOG.info("own", extra={"tool": "own"})

    LOG.info("outside")
    with toolfault.conversation("conv-1"):
        search.call(q="a")

    assert stream.getvalue().splitlines() == [
        "|||outside",
        "search|conv-1||inside",
        "search|conv-1|not_found|failed",
        "own|conv-1||own",
    ]


def test_a_logged_failure_is_reported_once(stream: io.StringIO, events: CapturedEvents) -> None:
    """``log.exception`` reports the error that is being handled, and only the first time."""
    try:
        raise ToolError("search", "nothing found", "not_found")
    except ToolError:
        LOG.exception("failed")
        LOG.exception("failed again")
    LOG.error("no error at all", exc_info=True)

    [event] = events.failures
    assert (event["tool"], event["error"]["code"]) == ("search", "not_found")


def test_the_sdk_does_not_report_its_own_lines(events: CapturedEvents) -> None:
    """With the handler on the root logger a failed call is still one event."""
    root = logging.getLogger()
    handler = ToolFaultHandler()
    root.addHandler(handler)

    @tool
    def search(q: int) -> None: ...

    try:
        search.call(q="a")
        search.call(q="b")
    finally:
        root.removeHandler(handler)

    assert [event["type"] for event in events.failures] == ["tool_call"] * 2


def test_a_record_that_cannot_be_read(stream: io.StringIO) -> None:
    """A broken record spoils nothing."""

    class Hostile:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError("no")

    LOG.error("hostile", extra={"error": Hostile()})

    assert "hostile" in stream.getvalue()
