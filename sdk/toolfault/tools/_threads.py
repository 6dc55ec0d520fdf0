"""Running a handler elsewhere: in a thread, or under a time limit.

Limits that Python sets and nothing here can lift:

- Threads are shared and few (``_MOST_THREADS``): what waits for one waits within its timeout.
- A thread cannot be killed. A synchronous tool that exceeds its timeout goes on until it returns;
  its late result or error is dropped, and a daemon thread never holds up the exit of the process.
- In its own thread a tool sees a copy of the caller's context variables; what it sets in them is
  not seen by the caller. Thread-local objects (a ``sqlite3`` connection) belong to another thread.
- A coroutine that swallows its cancellation is given one second, then left to itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

TIMED_OUT = "Timed out waiting for tool result after "
"""What the exception of a time limit says before the seconds."""

_GRACE = 1.0  # seconds a cancelled coroutine gets to clean up before it is left alone


def _overdue(seconds: float) -> TimeoutError:
    return TimeoutError(f"{TIMED_OUT}{seconds:g}s")


class _Job:
    """A piece of work for a thread, and what came of it.

    Attributes:
        has_place: Whether it runs in a thread that counts.
        ended: Whether its thread is free for another job.
        given_up: Whether nobody waits for it any more.
    """

    __slots__ = ("_context", "_done", "_work", "ended", "error", "given_up", "has_place", "value")

    def __init__(self, work: Callable[[], Any], done: Callable[[], None]) -> None:
        self._work = work
        self._done = done
        self._context = contextvars.copy_context()
        self.value: Any = None
        self.error: BaseException | None = None
        self.has_place = False
        self.ended = False
        self.given_up = False

    def run(self) -> None:
        """Do the work in a copy of the context of who asked for it."""
        try:
            self.value = self._context.run(self._work)
        except BaseException as error:  # noqa: BLE001 - an exit belongs to the caller's thread
            self.error = error
        self._done()

    def take(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class _Pool:
    """Daemon threads that tools share; ``concurrent.futures`` waits for its own at the exit.

    At most ``most`` run at once. A thread whose job was given up does not count, since a tool that
    hangs would otherwise take its place for ever; nor does one that a job starts, since a job that
    waits for another one could wait for its own place.

    Args:
        most: Threads at once.
        idle_seconds: How long a thread waits for another job.
    """

    def __init__(self, most: int, idle_seconds: float = 10.0) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._inside = threading.local()
        self.forget()

    def forget(self) -> None:
        """Begin anew: a forked child has none of its parent's threads, and perhaps its lock."""
        self._changed = threading.Condition()
        self._waiting: deque[_Job] = deque()
        self._idle = 0
        self._alive = 0

    def start(self, job: _Job) -> None:
        """Run ``job`` as soon as a thread is free."""
        if getattr(self._inside, "yes", False):
            threading.Thread(
                target=self._run_inside, args=(job,), name="toolfault-tool", daemon=True
            ).start()
            return
        with self._changed:
            self._waiting.append(job)
            self._changed.notify()
            self._add_thread()

    def give_up(self, job: _Job) -> None:
        """Say that nobody waits for ``job``: it is not begun any more, or keeps no place."""
        with self._changed:
            job.given_up = True
            if job in self._waiting:
                self._waiting.remove(job)
            elif job.has_place and not job.ended:
                self._alive -= 1
                self._add_thread()

    def _run_inside(self, job: _Job) -> None:
        self._inside.yes = True
        job.run()

    def _add_thread(self) -> None:
        if len(self._waiting) > self._idle and self._alive < self._most:
            self._alive += 1
            threading.Thread(target=self._work, name="toolfault-tool", daemon=True).start()

    def _work(self) -> None:
        self._inside.yes = True
        while (job := self._next()) is not None:
            job.run()
            with self._changed:
                job.ended = True
                if job.given_up:
                    return

    def _next(self) -> _Job | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting, self._idle_seconds)
            self._idle -= 1
            if self._waiting:
                job = self._waiting.popleft()
                job.has_place = True
                return job
            self._alive -= 1
            return None


_MOST_THREADS = min(32, (os.cpu_count() or 1) + 4)  # as concurrent.futures.ThreadPoolExecutor
_pool = _Pool(_MOST_THREADS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def call_within(work: Callable[[], T], seconds: float) -> T:
    """Call ``work`` in a thread and wait for it at most ``seconds``.

    Raises:
        TimeoutError: The time is over; the thread goes on (see above).
    """
    finished = threading.Event()
    job = _Job(work, finished.set)
    _pool.start(job)
    if not finished.wait(seconds):
        _pool.give_up(job)
        raise _overdue(seconds)
    result: T = job.take()
    return result


async def call_in_thread(work: Callable[[], T], seconds: float | None) -> T:
    """Call ``work`` in a thread without blocking the event loop.

    Raises:
        TimeoutError: ``seconds`` are over; the thread goes on (see above).
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    def done() -> None:
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
            return

    job = _Job(work, done)
    _pool.start(job)
    try:
        finished, _ = await asyncio.wait({future}, timeout=seconds)
    except asyncio.CancelledError:
        _pool.give_up(job)
        raise
    if not finished:
        future.cancel()
        _pool.give_up(job)
        raise _overdue(seconds or 0.0)
    result: T = job.take()
    return result


async def await_within(coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await ``coroutine`` at most ``seconds``.

    Unlike ``asyncio.wait_for`` this never waits without end for a coroutine that swallows its
    cancellation.

    Raises:
        TimeoutError: The time is over; the coroutine was cancelled.
    """
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
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=_GRACE)


def run_coroutine(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end from synchronous code.

    Inside a running event loop, which cannot be entered twice, the coroutine gets a thread and a
    loop of its own; the caller waits.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_new_loop(make)
    finished = threading.Event()
    job = _Job(lambda: _run_in_new_loop(make), finished.set)
    threading.Thread(target=job.run, name="toolfault-loop", daemon=True).start()
    finished.wait()
    result: T = job.take()
    return result


def _run_in_new_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do what ``asyncio.run`` does, and leave the thread's own event loop as it was.

    ``asyncio.run`` ends by setting the thread's loop to None: a host that has set one, and runs it
    from time to time, would have none any more, and its loop would be left unclosed.
    """
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
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
