"""From requests to the writer and back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from toolfault_collector import failpoints
from toolfault_collector.http.problems import Problem
from toolfault_collector.pipeline.writer import Result, Ticket, Writer
from toolfault_collector.protocol.submission import Submission

__all__ = ["REFUSAL_SECONDS", "Mail", "disk_full", "unavailable"]

# How long who finds the queue full waits for the refusal: about as long as what is queued takes.
REFUSAL_SECONDS: Final = 0.5


class Mail:
    """Carries batches from an event loop to the writer, and results back.

    Both ways take everything that is ready at once: the writer is woken when the loop has run
    every request it could, and the loop is woken once for a group.

    Args:
        loop: The event loop.
        writer: The writer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: Writer) -> None:
        self.loop = loop
        self._writer = writer
        self._waiting: dict[Ticket, asyncio.Future[Result]] = {}
        self._waking = False

    async def send(
        self, read: Callable[[], Submission | None], *, project_id: int, events: int, size: int
    ) -> Result:
        """Send a batch and return its result.

        Args:
            read: Makes the submission.
            project_id: Whose it is.
            events: About how many events it has; good enough to bound a queue.
            size: Its bytes.

        Raises:
            WriterBusy: The queue is full.
        """
        ticket = Ticket(read, self._deliver)
        self._writer.submit(ticket, project_id=project_id, events=events, size=size, wake=False)
        future = self._waiting[ticket] = self.loop.create_future()
        if not self._waking:
            self._waking = True
            self.loop.call_soon(self._wake)
        failpoints.reach("queued")
        result: Result = await future
        return result

    def _wake(self) -> None:
        self._waking = False
        self._writer.wake()

    def _deliver(self, results: list[tuple[Ticket, Result]]) -> None:
        """Called by the writer's thread."""
        self.loop.call_soon_threadsafe(self._settle, results)

    def _settle(self, results: list[tuple[Ticket, Result]]) -> None:
        for ticket, result in results:
            future = self._waiting.pop(ticket)
            if not future.done():  # a request that was cancelled no longer waits
                future.set_result(result)


def _retry_after(least: int, most: int) -> dict[str, str]:
    # Spread out, so that senders who were refused together do not come back together.
    return {"Retry-After": str(random.randint(least, most))}  # noqa: S311 - no secret


def unavailable() -> Problem:
    """Return the refusal of what may be sent again later."""
    detail = "send the same batch again later; nothing is stored twice"
    return Problem(503, "unavailable", detail, _retry_after(1, 5))


def disk_full() -> Problem:
    """Return the refusal of what there is no room for."""
    detail = "the disk is full; send the same batch again later, nothing is stored twice"
    return Problem(507, "disk_full", detail, _retry_after(10, 30))
