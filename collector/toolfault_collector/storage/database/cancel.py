"""Who reads from the database right now, so that a server that is told to stop can end it.

A question of many seconds holds up the thread that asks it: neither a cancelled request nor a
closed connection of its reader ends that. The database can be told to.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine

__all__ = ["Readings", "readings_of"]

_OPTION: Final = "toolfault_readings"
_CANCEL_SECONDS: Final = 1.0
_making: Final = threading.Lock()


class Readings:
    """The connections of one engine that are being read from."""

    def __init__(self) -> None:
        self._drivers: set[Any] = set()
        # Held while statements are ended: a connection that went back to the pool meanwhile
        # might belong to a writer.
        self._lock = threading.Lock()

    @contextmanager
    def note(self, conn: Connection) -> Iterator[None]:
        """Know *conn* as one that is read from, while the block lasts."""
        driver = conn.connection.driver_connection
        with self._lock:
            self._drivers.add(driver)
        try:
            yield
        finally:
            with self._lock:
                self._drivers.discard(driver)

    def end(self) -> int:
        """End the statements that run now, which fail; return how many readers there are."""
        with self._lock:
            for driver in self._drivers:
                with suppress(Exception):  # it has just ended by itself
                    if isinstance(driver, sqlite3.Connection):
                        driver.interrupt()
                    else:
                        driver.cancel_safe(timeout=_CANCEL_SECONDS)
            return len(self._drivers)

    def end_until(self, done: threading.Event, *, every_seconds: float = 0.1) -> None:
        """End statements, and those that readers begin after them, until *done* is set."""
        while not done.wait(every_seconds):
            self.end()


def readings_of(engine: Engine) -> Readings:
    """Return what is known of the readers of *engine*, the same object each time."""
    with _making:
        known = engine.get_execution_options().get(_OPTION)
        if known is None:
            known = Readings()
            engine.update_execution_options(**{_OPTION: known})
    assert isinstance(known, Readings)
    return known
