"""Everything captured and not yet settled.

``pending`` is counted from what is really held (in the queue, in flight, folded, on disk), never
derived from the other numbers, so that the conservation law of ``Stats`` can be tested.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from toolfault.telemetry._book import Book, Stats
from toolfault.telemetry._fold import Folder, Row, RowKey
from toolfault.telemetry._limits import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolfault.telemetry._shelf import Shelf
    from toolfault.telemetry._spool import Segment

__all__ = ["EVENT_BYTES", "Item", "Outbox"]

EVENT_BYTES = 1_500  # what a flat event without its error takes in memory (1,350 by tracemalloc)


class Item:
    """One event on its way.

    Attributes:
        event: The event as captured; the sender turns it into ``body``.
        weight: Records the event stands for.
        size: Bytes it is charged for while it waits in memory.
        body: The encoded event, once made.
        segment: The spool segment that holds it, or None.
        landed: Whether it was settled or given up.
    """

    __slots__ = ("body", "event", "landed", "segment", "size", "weight")

    def __init__(self, event: dict[str, Any], *, size: int, weight: int = 1) -> None:
        self.event = event
        self.size = size
        self.weight = weight
        self.body: bytes | None = None
        self.segment: Segment | None = None
        self.landed = False


class Outbox:
    """Queue, counters and spool behind one lock.

    The lock is re-entrant: the host's garbage collector and signal handlers may capture while the
    same thread is inside.

    Args:
        limits: Bounds.
        describe: Makes the common members of a counter's event from its key and the name of the
            spool segment its steps lie in.
        shelf: The spool, if there is one.
    """

    def __init__(
        self,
        limits: Limits,
        describe: Callable[[RowKey, str], dict[str, Any]],
        shelf: Shelf | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.settled = threading.Condition(self.lock)
        self.book = Book()
        self.urgent = 0
        self.flushes = 0
        self.closed = False
        self.oldest_at = 0.0
        self.folded_at = 0.0
        self._limits = limits
        self._describe = describe
        self._shelf = shelf
        self.folder = Folder()
        self._queue: deque[Item] = deque()
        self._bytes = 0
        self._flying = 0

    @property
    def waiting(self) -> int:
        """Events that can be taken now."""
        return len(self._queue) + (self._shelf.waiting if self._shelf is not None else 0)

    @property
    def folded(self) -> int:
        """Rows of counters not yet made into events."""
        return len(self.folder)

    # -- in ------------------------------------------------------------------------------------

    def put(self, item: Item) -> None:
        """Take an event; the oldest ones make room for it."""
        if self._shelf is not None and item.body is None:
            self._shelf.encode(item)
        with self.lock:
            self.book.captured += item.weight
            self._keep(item)
            if self._shelf is not None:
                self._unfold_if_due()

    def discard(self, reason: str, *, weight: int = 1) -> None:
        """Count records that were captured and are not sent, by reason."""
        with self.lock:
            self.book.captured += weight
            self.book.drop(weight, reason)

    def fold(self, key: RowKey, duration_ms: float, repaired: Sequence[str]) -> Row | None:
        """Count one success and return the row it is counted in.

        Args:
            key: Row of the counter.
            duration_ms: Length of the call, milliseconds.
            repaired: Fields that a coercer fixed.
        """
        with self.lock:
            self.book.captured += 1
            if self.closed:
                self.book.drop(1, "closed")
                return None
            if not self.folder:
                self.folded_at = time.monotonic()
            row = self.folder.row(key)
            row.add_call(duration_ms, repaired)
            if self._shelf is not None:
                self._shelf.journal(key, duration_ms, repaired, 0)
            self._unfold_if_due()
            return row

    def fold_conversation(self, key: RowKey, calls: int) -> None:
        """Count one conversation that ended."""
        with self.lock:
            if self.closed:
                return
            if not self.folder:
                self.folded_at = time.monotonic()
            self.book.captured += self.folder.end_conversation(key, calls)
            if self._shelf is not None:
                self._shelf.journal(key, None, (), calls)
            self._unfold_if_due()

    def unfold(self) -> None:
        """Make the counters into events."""
        with self.lock:
            shelf = self._shelf
            name = shelf.seal() if shelf is not None else ""
            for event, weight in self.folder.drain(lambda key: self._describe(key, name)):
                self._keep(Item(event, size=1_024, weight=weight))
            if shelf is not None:
                self.book.drop(shelf.tidy(keep_current=False), "spool_corrupt")

    def _unfold_if_due(self) -> None:
        full = self._shelf is not None and self._shelf.is_full
        if full or len(self.folder) >= self._limits.fold_rows:
            self.unfold()

    def _keep(self, item: Item) -> None:
        if self.closed:
            self.book.drop(item.weight, "closed")
            return
        if self._shelf is not None:
            if item.body is None:
                self._shelf.encode(item)
            kept, given_up = self._shelf.keep(item)
            self.book.drop(given_up, "spool_full")
            if kept:
                self._arrived()
                return
        if item.size > self._limits.queue_bytes:
            self.book.drop(item.weight, "too_large")
            return
        queue, limits = self._queue, self._limits
        while queue and (
            len(queue) >= limits.queue_events or self._bytes + item.size > limits.queue_bytes
        ):
            oldest = queue.popleft()
            self._bytes -= oldest.size
            self.book.drop(oldest.weight, "queue_overflow")
        queue.append(item)
        self._bytes += item.size
        self._arrived()

    def _arrived(self) -> None:
        """Wake the sender where it sleeps without an end, or where a batch is full."""
        waiting = len(self._queue) if self._shelf is None else self.waiting
        if waiting == 1:
            self.oldest_at = time.monotonic()
        if waiting in (1, self._limits.batch_events):
            self.changed.notify_all()

    # -- out -----------------------------------------------------------------------------------

    def take(self, count: int) -> list[Item]:
        """Move up to ``count`` of the oldest events into flight; for the sender alone."""
        with self.lock:
            taken = [self._queue.popleft() for _ in range(min(count, len(self._queue)))]
            for item in taken:
                self._bytes -= item.size
                self._flying += item.weight
            self.oldest_at = time.monotonic()
        if self._shelf is not None and len(taken) < count:
            try:
                taken += self._shelf.take(count - len(taken), self.lock, self.book)
            except OSError:  # the sender tries again later
                if not taken:
                    raise
            if not taken:  # files without an event are done with
                with self.lock:
                    self._landed()
        return taken

    def adopt(self) -> None:
        """Look for what dead processes left; for the sender alone."""
        if self._shelf is not None:
            self._shelf.adopt()
            with self.lock:
                self.settled.notify_all()  # there may be nothing left after all

    def settle(self, items: Sequence[Item], rejected: Sequence[int] = ()) -> None:
        """Record that the collector answered for ``items``.

        Args:
            items: A batch in flight.
            rejected: Positions in it that the collector refused.
        """
        with self.lock:
            refused = self._land([items[index] for index in rejected])
            self.book.rejected += refused
            self.book.acked += self._land(items)
            self._landed()

    def give_up(self, items: Sequence[Item], reason: str) -> None:
        """Drop those of ``items`` that are in flight still."""
        with self.lock:
            self.book.drop(self._land(items), reason)
            self._landed()

    def _land(self, items: Sequence[Item]) -> int:
        """Take items out of flight and return their weight.

        Nothing is left to take once the outbox is closed: what was in flight is counted then.
        """
        flying = [item for item in items if not item.landed]
        weight = sum(item.weight for item in flying)
        if self.closed:
            return 0
        for item in flying:
            item.landed = True
            if item.segment is None:
                self._flying -= item.weight
        if self._shelf is not None:
            self._shelf.land(flying)
        return weight

    def _landed(self) -> None:
        if self._shelf is not None and not self.closed:
            self.book.drop(self._shelf.tidy(keep_current=bool(self.folder)), "spool_corrupt")
        self.settled.notify_all()

    def close(self, reason: str) -> int:
        """Refuse further events, drop what is left in memory, and return how many records remain.

        What lies on disk stays pending: the next process sends it.
        """
        with self.lock:
            if self.closed:
                return self.pending
            self.unfold()
            left = self.pending
            self.closed = True
            self.book.drop(self._flying + sum(item.weight for item in self._queue), reason)
            self._queue.clear()
            self._bytes = self._flying = 0
            if self._shelf is not None:
                self._shelf.close()
            self.changed.notify_all()
            self.settled.notify_all()
            return left

    def abandon(self) -> None:
        """Forget everything in a forked child: it is the parent's to send."""
        if self._shelf is not None:
            self._shelf.abandon()

    # -- signals -------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether this thread holds the lock, as a handler of signals may find it."""
        return self.lock._is_owned()  # type: ignore[attr-defined,no-any-return] # noqa: SLF001

    def mend(self) -> None:
        """Put the book right after an exception that a handler of signals raised between two lines.

        What was counted and is held nowhere was lost there; what is held and was not counted is.
        """
        with self.lock:
            self._bytes = sum(item.size for item in self._queue)
            stats = self.stats()
            known = stats.acked + stats.rejected + sum(stats.dropped.values()) + stats.pending
            self.book.drop(max(stats.captured - known, 0), "interrupted")
            self.book.captured = max(stats.captured, known)

    # -- the book ------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Records waiting in memory or on disk, folded, or in flight."""
        with self.lock:
            waiting = self._flying + sum(item.weight for item in self._queue)
            spooled = self._shelf.unsettled if self._shelf is not None else 0
            return waiting + self.folder.weight + spooled

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to send, also of what dead processes left behind."""
        left = self._shelf is not None and self._shelf.has_left
        return not left and not self.pending

    def stats(self) -> Stats:
        """Return the book as one consistent snapshot."""
        with self.lock:
            return self.book.stats(self.pending)
