"""One server at a time on a file of SQLite.

One connection alone copies the log into the file, that of the server's writer (`wal`). A second
server on the same file would bring a second one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

import structlog
from sqlalchemy import Engine

from toolfault_collector.errors import DatabaseInUse
from toolfault_collector.storage.database.engine import is_sqlite, sqlite_path

if sys.platform != "win32":
    import fcntl

__all__ = ["only_server"]

_log = structlog.get_logger(__name__)
_held: WeakSet[Engine] = WeakSet()


@contextmanager
def only_server(engine: Engine) -> Iterator[None]:
    """Refuse every other server on the SQLite file of *engine* for as long as the block lasts.

    The lock is an advisory one (``flock``) of the empty file ``<database>-lock``. The kernel ends
    it with the process, however that ends, and no program that the server starts inherits it. The
    file stays where it is: two servers could each lock one of that name if it was removed. The
    database itself cannot be locked so: what closes another handle of it ends SQLite's own locks.
    Only servers ask for it: commands and readers work beside one. A block within another one of the
    same engine is of the same server; another engine on the file is another server, also in this
    process.

    Nobody is refused on PostgreSQL, which several servers may share, and on Windows, which has no
    ``flock``; nor where the lock cannot be had (a folder that cannot be written to, a volume
    without locks), which the log then says.

    Raises:
        DatabaseInUse: Another server has this file.
    """
    if engine in _held or not is_sqlite(engine):
        yield
        return
    descriptor = _lock(sqlite_path(engine))
    _held.add(engine)
    try:
        yield
    finally:
        _held.discard(engine)
        if descriptor is not None:
            os.close(descriptor)


def _lock(database: Path) -> int | None:
    """Return what holds the lock of *database* until it is closed; None if there is no lock."""
    if sys.platform == "win32":
        return None
    # As SQLite does with its log: a link and the file that it leads to are one database.
    database = database.resolve()
    try:
        descriptor = os.open(f"{database}-lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        _log.warning("database_not_locked", error=error.strerror)
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        message = (
            f"another server is running on {database}, and an SQLite file takes one: stop it,"
            " or give this one another file (--database-url or TOOLFAULT_DATABASE_URL); several"
            " servers can share a PostgreSQL database"
        )
        raise DatabaseInUse(message) from None
    except OSError as error:
        _log.warning("database_not_locked", error=error.strerror)
    return descriptor
