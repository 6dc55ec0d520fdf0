"""Backup and restore of the SQLite file, while the server runs and checked afterwards.

Copying the file of a live database misses what is in its write-ahead log; SQLite's own backup does
not. PostgreSQL brings its own tools, which know more than this could.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from toolfault_collector.errors import BackupError
from toolfault_collector.storage.database.engine import is_sqlite, open_engine, sqlite_path
from toolfault_collector.storage.database.schema import copy_database, refuse_foreign

__all__ = ["Backup", "backup", "restore"]


@dataclass(frozen=True, slots=True)
class Backup:
    """A checked copy: where it is, its schema, how many calls it holds, its bytes."""

    path: Path
    schema: str
    calls: int
    size: int


def backup(engine: Engine, target: Path) -> Backup:
    """Copy the database of *engine* to the new file *target* and check the copy.

    It holds everything that was acknowledged before this was called.

    Raises:
        BackupError: Not an SQLite database, *target* exists, or the copy is not sound.
    """
    if not is_sqlite(engine):
        message = "back up PostgreSQL with pg_dump --format=custom, restore it with pg_restore"
        raise BackupError(message)
    if target.exists():
        message = f"{target} exists; name a new file"
        raise BackupError(message)
    with _taking_shape(target, "partial") as partial:
        _copy(sqlite_path(engine), partial)
        made = _check(partial)
        partial.replace(target)
    return Backup(target, made.schema, made.calls, made.size)


def restore(source: Path, url: str) -> Backup:
    """Put the backup *source* in the place of the SQLite database of *url*.

    What was there before is kept beside it, as ``<name>.before-restore``.

    Raises:
        BackupError: *source* is not sound, or a server is using the database.
        SchemaError: *source* has a schema that this version cannot use.
    """
    engine = open_engine(url)
    try:
        if not is_sqlite(engine):
            message = "restore PostgreSQL with pg_restore"
            raise BackupError(message)
        target = sqlite_path(engine)
    finally:
        engine.dispose()
    if not source.is_file():
        message = f"{source} is no file"
        raise BackupError(message)
    made = _check(source)
    refuse_foreign(made.schema, str(source))
    _refuse_in_use(target)
    with _taking_shape(target, "restoring") as fresh:
        _copy(source, fresh)
        if target.stat().st_size:
            target.replace(target.with_name(target.name + ".before-restore"))
        fresh.replace(target)
    return Backup(target, made.schema, made.calls, made.size)


@contextmanager
def _taking_shape(target: Path, suffix: str) -> Iterator[Path]:
    """Yield a path beside *target*; what is left there at the end was not finished and goes."""
    path = target.with_name(f"{target.name}.{suffix}")
    path.unlink(missing_ok=True)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        path.with_name(path.name + "-journal").unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    try:
        copy_database(source, target)
    except (OSError, sqlite3.Error) as error:
        message = f"{target.parent} could not take the copy: {error}"
        raise BackupError(message) from error


def _check(path: Path) -> Backup:
    """Return what the database *path* holds, if it is sound and ours."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as conn:
            (verdict,) = conn.execute("PRAGMA integrity_check").fetchone()
            (schema,) = conn.execute("SELECT version_num FROM alembic_version").fetchone()
            (calls,) = conn.execute("SELECT count(*) FROM tool_call").fetchone()
    except sqlite3.Error as error:
        message = f"{path} is no database of toolfault: {error}"
        raise BackupError(message) from error
    if verdict != "ok":
        message = f"{path} is damaged: {verdict}"
        raise BackupError(message)
    return Backup(path, schema, calls, path.stat().st_size)


def _refuse_in_use(target: Path) -> None:
    """Refuse if another process has *target* open; remove the log of one that was killed."""
    in_use = f"{target} is in use; stop the server first"
    try:
        # Leaving WAL mode needs the file for oneself, and takes the log and its index away.
        with closing(sqlite3.connect(target, timeout=0.2)) as conn:
            (mode,) = conn.execute("PRAGMA journal_mode=DELETE").fetchone()
    except sqlite3.OperationalError as error:
        raise BackupError(in_use) from error
    except sqlite3.DatabaseError:
        return  # no database at all: what is there is kept beside the restored one
    if mode != "delete":
        raise BackupError(in_use)
