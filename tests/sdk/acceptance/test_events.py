"""What the acceptance cases say about the one event of each call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from toolfault import ToolManager, tool
from toolfault.coerce import LLMBool, LLMInt
from toolfault.testing import CapturedEvents, capture_events


@pytest.fixture
def events() -> Iterator[CapturedEvents]:
    """What a collector would get during the test."""
    with capture_events() as captured:
        yield captured


class Request(BaseModel):
    """The model of A08."""

    follow_redirects: LLMBool
    port: LLMInt = Field(ge=1, le=65535)


class Login(BaseModel):
    """The model of A11."""

    model_config = ConfigDict(extra="forbid")

    user: str
    password: str = Field(min_length=8)


@tool
def calculator(expression: str) -> str:
    """Return the expression."""
    return expression


@tool
def failing_tool() -> None:
    """Fail with a secret."""
    raise RuntimeError("db password=hunter2 at 10.0.0.5:5432 /srv/app/x.py")


@tool(model=Request)
def http2(**fields: Any) -> Any:
    """Return what arrived."""
    return fields


@tool(model=Login)
def login(**fields: Any) -> None:
    """Take what arrives."""


def broken(invocation: Any) -> Any:
    """Raise, as an adapter should not."""
    raise KeyError


@tool(adapt_error=broken)
def ft2() -> None:
    """Fail, and fail to say so."""
    raise RuntimeError("db password=hunter2")


@tool
def torn() -> None:
    """Be interrupted."""
    raise KeyboardInterrupt


class Stop(Exception):
    """Goes on to the caller."""


@tool(passthrough=Stop)
def stopping() -> None:
    """Stop the agent."""
    raise Stop("at once")


TOOLS = [calculator, failing_tool, http2, login, ft2, torn, stopping]


@pytest.fixture
def manager() -> ToolManager:
    """All tools of this module."""
    return ToolManager(TOOLS, threads=False)


async def test_unavailable(manager: ToolManager, events: CapturedEvents) -> None:
    """[A01][A02][A03] The reason and the resolved name are in the event, and nowhere else."""
    manager.alias("calc", "calculator")
    await manager.call_tool("nope", {})
    manager.disable("calculator")
    await manager.call_tool("calc", {"expression": "1"})
    manager.enable("calculator")
    manager.pause("calculator")
    await manager.call_tool("calculator", {"expression": "1"})

    assert [
        (
            event["tool"],
            event["tool_requested"],
            event["success"],
            event["error"]["category"],
            event["error"]["reason"],
        )
        for event in events.flush()
    ] == [
        ("nope", "nope", False, "availability", "not_registered"),
        ("calculator", "calc", False, "availability", "not_enabled"),
        ("calculator", "calculator", False, "availability", "paused"),
    ]


async def test_an_internal_failure(manager: ToolManager, events: CapturedEvents) -> None:
    """[A05][C17] The exception travels with its type and its redacted text."""
    await manager.call_tool("failing_tool", {})

    [event] = events.flush()
    exception = event["error"]["exception"]
    assert (exception["type"], exception["module"]) == ("RuntimeError", "builtins")
    assert exception["message"] == "db [REDACTED] at 10.0.0.5:5432 /srv/app/x.py"
    assert exception["traceback"]
    assert "hunter2" not in json.dumps(event)


async def test_coercions(manager: ToolManager, events: CapturedEvents) -> None:
    """[A08][C3] A repaired call is a success that names its repairs, without values."""
    await manager.call_tool("http2", {"follow_redirects": "Yes", "port": " 80 "}, call_id="c1")

    [event] = events.flush()
    assert (event["success"], event.get("error"), event["call_id"]) == (True, None, "c1")
    assert event["coercions"] == [
        {"field": "follow_redirects", "from_type": "str", "to_type": "bool"},
        {"field": "port", "from_type": "str", "to_type": "int"},
    ]
    assert event["validation"]["mode"] == "comprehensive"


async def test_nothing_leaks(manager: ToolManager, events: CapturedEvents) -> None:
    """[A11] Neither value of the case is in the event; the near misses name remedies alone."""
    await manager.call_tool("login", {"password": "abc", "api_key": "sk-live123456"})

    [event] = events.flush()
    assert "'abc'" not in json.dumps(event)
    assert "sk-live123456" not in json.dumps(event)
    assert [issue["field"] for issue in event["error"]["issues"]] == ["user", "password", "api_key"]
    assert event["error"]["issues_total"] == 3


async def test_near_misses(manager: ToolManager, events: CapturedEvents) -> None:
    """A rejected value names what would have accepted it."""
    await manager.call_tool("http2", {"follow_redirects": True, "port": 99999})

    [event] = events.flush()
    assert event["error"]["issues"][0]["near_miss"] == ["clamp"]


async def test_an_adapter_that_failed(manager: ToolManager, events: CapturedEvents) -> None:
    """[A23] The event says that the default adapter stood in."""
    await manager.call_tool("ft2", {})

    [event] = events.flush()
    assert event["error"]["adapter_failed"] is True


async def test_what_was_torn_off(manager: ToolManager, events: CapturedEvents) -> None:
    """[A24] Exactly one event each: cancelled, and passed through."""
    with pytest.raises(KeyboardInterrupt):
        await manager.call_tool("torn", {})
    with pytest.raises(Stop):
        await manager.call_tool("stopping", {})

    assert [
        (event["error"]["code"], event["error"]["category"], event["error"].get("reason"))
        for event in events.flush()
    ] == [("cancelled", "internal", None), ("internal_error", "internal", "passthrough")]


async def test_a_batch_is_one_turn(manager: ToolManager, events: CapturedEvents) -> None:
    """[P-16] Calls of one batch share the turn, and each keeps its call id."""
    await manager.call_tools([("c1", "calculator", {}), ("c2", "nope", {}), ("c3", "ft2", {})])

    turns = {event["turn"] for event in events.flush()}
    assert len(turns) == 1
    assert {event["call_id"] for event in events} == {"c1", "c2", "c3"}
