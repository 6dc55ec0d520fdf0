"""Everything captured and not yet settled: events in memory, counters, and the spool.

``pending`` is counted from what is really held (in the queue, in flight, in counters, on disk),
never derived from the other numbers, so that the conservation law of ``Stats`` can be tested.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.telemetry._aggregator import Aggregator, Counter, CounterKey
from toolfault.telemetry._config import Limits
from toolfault.telemetry._guard import debug

if TYPE_CHECKING:
    from toolfault.telemetry._spool import Line, Segment, Spool

EVENT_BYTES = 1_500  # what a flat event without its error takes in memory (1,350 by tracemalloc)


class Stats(NamedTuple):
    """What became of everything captured so far; a snapshot.

    ``captured = acked + rejected + sum(dropped.values()) + pending``, always and exactly; a record
    that Ctrl-C cuts short is dropped as ``interrupted``. The unit is the record: a call, an error
    or a change the host handed over, or one of the SDK's own records about a conversation that
    ended. A folded success is one record until the counter that holds it is settled.

    Attributes:
        captured: Records handed over, those found in the spool of a dead process included.
        acked: Records the collector stored, or had already.
        rejected: Records the collector refused one by one.
        dropped: Records given up, by reason.
        pending: Records waiting in memory or on disk, or being sent.
    """

    captured: int
    acked: int
    rejected: int
    dropped: dict[str, int]
    pending: int


class Item:
    """One event on its way.

    Attributes:
        event: The event as captured; the sender turns it into ``body``.
        weight: Records the event stands for.
        size: Bytes it is charged for while it waits in memory.
        body: The encoded event, once made.
        segment: The spool segment it was read from, or None.
        is_settled: Whether the collector answered for it, or it was given up.
    """

    __slots__ = ("body", "event", "is_settled", "segment", "size", "weight")

    def __init__(
        self,
        event: dict[str, Any],
        *,
        size: int = 0,
        weight: int = 1,
        body: bytes | None = None,
        segment: Segment | None = None,
    ) -> None:
        self.event = event
        self.size = size
        self.weight = weight
        self.body = body
        self.segment = segment
        self.is_settled = False


class Queue:
    """Queue, counters and spool behind one lock.

    The lock is re-entrant: the host's garbage collector and signal handlers may capture while the
    same thread is inside.

    Args:
        limits: Bounds.
        describe: Makes the common members of a counter's event from its key.
        encode: Makes the body of an event.
        spool: The spool, if there is one.

    Attributes:
        lock: Guards everything; ``changed`` and ``settled`` are its conditions.
        urgent: How many wait for the queue to be empty.
        flushes: How many have waited so far.
        is_read: Whether the sender runs; asking its thread costs more.
        oldest_at: When the oldest event came, by the monotonic clock.
        folded_at: When the oldest folded success came.
        captured: See ``Stats``; so are ``rejected`` and ``dropped``.
    """

    def __init__(
        self,
        limits: Limits,
        describe: Callable[[CounterKey], dict[str, Any]],
        encode: Callable[[dict[str, Any]], bytes],
        spool: Spool | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.settled = threading.Condition(self.lock)
        self.urgent = 0
        self.flushes = 0
        self.closed = False
        self.is_read = False
        self.oldest_at = 0.0
        self.folded_at = 0.0
        self.captured = self.acked = self.rejected = 0
        self.dropped: dict[str, int] = {}
        self._reported: dict[str, int] = {}
        self._limits = limits
        self._describe = describe
        self._encode = encode
        self._spool = spool
        self._aggregator = Aggregator()
        self._queue: deque[Item] = deque()
        self._bytes = 0
        self._in_flight = 0
        self._gone = 0  # records that were in memory as events and are settled
        self._read_back: deque[Item] = deque()  # from the spool, not taken yet

    @property
    def waiting(self) -> int:
        """Events that can be taken now."""
        spooled = 0 if self._spool is None else self._spool.waiting + len(self._read_back)
        return len(self._queue) + spooled

    @property
    def folded(self) -> int:
        """Counters, or steps of counters on disk, that were not made into events."""
        return len(self._aggregator) + (0 if self._spool is None else self._spool.steps)

    # -- in ------------------------------------------------------------------------------------

    def put(self, item: Item) -> None:
        """Take an event; the oldest ones make room for it."""
        spool = self._spool
        if spool is not None:
            item.body = self._encode(item.event)
            item.size = len(item.body)
            item.event = {}
        with self.lock:
            self.captured += item.weight
            if spool is None or not self._keep_on_disk(item, item.body, spool):
                self._keep_in_memory(item)

    def discard(self, reason: str, *, weight: int = 1) -> None:
        """Count records that were captured and are not sent, by reason."""
        with self.lock:
            self.captured += weight
            self._drop(weight, reason)

    def fold(
        self,
        key: CounterKey,
        duration_ms: float,
        repaired: Sequence[str],
        phantoms: Sequence[str] = (),
        *,
        repeated: bool = False,
    ) -> Counter | None:
        """Count one success and return the counter that holds it; None where it is on disk.

        Args:
            key: What the counter counts.
            duration_ms: Length of the call, milliseconds.
            repaired: Fields that a coercer fixed.
            phantoms: Names of phantom arguments.
            repeated: Whether it is a repeated execution.
        """
        with self.lock:
            step = [duration_ms, list(repaired), list(phantoms), int(repeated)]
            if not self._may_fold(key, step):
                return None
            counter = self._aggregator.counter(key)
            counter.add_call(duration_ms, repaired, phantoms, repeated)
            return self._folded(counter)

    def fold_conversation(self, key: CounterKey, calls: int) -> None:
        """Count one conversation that ended."""
        with self.lock:
            if self._may_fold(key, [calls]):
                counter = self._aggregator.counter(key)
                counter.add_conversation(calls)
                self._folded(counter)

    def _may_fold(self, key: CounterKey, step: list[Any]) -> bool:
        """Count a record, and write its step to disk; True where it is to be counted in memory."""
        self.captured += 1
        if self.closed:
            self._drop(1, "closed")
            return False
        if not self.folded:
            self.folded_at = time.monotonic()
        if self._spool is None:
            return True
        line = json.dumps([key, *step], separators=(",", ":")).encode()
        kept, given_up = self._spool.append("F", line)
        self._drop(given_up, "spool_full")
        if kept and not self._spool.steps:  # the segment has reached its size
            self.changed.notify_all()
        return not kept

    def _folded(self, counter: Counter) -> Counter:
        if len(self._aggregator) >= self._limits.fold_rows:
            self.unfold()
        return counter

    def unfold(self) -> None:
        """Make the counters into events."""
        with self.lock:
            if self._spool is not None and self._spool.steps:
                self._spool.seal("F")
                self._arrived(self._spool.waiting, always=True)
            for event, weight in self._aggregator.flush(self._describe):
                self._keep_in_memory(Item(event, size=1_024, weight=weight))

    def _keep_on_disk(self, item: Item, body: bytes | None, spool: Spool) -> bool:
        if body is None or self.closed:
            return False
        kept, given_up = spool.append("E", body, item.weight)
        self._drop(given_up, "spool_full")
        if kept:
            self._arrived(spool.waiting)
        return kept

    def _keep_in_memory(self, item: Item) -> None:
        if self.closed:
            self._drop(item.weight, "closed")
            return
        if item.size > self._limits.queue_bytes:
            self._drop(item.weight, "too_large")
            return
        queue, limits = self._queue, self._limits
        while queue and (
            len(queue) >= limits.queue_events or self._bytes + item.size > limits.queue_bytes
        ):
            oldest = queue.popleft()
            self._bytes -= oldest.size
            self._gone += oldest.weight
            self._drop(oldest.weight, "queue_overflow")
        queue.append(item)
        self._bytes += item.size
        self._arrived(len(queue))

    def _arrived(self, waiting: int, *, always: bool = False) -> None:
        """Wake the sender where it sleeps without an end, or where a batch is full."""
        if waiting == 1 or always:
            self.oldest_at = time.monotonic()
        if always or waiting in (1, self._limits.batch_events):
            self.changed.notify_all()

    # -- out -----------------------------------------------------------------------------------

    def take(self, count: int) -> list[Item]:
        """Move up to ``count`` of the oldest events into flight; for the sender alone.

        Files are read without the lock, so that no capture waits for a disk.

        Raises:
            OSError: There are some on disk, but none can be read just now.
        """
        with self.lock:
            taken = [self._queue.popleft() for _ in range(min(count, len(self._queue)))]
            for item in taken:
                self._bytes -= item.size
                self._in_flight += item.weight
            self.oldest_at = time.monotonic()
        if self._spool is None:
            return taken
        try:
            while len(taken) + len(self._read_back) < count and self._read_segment(self._spool):
                pass
        except OSError:  # the sender tries again later
            if not taken and not self._read_back:
                raise
        with self.lock:
            while self._read_back and len(taken) < count:
                taken.append(self._read_back.popleft())
            if not taken:  # a flush may wait for files that held nothing
                self.settled.notify_all()
        return taken

    def _read_segment(self, spool: Spool) -> bool:
        """Read one more segment; False when there is none."""
        with self.lock:
            segment = spool.next_own()
        segment = segment or spool.next_left()
        if segment is None:
            return False
        try:
            lines, lost = spool.read(segment)
        except OSError:
            with self.lock:
                spool.put_back(segment)
            raise
        items = self._items_of(segment, lines)
        with self.lock:
            if self.closed:
                return False
            weight = sum(item.weight for item in items)
            found = max(segment.weight, weight + lost)
            self.captured += found - segment.weight  # what a dead process captured
            self._drop(found - weight, "spool_corrupt")
            spool.follow(segment)
            segment.weight = weight
            segment.left = len(items)
            self._read_back.extend(items)
            if not items:
                spool.finish(segment)
        return True

    def _items_of(self, segment: Segment, lines: Sequence[Line]) -> list[Item]:
        """Return the events of a segment; the steps of counters are folded here."""
        items: list[Item] = []
        aggregator = Aggregator()
        for weight, event, step in lines:
            if event is None:
                key, *counted = step
                aggregator.add_step(tuple(key), *counted)
            else:
                items.append(Item({}, weight=weight, body=event, segment=segment))

        def describe(key: CounterKey) -> dict[str, Any]:
            return {**self._describe(key), "event_id": segment.counter_id(key)}

        for counter, weight in aggregator.flush(describe):
            items.append(Item(counter, weight=weight, segment=segment))
        return items

    def mark(self) -> tuple[int, tuple[Segment, ...]]:
        """Return what is held now, for `is_settled`: counters aside, which have become events."""
        with self.lock:
            segments = () if self._spool is None else self._spool.segments
            return self._gone + self._in_memory, segments

    def is_settled(self, mark: tuple[int, tuple[Segment, ...]]) -> bool:
        """Whether all that was held at ``mark`` is settled, and what dead processes left behind.

        Events in memory are sent in the order in which they came, one batch after the other.
        """
        gone, segments = mark
        with self.lock:
            if self._gone < gone:
                return False
            return self._spool is None or not self._spool.holds(segments)

    def recover(self) -> None:
        """Look for what dead processes left; for the sender alone."""
        if self._spool is not None:
            self._spool.recover()
            with self.lock:
                self.settled.notify_all()  # there may be nothing left after all

    def ack(self, items: Sequence[Item], rejected: Sequence[int] = ()) -> None:
        """Record that the collector answered for ``items``.

        Args:
            items: A batch in flight.
            rejected: Positions in it that the collector refused.
        """
        with self.lock:
            self.rejected += self._settle([items[index] for index in rejected])
            self.acked += self._settle(items)
            self.settled.notify_all()

    def give_up(self, items: Sequence[Item], reason: str) -> None:
        """Drop those of ``items`` that are in flight still."""
        with self.lock:
            self._drop(self._settle(items), reason)
            self.settled.notify_all()

    def _settle(self, items: Sequence[Item]) -> int:
        """Take items out of flight and return their weight.

        Nothing is left to take once the queue is closed: what was in flight is counted then.
        """
        if self.closed:
            return 0
        weight = 0
        for item in items:
            if item.is_settled:
                continue
            item.is_settled = True
            weight += item.weight
            segment = item.segment
            if segment is None or segment.left is None or self._spool is None:
                self._in_flight -= item.weight
                self._gone += item.weight
                continue
            segment.weight -= item.weight
            segment.left -= 1
            if not segment.left:
                self._spool.finish(segment)
        return weight

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
            self._drop(self._in_memory, reason)
            self._queue.clear()
            self._bytes = self._in_flight = 0
            if self._spool is not None:
                self._spool.close()
            self.changed.notify_all()
            self.settled.notify_all()
            return left

    def abandon(self) -> None:
        """Forget everything in a forked child: it is the parent's to send."""
        if self._spool is not None:
            self._spool.abandon()

    # -- signals -------------------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether this thread holds the lock, as a handler of signals may find it."""
        return self.lock._is_owned()  # type: ignore[attr-defined,no-any-return] # noqa: SLF001

    def mend(self) -> None:
        """Put the counts right after an exception that a handler of signals raised anywhere here.

        What was counted and is held nowhere was lost there; what is held and was not counted is.
        """
        with self.lock:
            self._bytes = sum(item.size for item in self._queue)
            stats = self.stats()
            known = stats.acked + stats.rejected + sum(stats.dropped.values()) + stats.pending
            self._drop(max(stats.captured - known, 0), "interrupted")
            self.captured = max(stats.captured, known)

    # -- counts --------------------------------------------------------------------------------

    def _drop(self, weight: int, reason: str) -> None:
        if weight:
            self.dropped[reason] = self.dropped.get(reason, 0) + weight

    @property
    def lost(self) -> int:
        """Records rejected or dropped so far."""
        return self.rejected + sum(self.dropped.values())

    def unreported(self) -> dict[str, int]:
        """Return the drops that no acknowledged batch has told the collector about."""
        with self.lock:
            drops = {r: count - self._reported.get(r, 0) for r, count in self.dropped.items()}
            return {reason: count for reason, count in drops.items() if count}

    def reported(self, drops: dict[str, int]) -> None:
        """Take ``drops`` off what the collector does not know about."""
        with self.lock:
            for reason, count in drops.items():
                self._reported[reason] = self._reported.get(reason, 0) + count

    @property
    def pending(self) -> int:
        """Records waiting in memory or on disk, in counters, or in flight."""
        with self.lock:
            spooled = self._spool.weight if self._spool is not None else 0
            return self._in_memory + self._aggregator.weight + spooled

    @property
    def _in_memory(self) -> int:
        return self._in_flight + sum(item.weight for item in self._queue)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to send, also of what dead processes left behind."""
        left = self._spool is not None and self._spool.has_left
        return not left and not self.pending

    def stats(self) -> Stats:
        """Return one consistent snapshot."""
        with self.lock:
            counted = self.captured, self.acked, self.rejected
            return Stats(*counted, dict(self.dropped), self.pending)


class Gate:
    """The way of captures into a queue: one at a time in each thread.

    Args:
        queue: Where they lead.
        start_sender: Called where nobody takes from the queue.

    Attributes:
        inside: Threads that are in a capture, and the sender's.
    """

    def __init__(self, queue: Queue, start_sender: Callable[[], object]) -> None:
        self.inside: set[int] = set()
        self._queue = queue
        self._start_sender = start_sender
        self._nested: list[int] = []

    def run(self, capture: Callable[..., Any], *arguments: Any) -> Any:
        """Run a capture; what it raises is counted, and None returned, as by ``guard``.

        A log handler, a finalizer or a signal handler of the host may capture at any line of
        ours; following it could recurse without end. Such a capture is counted, not made.
        """
        thread = threading.get_ident()
        if thread in self.inside:
            # Appending is atomic; the book may be half-way through a line of its own just now.
            self._nested.append(thread)
            return None
        try:
            self.inside.add(thread)
            try:
                return capture(*arguments)
            except Exception:  # noqa: BLE001 - calling `guard` would cost every failure more
                debug("capture failed")
                self._queue.discard("sdk_error")
                return None
        except BaseException:  # Ctrl-C, or whatever else a handler of signals raises
            self._queue.mend()
            raise
        finally:
            self.inside.discard(thread)  # first: a call before it could be interrupted
            if not self._queue.is_read and not self._queue.closed:
                self._start_sender()
            if self._nested:
                self.count_nested()

    def count_nested(self) -> None:
        """Count the captures that were asked for inside of others."""
        with self._queue.lock:
            nested, self._nested = self._nested, []
            if nested:
                self._queue.discard("reentrant", weight=len(nested))

    @property
    def is_held(self) -> bool:
        """Whether this thread is in the middle of a capture, as a handler of signals may find it.

        It may hold the lock then that the sender needs: waiting for the sender would be in vain.
        So it does in the middle of a flush.
        """
        return threading.get_ident() in self.inside or self._queue.is_held
