"""Bounded query time: a statement that takes too long is stopped, whoever wrote the query."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DatabaseError

from toolfault_collector.storage.database.engine import is_columnar, is_sqlite
from toolfault_dashboard.queries.reading import limit_statements, sql_of

__all__ = ["SECONDS", "TooSlow", "begin_anew", "deadline", "without_deadline"]

SECONDS: Final = 10.0
"""Longest time all statements of one answer may take together, but for what is counted once."""

_KEY: Final = "toolfault_deadline"
_STEPS: Final = 20_000
"""SQLite instructions between two looks at the clock: well under a millisecond."""


class TooSlow(Exception):  # noqa: N818 - reads as what happened
    """The answer would take longer than is allowed; a narrower query would not."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"This takes longer than {seconds:g} seconds; ask for less, for example with since:7d."
        )
        self.seconds = seconds


@contextmanager
def deadline(conn: Connection, seconds: float | None = None) -> Iterator[None]:
    """Stop statements on *conn* that run when *seconds* are over, by default `SECONDS`.

    Raises:
        TooSlow: A statement was stopped.
    """
    seconds = SECONDS if seconds is None else seconds
    end = _End(seconds)
    try:
        if is_sqlite(conn):
            with _interrupted(conn, end):
                yield
        elif is_columnar(conn):
            with _limited(conn, seconds):
                yield
        else:
            # SET takes no bound parameters; the number is our own.
            conn.execute(text(f"SET LOCAL statement_timeout = {int(seconds * 1000)}"))
            yield
    except DatabaseError as error:
        if end.is_over() or _was_cancelled(error):
            raise TooSlow(seconds) from None
        raise


def begin_anew(conn: Connection) -> None:
    """Give what is counted from now on all of the time: it is counted once, and kept.

    Else what takes most of it would be stopped each time anew, and never be known. On PostgreSQL
    every statement has its own time anyway.
    """
    end = conn.info.get(_KEY)
    if end is not None:
        end.until = time.monotonic() + end.seconds


def without_deadline(conn: Connection) -> None:
    """Let statements on *conn* run from now on: an export takes as long as its reader reads."""
    if is_sqlite(conn):
        driver: Any = conn.connection.driver_connection
        driver.set_progress_handler(None, 0)
    elif is_columnar(conn):
        limit_statements(conn, 0)
        without_deadline(sql_of(conn))
    else:
        conn.execute(text("SET LOCAL statement_timeout = 0"))


@contextmanager
def _limited(conn: Connection, seconds: float) -> Iterator[None]:
    with deadline(sql_of(conn), seconds):
        limit_statements(conn, seconds)
        try:
            yield
        finally:
            limit_statements(conn, 0)


class _End:
    """When the time of an answer is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until = time.monotonic() + seconds

    def is_over(self) -> bool:
        return time.monotonic() >= self.until


@contextmanager
def _interrupted(conn: Connection, end: _End) -> Iterator[None]:
    driver: Any = conn.connection.driver_connection
    driver.set_progress_handler(lambda: 1 if end.is_over() else 0, _STEPS)
    info = conn.info
    info[_KEY] = end
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)
        info.pop(_KEY, None)


def _was_cancelled(error: DatabaseError) -> bool:
    """Return whether somebody else ended the statement: the database, or a server that stops."""
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT
    return getattr(error.orig, "sqlstate", None) == "57014"  # query_canceled
