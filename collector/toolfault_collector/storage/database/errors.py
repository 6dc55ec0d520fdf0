"""What an error of the database means for the sender: wait, make room, or this event is bad."""

from __future__ import annotations

import sqlite3
from typing import Final, Literal

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from toolfault_collector.errors import DatabaseReplaced, SchemaError

__all__ = ["FaultKind", "classify", "let_frames_go"]

FaultKind = Literal["full", "unavailable", "again", "taken", "data", "bug"]
"""``full``: no space. ``unavailable``: busy, gone, broken or of another schema; try later.
``again``: lost a race; try now, or later. ``taken``: another has just stored the same; try now.
``data``: what was to be stored cannot be. ``bug``: a fault of this program."""

# https://sqlite.org/rescode.html: the database is busy, gone or broken. Every other code is a fault
# of a statement: it comes again with the same event, so waiting does not help.
_SQLITE_LATER: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
    }
)
# SQLite has no code of its own for a table or column that a migration took away.
_SQLITE_OF_SCHEMA: Final = ("no such table", "no such column", "table ")
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_PG_AGAIN: Final = frozenset({"40001", "40P01"})
_PG_TAKEN: Final = "23505"
_PG_FULL: Final = frozenset({"53100"})
# Classes: 22 bad data, 23 constraint, 54 too large or complex, P0 raised in a
# trigger. Everything else (connection, login, schema, locks, resources) is not the event's fault.
_PG_DATA: Final = ("22", "23", "54", "P0")
# A statement that is wrong, apart from a table or column that a migration took away (42P01, 42703)
# and rights that are missing (42501).
_PG_BUG: Final = "42"
_PG_OF_SCHEMA: Final = frozenset({"42P01", "42703", "42501"})


def classify(error: Exception) -> FaultKind:
    """Return what *error*, raised while storing, means."""
    if isinstance(error, PoolTimeout | SchemaError | DatabaseReplaced):
        return "unavailable"
    # COPY runs on the driver itself, so its errors come without SQLAlchemy's wrapping.
    original = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(original, sqlite3.Error):
        return _classify_sqlite(original)
    return _classify_postgres(original) if isinstance(original, psycopg.Error) else "bug"


def let_frames_go(error: BaseException) -> None:
    """Drop the tracebacks of *error* and of all it came from, once it was dealt with.

    SQLAlchemy and drivers raise errors from variables: error, traceback, frame and variable hold
    each other, and the frame holds those that called it, down to the batch that was to be stored.
    Only a search for cycles would free it all, and those are rare (``http.server``).
    """
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            waiting += [each.__cause__, each.__context__]


def _classify_sqlite(error: sqlite3.Error) -> FaultKind:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return "full"
    if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError):
        return "data"
    of_schema = code == sqlite3.SQLITE_ERROR and str(error).startswith(_SQLITE_OF_SCHEMA)
    return "unavailable" if code in _SQLITE_LATER or of_schema else "bug"


def _classify_postgres(error: psycopg.Error) -> FaultKind:
    state = error.sqlstate
    if state is None:  # of the driver, which may not have asked the database at all
        if isinstance(error, psycopg.ProgrammingError | psycopg.NotSupportedError):
            return "bug"  # a value of a type that it cannot write, say
        return "data" if isinstance(error, psycopg.DataError) else "unavailable"
    if state in _PG_FULL:
        return "full"
    if state in _PG_AGAIN:
        return "again"
    if state == _PG_TAKEN:
        return "taken"
    if state.startswith(_PG_BUG) and state not in _PG_OF_SCHEMA:
        return "bug"
    return "data" if state.startswith(_PG_DATA) else "unavailable"
