"""Events on disk, so that ``kill -9`` of the agent loses nothing that was captured.

A segment is a file of checksummed lines::

    crc32 SP number SP kind SP weight SP json LF

JSON escapes control characters, so a line feed ends a line and nothing else. The kind is ``E`` for
an event as it goes over the wire and ``F`` for a success that is folded into a counter. Every line
is written before ``capture`` returns; the page cache survives the process, so nothing is synced
(power loss is not promised). A segment is read whole, sent, and removed when all of it is settled.
What was sent by a process that died in between is sent again: event ids make that harmless.

Segments are named ``TOKEN-NUMBER.seg``. A process holds a lock on ``TOKEN.lock`` as long as it
lives. The kernel releases it however the process dies, so that another process that gets the lock
takes over the segments.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
import time
import zlib
from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from toolfault._uuid7 import text_of
from toolfault.telemetry._aggregator import CounterKey
from toolfault.telemetry._config import Limits

_SEGMENT = ".seg"
_LOCK = ".lock"
# Not waiting for a peer: a pipe in place of a file would hold the sender for ever.
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_AT_ONCE = 16  # dead processes taken over at a time: each costs a descriptor until it is settled
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_NAMES_OF_KEY = 7  # in the key of a counter, behind the minute
_LOOK_AGAIN = 1.0  # seconds until a full directory is looked at again, which takes a while


class SpoolUnusableError(OSError):
    """The directory cannot be trusted or written; the message says what to do."""


class Line(NamedTuple):
    """One intact line.

    Attributes:
        weight: Records it stands for.
        event: An event as it goes over the wire; None where the line is a step.
        step: Key of a counter, then the duration of a call, the fields repaired in it, its phantom
            arguments and whether it is a repeated execution; or the number of calls of a
            conversation that ended.
    """

    weight: int
    event: bytes | None
    step: list[Any]


class Segment:
    """One file and what is known of its records.

    Attributes:
        name: File name.
        token: Token of the process that wrote it.
        kind: Kind of its lines while this process writes it.
        size: Bytes written.
        lines: Lines written and not read back.
        weight: Records in it that are not settled.
        left: Items read back from it that are not settled; None until it is read.
        is_open: Whether lines are still appended to it.
    """

    def __init__(self, name: str, token: str, kind: str = "E", *, is_open: bool = False) -> None:
        self.name = name
        self.token = token
        self.kind = kind
        self.is_open = is_open
        self.size = self.lines = self.weight = 0
        self.left: int | None = None

    def counter_id(self, key: CounterKey) -> str:
        """Return the id of a counter made from the steps in the segment.

        It depends on its arguments alone: the process that counts the steps again after a crash
        gives the counter the same id, and the collector keeps one of the two.
        """
        digest = blake2b(repr((self.name, key)).encode(), digest_size=10).digest()
        return text_of(key[0] * 60.0, int.from_bytes(digest, "big"))


class Spool:
    """The segments of this process, and those of dead ones that it takes over.

    The queue's lock guards everything but ``recover``, ``next_left`` and ``read``, which only the
    sender thread calls.

    Args:
        root: The configured directory.
        name: Subdirectory, made from the address and the key so that events of one project are
            never sent to another.
        limits: Sizes.

    Raises:
        SpoolUnusableError: The directory belongs to someone else, is a link, or cannot be made.
    """

    def __init__(self, root: str, name: str, limits: Limits) -> None:
        self._folder = os.path.join(root, name)  # noqa: PTH118 - paths are texts here
        _make_private(root, self._folder)
        self._limits = limits
        self._token, self._lock = self._new_token()
        self._made = 0
        self._open: dict[str, tuple[Segment, int]] = {}  # by kind, each with its descriptor
        self._segments: list[Segment] = []
        self._full_until = 0.0
        self._is_closed = False
        self._candidates: deque[tuple[str, list[str]]] = (
            deque()
        )  # who may be dead, and what it left
        self._left: deque[Segment] = deque()  # segments of dead processes, not read yet
        self._taken: dict[str, int] = {}  # locks of dead processes, by token

    @property
    def weight(self) -> int:
        """Records on disk that are not settled, as far as they are known."""
        return sum(segment.weight for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Those that are not settled."""
        return tuple(self._segments)

    def holds(self, segments: Iterable[Segment]) -> bool:
        """Whether any of ``segments``, or anything of a dead process, is not settled."""
        asked = set(map(id, segments))
        return self.has_left or any(
            id(segment) in asked or segment.token != self._token for segment in self._segments
        )

    @property
    def waiting(self) -> int:
        """Lines that can be read now; steps of counters only once their segment has ended."""
        lines = sum(s.lines for s in self._segments if s.kind == "E" or not s.is_open)
        return lines + int(self.has_left)

    @property
    def steps(self) -> int:
        """Steps of counters in the segment that they are written to."""
        return self._open["F"][0].lines if "F" in self._open else 0

    @property
    def has_left(self) -> bool:
        """Whether segments of dead processes wait to be read, or may."""
        return bool(self._left or self._candidates)

    # -- writing -------------------------------------------------------------------------------

    def append(self, kind: str, payload: bytes, weight: int = 1) -> tuple[bool, int]:
        """Write a line; where the spool is full its oldest segment makes room.

        Args:
            kind: ``E`` or ``F``.
            payload: JSON without a line feed: an event, or a step (see ``Line``).
            weight: Records it stands for.

        Returns:
            Whether it lies on disk now, and how many older records were given up for it.
        """
        given_up = 0
        try:
            if kind not in self._open:
                given_up = self._make_room()
                self._begin(kind)
            self._write(kind, payload, weight)
        except OSError:
            return False, given_up
        return True, given_up

    def _write(self, kind: str, payload: bytes, weight: int) -> None:
        segment, descriptor = self._open[kind]
        body = b"%d %s %d %s" % (segment.lines, kind.encode(), weight, payload)
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        segment.lines += 1  # first: Ctrl-C after the writing must not give its number away again
        try:
            written = os.write(descriptor, line)
        except OSError:
            written = 0
        if written != len(line):
            segment.lines -= 1
            os.ftruncate(descriptor, segment.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        segment.size += written
        segment.weight += weight
        if segment.size >= self._limits.segment_bytes:
            self.seal(kind)

    def _begin(self, kind: str) -> None:
        name = f"{self._token}-{self._made:08d}{_SEGMENT}"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _FLAGS
        descriptor = os.open(self._path(name), flags, 0o600)
        self._made += 1
        segment = Segment(name, self._token, kind, is_open=True)
        self._open[kind] = segment, descriptor
        self._segments.append(segment)

    def _make_room(self) -> int:
        """Remove own segments until another fits in; return how many records they held.

        Raises:
            OSError: Other processes have filled the directory.
        """
        given_up = 0
        while True:
            if time.monotonic() >= self._full_until:
                names = [name for name in self._names() if name.endswith(_SEGMENT)]
                room = self._limits.spool_bytes - sum(map(self._size, names))
                if room >= self._limits.segment_bytes:
                    return given_up
                self._full_until = time.monotonic() + _LOOK_AGAIN
            oldest = next((s for s in self._segments if s.left is None and not s.is_open), None)
            if oldest is None:
                raise OSError(errno.EDQUOT, "spool is full")
            given_up += oldest.weight
            self._remove(oldest)

    def seal(self, kind: str) -> None:
        """End the segment of ``kind`` that is being written, if there is one."""
        if kind in self._open:
            segment, descriptor = self._open.pop(kind)
            segment.is_open = False
            with contextlib.suppress(OSError):  # some file systems tell of a full disk only here
                os.close(descriptor)

    # -- reading back --------------------------------------------------------------------------

    def next_own(self) -> Segment | None:
        """Return the oldest segment of this process that was not read, or None."""
        found = next((s for s in self._segments if s.left is None and not s.is_open), None)
        if found is None and "E" in self._open:
            found = self._open["E"][0]
            self.seal("E")
        if found is not None:
            found.left = 0
        return found

    def next_left(self) -> Segment | None:
        """Return a segment of a dead process, or None."""
        self._take_over()
        return self._left[0] if self._left else None

    def follow(self, segment: Segment) -> None:
        """Keep a segment that was read until it is settled."""
        if segment.token != self._token:
            self._left.popleft()
            self._segments.append(segment)
        segment.lines = 0

    def put_back(self, segment: Segment) -> None:
        """Count a segment as not read: it could not be, just now."""
        segment.left = None

    def read(self, segment: Segment) -> tuple[list[Line], int]:
        """Return the intact lines of a segment, each once, and how many were lost.

        A file that cannot be read, now or ever, has no lines and has lost none.

        Raises:
            OSError: The process has no descriptor or memory left just now.
        """
        try:
            descriptor = os.open(self._path(segment.name), os.O_RDONLY | _FLAGS)
            with open(descriptor, "rb") as file:  # noqa: PTH123
                return _parse(file.read(self._limits.largest_segment))
        except OSError as error:
            if error.errno in _TRANSIENT:
                raise
            return [], 0

    def finish(self, segment: Segment) -> None:
        """Remove a segment all of which is settled."""
        self._remove(segment)
        self._release(segment.token)

    def _remove(self, segment: Segment) -> None:
        self._segments.remove(segment)
        self._full_until = 0.0
        with contextlib.suppress(OSError):
            os.unlink(self._path(segment.name))  # noqa: PTH108

    # -- dead processes ------------------------------------------------------------------------

    def recover(self) -> None:
        """Look for processes that may be dead, and take over what one of them left."""
        if not self._candidates:
            found: dict[str, list[str]] = {}
            for name in sorted(self._names()):
                token, _, rest = name.partition("-")
                names = found.setdefault(token.partition(".")[0], [])
                if rest:
                    names.append(name)
            known = {self._token, *self._taken}
            self._candidates.extend(pair for pair in found.items() if pair[0] not in known)
        self._take_over()

    def _take_over(self) -> None:
        """Find segments of a dead process, unless those of enough wait to be settled."""
        while (
            not self._is_closed
            and self._candidates
            and not self._left
            and len(self._taken) < _AT_ONCE
        ):
            token, names = self._candidates[0]
            lock = self._acquire(token)
            if lock is not None:
                self._taken[token] = lock
                self._left.extend(Segment(name, token) for name in names)
                self._release(token)  # where there is nothing of it but its lock
            self._candidates.popleft()  # at last: until then there may be something left
        if self._is_closed:  # by another thread, meanwhile
            self._let_go()

    def _release(self, token: str) -> None:
        """Give up the lock of a dead process all of whose segments are settled."""
        if token in self._taken and not self._is_used(token):
            self._unlock(token, self._taken.pop(token))

    def _is_used(self, token: str) -> bool:
        # Copies: the sender adds to what is left, captures to the segments, while this looks.
        return any(s.token == token for s in [*list(self._segments), *list(self._left)])

    def _new_token(self) -> tuple[str, int]:
        token = os.urandom(8).hex()
        lock = self._acquire(token)
        if lock is None:
            raise SpoolUnusableError(_unusable(self._folder, "no file can be locked in it"))
        return token, lock

    def _acquire(self, token: str) -> int | None:
        """Return the descriptor of the locked token, or None where its owner is alive.

        The file is looked at again once the lock is held: another process may have taken over,
        cleaned up and removed it between opening and locking.
        """
        path = self._path(token + _LOCK)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return None

    def _unlock(self, token: str, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(token + _LOCK))  # noqa: PTH108
        with contextlib.suppress(OSError):
            os.close(descriptor)

    # -- letting go ----------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the files; what is not settled stays for the next process."""
        self.seal("E")
        self.seal("F")
        self._is_closed = True
        self._let_go()
        self._leave(self._token, self._lock)

    def _let_go(self) -> None:
        for token in list(self._taken):
            descriptor = self._taken.pop(token, None)  # the other thread may have been faster
            if descriptor is not None:
                self._leave(token, descriptor)

    def _leave(self, token: str, descriptor: int) -> None:
        if self._is_used(token):
            os.close(descriptor)
        else:
            self._unlock(token, descriptor)

    def abandon(self) -> None:
        """Close what a fork has copied, without a trace on disk: the parent goes on with it."""
        written = [descriptor for _, descriptor in self._open.values()]
        for descriptor in [*self._taken.values(), *written, self._lock]:
            os.close(descriptor)

    # -- files ---------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._folder) as found:
                return [entry.name for entry in found if entry.name.endswith((_SEGMENT, _LOCK))]
        except OSError:
            return []

    def _size(self, name: str) -> int:
        try:
            return os.lstat(self._path(name)).st_size
        except OSError:
            return 0

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)  # noqa: PTH118


def _make_private(root: str, folder: str) -> None:
    """Make ``folder`` below ``root``, readable by this user alone."""
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)  # noqa: PTH103
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
        found = os.lstat(folder)
        ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if ours and stat.S_IMODE(found.st_mode) != 0o700:
            os.chmod(folder, 0o700)  # noqa: PTH101
    except OSError as error:
        raise SpoolUnusableError(_unusable(root, error.strerror)) from error
    if not ours:
        raise SpoolUnusableError(
            f"spool_dir {root} holds something that is not ours: use an empty directory"
        )


def _unusable(root: str, why: str | None) -> str:
    return f"spool_dir {root} cannot be used ({why}): events wait in memory only"


def _parse(data: bytes) -> tuple[list[Line], int]:
    """Return the intact lines in the order they were written, each once, and how many were lost.

    Lines are numbered from 0, so the loss is exact but for a damaged end, which counts as one.
    """
    found: dict[int, Line] = {}
    is_intact = True
    for text in filter(None, data.split(b"\n")):
        entry = _line(text)
        is_intact = entry is not None
        if entry is not None:
            found.setdefault(*entry)
    missing = max(found, default=-1) + 1 - len(found)
    return [found[number] for number in sorted(found)], missing + (not is_intact)


def _line(text: bytes) -> tuple[int, Line] | None:
    """Return a line with its number, or None where it is damaged."""
    checksum, _, body = text.partition(b" ")
    try:
        if len(checksum) != 8 or int(checksum, 16) != zlib.crc32(body):
            return None
        number, kind, weight, payload = body.split(b" ", 3)
        value = json.loads(payload)
        if kind == b"E" and isinstance(value["event_id"], str):
            return int(number), Line(max(int(weight), 1), payload, [])
        if kind == b"F" and _is_step(*value):
            return int(number), Line(1, None, value)
    except (ValueError, TypeError, LookupError, RecursionError):
        pass  # files are not trusted
    return None


def _is_step(key: list[Any], counted: float, *of_call: Any) -> bool:
    minute, *names = key
    return (
        type(minute) is int
        and len(names) == _NAMES_OF_KEY
        and all(name is None or type(name) is str for name in names)
        and type(counted) in (int, float)
        and (not of_call or _are_of_call(*of_call))
    )


def _are_of_call(repaired: object, phantoms: object, repeated: object) -> bool:
    return _are_names(repaired) and _are_names(phantoms) and type(repeated) is int


def _are_names(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(type(name) is str for name in value)
