"""Turns of readers and the shipper: no shipment arrives while an answer is being made.

ClickHouse has no snapshot that two statements share. So the shipper waits until the answers that
were begun are ready, and those that come later wait until the block is written. On PostgreSQL the
database keeps the turns of all servers; an SQLite file has one server, which keeps them itself.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import DBAPIError

from toolfault_collector.storage.database.engine import is_sqlite

__all__ = ["reading_turn", "shipping_turn"]

LONGEST_WAIT_SECONDS: Final = 12.0
"""How long the shipper waits for readers: longer than any page may take."""

_IMPATIENT_SECONDS: Final = 0.1
"""How long it waits on PostgreSQL while one reads that took longer, as a download may."""

_LOCK: Final = 7_061_746_664  # any number will do as long as all servers take the same


@contextmanager
def reading_turn(conn: Connection) -> Iterator[None]:
    """Keep the shipper waiting for the length of the block; *conn* is in a read transaction."""
    if not is_sqlite(conn):
        conn.execute(select(func.pg_advisory_xact_lock_shared(_LOCK)))
        yield  # the lock ends with the transaction
        return
    with _turns_of(conn.engine).reading():
        yield


@contextmanager
def shipping_turn(engine: Engine) -> Iterator[None]:
    """Keep readers waiting for the length of the block, once those that read are done.

    One that reads for longer than `LONGEST_WAIT_SECONDS` is not waited for: it may see the half of
    a shipment, and everybody else goes on. PostgreSQL does not tell who reads for so long, so until
    that one is done others may see it, too; else each block would keep all of them waiting.
    """
    turns = _turns_of(engine)
    if is_sqlite(engine):
        with turns.shipping():
            yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text(f"SET lock_timeout = {int(turns.patience * 1_000)}"))
        try:
            conn.execute(select(func.pg_advisory_lock(_LOCK)))
            has_turn = True
        except DBAPIError:
            has_turn = False
        turns.patience = LONGEST_WAIT_SECONDS if has_turn else _IMPATIENT_SECONDS
        try:
            yield
        finally:
            if has_turn:
                conn.execute(select(func.pg_advisory_unlock(_LOCK)))
            conn.execute(text("RESET lock_timeout"))


class _Turns:
    """The turns within one process; who ships comes before readers that began to wait later."""

    def __init__(self) -> None:
        self.patience = LONGEST_WAIT_SECONDS
        self._changed = threading.Condition()
        self._began: dict[object, float] = {}  # of those that read
        self._is_shipping = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        reader = object()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shipping, LONGEST_WAIT_SECONDS)
            self._began[reader] = time.monotonic()
        try:
            yield
        finally:
            with self._changed:
                del self._began[reader]
                self._changed.notify_all()

    @contextmanager
    def shipping(self) -> Iterator[None]:
        with self._changed:
            self._is_shipping = True
            while (left := self._longest_wait()) > 0:
                self._changed.wait(left)
        try:
            yield
        finally:
            with self._changed:
                self._is_shipping = False
                self._changed.notify_all()

    def _longest_wait(self) -> float:
        """Return until when the last reader is done or not waited for, in seconds from now."""
        newest = max(self._began.values(), default=-math.inf)
        return newest + LONGEST_WAIT_SECONDS - time.monotonic()


_OF_ENGINES: Final[WeakKeyDictionary[Engine, _Turns]] = WeakKeyDictionary()
_making: Final = threading.Lock()


def _turns_of(engine: Engine) -> _Turns:
    with _making:
        return _OF_ENGINES.setdefault(engine, _Turns())
