"""``toolfault doctor``: what could hurt this installation, found before it does."""

from __future__ import annotations

import ipaddress
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sqlalchemy import Engine, case, func, select
from sqlalchemy.exc import SQLAlchemyError

import toolfault_migrations as migrations
from toolfault_collector.clickhouse import outbox
from toolfault_collector.clock import MINUTE_US, format_time, now_us
from toolfault_collector.errors import SchemaError
from toolfault_collector.retention.policy import limits_of, why_doubted, why_refused
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import is_sqlite, read_connection, sqlite_path
from toolfault_collector.storage.database.schema import refuse_foreign
from toolfault_collector.storage.database.wal import LONG_BYTES, WriteAheadLog, advice_on_version
from toolfault_collector.storage.name_limits import OTHER
from toolfault_collector.storage.tables import failure_counts, project, user_account

__all__ = ["Finding", "examine"]

Level = Literal["ok", "warning", "problem"]

# A day of a busy project, or the copy that a migration makes of a small database.
MIN_FREE_BYTES: Final = 1024**3
NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: its name, how bad it is, and what to do."""

    name: str
    level: Level
    text: str


def examine(
    settings: Settings, engine: Engine, *, clock: Callable[[], int] = now_us
) -> list[Finding]:
    """Return what was found about the installation of *settings*, the worst first."""
    findings = [*_schema(engine), *_clock(engine, settings, clock()), *_exposure(settings, engine)]
    findings += [*_names(engine, settings), *_outbox(settings, engine)]
    if is_sqlite(engine):
        findings += [*_sqlite(engine, settings), *_file(sqlite_path(engine))]
    order = {"problem": 0, "warning": 1, "ok": 2}
    return sorted(findings, key=lambda finding: order[finding.level])


def _outbox(settings: Settings, engine: Engine) -> Iterator[Finding]:
    try:
        with read_connection(engine) as conn:
            if settings.events_url or not outbox.is_installed(conn):
                return
            waiting = outbox.count(conn)
    except SQLAlchemyError:
        return  # said already
    yield Finding(
        "outbox",
        "warning",
        f"changes are noted for ClickHouse ({waiting} wait) and TOOLFAULT_EVENTS_URL is not set:"
        " set it, or run `toolfault db forget-events`; else the outbox grows",
    )


def _schema(engine: Engine) -> Iterator[Finding]:
    try:
        found = migrations.current(engine)
    except SQLAlchemyError as error:
        yield Finding("database", "problem", f"does not answer: {type(error).__name__}")
        return
    try:
        refuse_foreign(found)
    except SchemaError as error:
        yield Finding("schema", "problem", str(error))
        return
    if found == migrations.HEAD:
        yield Finding("schema", "ok", f"{found}, as this version needs")
    else:
        needs = f"this version needs {migrations.HEAD}; run `toolfault db upgrade`"
        yield Finding("schema", "problem", f"{found or 'none'}, {needs}")


def _clock(engine: Engine, settings: Settings, now: int) -> Iterator[Finding]:
    try:
        with read_connection(engine) as conn:
            doubt = why_doubted(conn, now, tolerance=MINUTE_US)
            refusal = why_refused(conn, limits_of(conn, settings), now)
    except SQLAlchemyError:
        return  # the schema is another, which is a finding of its own
    if doubt is not None:
        yield Finding("clock", "problem", doubt)
    else:
        yield Finding("clock", "ok", format_time(now))
    if refusal is not None:
        yield Finding("retention", "warning", f"nothing is removed for now: {refusal}")


def _exposure(settings: Settings, engine: Engine) -> Iterator[Finding]:
    try:
        loopback = ipaddress.ip_address(settings.host).is_loopback
    except ValueError:
        loopback = settings.host == "localhost"
    users = None
    with suppress(SQLAlchemyError), read_connection(engine) as conn:
        users = conn.execute(select(func.count()).select_from(user_account)).scalar_one()
    if loopback:
        yield Finding("address", "ok", f"{settings.host} is reached from this machine only")
    elif not users:
        text = f"{settings.host} is reached from other machines and nobody has an account"
        yield Finding("address", "problem", f"{text}; run `toolfault sign-in-link`")
    else:
        text = f"{settings.host} is reached from other machines; put TLS in front of it"
        yield Finding("address", "warning", text)


def _names(engine: Engine, settings: Settings) -> Iterator[Finding]:
    """Say where tools are counted as ``other`` because a project has too many names."""
    counted = failure_counts.c
    tools = counted.by.in_(("tool", "folded"))
    query = (
        select(
            project.c.name,
            func.count(counted.name.distinct()).label("names"),
            func.sum(case((counted.name == OTHER, counted.calls), else_=0)).label("calls"),
        )
        .join(project, project.c.id == counted.project_id)
        .where(tools)
        .group_by(project.c.name)
        .order_by(project.c.name)
    )
    try:
        with read_connection(engine) as conn:
            found = conn.execute(query).all()
    except SQLAlchemyError:
        return  # the schema is another, which is a finding of its own
    for row in found:
        if row.calls and row.names > settings.max_tools:
            text = (
                f"project {row.name} has used {settings.max_tools} names of tools, and"
                f" {row.calls} calls of further ones are counted as other; who makes them up?"
                " TOOLFAULT_MAX_TOOLS is the limit"
            )
            yield Finding("names", "warning", text)


def _sqlite(engine: Engine, settings: Settings) -> Iterator[Finding]:
    advice = advice_on_version()
    yield Finding("sqlite", "warning" if advice else "ok", advice or sqlite3.sqlite_version)
    try:
        with engine.connect() as conn:
            mode = conn.exec_driver_sql("PRAGMA journal_mode").scalar_one()
    except SQLAlchemyError:
        return  # the file is damaged or no database, which is a finding of its own
    if mode != "wal":
        text = f"journal mode {mode}; readers will block writers (is the file system shared?)"
        yield Finding("journal", "problem", text)
    elif settings.synchronous != "FULL":
        text = "synchronous=NORMAL: a loss of power may take the last events with it"
        yield Finding("journal", "warning", text)
    else:
        yield Finding("journal", "ok", "WAL, synchronous=FULL")


def _file(path: Path) -> Iterator[Finding]:
    system = _file_system(path)
    if system in NETWORK_FILE_SYSTEMS:
        text = f"{path} is on {system}; SQLite's locks do not hold there, use a local disk"
        yield Finding("file system", "problem", text)
    free = shutil.disk_usage(path.parent).free
    level: Level = "ok" if free >= MIN_FREE_BYTES else "problem"
    yield Finding("disk", level, f"{free / 1024**3:.1f} GiB free at {path.parent}")
    for each in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if each.exists() and each.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            mode = oct(each.stat().st_mode & 0o777)
            text = f"{each} has mode {mode}; others can read it: chmod 600 {each}"
            yield Finding("file mode", "problem", text)
    log = WriteAheadLog(path).size
    if log > 2 * LONG_BYTES:
        text = (
            f"{log / 1024**2:.0f} MiB of write-ahead log: somebody has been reading for long (an"
            " export, a backup that hangs?); it shrinks at the first write after that has ended"
        )
        yield Finding("log", "warning", text)
    if not os.access(path, os.W_OK):
        yield Finding("file", "problem", f"{path} cannot be written")


def _file_system(path: Path) -> str:
    """Return the type of the file system that *path* is on, where the system tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    except OSError:
        return ""
    best, system = "", ""
    for line in mounts:
        _, point, kind, *_ = line.split(" ")
        inside = path.is_relative_to(point.replace("\\040", " "))
        if inside and len(point) >= len(best):
            best, system = point, kind
    return system
