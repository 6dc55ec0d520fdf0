"""Running a handler elsewhere: in a thread, or under a time limit.

Limits that Python sets and nothing here can lift:

- A thread cannot be killed. A synchronous tool that exceeds its timeout goes on until it returns;
  its late result or error is dropped, and a daemon thread never holds up the exit of the process.
- In its own thread a tool sees a copy of the caller's context variables; what it sets in them is
  not seen by the caller. Thread-local objects (a ``sqlite3`` connection) belong to another thread.
- A coroutine that swallows its cancellation is given one second, then left to itself.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["await_within", "call_in_thread", "call_within", "run_coroutine"]

T = TypeVar("T")

_GRACE = 1.0  # seconds a cancelled coroutine gets to clean up before it is left alone


def _overdue(seconds: float) -> TimeoutError:
    return TimeoutError(f"Timed out waiting for tool result after {seconds:g}s")


class _Outcome:
    """What a thread came back with."""

    __slots__ = ("error", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None

    def take(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


def _start(work: Callable[[], Any], done: Callable[[_Outcome], None], name: str) -> None:
    """Run ``work`` in a daemon thread with a copy of this context; ``done`` gets the outcome."""
    context = contextvars.copy_context()
    outcome = _Outcome()

    def body() -> None:
        try:
            outcome.value = context.run(work)
        except BaseException as error:  # noqa: BLE001 - an exit belongs to the caller's thread
            outcome.error = error
        done(outcome)

    threading.Thread(target=body, name=name, daemon=True).start()


def call_within(work: Callable[[], T], seconds: float, *, name: str = "toolfault-tool") -> T:
    """Call ``work`` and wait for it at most ``seconds``.

    Raises:
        TimeoutError: The time is over; the thread goes on (see above).
    """
    finished = threading.Event()
    outcomes: list[_Outcome] = []

    def done(outcome: _Outcome) -> None:
        outcomes.append(outcome)
        finished.set()

    _start(work, done, name)
    if not finished.wait(seconds):
        raise _overdue(seconds)
    result: T = outcomes[0].take()
    return result


async def call_in_thread(
    work: Callable[[], T], seconds: float | None, *, name: str = "toolfault-tool"
) -> T:
    """Call ``work`` in a thread without blocking the event loop.

    Raises:
        TimeoutError: ``seconds`` are over; the thread goes on (see above).
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Outcome] = loop.create_future()

    def settle(outcome: _Outcome) -> None:
        if not future.done():
            future.set_result(outcome)

    def done(outcome: _Outcome) -> None:
        try:
            loop.call_soon_threadsafe(settle, outcome)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            return

    _start(work, done, name)
    finished, _ = await asyncio.wait({future}, timeout=seconds)
    if not finished:
        future.cancel()
        raise _overdue(seconds or 0.0)
    result: T = future.result().take()
    return result


async def await_within(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await ``coroutine`` at most ``seconds``.

    Unlike ``asyncio.wait_for`` this never waits without end for a coroutine that swallows its
    cancellation.

    Raises:
        TimeoutError: The time is over; the coroutine was cancelled.
    """
    import asyncio

    task = asyncio.ensure_future(coroutine)
    try:
        finished, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _dismiss(task)
        raise
    if not finished:
        await _dismiss(task)
        raise _overdue(seconds)
    return task.result()


async def _dismiss(task: asyncio.Task[Any]) -> None:
    """Cancel a task, give it its grace, and see that its late error is not reported as lost."""
    import asyncio

    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=_GRACE)


def run_coroutine(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from synchronous code.

    Inside a running event loop, which cannot be entered twice, the coroutine gets a thread and a
    loop of its own; the caller waits.
    """
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_new_loop(make)
    finished = threading.Event()
    outcomes: list[_Outcome] = []

    def done(outcome: _Outcome) -> None:
        outcomes.append(outcome)
        finished.set()

    _start(lambda: _run_in_new_loop(make), done, "toolfault-loop")
    finished.wait()
    result: T = outcomes[0].take()
    return result


def _run_in_new_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do what ``asyncio.run`` does, and leave the thread's own event loop as it was.

    ``asyncio.run`` ends by setting the thread's loop to None: a host that has set one, and runs it
    from time to time, would have none any more, and its loop would be left unclosed.
    """
    import asyncio

    if hasattr(asyncio, "Runner"):  # since Python 3.11
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(make())
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(make())
    finally:
        try:
            loop.run_until_complete(_cancel_rest(asyncio.all_tasks(loop)))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()


async def _cancel_rest(tasks: set[asyncio.Task[Any]]) -> None:
    import asyncio

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
