"""Database engines: one place that knows how SQLite and PostgreSQL are opened.

SQLite runs in WAL mode with ``synchronous=FULL`` (an acknowledged event survives power loss) and
one writer at a time: a write transaction takes the lock at ``BEGIN IMMEDIATE``, so it never fails
half-way because another writer came first.

On both engines a write transaction begins by looking whether the schema is still the one this
version knows: a process that went on writing after a migration would store by yesterday's rules.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    ExceptionContext,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

import toolfault_migrations as migrations
from toolfault_collector.errors import DatabaseReplaced, DatabaseUrlError, SchemaError
from toolfault_collector.storage.database.cancel import readings_of
from toolfault_collector.storage.database.statements import KeptStatements

__all__ = [
    "is_columnar",
    "is_replaced",
    "is_sqlite",
    "must_reopen",
    "open_engine",
    "read_connection",
    "sqlite_path",
    "write_transaction",
    "writer_connection",
]

# Writers wait this long for the lock of another process (a long import, a backup) before they
# answer "busy"; group commits hold it for tens of milliseconds.
BUSY_SECONDS: Final = 10.0
# Page cache per connection in KiB (a negative cache_size): readers are many, so it is small.
CACHE_KIB: Final = 8_192
# The writer's own page cache: the pages of ten indexes that a busy hour touches.
WRITER_CACHE_KIB: Final = 65_536
# Bytes of the log that stay allocated when it begins anew, after somebody read for long; more than
# the log has between two copies.
LOG_KEPT_BYTES: Final = 64 * 1024 * 1024
# How often who waits to write looks whether it may.
LOCK_POLL_SECONDS: Final = 0.002
# Who waits and got less than this share of its looks goes on, up to so many times as long.
FEWEST_LOOKS: Final = 1 / 20
MOST_PATIENCE: Final = 3
# Connections for readers; each page holds one for the length of its queries.
POOL_SIZE: Final = 8

_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous={synchronous}",
    "PRAGMA busy_timeout={busy_ms}",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA cache_size=-{CACHE_KIB}",
    # The writer copies the log, between two of its transactions: see `wal`.
    "PRAGMA wal_autocheckpoint=0",
    f"PRAGMA journal_size_limit={LOG_KEPT_BYTES}",
    "PRAGMA temp_store=MEMORY",
)

# After these a file is opened anew: SQLite keeps a file read-only that could not be written to when
# it was opened, and a file that went away may be another by now.
_REOPEN_AFTER: Final = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    }
)
_PRIMARY: Final = 0xFF  # https://sqlite.org/rescode.html: the rest of a code is its extension


def open_engine(
    url: str, *, synchronous: str = "FULL", busy_seconds: float = BUSY_SECONDS
) -> Engine:
    """Open the database of *url* (``sqlite:///file`` or ``postgresql://...``).

    A new SQLite file and its folder are created readable by their owner alone. Statement
    parameters never appear in error messages or logs.

    Args:
        url: Database URL. ``postgresql://`` is driven by psycopg 3.
        synchronous: SQLite only: ``FULL`` or ``NORMAL``. With ``NORMAL`` a loss of power may take
            the last commits with it; a crash of the process never does.
        busy_seconds: SQLite only: how long to wait for the lock of another writer.

    Raises:
        DatabaseUrlError: The URL cannot be read or names another engine.
    """
    parsed = _parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, synchronous=synchronous, busy_seconds=busy_seconds)
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        hide_parameters=True,
        execution_options={"compiled_cache": KeptStatements()},
        pool_size=POOL_SIZE,
        max_overflow=POOL_SIZE,
        pool_pre_ping=True,
        pool_timeout=BUSY_SECONDS,
        connect_args={
            "connect_timeout": 5,
            "application_name": "toolfault",
            # A plan that was made when a table was small would be used until it is analysed: of a
            # new database every batch would read all that there is.
            "options": "-c plan_cache_mode=force_custom_plan",
        },
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if _writes(connection):
            _check_schema(connection)

    return engine


def is_sqlite(target: Engine | Connection) -> bool:
    """Return whether *target* speaks SQLite (else it is PostgreSQL, or to readers ClickHouse)."""
    return target.dialect.name == "sqlite"


def is_columnar(target: Engine | Connection) -> bool:
    """Return whether *target* speaks ClickHouse, which only readers ask."""
    return target.dialect.name == "clickhousedb"


def sqlite_path(engine: Engine) -> Path:
    """Return the database file of an SQLite *engine*."""
    return Path(engine.url.database or "")


@contextmanager
def read_connection(engine: Engine) -> Iterator[Connection]:
    """Yield a connection inside one read transaction: every query sees the same snapshot.

    SQLite's read transactions are like that; of PostgreSQL it must be asked for. There dropping a
    partition respects no snapshot, so readers keep it off from before theirs is taken.
    """
    with engine.connect() as conn:
        if not is_sqlite(conn):
            conn.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with conn.begin(), readings_of(engine).note(conn):
            if not is_sqlite(conn):
                conn.exec_driver_sql("LOCK TABLE ONLY tool_call IN ACCESS SHARE MODE")
            yield conn


@contextmanager
def write_transaction(engine: Engine) -> Iterator[Connection]:
    """Yield a connection inside a write transaction, committed at the end, rolled back on error."""
    with engine.connect().execution_options(toolfault_write=True) as conn, conn.begin():
        yield conn


def must_reopen(error: BaseException) -> bool:
    """Return whether connections to an SQLite file are of no use after *error* of its driver.

    The engine sees to that itself, but not for statements that go to the driver directly.
    """
    if isinstance(error, DatabaseReplaced):
        return True
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _REOPEN_AFTER


def is_replaced(conn: Connection) -> bool:
    """Return whether the SQLite file of *conn* was removed or replaced since it was opened.

    A file without a name takes every write, and is gone with its last connection.
    """
    opened = conn.info.get("file")
    return opened is not None and opened != _identity(sqlite_path(conn.engine))


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at *path* from every other one, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def writer_connection(engine: Engine) -> Connection:
    """Return a connection whose transactions are write transactions, for one busy writer."""
    conn = engine.connect().execution_options(toolfault_write=True)
    if is_sqlite(conn):
        driver = conn.connection.driver_connection
        assert driver is not None
        driver.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}")
    return conn


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The text is not repeated: it may hold a password.
        message = (
            "the database URL cannot be read; write sqlite:///FILE or postgresql://USER@HOST/NAME"
        )
        raise DatabaseUrlError(message) from None
    if parsed.drivername == "postgres":  # the spelling of libpq and of many hosting services
        parsed = parsed.set(drivername="postgresql")
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        message = f"no support for {backend!r} databases; use sqlite:///FILE or postgresql://..."
        raise DatabaseUrlError(message)
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        message = "an SQLite database needs a file: sqlite:///FILE"
        raise DatabaseUrlError(message)
    return parsed


def _open_sqlite(url: URL, *, synchronous: str, busy_seconds: float) -> Engine:
    _create_private(Path(url.database or ""))
    engine = create_engine(
        url,
        hide_parameters=True,
        execution_options={"compiled_cache": KeptStatements()},
        pool_size=POOL_SIZE,
        max_overflow=POOL_SIZE,
        pool_timeout=BUSY_SECONDS,
    )
    busy_ms = int(busy_seconds * 1_000)
    pragmas = [each.format(synchronous=synchronous, busy_ms=busy_ms) for each in _PRAGMAS]

    _stay_private(engine)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, record: ConnectionPoolEntry) -> None:
        # The driver must not open transactions by itself: "begin" below decides their kind.
        connection.isolation_level = None
        for pragma in pragmas:
            connection.execute(pragma)
        record.info["file"] = _identity(Path(url.database or ""))

    @event.listens_for(engine, "checkout")
    def _check(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
        if record.info.get("file") != _identity(Path(url.database or "")):
            raise DisconnectionError  # so the pool opens the file that stands there now

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if _writes(connection):
            _wait_to_write(connection, busy_ms)
            _check_schema(connection)
        else:
            connection.exec_driver_sql("BEGIN")

    @event.listens_for(engine, "handle_error")
    def _reopen(context: ExceptionContext) -> None:
        if must_reopen(context.original_exception):
            context.is_disconnect = True
            # A cursor would keep its connection open, and connections of one process share what
            # they know of the log: so the idle ones go as well.
            if context.execution_context is not None:
                context.execution_context.cursor.close()
            engine.dispose()

    return engine


def _writes(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("toolfault_write", False))


def _check_schema(connection: Connection) -> None:
    """Refuse to write by another schema than this version knows, unless it is migrated here.

    On PostgreSQL a migration that runs is waited for, and none begins before this transaction ends.
    """
    if connection.get_execution_options().get("toolfault_any_schema", False):
        return
    found, wanted = migrations.here(connection), migrations.HEAD
    if found != wanted:
        message = (
            f"the database has schema {found}, this process writes {wanted}; nothing was stored:"
            " stop it and start the version that was migrated for"
        )
        raise SchemaError(message)


def _wait_to_write(connection: Connection, busy_ms: int) -> None:
    """Begin a write transaction as soon as nobody else has one.

    SQLite looks for the lock every tenth of a second. A busy collector leaves it free for some
    milliseconds between two groups, which who looks that rarely may miss for ten seconds. Where
    the processor is short the same happens to who looks often, so what counts there is looks.
    """
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    seconds = busy_ms / 1_000
    began, looks = time.monotonic(), 0
    fewest = seconds / LOCK_POLL_SECONDS * FEWEST_LOOKS
    driver.execute("PRAGMA busy_timeout=0")
    try:
        while (waited := time.monotonic() - began) < seconds or (
            looks < fewest and waited < MOST_PATIENCE * seconds
        ):
            looks += 1
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY:
                    break
                time.sleep(LOCK_POLL_SECONDS)
            else:
                return
    finally:
        driver.execute(f"PRAGMA busy_timeout={busy_ms}")
    # Once more in the way in which errors are wrapped and connections given up.
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _create_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _create_file(path)


def _stay_private(engine: Engine) -> None:
    @event.listens_for(engine, "do_connect")
    def _make_again(*_: object) -> None:
        # Where the file has gone SQLite makes another one, which everybody may read.
        with suppress(OSError):  # SQLite says what is wrong
            _create_file(sqlite_path(engine))


def _create_file(path: Path) -> None:
    if not path.exists():
        # SQLite gives the -wal and -shm files the mode of the database file.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
