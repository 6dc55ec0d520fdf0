"""What is recorded of a tool of Strands that raises, by objects in the shape of its own.

``tests/integrations/more`` plays the scenarios of all frameworks with Strands itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from toolfault.integrations.strands import install
from toolfault.testing import capture_events


class ToolResultEvent:
    """As ``strands.types._events`` has it."""

    def __init__(self, text: str, exception: Exception | None, status: str = "error") -> None:
        self.tool_result = {"status": status, "content": [{"text": text}]}
        self.exception = exception


class Agent:
    """As much of an agent as is looked at."""

    name = "bank"
    messages = ()
    model = object()

    def __init__(self, tools: SimpleNamespace) -> None:
        self.tool_registry = tools


def _recorded(text: str, raised: Exception) -> dict[str, Any]:
    """Return the error of the one event that comes of a call."""

    class ToolExecutor:
        @staticmethod
        async def _stream(agent: Any, tool_use: Any, results: list[Any]) -> AsyncIterator[Any]:
            yield ToolResultEvent(text, raised)

    install(SimpleNamespace(ToolExecutor=ToolExecutor))
    error: dict[str, Any] = _event_of(ToolExecutor)["error"]
    return error


def _event_of(executor: Any) -> dict[str, Any]:
    """Return the one event of a call that an executor makes."""

    async def call() -> None:
        tool = SimpleNamespace(tool_spec={"inputSchema": {"json": {"type": "object"}}})
        agent = Agent(SimpleNamespace(registry={"pay": tool}))
        use = {"name": "pay", "toolUseId": "c1", "input": {"euros": 5}}
        async for _ in executor._stream(agent, use, []):
            pass

    with capture_events(agent="process", integrations=False) as events:
        asyncio.run(call())
    (event,) = [each for each in events if each["type"] == "tool_call"]
    return event


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (AssertionError("the balance must not be negative"), "Error: AssertionError - {}"),
        (AssertionError("validation failed: the balance is -3"), "Error: AssertionError - {}"),
        (RuntimeError("Validation failed for the bank's form"), "Error: RuntimeError - {}"),
    ],
)
def test_words_of_an_exception_are_kept_and_are_the_tools_failure(
    raised: Exception, told: str
) -> None:
    """They are what the model read, and whatever they say, the arguments were not refused."""
    text = told.format(raised)
    error = _recorded(text, raised)
    assert (error["code"], error["phase"]) == ("internal_error", "handler")
    assert error["renderings"]["llm"] == text
    assert str(raised) in error["renderings"]["system"]


def test_an_older_version_gives_the_exception_to_hooks_alone() -> None:
    """What the tool raised last counts, and nothing that it raised before it succeeded."""

    class ToolExecutor:
        @staticmethod
        async def _invoke_after_tool_call_hook(*_: Any, exception: Exception | None) -> None: ...

        @staticmethod
        async def _stream(agent: Any, tool_use: Any, results: list[Any]) -> AsyncIterator[Any]:
            after = ToolExecutor._invoke_after_tool_call_hook
            await after(agent, exception=RuntimeError("not yet"))
            await after(agent, exception=raised)
            yield ToolResultEvent("Error: late", None, "error" if raised else "success")

    install(SimpleNamespace(ToolExecutor=ToolExecutor))
    raised: Exception | None = TimeoutError("late")
    assert _event_of(ToolExecutor)["error"]["code"] == "timeout"
    raised = None
    assert _event_of(ToolExecutor)["success"]


def test_an_exception_without_words_is_known_by_its_type() -> None:
    """Strands tells its name alone; the operator reads it too."""
    error = _recorded("Error: AssertionError - ", AssertionError())
    assert error["code"] == "internal_error"
    assert "AssertionError" in error["renderings"]["system"]


def test_refused_arguments_stay_the_models_failure() -> None:
    """Strands raises a ``ValueError`` for them."""
    text = "Validation failed for input parameters: euros is missing"
    error = _recorded(f"Error: {text}", ValueError(text))
    assert (error["category"], error["phase"]) == ("parameter", "validation")
