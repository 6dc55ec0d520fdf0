"""The directory in which spool segments lie, and who owns which of them.

Segments are named ``TOKEN-NUMBER.seg``; a process takes a token by locking ``TOKEN.lock`` and
holds the lock as long as it lives. The kernel lets go of it however the process dies, so another
process that gets the lock may take over the segments.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Collection

__all__ = ["SpoolDir", "SpoolUnusableError"]

_SEGMENT = ".seg"
_LOCK = ".lock"
# Not waiting for a peer: a pipe in place of a file would hold the sender for ever.
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class SpoolUnusableError(OSError):
    """The directory cannot be trusted or written; the message says what to do."""


class SpoolDir:
    """One private directory below the configured one, for one collector and key.

    Args:
        root: The configured directory.
        name: Subdirectory, made from the address and key so that events of one project are never
            sent to another.

    Raises:
        SpoolUnusableError: The directory belongs to someone else, is a link, or cannot be made.
    """

    def __init__(self, root: str, name: str) -> None:
        self.path = os.path.join(root, name)  # noqa: PTH118 - no pathlib, see _release
        try:
            os.makedirs(root, mode=0o700, exist_ok=True)  # noqa: PTH103
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.path, 0o700)  # noqa: PTH102
            found = os.lstat(self.path)
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if ours and stat.S_IMODE(found.st_mode) != 0o700:
                os.chmod(self.path, 0o700)  # noqa: PTH101
        except OSError as error:
            raise SpoolUnusableError(
                f"spool_dir {root} cannot be used ({error.strerror}): events wait in memory only"
            ) from error
        if not ours:
            raise SpoolUnusableError(
                f"spool_dir {root} holds something that is not ours: use an empty directory"
            )

    def own(self) -> tuple[str, int]:
        """Take a new token and return it with the descriptor that holds its lock."""
        while True:
            token = os.urandom(8).hex()
            lock = self.lock(token)
            if lock is not None:
                return token, lock

    def lock(self, token: str) -> int | None:
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
            held, present = os.fstat(descriptor), os.lstat(path)
            if (held.st_dev, held.st_ino) == (present.st_dev, present.st_ino):
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return None

    def unlock(self, token: str, descriptor: int) -> None:
        """Give up a token whose segments are all settled."""
        with contextlib.suppress(OSError):
            os.unlink(self._path(token + _LOCK))  # noqa: PTH108
        with contextlib.suppress(OSError):
            os.close(descriptor)

    def tokens(self) -> list[str]:
        """Return the tokens that anything in the directory belongs to."""
        names = self._names()
        return sorted({name.split("-")[0].split(".")[0] for name in names})

    def segments(self, tokens: Collection[str]) -> list[tuple[str, str]]:
        """Return the segments of ``tokens``, each with its token before it, oldest first."""
        names = sorted(name for name in self._names() if name.endswith(_SEGMENT))
        pairs = [(name.split("-")[0], name) for name in names]
        return [(token, name) for token, name in pairs if token in tokens]

    def create(self, token: str, number: int) -> tuple[str, int]:
        """Make a segment and return its name and descriptor.

        Raises:
            OSError: It cannot be made.
        """
        name = f"{token}-{number:08d}{_SEGMENT}"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _FLAGS
        return name, os.open(self._path(name), flags, 0o600)

    def read(self, name: str, start: int, end: int) -> bytes:
        """Return bytes ``start`` to ``end`` of a segment; fewer where it is shorter.

        Raises:
            OSError: It cannot be read.
        """
        descriptor = os.open(self._path(name), os.O_RDONLY | _FLAGS)
        try:
            parts: list[bytes] = []
            while start < end:
                part = os.pread(descriptor, min(end - start, 1 << 20), start)
                if not part:
                    break
                parts.append(part)
                start += len(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def size(self, name: str) -> int:
        """Return the size of a segment in bytes; 0 where it is gone."""
        try:
            return os.lstat(self._path(name)).st_size
        except OSError:
            return 0

    def total(self) -> int:
        """Return the bytes of all segments in the directory, of whatever process."""
        return sum(self.size(name) for name in self._names() if name.endswith(_SEGMENT))

    def remove(self, name: str) -> None:
        """Remove a segment."""
        with contextlib.suppress(OSError):
            os.unlink(self._path(name))  # noqa: PTH108

    def _names(self) -> list[str]:
        try:
            with os.scandir(self.path) as found:
                return [e.name for e in found if e.name.endswith((_SEGMENT, _LOCK))]
        except OSError:
            return []

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)  # noqa: PTH118
