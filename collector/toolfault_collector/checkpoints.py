"""Copying SQLite's write-ahead log into the file while the writer goes on.

SQLite does it in the commit that makes the log long enough, and who waits for that commit waits
for some thousand pages more. Another connection can do it beside the writer; what it could not know
of, the writer copies itself, and its next commit begins the log anew. Where this is too slow or
fails, SQLite still does it in a commit, later (`engine.WRITER_CHECKPOINT_PAGES`).
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import structlog
from sqlalchemy import Connection, Engine

__all__ = ["EVERY_EVENTS", "Checkpoints"]

# Some 24 MB of log: pages that change with every batch are copied once for many of them.
EVERY_EVENTS: Final = 2_500

_log = structlog.get_logger(__name__)


class Checkpoints:
    """Has the log copied every so many events; for the one thread that writes.

    Args:
        engine: An SQLite database.
        every_events: Events from one time to the next.
    """

    def __init__(self, engine: Engine, *, every_events: int = EVERY_EVENTS) -> None:
        self._engine = engine
        self._every = every_events
        self._events = 0
        self._pool = ThreadPoolExecutor(1, "toolfault-checkpoint")
        self._copying: Future[None] | None = None

    def stored(self, conn: Connection, events: int) -> None:
        """Note that *events* were committed; call between transactions of *conn*, the writer's."""
        self._events += events
        if self._copying is None:
            if self._events >= self._every:
                self._events = 0
                self._copying = self._pool.submit(self._copy)
        elif self._copying.done():
            self._copying = None
            _copy_log(conn)  # the little that came while it was copied

    def wait(self) -> None:
        """Return when nothing is being copied."""
        if self._copying is not None:
            self._copying.result()

    def stop(self) -> None:
        """Finish what is being copied, and end."""
        self._pool.shutdown()

    def _copy(self) -> None:
        with self._engine.connect() as conn:
            # The second time takes what came during the first, so that little is left.
            if _copy_log(conn):
                _copy_log(conn)


def _copy_log(conn: Connection) -> bool:
    """Copy what nobody reads any more, waiting for nobody; return whether that worked."""
    driver = conn.connection.driver_connection
    assert driver is not None
    try:
        driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:  # a disk that fails; the next write says so, too
        _log.error("log_not_copied", error=type(error).__name__)
        return False
    return True
