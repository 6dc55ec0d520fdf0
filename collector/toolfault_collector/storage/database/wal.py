"""The write-ahead log of SQLite, which must not grow for as long as somebody reads.

One connection alone copies the log into the file: the writer's, between two of its transactions.
Two connections that copy while a third commits may corrupt the file in every version of SQLite from
3.7.0 to 3.51.2 (https://sqlite.org/wal.html#walresetbug), so no other connection ever copies
(`engine.open_engine` switches that off). The same can happen when one connection copies twice in a
row and another commits in between, since that commit may begin the log anew. So the writer copies
once after a commit of its own. While it waits for readers it copies again, each time only after it
has seen that nobody else writes. In the moment between that look and the copy another process could
still begin to write; `doctor` names the versions of SQLite that this can hurt.

SQLite begins the log anew once nobody reads from it any more. Where readers overlap, each short but
without a pause between them, that moment never comes. So when the log has become long, the writer
lets nobody write until every reader is done with it: those who begin meanwhile find everything in
the file and do not need the log.

Others write, too: an import or retention, beside a server that has nothing to store. They never
copy, so the server's writer looks at the length of the log while it waits for events, and begins a
long one anew in the same way, with the right to write, never by a copy beside a writer. A command
without a server leaves the log as it is: SQLite copies it when the last connection closes.

One reader may be slow for a good reason (an export, a backup, a recount), and holding up writers
for it helps nobody. So the wait is short, and is tried again when the log is twice as long.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection

__all__ = ["WriteAheadLog", "advice_on_version"]

# Versions with the WAL-reset bug (https://sqlite.org/wal.html#walresetbug), and the first patch of
# two older branches without it.
RACE_FROM: Final = (3, 7, 0)
RACE_FIXED: Final = (3, 51, 3)
RACE_PATCHED: Final = {(3, 44): (3, 44, 6), (3, 50): (3, 50, 7)}

# Some 24 MB of log: pages that change with every batch are copied once for many of them.
COPY_EVERY_EVENTS: Final = 2_500
# Some five times what is written from one copy to the next.
LONG_BYTES: Final = 128 * 1024 * 1024
# Writers are held up for so many times a tenth of a second at most: pages and lists are read in a
# fraction of it. Short tries, since a try waits for a place among the readers, and the next reader
# may take that very place; the next try sees that this one is no hindrance.
TRIES: Final = 25
TRY_MS: Final = 100

_log = structlog.get_logger(__name__)


def advice_on_version() -> str | None:
    """Return what to do about the SQLite library this process runs on, or None if it is sound."""
    version = sqlite3.sqlite_version_info
    fixed = RACE_PATCHED.get(version[:2], RACE_FIXED)
    if version < RACE_FROM or version >= fixed:
        return None
    return (
        f"SQLite {sqlite3.sqlite_version} can corrupt a database when two connections write to it"
        " or copy its log at the same moment (the WAL-reset bug, fixed in 3.51.3, 3.50.7 and"
        " 3.44.6). This server copies the log with one connection alone, which avoids it: let no"
        " other program write to the file, run one server on it, and when you can, run it on a"
        " Python with a newer SQLite"
    )


class WriteAheadLog:
    """Keeps the log of one SQLite database short; for the one thread that writes.

    Args:
        database: The database file.
        long_bytes: Length from which on waiting for readers is worth it.
        tries: How often to try, each time for a tenth of a second.
        copy_every: Events from one copy of the log to the next.
    """

    def __init__(
        self,
        database: Path,
        *,
        long_bytes: int = LONG_BYTES,
        tries: int = TRIES,
        copy_every: int = COPY_EVERY_EVENTS,
    ) -> None:
        self._path = database.with_name(database.name + "-wal")
        self._long_bytes = long_bytes
        self._tries = tries
        self._due = long_bytes
        self._copy_every = copy_every
        self._events = self._copied = 0

    @property
    def size(self) -> int:
        """Bytes that the log takes on the disk."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    @property
    def is_due(self) -> bool:
        """Whether the log is so long that `tend` would begin it anew."""
        return self.size >= self._due

    def tend(self, conn: Connection, *, events: int = 0) -> bool | None:
        """Copy the log now and then, and begin it anew if it is long.

        Call it between transactions of *conn*, which has to be the only connection that copies.

        Args:
            conn: The writer's.
            events: How many it has stored since the last call.

        Returns:
            Whether it was begun anew; None if it did not need to be.
        """
        self._events += events
        size = self.size
        if size < self._due:
            if size < self._long_bytes:
                self._due = self._long_bytes
            if self._events >= self._copy_every:
                self._copy(conn)
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

    def _copy(self, conn: Connection) -> None:
        """Copy what nobody reads any more, waiting for nobody."""
        driver = conn.connection.driver_connection
        assert driver is not None
        if driver.total_changes in (0, self._copied):
            return  # nothing of its own is in the log since the last copy: see above
        self._events, self._copied = 0, driver.total_changes
        try:
            driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:  # a disk that fails; the next write says so, too
            _log.error("log_not_copied", error=type(error).__name__)

    def _restart(self, conn: Connection) -> bool:
        driver = conn.connection.driver_connection
        assert driver is not None
        self._events, self._copied = 0, driver.total_changes
        (before,) = driver.execute("PRAGMA busy_timeout").fetchone()
        driver.execute(f"PRAGMA busy_timeout={TRY_MS}")
        try:
            for _ in range(self._tries):
                if _others_write(driver):
                    continue
                # TRUNCATE does what RESTART does, and gives the space back.
                busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return True
        finally:
            driver.execute(f"PRAGMA busy_timeout={before}")
        return False


def _others_write(driver: sqlite3.Connection) -> bool:
    """Return whether another connection holds the right to write, for as long as one try.

    TRUNCATE, too, copies without that right when it waited for it in vain.
    """
    try:
        driver.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return True
    driver.execute("ROLLBACK")
    return False
