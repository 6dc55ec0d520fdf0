"""Per-tool timeouts, of coroutines and of threads."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from toolfault import ToolManager, ToolRegistry, tool
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


async def test_parallel_calls_share_few_threads() -> None:
    """A hundred calls at once run in bounded threads, and every one of them ends."""
    seen: set[int] = set()
    most: list[int] = []
    lock, running = threading.Lock(), [0]

    @tool
    def work(number: int) -> int:
        with lock:
            running[0] += 1
            most.append(running[0])
            seen.add(threading.get_ident())
        with lock:
            running[0] -= 1
        return number

    manager = ToolManager(ToolRegistry([work]))
    calls = [(str(number), "work", {"number": number}) for number in range(100)]
    results = await manager.call_tools(calls)
    assert [each.value for each in results] == list(range(100))
    assert max(most) <= len(seen) <= (os.cpu_count() or 1) + 4


def test_tools_that_hang_keep_no_thread_from_others() -> None:
    """More hanging calls than there are threads: each is overdue, and the next one still runs."""
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> None:
        release.wait()

    @tool(timeout=30)
    def quick() -> str:
        return "done"

    try:
        for _ in range((os.cpu_count() or 1) + 6):
            error = hang.call().error
            assert error is not None
            assert error.code.value == "timeout"
        assert quick.call().value == "done"
    finally:
        release.set()


async def test_a_tool_that_waits_for_another_one_does_not_wait_for_its_own_thread() -> None:
    """As many outer calls as there are threads, each calling a tool that needs a thread too."""

    @tool(timeout=30)
    def inner() -> int:
        return 1

    @tool(timeout=30)
    def outer() -> int:
        everyone.wait()
        value = inner.call().value
        assert value == 1
        return value

    number = min(32, (os.cpu_count() or 1) + 4)
    everyone = threading.Barrier(number, timeout=30)
    manager = ToolManager(ToolRegistry([outer]))
    results = await manager.call_tools([(None, "outer", {}) for _ in range(number)])
    assert [each.value for each in results] == [1] * number
