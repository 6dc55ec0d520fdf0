"""Per-tool timeouts, of coroutines and of threads."""

from __future__ import annotations

import asyncio
import threading

import pytest

from toolfault import ToolManager, tool
from toolfault.tools import CallRecord

SAID = "Timed out waiting for tool result after 0.01s"


async def test_an_async_tool_that_takes_too_long(records: list[CallRecord]) -> None:
    """It is cancelled, and the failure is a timeout with the safe hint."""
    cancelled = asyncio.Event()

    @tool(timeout=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    result = await slow.call()

    assert cancelled.is_set()
    error = result.error
    assert error is not None
    assert (error.code.value, error.message) == ("timeout", SAID)
    assert error.to_llm_payload()["retry_hint"] == (
        "The tool did not finish in time. Retry with a smaller request."
    )
    assert len(records) == 1


def test_a_sync_tool_that_takes_too_long(records: list[CallRecord]) -> None:
    """The caller goes on; the thread's late result is dropped."""
    release = threading.Event()
    ended = threading.Event()

    @tool(timeout=0.01)
    def slow() -> str:
        release.wait(30)
        ended.set()
        return "too late"

    result = slow.call()
    release.set()

    assert ended.wait(30)
    assert result.error is not None
    assert (result.error.code.value, result.error.message) == ("timeout", SAID)
    assert len(records) == 1


async def test_a_sync_tool_in_the_manager() -> None:
    """The event loop goes on meanwhile."""
    release = threading.Event()

    @tool(timeout=0.01)
    def slow() -> None:
        release.wait(30)

    result = await ToolManager([slow], threads=False).call_tool("slow")
    release.set()

    assert result.error is not None
    assert result.error.code == "timeout"


async def test_a_timeout_that_is_not_reached() -> None:
    """Value and exceptions come back as without one."""

    @tool(timeout=30)
    async def quick(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    @tool(timeout=30)
    def quick_too(n: int) -> int:
        if n < 0:
            raise ValueError("negative")
        return n

    assert (await quick.call(n=1)).value == 1
    assert quick_too.call(n=1).value == 1
    assert (await quick.call(n=-1)).error.exception_type == "builtins.ValueError"  # type: ignore[union-attr]
    assert quick_too.call(n=-1).error.exception_type == "builtins.ValueError"  # type: ignore[union-attr]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_in_a_thread_belongs_to_the_caller(error: type[BaseException]) -> None:
    """[A24] What would end the program is raised where the program runs."""

    @tool(timeout=30)
    def exits() -> None:
        raise error

    with pytest.raises(error):
        exits.call()


async def test_cancelling_a_call_with_a_timeout(records: list[CallRecord]) -> None:
    """[A24] The handler is cancelled too."""
    started = asyncio.Event()
    ended = asyncio.Event()

    @tool(timeout=30)
    async def hangs() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(hangs.call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert ended.is_set()
    assert [record.error.code.value for record in records if record.error] == ["cancelled"]


def test_context_variables_reach_a_thread() -> None:
    """A tool with a timeout sees the caller's context."""
    from contextvars import ContextVar

    name: ContextVar[str] = ContextVar("name")
    name.set("ann")

    @tool(timeout=30)
    def who() -> str:
        return name.get()

    assert who.call().value == "ann"
