"""The write-ahead log of SQLite, which must not grow for as long as somebody reads.

SQLite copies the log into the file after a commit and begins it anew once nobody reads from it any
more. Where readers overlap, each short but without a pause between them, that moment never comes.
So when the log has become long, the writer lets nobody write until every reader is done with it:
those who begin meanwhile find everything in the file and do not need the log.

One reader may be slow for a good reason (an export, a backup, a recount), and holding up writers
for it helps nobody. So the wait is short, and is tried again when the log is twice as long.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection

from toolfault_collector.checkpoints import Checkpoints

__all__ = ["WriteAheadLog"]

# Four times the length at which SQLite begins to copy the log (`engine.CHECKPOINT_PAGES`).
LONG_BYTES: Final = 128 * 1024 * 1024
# Writers are held up for so many times a tenth of a second at most: pages and lists are read in a
# fraction of it. Short tries, since a try waits for a place among the readers, and the next reader
# may take that very place; the next try sees that this one is no hindrance.
TRIES: Final = 25
TRY_MS: Final = 100

_log = structlog.get_logger(__name__)


class WriteAheadLog:
    """Keeps the log of one SQLite database short; for the one thread that writes.

    Args:
        database: The database file.
        long_bytes: Length from which on waiting for readers is worth it.
        tries: How often to try, each time for a tenth of a second.
        checkpoints: Has it copied beside the writer, if not left to SQLite.
    """

    def __init__(
        self,
        database: Path,
        *,
        long_bytes: int = LONG_BYTES,
        tries: int = TRIES,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self._path = database.with_name(database.name + "-wal")
        self._long_bytes = long_bytes
        self._tries = tries
        self._due = long_bytes
        self._checkpoints = checkpoints

    @property
    def size(self) -> int:
        """Bytes that the log takes on the disk."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def stop(self) -> None:
        """Finish what is being copied, and end."""
        if self._checkpoints is not None:
            self._checkpoints.stop()

    def tend(self, conn: Connection, *, events: int = 0) -> bool | None:
        """Begin the log anew if it is long; call between transactions of *conn*.

        Args:
            conn: The writer's.
            events: How many it has stored since the last call.

        Returns:
            Whether it was begun anew; None if it did not need to be.
        """
        if self._checkpoints is not None:
            self._checkpoints.stored(conn, events)
        size = self.size
        if size < self._due:
            if size < self._long_bytes:
                self._due = self._long_bytes
            return None
        try:
            done = self._restart(conn)
        except sqlite3.Error as error:  # a disk that fails; the next write says so, too
            _log.error("log_not_copied", error=type(error).__name__, bytes=size)
            done = False
        self._due = self._long_bytes if done else 2 * size
        if not done:
            _log.warning("log_is_read", bytes=size, next_try=self._due)
        return done

    def _restart(self, conn: Connection) -> bool:
        driver = conn.connection.driver_connection
        assert driver is not None
        (before,) = driver.execute("PRAGMA busy_timeout").fetchone()
        driver.execute(f"PRAGMA busy_timeout={TRY_MS}")
        try:
            for _ in range(self._tries):
                # TRUNCATE does what RESTART does, and gives the space back.
                busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return True
        finally:
            driver.execute(f"PRAGMA busy_timeout={before}")
        return False
