"""The doctor finds the faults that were put there."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, insert
from tests.factories import failure
from tests.running import RunningCollector

import toolfault_migrations as migrations
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clickhouse import outbox
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.doctor import checks as doctor
from toolfault_collector.doctor.checks import Finding, examine
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine, sqlite_path, write_transaction
from toolfault_collector.storage.database.wal import advice_on_version
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import user_account


def _found(engine: Engine, name: str, **settings: object) -> Finding:
    findings = examine(Settings(**settings), engine)  # type: ignore[arg-type]
    return next(finding for finding in findings if finding.name == name)


def test_sound_installation_has_no_problem(engine: Engine) -> None:
    """A fresh database has no problem; what is a warning says why."""
    findings = examine(Settings(), engine)

    assert [finding for finding in findings if finding.level == "problem"] == []
    assert all(finding.text for finding in findings)


def _newer(engine: Engine) -> None:
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")


def _no_schema(engine: Engine) -> None:
    migrations.downgrade(engine, "base")


def _future(engine: Engine) -> None:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, [failure()], received_at=now_us() + DAY_US)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_damaged_file_is_a_finding(engine: Engine) -> None:
    """Of a file that is no database the doctor says what it can, and does not fail."""
    engine.dispose()
    path = sqlite_path(engine)
    path.write_bytes(b"no database " * 1_000)
    for each in ("-wal", "-shm"):
        path.with_name(path.name + each).unlink(missing_ok=True)

    found = _found(engine, "database")
    assert (found.level, found.text) == ("problem", "does not answer: DatabaseError")


@pytest.mark.parametrize(
    ("database_url", "damage", "name", "says"),
    [
        ("sqlite", _newer, "schema", "upgrade toolfault-server"),
        ("sqlite", _no_schema, "schema", "toolfault db upgrade"),
        pytest.param(
            "postgresql", _no_schema, "schema", "toolfault db upgrade", marks=pytest.mark.postgres
        ),
        ("sqlite", _future, "clock", "set the clock"),
    ],
    indirect=["database_url"],
)
def test_fault_of_either_engine(
    engine: Engine, damage: Callable[[Engine], None], name: str, says: str
) -> None:
    """A wrong schema and a wrong clock are problems on both engines."""
    damage(engine)

    finding = _found(engine, name)

    assert finding.level == "problem"
    assert says in finding.text


def test_public_address(sqlite_engine: Engine) -> None:
    """A public address is a problem without an account and a warning with one."""
    assert _found(sqlite_engine, "address", host="0.0.0.0").level == "problem"
    with write_transaction(sqlite_engine) as conn:
        row = {"name": "ada", "role": "admin", "created_at": now_us()}
        conn.execute(insert(user_account).values(row))

    assert _found(sqlite_engine, "address", host="0.0.0.0").level == "warning"
    assert _found(sqlite_engine, "address", host="127.0.0.1").level == "ok"


def test_readable_files(sqlite_engine: Engine) -> None:
    """A database file that others can read is a problem."""
    sqlite_path(sqlite_engine).chmod(0o644)

    assert "chmod 600" in _found(sqlite_engine, "file mode").text


def test_journal_mode(sqlite_url: str) -> None:
    """Another journal mode than WAL is a problem, NORMAL a warning."""
    engine = open_engine(sqlite_url)
    assert _found(engine, "journal", synchronous="NORMAL").level == "warning"
    engine.dispose()

    @event.listens_for(engine, "connect")
    def _refuse_wal(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode=DELETE")  # as a shared file system would

    assert _found(engine, "journal").level == "problem"
    engine.dispose()


@pytest.mark.parametrize(
    ("version", "sound"),
    [
        ((3, 6, 23), True),
        ((3, 7, 0), False),
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 8), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
    ],
)
def test_sqlite_version(
    sqlite_engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int, int],
    sound: bool,
) -> None:
    """Versions with the WAL-reset bug are named with what to do, patched ones are not."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", version)

    finding = _found(sqlite_engine, "sqlite")

    assert finding.level == ("ok" if sound else "warning")
    assert sound or "run one server on it" in finding.text


def test_the_server_says_the_same_at_its_start(sqlite_server: RunningCollector) -> None:
    """One warning in the log where the doctor has one, none where it has none."""
    lines = [json.loads(line) for line in sqlite_server.output().splitlines()]
    said = [line for line in lines if line["event"] == "sqlite_version"]

    advice = advice_on_version()
    assert [(line["level"], line["advice"]) for line in said] == (
        [] if advice is None else [("warning", advice)]
    )


def test_little_space(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Less free space than the limit is a problem."""
    monkeypatch.setattr(doctor, "MIN_FREE_BYTES", 2**60)

    assert _found(sqlite_engine, "disk").level == "problem"


def test_network_file_system(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose locks do not hold is a problem."""
    mounts = Path("/proc/self/mounts").read_text("utf-8").splitlines()
    here = frozenset(line.split(" ")[2] for line in mounts)
    monkeypatch.setattr(doctor, "NETWORK_FILE_SYSTEMS", here)

    assert _found(sqlite_engine, "file system").level == "problem"


def test_database_that_is_gone() -> None:
    """A database that does not answer is the first thing said."""
    engine = open_engine("postgresql://nobody@127.0.0.1:1/nothing")

    first = examine(Settings(), engine)[0]

    assert (first.name, first.level) == ("database", "problem")
    engine.dispose()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_file_that_cannot_be_written(sqlite_url: str) -> None:
    """A read-only file is a problem."""
    engine = open_engine(sqlite_url)
    Path(sqlite_path(engine)).chmod(0o400)

    assert _found(engine, "file").level == "problem"
    engine.dispose()


def test_an_outbox_that_nobody_empties_is_a_warning(engine: Engine) -> None:
    """Changes are noted for ClickHouse and nobody ships them: the doctor says what to do."""
    with write_transaction(engine) as conn:
        outbox.install(conn)
    assert "forget-events" in _found(engine, "outbox").text
    shipped = examine(Settings(events_url="clickhousedb://localhost/x"), engine)
    assert "outbox" not in {finding.name for finding in shipped}
