"""The schema a database must have before anything is stored in it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Engine

import toolfault_migrations as migrations
from toolfault_collector.errors import BackupError, SchemaTooNew, SchemaTooOld
from toolfault_collector.storage.database.engine import is_sqlite, sqlite_path

__all__ = ["backup_copy", "copy_database", "is_at_head", "prepare", "refuse_foreign"]

# Who asks whether the server is ready asks again soon; a migration may take minutes.
PATIENCE_MS: Final = 500

_log = structlog.get_logger(__name__)


def prepare(engine: Engine, *, migrate: bool) -> None:
    """Make sure that the database has the schema this version needs.

    A new database and an older SQLite file are migrated (the file after a backup copy beside it);
    an older PostgreSQL schema only with *migrate*, since other processes may be using it.

    Raises:
        SchemaTooOld: An older PostgreSQL schema and *migrate* is false; or as `refuse_foreign`.
        SchemaTooNew: As `refuse_foreign`.
        BackupError: The copy could not be made; nothing was migrated.
    """
    found, wanted = migrations.current(engine), migrations.HEAD
    if found == wanted:
        return
    refuse_foreign(found)
    if not is_sqlite(engine) and not migrate:
        message = (
            f"the database has schema {found or 'none'}, this version needs {wanted};"
            " run `toolfault db upgrade` (or start with --migrate)"
        )
        raise SchemaTooOld(message)
    if is_sqlite(engine) and found is not None:
        copy = backup_copy(sqlite_path(engine), suffix=f"schema-{found}")
        _log.info("backup_before_migration", file=str(copy))
    migrations.upgrade(engine)
    _log.info("migrated", schema_before=found, schema=wanted)


def refuse_foreign(found: str | None, where: str = "the database") -> None:
    """Raise if this version can neither use schema *found* nor migrate it; None is no schema.

    Args:
        found: As `migrations.current` returns it.
        where: What has it, for the message.

    Raises:
        SchemaTooOld: It is of a toolfault from before the first release.
        SchemaTooNew: It is of a newer toolfault.
    """
    if found is None or found == migrations.HEAD:
        return
    if found in migrations.UNRELEASED:
        message = (
            f"{where} has schema {found}, made by a toolfault from before its first release, which"
            " this version can neither read nor upgrade; it was left as it is. Keep it (the version"
            " that made it still reads and exports it), start with a new database (--database-url"
            " or TOOLFAULT_DATABASE_URL), and fill that again with `toolfault import`"
        )
        raise SchemaTooOld(message)
    if not migrations.knows(found):
        message = (
            f"{where} has schema {found}, made by a newer toolfault (this one knows up to"
            f" {migrations.HEAD}); upgrade toolfault-server, or restore a backup of an older schema"
        )
        raise SchemaTooNew(message)


def is_at_head(engine: Engine) -> bool:
    """Return whether the database answers and has exactly the schema this version needs.

    Raises:
        sqlalchemy.exc.OperationalError: It does not answer, or is being migrated (PostgreSQL).
    """
    return migrations.current(engine, patience_ms=PATIENCE_MS) == migrations.HEAD


def backup_copy(database: Path, *, suffix: str) -> Path:
    """Copy a live SQLite *database* beside itself, over an older copy of that *suffix*.

    Raises:
        BackupError: There is no room for it, or it cannot be written; nothing of it is left.
    """
    copy = database.with_name(f"{database.name}.{suffix}.bak")
    partial = copy.with_name(copy.name + ".partial")
    partial.unlink(missing_ok=True)
    try:
        copy_database(database, partial)
    except (OSError, sqlite3.Error) as error:
        message = (
            f"{database.parent} could not take the copy that is made before a migration, so"
            f" nothing was migrated: {error}"
        )
        raise BackupError(message) from error
    else:
        partial.replace(copy)
    finally:
        partial.unlink(missing_ok=True)
        partial.with_name(partial.name + "-journal").unlink(missing_ok=True)
    return copy


def copy_database(source: Path, target: Path) -> None:
    """Copy the live SQLite database *source* to the new file *target* and onto the disk.

    Through SQLite's backup, since copying the file alone would miss what is still in the
    write-ahead log; in one step, since that starts anew when somebody writes between two (a busy
    database would never be done), and in WAL mode holds up no writer.
    """
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as write:
        read.backup(write)
        # One file, complete by itself: no log that could be left behind.
        write.execute("PRAGMA journal_mode=DELETE")
    with target.open("rb+") as file:
        os.fsync(file.fileno())
