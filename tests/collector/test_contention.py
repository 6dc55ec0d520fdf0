"""Writers, a long reader, backups and retention at once: nobody hears that a database is locked."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import OperationalError
from tests.collector.load import load
from tests.factories import failure, success
from tests.running import RunningCollector

from toolfault_collector.admin.backup import backup
from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.storage.database.wal import LONG_BYTES, WriteAheadLog
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import tool_call

READ_SECONDS = 0.5  # as long as the slowest page
LONG = [pytest.mark.long, pytest.mark.timeout(3_600)]


def _beside_each_other(rounds: int, *tasks: Callable[[], object]) -> None:
    """Run each of *tasks* in a thread of its own until all have run so often, or one failed."""
    runs = [0] * len(tasks)
    failed = threading.Event()

    def run(place: int) -> None:
        try:
            while min(runs) < rounds and not failed.is_set():
                tasks[place]()
                runs[place] += 1
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(len(tasks)) as pool:
        ended = [pool.submit(run, place) for place in range(len(tasks))]
    for each in ended:
        each.result()


def test_who_got_no_processor_is_not_refused(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer whose time to wait passed in a few looks goes on looking, but not for ever."""
    engine = open_engine(sqlite_url, busy_seconds=1)
    ticks, free_at = 0, 12

    def clock() -> float:
        """A machine so busy that a fifth of a second passes from one look to the next."""
        nonlocal ticks
        ticks += 1
        if ticks == free_at:
            other.rollback()
        return ticks / 5

    with closing(sqlite3.connect(sqlite_path(engine))) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr("time.monotonic", clock)
        with write_transaction(engine) as conn:
            ensure_project(conn, "demo")
        assert ticks == free_at

        other.execute("BEGIN IMMEDIATE")
        ticks, free_at = 0, 10_000
        with pytest.raises(OperationalError, match="locked"), write_transaction(engine):
            pass
        assert 15 <= ticks <= 20
        other.rollback()
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "rounds"),
    [
        ("sqlite", 1),
        pytest.param("sqlite", 50, marks=LONG),
        pytest.param("postgresql", 2, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_everything_at_once(database_url: str, tmp_path: Path, rounds: int) -> None:
    """Collectors take all that is sent while others read, back up, prune and count again."""
    engine = open_engine(database_url)
    numbers = itertools.count()
    pruned: list[int] = []
    log = WriteAheadLog(Path(engine.url.database or ""))
    longest = 0

    def crowd() -> None:
        """Store conversations in a project of their own, for retention to remove."""
        with write_transaction(engine) as conn:
            project_id = ensure_project(conn, "crowded")
            many = [failure(session_id=f"o{next(numbers)}") for _ in range(50)]
            store_events(conn, project_id, [*many, success(session_id=None)], received_at=now_us())

    def read_long() -> None:
        """Read what was there before twenty batches more were stored, beside others who do.

        No reader of the product waits for what is being stored. One that did would hold up the
        writers that hold themselves up for it until the log can be begun anew.
        """
        nonlocal longest
        with read_connection(engine) as conn:
            count = select(func.count()).select_from(tool_call)
            before = conn.execute(count).scalar_one()
            ledger.wait_a_moment_for(20, READ_SECONDS)
            assert conn.execute(count).scalar_one() == before
            longest = max(longest, log.size)

    def copy() -> None:
        if is_sqlite(engine):
            made = backup(engine, tmp_path / "copy.db")
            made.path.unlink()
        else:
            recount(engine)

    def care() -> None:
        with read_connection(engine) as conn:
            project_id = find_project(conn, "crowded")
        pruned.append(prune(engine, max_calls=100, project_id=project_id, force=True).calls)

    for _ in range(3):
        crowd()
    with ExitStack() as running:
        collectors = [
            running.enter_context(RunningCollector(database_url, folder=tmp_path))
            for _ in range(1 if is_sqlite(engine) else 2)
        ]
        with load(*collectors) as ledger:
            _beside_each_other(rounds, crowd, read_long, copy, care)
        assert sum(pruned) > 0
        for collector in collectors:
            assert "locked" not in collector.output()
            assert "Traceback" not in collector.output()
        # Somebody reads nearly all the time, and yet the log ends; nothing pins it.
        # A copy of what some minutes bring is read for nearly as long as writers are held up.
        assert longest <= (2 if rounds < 10 else 4) * LONG_BYTES
        assert _emptied_log(engine) <= 1024 * 1024
    engine.dispose()


def _emptied_log(engine: Engine) -> int:
    """Bytes of the write-ahead log after it was copied into the file, where there is one."""
    log = Path(f"{engine.url.database}-wal")
    if is_sqlite(engine):
        with engine.connect() as conn:
            conn.rollback()
            conn.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return log.stat().st_size if is_sqlite(engine) and log.exists() else 0
