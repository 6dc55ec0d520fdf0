"""The disk fills up, or may not be written to: clear answers, nothing lost, no restart."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.collector.load import stored_ids
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success
from tests.live_server import LiveServer, live_server
from tests.next_schema import add_next_schema
from tests.running import RunningCollector, new_key

import toolfault
import toolfault_migrations as migrations
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.errors import BackupError
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.database.schema import is_at_head, prepare
from toolfault_collector.storage.store import store_events

MIB = 1024 * 1024


@pytest.fixture
def full_soon(
    small_disk: Path, sqlite_template: Path, tmp_path: Path
) -> Iterator[RunningCollector]:
    """A collector whose disk has little room left; `ballast` beside its database takes the rest."""
    database = small_disk / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    (small_disk / "ballast").write_bytes(bytes(10 * MIB))
    with RunningCollector(f"sqlite:///{database}", folder=tmp_path) as running:
        yield running


def _fill(collector: RunningCollector) -> tuple[list[str], list[dict[str, object]]]:
    """Send until the disk is full; return what was acknowledged and the batch that was not."""
    acknowledged: list[str] = []
    while True:
        batch = [failure(error={"traceback": "x" * 2_000}) for _ in range(100)]
        answer = collector.post(*batch)
        if answer.status_code != 200:
            assert answer.status_code == 507, answer.text
            assert answer.json()["code"] == "disk_full"
            assert 1 <= int(answer.headers["retry-after"]) <= 300
            return acknowledged, batch
        acknowledged += [str(each["event_id"]) for each in batch]


def _check(collector: RunningCollector, expected: set[str]) -> None:
    engine = open_engine(collector.database_url)
    assert stored_ids(engine) == Counter(expected)
    assert recount(engine).right
    assert_counts_hold(engine)
    engine.dispose()
    with closing(sqlite3.connect(collector.database_url.removeprefix("sqlite:///"))) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
def test_full_disk_loses_nothing(full_soon: RunningCollector) -> None:
    """On a full disk the answer is 507; with room again the same process goes on."""
    acknowledged, refused = _fill(full_soon)
    for _ in range(3):
        assert full_soon.post(*refused).status_code == 507
    assert full_soon.get("/healthz").status_code == 200
    assert full_soon.get("/readyz").status_code == 200
    assert full_soon.post(*refused, key="tf_ingest_" + "x" * 43).status_code == 401
    _ballast(full_soon).unlink()

    assert full_soon.post(*refused).json()["accepted"] == len(refused)
    resent = {str(each["event_id"]) for each in refused}
    _check(full_soon, {*acknowledged, *resent})
    assert "Traceback" not in full_soon.output()


@pytest.mark.long
def test_agents_outlast_a_full_disk(full_soon: RunningCollector) -> None:
    """What agents capture on a full disk arrives when there is room, after the wait it asks for."""
    acknowledged, _ = _fill(full_soon)
    toolfault.init(full_soon.dsn, agent="patient")
    try:
        captured = {
            toolfault.capture_failure(ValueError("no"), tool="http_request") for _ in range(50)
        }
        assert not toolfault.flush(1), toolfault.stats()
        _ballast(full_soon).unlink()
        assert toolfault.flush(120), toolfault.stats()
        stats = toolfault.stats()
    finally:
        toolfault.close()

    assert (stats.acked, stats.dropped) == (50, {})
    _check(full_soon, {*acknowledged, *map(str, captured)})


def test_migration_without_room(
    small_disk: Path, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older file whose copy finds no room is left as it is, and said; with room it is served."""
    database = small_disk / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    database.chmod(0o600)
    engine = open_engine(f"sqlite:///{database}")
    with write_transaction(engine) as conn:
        kept = [failure(error={"received": "x" * 9_000}) for _ in range(300)]
        store_events(conn, ensure_project(conn, "demo"), kept, received_at=now_us())
    engine.dispose()
    older = migrations.HEAD
    add_next_schema(tmp_path, monkeypatch.setattr)
    ballast = small_disk / "ballast"
    room = shutil.disk_usage(small_disk).free - database.stat().st_size // 2
    ballast.write_bytes(bytes(room))
    before = sorted(path.name for path in small_disk.iterdir())

    with pytest.raises(BackupError, match="full"):
        prepare(engine, migrate=False)

    assert migrations.current(engine) == older
    engine.dispose()
    assert sorted(path.name for path in small_disk.iterdir()) == before
    ballast.unlink()
    prepare(engine, migrate=False)
    assert is_at_head(engine)
    assert sum(stored_ids(engine).values()) == 300
    engine.dispose()


@pytest.mark.slow
def test_readers_are_served_on_a_full_disk(
    small_disk: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    """Lists, figures and files are read while nothing can be stored."""
    database = small_disk / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    url = f"sqlite:///{database}"
    ingest, read = new_key(url), new_key(url, kind="read")
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(10 * MIB))
    with live_server(tmp_path, database_url=url) as server:
        stored = 0
        while True:
            batch = [failure(error={"traceback": "x" * 2_000}) for _ in range(100)]
            answer = _ask(server, "POST", "/v1/events", ingest, json={"events": batch})
            if answer.status_code != 200:
                break
            stored += answer.json()["accepted"]

        assert answer.status_code == 507
        for path in ("failures", "chains", "exports/failures.csv"):
            answer = _ask(server, "GET", f"/api/v1/{path}", read)
            assert answer.status_code == 200, (path, answer.text)
        summary = _ask(server, "GET", "/api/v1/summary", read)
        assert summary.json()["calls"] == stored
        assert _ask(server, "POST", "/v1/events", ingest, json={"events": batch}).status_code == 507


def _ask(server: LiveServer, method: str, path: str, key: str, **options: Any) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.request(
        method, server.address + path, headers=headers, timeout=60, trust_env=False, **options
    )


@pytest.mark.long
def test_killed_on_a_full_disk(full_soon: RunningCollector) -> None:
    """A process that is killed on a full disk starts again with room, and has lost nothing."""
    acknowledged, refused = _fill(full_soon)
    full_soon.kill()
    _ballast(full_soon).unlink()
    full_soon.start()

    assert full_soon.post(*refused).json()["accepted"] == len(refused)
    _check(full_soon, {*acknowledged, *(str(each["event_id"]) for each in refused)})


def _ballast(collector: RunningCollector) -> Path:
    return Path(collector.database_url.removeprefix("sqlite:///")).with_name("ballast")


@pytest.mark.slow
def test_read_only_disk_is_said_and_passes(
    small_disk: Path, sqlite_template: Path, tmp_path: Path
) -> None:
    """A disk that may not be written to is 503 with Retry-After, until it may."""
    database = small_disk / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    kept, batch = success(), [failure(), success()]
    collector = RunningCollector(f"sqlite:///{database}", folder=tmp_path)
    engine = open_engine(collector.database_url)
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [kept], received_at=now_us())
    left = {path: path.read_bytes() for path in small_disk.iterdir()}
    engine.dispose()
    for path, content in left.items():  # as a process that was killed leaves them: with their log
        path.write_bytes(content)
    _remount(small_disk, "ro")
    with collector:
        for _ in range(3):
            answer = collector.post(*batch)
            assert answer.status_code == 503, answer.text
            assert 1 <= int(answer.headers["retry-after"]) <= 300
        assert collector.get("/healthz").status_code == 200

        _remount(small_disk, "rw")
        assert collector.post(*batch).json()["accepted"] == 2
        _check(collector, {str(each["event_id"]) for each in [kept, *batch]})
        assert "Traceback" not in collector.output()


def _remount(folder: Path, access: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{access}", str(folder)], check=True)
