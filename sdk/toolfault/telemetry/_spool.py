"""Events on disk, so that ``kill -9`` of the agent loses nothing that was captured.

Every captured event is appended to a segment before ``capture`` returns; the page cache survives
the process, so nothing is synced (power loss is not promised). A segment is removed when all its
records are settled. After a crash the next process sends what it finds again: event ids make that
harmless.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections import deque
from itertools import islice
from typing import NamedTuple

from toolfault.telemetry._limits import Limits
from toolfault.telemetry._spool_dir import SpoolDir
from toolfault.telemetry._spool_file import Entry, frame, parse

__all__ = ["Found", "Segment", "Spool", "Stretch"]

_AT_ONCE = 16  # dead processes taken over at a time: each costs a descriptor until it is settled
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_LOOK_AGAIN = 1.0  # seconds until a full directory is looked at again, which takes a while


class Segment:
    """One file and what is known of its records.

    Attributes:
        name: File name.
        token: Token of the process that wrote it.
        size: Bytes written.
        records: Records written.
        read: Bytes already read back.
        unread: Events written and not read back.
        sealed: Nothing will be appended.
        unsettled: Records its events stand for that are not settled.
        out: Events read back and not settled, and one while it is being read.
    """

    __slots__ = ("name", "out", "read", "records", "sealed", "size", "token", "unread", "unsettled")

    def __init__(self, name: str, token: str, *, size: int = 0, sealed: bool = False) -> None:
        self.name = name
        self.token = token
        self.size = size
        self.records = 0
        self.read = 0
        self.unread = 0
        self.sealed = sealed
        self.unsettled = 0
        self.out = 0

    @property
    def is_finished(self) -> bool:
        """Whether everything in it was read back and settled."""
        return self.read >= self.size and not self.out


class Stretch(NamedTuple):
    """Bytes of a segment to be read back, and how many events were written there."""

    segment: Segment
    start: int
    end: int
    events: int


class Found(NamedTuple):
    """What a segment of a dead process held.

    Attributes:
        segment: The segment.
        entries: Its intact records.
        lost: How many more it must have held.
    """

    segment: Segment
    entries: list[Entry]
    lost: int


class Spool:
    """The segments of this process and of dead ones.

    The outbox's lock guards everything but ``load``, ``found_next`` and ``adopt``, which only the
    sender thread calls.

    Args:
        directory: Where segments lie.
        limits: Sizes.
    """

    def __init__(self, directory: SpoolDir, limits: Limits) -> None:
        self._directory = directory
        self._limits = limits
        self._token, self._lock = directory.own()
        self._made = 0
        self._current: Segment | None = None
        self._descriptor = -1
        self._segments: deque[Segment] = deque()
        self._full_until = 0.0
        self._is_closed = False
        self._tokens: deque[str] = deque()  # of processes that may be dead
        self._left: deque[tuple[str, str]] = deque()  # what the dead ones left: token and name
        self._adopted: dict[str, int] = {}

    @property
    def unsettled(self) -> int:
        """Records on disk that are not settled, as far as they are known."""
        return sum(segment.unsettled for segment in self._segments)

    @property
    def unread(self) -> int:
        """Events of this process that were not read back yet."""
        return sum(segment.unread for segment in self._segments)

    @property
    def has_left(self) -> bool:
        """Whether segments of dead processes wait to be read, or may."""
        return bool(self._left or self._tokens)

    @property
    def is_full(self) -> bool:
        """Whether the current segment has reached its size."""
        current = self._current
        return current is not None and current.size >= self._limits.segment_bytes

    # -- writing -------------------------------------------------------------------------------

    def append(self, kind: str, payload: bytes, *, weight: int) -> None:
        """Write one record.

        Args:
            kind: ``E`` or ``F``.
            payload: ASCII JSON.
            weight: Records it stands for.

        Raises:
            OSError: The disk or the spool is full, or gone; nothing was written.
        """
        segment = self._writable()
        data = frame(segment.records, kind, payload)
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            os.ftruncate(self._descriptor, segment.size)
            raise
        if written != len(data):
            os.ftruncate(self._descriptor, segment.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        segment.size += written
        segment.records += 1
        segment.unsettled += weight
        segment.unread += kind == "E"

    def _writable(self) -> Segment:
        if self._current is None:
            now = time.monotonic()
            if now >= self._full_until:
                room = self._limits.spool_bytes - self._directory.total()
                self._full_until = now + _LOOK_AGAIN if room < self._limits.segment_bytes else 0.0
            if self._full_until:
                raise OSError(errno.EDQUOT, "spool is full")
            name, self._descriptor = self._directory.create(self._token, self._made)
            self._made += 1
            self._current = Segment(name, self._token)
            self._segments.append(self._current)
        return self._current

    def seal(self) -> str:
        """End the segment being written and return its name, ``""`` if there is none."""
        segment, self._current = self._current, None
        if segment is None:
            return ""
        segment.sealed = True
        descriptor, self._descriptor = self._descriptor, -1
        with contextlib.suppress(OSError):  # some file systems tell of a full disk only here
            os.close(descriptor)
        return segment.name

    def make_room(self) -> int | None:
        """Give up the oldest segment that is not being sent; None when there is none.

        Returns:
            How many records it held.
        """
        for segment in self._segments:
            if segment.sealed and not segment.out:
                self._remove(segment)
                return segment.unsettled
        return None

    def tidy(self, *, keep_current: bool) -> int:
        """Remove finished segments and return how many of their records could not be read back.

        Args:
            keep_current: The current segment holds steps of counters not yet made into events.
        """
        unreadable = 0
        for segment in list(self._segments):
            if not segment.is_finished:
                continue
            if segment is self._current:
                if keep_current:
                    continue
                self.seal()
            unreadable += segment.unsettled
            self._remove(segment)
        return unreadable

    def _remove(self, segment: Segment) -> None:
        self._segments.remove(segment)
        self._directory.remove(segment.name)
        self._full_until = 0.0
        self._release(segment.token)

    # -- reading back --------------------------------------------------------------------------

    def next_stretch(self) -> Stretch | None:
        """Return the oldest bytes that were not read back, and count them as read."""
        for segment in self._segments:
            if segment.read < segment.size:
                stretch = Stretch(segment, segment.read, segment.size, segment.unread)
                segment.read = segment.size
                segment.unread = 0
                segment.out += 1
                return stretch
        return None

    def put_back(self, stretch: Stretch) -> None:
        """Count bytes as not read: they could not be, just now."""
        segment = stretch.segment
        segment.read = stretch.start
        segment.unread += stretch.events
        segment.out -= 1

    def load(self, stretch: Stretch) -> list[Entry]:
        """Return the intact events of a stretch.

        Raises:
            OSError: The process has no descriptor or memory left just now.
        """
        data = self._read(stretch.segment.name, stretch.start, stretch.end)
        return [entry for entry in parse(data)[0] if entry.kind == "E"]

    def _read(self, name: str, start: int, end: int) -> bytes:
        """Return bytes of a segment; none where it cannot be read, now or ever."""
        try:
            return self._directory.read(name, start, end)
        except OSError as error:
            if error.errno in _TRANSIENT:
                raise
            return b""

    def found_next(self) -> Found | None:
        """Read one segment of a dead process; it counts as left until it is followed.

        Raises:
            OSError: The process has no descriptor or memory left just now.
        """
        self._take_over()
        if not self._left:
            return None
        token, name = self._left[0]
        size = self._directory.size(name)
        segment = Segment(name, token, size=size, sealed=True)
        segment.read = size
        data = self._read(name, 0, min(size, self._limits.largest_segment))
        entries, lost = parse(data)
        return Found(segment, entries, lost)

    def follow(self, segment: Segment) -> None:
        """Keep the segment that was found until it is settled."""
        self._left.popleft()
        self._segments.append(segment)

    def adopt(self) -> None:
        """Look for processes that are dead and take over the segments of some."""
        if not self._tokens:
            known = {self._token, *self._adopted}
            self._tokens.extend(t for t in self._directory.tokens() if t not in known)
        self._take_over()

    def _take_over(self) -> None:
        """Find segments of more dead processes, unless enough of them wait to be settled."""
        while (
            not self._is_closed
            and self._tokens
            and not self._left
            and len(self._adopted) < _AT_ONCE
        ):
            tokens = list(islice(self._tokens, _AT_ONCE))
            locked = [token for token in tokens if self._adopt_token(token)]
            found = self._directory.segments(locked) if locked else []
            self._left.extend(found)
            for token in locked:
                self._release(token)  # where there is nothing of it but its lock
            for _ in tokens:  # at last, so that there is always something left until there is not
                self._tokens.popleft()
        if self._is_closed:  # by another thread, meanwhile
            self._let_go()

    def _adopt_token(self, token: str) -> bool:
        """Take over a token; False where its owner is alive."""
        descriptor = self._directory.lock(token)
        if descriptor is not None:
            self._adopted[token] = descriptor
        return descriptor is not None

    # -- letting go ----------------------------------------------------------------------------

    def _release(self, token: str) -> None:
        if token not in self._adopted or self._is_used(token):
            return
        descriptor = self._adopted.pop(token, None)  # the other thread may have been faster
        if descriptor is not None:
            self._directory.unlock(token, descriptor)

    def _is_used(self, token: str) -> bool:
        # Copies: the sender adds to what is left, captures to the segments, while this looks.
        held = [segment.token for segment in list(self._segments)]
        return token in held or token in [left for left, _ in list(self._left)]

    def close(self) -> None:
        """Let go of the files; what is not settled stays for the next process."""
        self.seal()
        self._is_closed = True
        self._let_go()
        self._leave(self._token, self._lock)

    def _let_go(self) -> None:
        """Leave what was taken over; whoever takes a descriptor out of the dict closes it."""
        for token in list(self._adopted):
            descriptor = self._adopted.pop(token, None)
            if descriptor is not None:
                self._leave(token, descriptor)

    def _leave(self, token: str, descriptor: int) -> None:
        if self._is_used(token):
            os.close(descriptor)
        else:
            self._directory.unlock(token, descriptor)

    def abandon(self) -> None:
        """Close what a fork has copied, without a trace on disk: the parent goes on with it."""
        for descriptor in [*self._adopted.values(), self._lock, self._descriptor]:
            if descriptor >= 0:
                os.close(descriptor)
