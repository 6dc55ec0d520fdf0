"""Work that one collector at a time does, of all that share a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, func, select

from toolfault_collector.storage.database.engine import is_sqlite

__all__ = ["alone"]


@contextmanager
def alone(engine: Engine, work: int) -> Iterator[bool]:
    """Yield whether no other collector does *work* now; holds for the length of the block.

    The lock is one of the session, so it ends with a process that is killed. An SQLite file has
    one server.

    Args:
        engine: The database.
        work: Any number, the same in all collectors.
    """
    if is_sqlite(engine):
        yield True
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        is_alone = bool(conn.execute(select(func.pg_try_advisory_lock(work))).scalar())
        try:
            yield is_alone
        finally:
            if is_alone:
                conn.execute(select(func.pg_advisory_unlock(work)))
