"""The queue in front of the writer: bounded in events and bytes, and fair between projects.

Projects take turns, and none may fill more than half of the queue, so a project that sends twenty
times as much as the others waits longer itself and no one else does.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Final, Generic, TypeVar

from toolfault_collector.errors import WriterBusy

__all__ = ["FairQueue"]

# Of the queue for one project; the other half is always open to the others.
SHARE: Final = 0.5
# How long a group waits for the items that are expected: less than the commit that it saves (the
# idea of PostgreSQL's commit_delay and commit_siblings).
GATHER_SECONDS: Final = 0.005

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items of projects, each with its events and bytes.

    Args:
        max_events: Events waiting at a time. One item is always let in, whatever its size.
        max_bytes: Bytes waiting at a time.
        gather_seconds: How long `take` waits for items that are expected.
    """

    def __init__(
        self, *, max_events: int, max_bytes: int, gather_seconds: float = GATHER_SECONDS
    ) -> None:
        self._gather_seconds = gather_seconds
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._waiting: dict[int, deque[tuple[Item, int, int]]] = {}
        self._held: dict[int, tuple[int, int]] = {}
        self._events = 0
        self._bytes = 0
        self._taken = 0
        self._items = 0
        self._enough = (1, 1)
        self._closed = True

    @property
    def events(self) -> int:
        """Events that were let in and not yet released."""
        return self._events

    @property
    def waiting(self) -> int:
        """Events that nobody has taken yet."""
        return self._events - self._taken

    @property
    def items(self) -> int:
        """Items that nobody has taken yet."""
        return self._items

    def open(self) -> None:
        """Let items in from now on."""
        with self._changed:
            self._closed = False

    def close(self) -> None:
        """Let nothing in any more; what is there can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def is_full(self, project_id: int) -> bool:
        """Say whether nothing more of the project would be let in, however small it is."""
        events, size = self._held.get(project_id, (0, 0))
        return self._events > 0 and (
            self._events >= self._max_events
            or self._bytes >= self._max_bytes
            or events >= SHARE * self._max_events
            or size >= SHARE * self._max_bytes
        )

    def put(
        self, item: Item, *, project_id: int, events: int, size: int, wake: bool = True
    ) -> None:
        """Add *item* of so many events and bytes.

        Args:
            item: What to queue.
            project_id: Whose turn it takes.
            events: Counted against the bound of events.
            size: Counted against the bound of bytes.
            wake: Wake who waits in `take`; otherwise `wake` must be called soon.

        Raises:
            WriterBusy: The queue, or the share of the project, is full, or it is closed.
        """
        events = max(events, 1)  # nothing is so small that the queue could hold any number of it
        with self._changed:
            if self._closed:
                message = "the collector is stopping"
                raise WriterBusy(message)
            own_events, own_bytes = self._held.get(project_id, (0, 0))
            own_events, own_bytes = own_events + events, own_bytes + size
            if self._events and (
                self._events + events > self._max_events
                or self._bytes + size > self._max_bytes
                or own_events > max(SHARE * self._max_events, events)
                or own_bytes > max(SHARE * self._max_bytes, size)
            ):
                message = "the write queue is full"
                raise WriterBusy(message)
            self._held[project_id] = own_events, own_bytes
            self._events += events
            self._bytes += size
            self._waiting.setdefault(project_id, deque()).append((item, events, size))
            self._items += 1
        if wake:
            self.wake()

    def wake(self) -> None:
        """Wake who waits in `take`, if there is enough for it."""
        with self._changed:
            if self._has_enough():
                self._changed.notify()

    @property
    def closed(self) -> bool:
        """Whether nothing is let in any more."""
        return self._closed

    def take(
        self,
        max_events: int,
        *,
        expected: int = 1,
        patience: float | None = None,
    ) -> list[tuple[int, Item, int, int]]:
        """Wait for items and return some, projects in turn, up to about *max_events*.

        Each is (project, item, events, bytes); `release` them when they are done, or `put_back`
        those that are not. Empty means that the queue is closed and nothing is left, or that
        *patience* is over.

        Args:
            max_events: Of one group.
            expected: So many items are likely to be there in a moment: once there is one, the
                others are waited for, but not for long.
            patience: Seconds to wait; None is for as long as it takes.
        """
        taken: list[tuple[int, Item, int, int]] = []
        events = 0
        with self._changed:
            while not self._closed:
                if self._waiting:
                    self._gather(expected, max_events)
                if self._waiting:  # and not taken by another one meanwhile
                    break
                # It may have been closed while it gathered.
                if not self._closed and not self._changed.wait(patience):
                    break
            while self._waiting and events < max_events:
                project_id = next(iter(self._waiting))
                items = self._waiting.pop(project_id)
                item, count, size = items.popleft()
                if items:
                    self._waiting[project_id] = items  # at the end: the others come first
                taken.append((project_id, item, count, size))
                events += count
            self._taken += events
            self._items -= len(taken)
            if self._waiting:
                self._changed.notify()
        return taken

    def _gather(self, items: int, events: int) -> None:
        """Wait a moment for so many *items* or *events*; `wake` wakes nobody before that."""
        self._enough = (items, events)
        self._changed.wait_for(self._has_enough, self._gather_seconds)
        self._enough = (1, 1)

    def _has_enough(self) -> bool:
        items, events = self._enough
        return self._items >= items or self.waiting >= events or self._closed

    def put_back(self, taken: list[tuple[int, Item, int, int]]) -> None:
        """Queue *taken* again, ahead of what else waits of their projects."""
        with self._changed:
            for project_id, item, events, size in reversed(taken):
                self._waiting.setdefault(project_id, deque()).appendleft((item, events, size))
                self._taken -= events
                self._items += 1

    def release(self, taken: list[tuple[int, Item, int, int]]) -> None:
        """Make room for as much as *taken*."""
        with self._changed:
            for project_id, _, events, size in taken:
                own_events, own_bytes = self._held[project_id]
                if own_events == events and own_bytes == size:
                    del self._held[project_id]
                else:
                    self._held[project_id] = own_events - events, own_bytes - size
                self._events -= events
                self._taken -= events
                self._bytes -= size
