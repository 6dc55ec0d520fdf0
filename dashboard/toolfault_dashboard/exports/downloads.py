"""Bounds of a download: how many one reader may have at a time, and how long one may take."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from toolfault_collector.http.problems import Problem

__all__ = ["AT_ONCE", "MOST_SECONDS", "Download", "Running"]

AT_ONCE: Final = 2
"""Exports of one reader at the same time; each holds a connection for its whole length."""


MOST_SECONDS: Final = 600.0
"""How long one download may take. A reader that takes a little now and then would hold its
connection, and keep SQLite's log from beginning anew, for ever."""


class Running:
    """How many exports each reader has running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    def begin(self, name: str) -> None:
        """Count one more export of reader *name*.

        Raises:
            Problem: 429, it has as many running as it may.
        """
        with self._lock:
            if self._running[name] >= AT_ONCE:
                detail = f"{AT_ONCE} exports of yours are running; wait for one to end."
                raise Problem(429, "too_many_exports", detail, headers={"Retry-After": "10"})
            self._running[name] += 1

    def end(self, name: str) -> None:
        """Count one less."""
        with self._lock:
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]


class Download(StreamingResponse):
    """Chunks whose source is closed when the answer ends, however it ends.

    Without that the connection and the place of an export whose reader left would be held until the
    garbage collector happens to run: the abandoned iterator is part of a cycle.

    Args:
        first: The first chunk, which is there: so that a bad query is an answer, no broken file.
        chunks: The others.
        seconds: How long all of it may take; what is cut off looks like a broken transfer.
        how: What a streamed response takes besides.
    """

    def __init__(
        self, first: bytes, chunks: Generator[bytes], *, seconds: float = MOST_SECONDS, **how: Any
    ) -> None:
        super().__init__(_from(first, chunks), **how)
        self._chunks = chunks
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        finally:
            # A stopping server cancels the request, which must not cancel this.
            await asyncio.shield(run_in_threadpool(self._chunks.close))


def _from(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks
