"""Backups made while the server writes hold everything acknowledged, and come back whole."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.collector.load import writing
from tests.factories import failure, success
from tests.running import RunningCollector

from toolfault_collector.admin.backup import backup, restore
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.errors import BackupError, SchemaTooNew
from toolfault_collector.storage.database.engine import open_engine, sqlite_path, write_transaction
from toolfault_collector.storage.store import store_events


def _ids(path: Path) -> Counter[str]:
    """The stored event ids; one that two projects have counts twice."""
    with closing(sqlite3.connect(path)) as raw:
        return Counter(row[0] for row in raw.execute("SELECT event_id FROM tool_call"))


@pytest.mark.parametrize("backups", [2, pytest.param(100, marks=pytest.mark.long)])
def test_backup_under_load_holds_what_was_acknowledged(
    collector: RunningCollector, tmp_path: Path, backups: int
) -> None:
    """Each backup holds every event that was acknowledged before it began."""
    acknowledged: set[str] = set()

    def send(_: int) -> str:
        batch = [failure(), failure(), success()]
        assert collector.post(*batch).status_code == 200
        acknowledged.update(str(event["event_id"]) for event in batch)
        return ""

    engine = open_engine(collector.database_url)
    with writing(send):
        for number in range(backups):
            before = set(acknowledged)
            made = backup(engine, tmp_path / f"{number}.db")
            stored = _ids(made.path)
            assert before <= stored.keys()
            assert made.path.stat().st_mode & 0o777 == 0o600
            assert made.calls == stored.total()
    engine.dispose()


def test_restore_drill(sqlite_url: str, tmp_path: Path) -> None:
    """Back up, lose what came later, restore, serve again: the drill of docs/operations.md."""
    copy = tmp_path / "backup" / "monday.db"
    copy.parent.mkdir()
    with RunningCollector(sqlite_url, folder=tmp_path) as collector:
        kept = [failure(), success()]
        collector.post(*kept)
        engine = open_engine(sqlite_url)
        backup(engine, copy)
        engine.dispose()
        collector.post(later := failure())
        with pytest.raises(BackupError, match="stop the server"):
            restore(copy, sqlite_url)
        collector.terminate()

        restore(copy, sqlite_url)

        collector.start()
        assert collector.post(*kept).json()["duplicate"] == 2
        assert collector.post(later).json()["accepted"] == 1
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.with_name(path.name + ".before-restore")
    assert later["event_id"] in _ids(before)


def test_restore_after_a_kill(sqlite_url: str, tmp_path: Path) -> None:
    """The log of a server that was killed does not leak into the restored database."""
    killed, copy = tmp_path / "killed", tmp_path / "copy.db"
    killed.mkdir()
    engine = open_engine(sqlite_url)
    _store(engine, kept := success())
    backup(engine, copy)
    _store(engine, failure())
    for file in tmp_path.glob("toolfault.db*"):  # what a kill leaves, its log with it
        shutil.copyfile(file, killed / file.name)
    engine.dispose()
    assert (killed / "toolfault.db-wal").stat().st_size > 0

    restore(copy, f"sqlite:///{killed / 'toolfault.db'}")

    engine = open_engine(f"sqlite:///{killed / 'toolfault.db'}")
    assert _ids(sqlite_path(engine)) == {kept["event_id"]: 1}
    assert recount(engine).right
    engine.dispose()


def _store(engine: Engine, event: dict[str, Any]) -> None:
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [event], received_at=now_us())


def test_restore_to_a_new_place(sqlite_url: str, tmp_path: Path) -> None:
    """A backup can be restored where there was nothing."""
    engine = open_engine(sqlite_url)
    backup(engine, tmp_path / "copy.db")
    engine.dispose()

    restored = restore(tmp_path / "copy.db", f"sqlite:///{tmp_path / 'new' / 'toolfault.db'}")

    assert restored.calls == 0
    assert not list(restored.path.parent.glob("*.before-restore"))


def test_newer_backup_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    """A backup of a newer version is not put where this one would fail on it."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    backup(engine, tmp_path / "copy.db")
    engine.dispose()

    with pytest.raises(SchemaTooNew, match="upgrade"):
        restore(tmp_path / "copy.db", sqlite_url)


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100])
def test_damaged_backup_is_refused(sqlite_url: str, tmp_path: Path, damage: bytes) -> None:
    """What is no database is not restored, and what was there stays."""
    (tmp_path / "copy.db").write_bytes(damage)
    before = Path(sqlite_url.removeprefix("sqlite:///")).read_bytes()

    with pytest.raises(BackupError):
        restore(tmp_path / "copy.db", sqlite_url)

    assert Path(sqlite_url.removeprefix("sqlite:///")).read_bytes() == before


def test_backup_does_not_overwrite(sqlite_url: str, tmp_path: Path) -> None:
    """An existing file is never overwritten."""
    engine = open_engine(sqlite_url)
    (tmp_path / "copy.db").write_text("precious")

    with pytest.raises(BackupError, match="exists"):
        backup(engine, tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "precious"
    engine.dispose()


@pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_postgres_has_its_own_tools(engine: Engine, tmp_path: Path) -> None:
    """For PostgreSQL the message names the tool."""
    with pytest.raises(BackupError, match="pg_dump"):
        backup(engine, tmp_path / "copy.db")


def test_backup_of_a_busy_database_ends(sqlite_url: str, tmp_path: Path) -> None:
    """A backup is done however often others write meanwhile, and holds up none of them."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("CREATE TABLE ballast (id INTEGER PRIMARY KEY, body BLOB)")
        conn.exec_driver_sql("INSERT INTO ballast (body) VALUES (zeroblob(32000000))")

    def write(_: int) -> str:
        with write_transaction(engine) as conn:
            conn.exec_driver_sql("INSERT INTO ballast (body) VALUES (zeroblob(5000))")
        return ""

    with writing(write):
        made = backup(engine, tmp_path / "copy.db")

    assert made.size > 32_000_000
    engine.dispose()


def test_backup_that_finds_no_room_leaves_nothing(
    sqlite_url: str, tmp_path: Path, small_disk: Path
) -> None:
    """Where the copy does not fit the message says so, and nothing half done takes up space."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("CREATE TABLE ballast (body BLOB)")
        conn.exec_driver_sql("INSERT INTO ballast VALUES (zeroblob(40000000))")

    with pytest.raises(BackupError, match="full"):
        backup(engine, small_disk / "copy.db")

    assert list(small_disk.iterdir()) == []
    engine.dispose()
