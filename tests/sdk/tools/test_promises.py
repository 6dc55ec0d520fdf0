"""The SDK never hurts its host, whatever the host's own code does around a call."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from typing import Any

import pytest

from toolfault import ToolError, ToolManager, ToolResult, tool
from toolfault.tools import CallRecord


class BadError(ToolError):
    """A failure that cannot be described further."""

    def with_(self, **changes: object) -> ToolError:
        """Refuse."""
        raise RuntimeError("no")


class BadResult(ToolResult[int]):
    """A result that cannot be read."""

    @property
    def success(self) -> bool:
        """Refuse."""
        raise RuntimeError("no")

    @success.setter
    def success(self, value: bool) -> None: ...


def test_a_failure_that_cannot_be_described(records: list[CallRecord]) -> None:
    """[S1] The host gets a plain failure, and the record is left all the same."""

    @tool
    def fails() -> None:
        raise BadError("fails", "x")

    assert fails.call().message == "An unexpected error occurred while executing this tool"
    with pytest.raises(BadError):
        fails()
    assert [record.success for record in records] == [False, False]


async def test_a_result_that_cannot_be_read(records: list[CallRecord]) -> None:
    """[S1] A tool that did its work has succeeded, whatever its result looks like."""
    odd = BadResult("OK", 3)

    @tool
    def gives() -> Any:
        return odd

    assert gives.call().value is odd
    assert gives() is odd
    hooked = ToolManager([gives], before_call=lambda name, arguments: odd)
    assert (await hooked.call_tool("gives")).value is odd
    assert len(records) == 3


def test_a_result_that_breaks_halfway(records: list[CallRecord]) -> None:
    """[T08] Whatever breaks after the record was left, it is not left twice."""

    class Halfway(ToolResult[int]):
        @property
        def metadata(self) -> Any:
            raise RuntimeError("no")

        @metadata.setter
        def metadata(self, value: Any) -> None: ...

    odd = Halfway("OK", 3)

    @tool(echo="n")
    def gives(n: int) -> Any:
        return odd

    assert gives.call(n=1).value is odd
    assert len(records) == 1


def test_a_log_filter_that_raises(records: list[CallRecord]) -> None:
    """[S1] What the host hangs into logging cannot break a call."""

    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("no")

    @tool
    def fails() -> None:
        raise RuntimeError("x")

    logger = logging.getLogger("toolfault")
    broken = Broken()
    logger.addFilter(broken)
    logger.setLevel(logging.DEBUG)
    try:
        error = fails.call().error
        ToolManager([fails]).call_tool_sync("nope")
    finally:
        logger.removeFilter(broken)
        logger.setLevel(logging.NOTSET)

    assert error is not None
    assert error.exception_type == "builtins.RuntimeError"
    assert len(records) == 2


async def test_cancelled_while_a_policy_decides(records: list[CallRecord]) -> None:
    """[A24] A call that is aborted before it began leaves its record too."""
    asked = asyncio.Event()

    async def policy(name: str, arguments: Any) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    @tool
    def never() -> None: ...

    task = asyncio.ensure_future(ToolManager([never], policy=policy).call_tool("never"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [record.error.code.value for record in records if record.error] == ["cancelled"]


def test_gates_of_the_synchronous_entry(records: list[CallRecord]) -> None:
    """Policies and hooks, plain or async, decide there as well; the tool stays in its thread."""

    @tool
    def where() -> str:
        return threading.current_thread().name

    async def allows(name: str, arguments: Any) -> bool:
        return True

    def breaks(name: str, arguments: Any) -> bool:
        raise RuntimeError("undecided")

    def exits(name: str, arguments: Any) -> bool:
        raise KeyboardInterrupt

    here = threading.current_thread().name
    assert ToolManager([where], policy=allows).call_tool_sync("where").value == here
    assert ToolManager([where], before_call=lambda *_: "x").call_tool_sync("where").value == "x"
    assert not ToolManager([where], policy=breaks).call_tool_sync("where").success
    with pytest.raises(KeyboardInterrupt):
        ToolManager([where], policy=exits).call_tool_sync("where")
    assert len(records) == 4


class Kit:
    """Tools without an instance."""

    @staticmethod
    @tool
    def twice(n: int) -> int:
        """Double."""
        return 2 * n


def test_a_static_method() -> None:
    """Below ``staticmethod`` a tool works as it does in a module."""
    assert Kit.twice(2) == 4
    assert Kit().twice.call(n=3).value == 6


def test_slots() -> None:
    """An instance without a dict gets a tool of its own each time."""

    class Small:
        __slots__ = ("base",)

        def __init__(self) -> None:
            self.base = 1

        @tool
        def add(self, n: int) -> int:
            """Add."""
            return self.base + n

    assert Small().add.call(n=1).value == 2


def test_many_threads_at_once(records: list[CallRecord]) -> None:
    """The first calls of a tool may come from many threads; each is right and recorded once."""

    @tool
    def square(n: int) -> int:
        return n * n

    manager = ToolManager([square])
    results: dict[int, Any] = {}
    gate = threading.Barrier(16)

    def work(n: int) -> None:
        gate.wait(30)
        results[n] = manager.call_tool_sync("square", {"n": n}).value

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert results == {n: n * n for n in range(16)}
    assert len(records) == 16


def test_a_failure_without_a_message_beside_a_secret(records: list[CallRecord]) -> None:
    """[S11] A failure composed of its field is told as such, whatever is taken out of its texts."""

    @tool
    def login(user: str, password: str) -> None:
        raise ToolError("login", field="user", code="not_found")

    result = login.call({"user": "ann", "password": "hunter2hunter2"})

    assert result.content == "Error: Invalid parameter value for user: Not found"
    assert [record.error.code.value for record in records if record.error] == ["not_found"]


FORK = """
import os, sys, threading
import toolfault

looking, may_go_on = threading.Event(), threading.Event()

@toolfault.tool
def slow(a: int) -> int:
    return a

@toolfault.tool
def quick(a: int) -> int:
    return a

plan = slow.tool.compiled.plan
schema = type(plan).schema

def look(self):
    if self is plan:
        looking.set()
        may_go_on.wait(60)
    return schema(self)

type(plan).schema = look
thread = threading.Thread(target=slow.call, args=({"a": "x"},))
thread.start()
assert looking.wait(60)
pid = os.fork()
if pid == 0:
    os._exit(0 if quick.call({"a": "x"}).is_error else 1)
timer = threading.Timer(10, os.kill, (pid, 9))
timer.start()
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
timer.cancel()
may_go_on.set()
thread.join()
os._exit(abs(code))
"""


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_a_thread_looks_at_a_schema() -> None:
    """[S7] The child calls tools of its own, although no thread of it will finish the look."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
