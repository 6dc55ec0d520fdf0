"""The spool as the outbox sees it: events kept on disk, read back, and settled."""

from __future__ import annotations

import contextlib
import errno
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from toolfault.telemetry._book import Book
from toolfault.telemetry._fold import Folder, RowKey
from toolfault.telemetry._outbox import Item
from toolfault.telemetry._spool import Found, Segment, Spool

__all__ = ["Shelf"]


class Shelf:
    """Keeps items in a spool; the outbox's lock guards all but ``take``.

    Args:
        spool: The files.
        describe: Makes the common members of a counter's event from its key and the name of the
            segment its steps lie in.
        encode: Makes the ASCII body of an event.
    """

    def __init__(
        self,
        spool: Spool,
        *,
        describe: Callable[[RowKey, str], dict[str, Any]],
        encode: Callable[[dict[str, Any]], bytes],
    ) -> None:
        self._spool = spool
        self._encode = encode
        self._describe = describe
        self._ready: deque[Item] = deque()

    @property
    def waiting(self) -> int:
        """Events that can be taken, as far as they are known."""
        return self._spool.unread + len(self._ready) + int(self._spool.has_left)

    @property
    def has_left(self) -> bool:
        """Whether segments of dead processes were found and not read yet."""
        return self._spool.has_left

    @property
    def unsettled(self) -> int:
        """Records on disk that are not settled."""
        return self._spool.unsettled

    def encode(self, item: Item) -> None:
        """Make the body of an item, as it will lie on disk and go over the wire."""
        item.body = self._encode(item.event)
        item.size = len(item.body)
        item.event = {}

    def keep(self, item: Item) -> tuple[bool, int]:
        """Write an encoded item to disk.

        When the spool has reached its size the oldest segment makes room; when the disk itself is
        full nothing is given up for it, and the item waits in memory.

        Returns:
            Whether it lies on disk now, and how many older records were given up for it.
        """
        given_up = 0
        problem = self._write(item)
        while problem == errno.EDQUOT:
            room = self._spool.make_room()
            if room is None:
                break
            given_up += room
            problem = self._write(item)
        return problem == 0, given_up

    def _write(self, item: Item) -> int:
        """Append an item; return 0 or the number of the error."""
        assert item.body is not None
        try:
            self._spool.append("E", item.body, weight=item.weight)
        except OSError as error:
            return error.errno or errno.EIO
        return 0

    def journal(
        self, key: RowKey, duration_ms: float | None, repaired: Sequence[str], calls: int
    ) -> None:
        """Write a step of a folded counter; where it cannot be written it is in memory still.

        Args:
            key: Row of the counter.
            duration_ms: Length of the call; None where a conversation ended.
            repaired: Fields that a coercer fixed.
            calls: Calls of the conversation that ended.
        """
        step = json.dumps([key, duration_ms, list(repaired), calls], separators=(",", ":"))
        with contextlib.suppress(OSError):
            self._spool.append("F", step.encode("ascii"), weight=0)

    @property
    def is_full(self) -> bool:
        """Whether the segment being written has reached its size."""
        return self._spool.is_full

    def seal(self) -> str:
        """End the segment being written and return its name."""
        return self._spool.seal()

    def tidy(self, *, keep_current: bool) -> int:
        """Remove finished segments and return how many records turned out to be unreadable."""
        return self._spool.tidy(keep_current=keep_current)

    def take(self, count: int, lock: threading.RLock, book: Book) -> list[Item]:
        """Read back up to ``count`` events; for the sender thread alone.

        Files are read without the lock, so that no capture waits for a disk.

        Raises:
            OSError: There are some, but none can be read just now.
        """
        try:
            while len(self._ready) < count and self._read_more(lock, book):
                pass
        except OSError:
            if not self._ready:
                raise
        with lock:
            return [self._ready.popleft() for _ in range(min(count, len(self._ready)))]

    def _read_more(self, lock: threading.RLock, book: Book) -> bool:
        """Read one more stretch of a file; False when there is none."""
        with lock:
            stretch = self._spool.next_stretch()
        if stretch is not None:
            segment = stretch.segment
            try:
                entries = self._spool.load(stretch)
            except OSError:
                with lock:
                    self._spool.put_back(stretch)
                raise
            items = [_item(entry.payload, segment) for entry in entries]
            with lock:
                segment.out -= 1
                self._hold(segment, [item for item in items if item is not None])
            return True
        found = self._spool.found_next()
        if found is None:
            return False
        with lock:
            self._take_over(found, book)
        return True

    def _take_over(self, found: Found, book: Book) -> None:
        """Count what a dead process left as captured by this one."""
        items = [_item(e.payload, found.segment) for e in found.entries if e.kind == "E"]
        steps = [e.payload for e in found.entries if e.kind == "F"]
        lost = found.lost + sum(item is None for item in items)
        kept = [item for item in items if item is not None]
        kept += self._refold(steps, found.segment)
        weight = sum(item.weight for item in kept)
        found.segment.unsettled = weight
        book.captured += weight + lost
        book.drop(lost, "spool_corrupt")
        self._spool.follow(found.segment)
        self._hold(found.segment, kept)

    def _hold(self, segment: Segment, items: list[Item]) -> None:
        segment.out += len(items)
        self._ready.extend(items)

    def _refold(self, steps: list[bytes], segment: Segment) -> list[Item]:
        """Make counters of the steps a dead process had not made into events.

        The ids are made from the segment's name, so that counters it had made and sent before it
        died are recognised as the same.
        """
        folder = Folder()
        for step in steps:
            _step_again(folder, step)
        items = []
        for event, weight in folder.drain(lambda key: self._describe(key, segment.name)):
            item = Item(event, size=0, weight=weight)
            item.segment = segment
            items.append(item)
        return items

    def land(self, items: Sequence[Item]) -> None:
        """Take items that were read back out of flight."""
        for item in items:
            segment = item.segment
            if segment is not None:
                segment.out -= 1
                segment.unsettled -= item.weight

    def close(self) -> None:
        """Leave what is not settled to the next process."""
        self._spool.close()

    def abandon(self) -> None:
        """Let go of the files in a forked child."""
        self._spool.abandon()

    def adopt(self) -> None:
        """Look for what dead processes left."""
        self._spool.adopt()


def _item(payload: bytes, segment: Segment) -> Item | None:
    """Return an event read back from disk, or None if it is none: files are not trusted."""
    try:
        event = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event_id"), str):
        return None
    weight = 1
    if event.get("type") == "tool_call_counts":
        calls = event.get("calls", 0)
        weight = (calls if type(calls) is int and calls > 0 else 0) + (
            1 if event.get("conversations") else 0
        )
    item = Item({}, size=0, weight=max(weight, 1))
    item.body = payload
    item.segment = segment
    return item


def _step_again(folder: Folder, step: bytes) -> None:
    """Fold a step read back from disk; one that is none is passed over."""
    try:
        key, duration_ms, repaired, calls = json.loads(step)
        minute, *names = key
        if type(minute) is not int or len(names) != 6 or not all(_is_name(n) for n in names):
            return
        row_key: RowKey = (minute, *names)
        if duration_ms is None:
            folder.end_conversation(row_key, int(calls))
        else:
            folder.row(row_key).add_call(float(duration_ms), [str(field) for field in repaired])
    except (ValueError, TypeError, OverflowError):
        return


def _is_name(value: object) -> bool:
    return value is None or type(value) is str
