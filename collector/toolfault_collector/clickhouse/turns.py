"""Turns of readers and the shipper: no shipment arrives while an answer is being made.

ClickHouse has no snapshot that two statements share. So the shipper waits until the answers that
were begun are ready, and those that come later wait until the block is written. On PostgreSQL the
database keeps the turns of all servers; an SQLite file has one server, which keeps them itself.
"""

from __future__ import annotations

import threading
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

_LOCK: Final = 7_061_746_664  # any number will do as long as all servers take the same


@contextmanager
def reading_turn(conn: Connection) -> Iterator[None]:
    """Keep the shipper waiting for the length of the block; *conn* is in a read transaction."""
    if not is_sqlite(conn):
        conn.execute(select(func.pg_advisory_xact_lock_shared(_LOCK)))
        yield  # the lock ends with the transaction
        return
    turns = _turns_of(conn.engine)
    turns.begin_reading()
    try:
        yield
    finally:
        turns.end_reading()


@contextmanager
def shipping_turn(engine: Engine) -> Iterator[None]:
    """Keep readers waiting for the length of the block, once those that read are done.

    One that reads for longer than `LONGEST_WAIT_SECONDS` is not waited for: it may see the half of
    a shipment, and everybody else goes on.
    """
    if is_sqlite(engine):
        with _turns_of(engine).shipping():
            yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text(f"SET lock_timeout = {int(LONGEST_WAIT_SECONDS * 1_000)}"))
        try:
            conn.execute(select(func.pg_advisory_lock(_LOCK)))
            has_turn = True
        except DBAPIError:
            has_turn = False
        try:
            yield
        finally:
            if has_turn:
                conn.execute(select(func.pg_advisory_unlock(_LOCK)))
            conn.execute(text("RESET lock_timeout"))


class _Turns:
    """The turns within one process; who ships comes before readers that began to wait later."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = 0
        self._is_shipping = False

    def begin_reading(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shipping, LONGEST_WAIT_SECONDS)
            self._readers += 1

    def end_reading(self) -> None:
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    @contextmanager
    def shipping(self) -> Iterator[None]:
        with self._changed:
            self._is_shipping = True
            self._changed.wait_for(lambda: not self._readers, LONGEST_WAIT_SECONDS)
        try:
            yield
        finally:
            with self._changed:
                self._is_shipping = False
                self._changed.notify_all()


_OF_ENGINES: Final[WeakKeyDictionary[Engine, _Turns]] = WeakKeyDictionary()
_making: Final = threading.Lock()


def _turns_of(engine: Engine) -> _Turns:
    with _making:
        return _OF_ENGINES.setdefault(engine, _Turns())
