"""One connection alone copies SQLite's log: two of them may corrupt the file beside a commit.

https://sqlite.org/wal.html#walresetbug: SQLite 3.7.0 to 3.51.2.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    sqlite_path,
    write_transaction,
    writer_connection,
)
from toolfault_collector.storage.database.wal import WriteAheadLog

KIB = 1024


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    """An open SQLite database."""
    engine = open_engine(sqlite_url)
    yield engine
    engine.dispose()


def _write(conn: Connection, size: int) -> None:
    conn.exec_driver_sql("CREATE TABLE IF NOT EXISTS ballast (text BLOB)")
    conn.exec_driver_sql("INSERT INTO ballast VALUES (randomblob(?))", (size,))


def test_only_the_writer_copies_the_log(engine: Engine) -> None:
    """Whatever others commit stays in the log; the writer's connection copies it."""
    for _ in range(5):
        with write_transaction(engine) as conn:
            _write(conn, 16 * KIB * KIB)
    path = sqlite_path(engine).with_name(sqlite_path(engine).name + "-wal")
    assert path.stat().st_size > 80 * KIB * KIB
    file_before = sqlite_path(engine).stat().st_size

    log = WriteAheadLog(sqlite_path(engine), copy_every=1)
    with writer_connection(engine) as conn:
        with conn.begin():
            _write(conn, KIB)
        assert sqlite_path(engine).stat().st_size == file_before
        log.tend(conn, events=1)

    assert file_before < 16 * KIB * KIB
    assert sqlite_path(engine).stat().st_size > 80 * KIB * KIB


def test_the_writer_copies_between_two_of_its_transactions(engine: Engine) -> None:
    """Eight megabytes pass through a log of three, since it begins anew after each copy."""
    log = WriteAheadLog(sqlite_path(engine), copy_every=100)
    with writer_connection(engine) as conn:
        for _ in range(32):
            with conn.begin():
                _write(conn, 256 * KIB)
            log.tend(conn, events=50)

        assert log.size < 3 * KIB * KIB
        assert conn.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one() == 32


def test_a_reader_is_not_waited_for(engine: Engine) -> None:
    """While somebody reads, the log is copied as far as it goes, and nothing is lost."""
    log = WriteAheadLog(sqlite_path(engine), copy_every=1)
    with writer_connection(engine) as conn:
        with conn.begin():
            _write(conn, KIB)
        with read_connection(engine) as reader:
            before = reader.execute(text("SELECT count(*) FROM ballast")).scalar_one()
            for _ in range(8):
                with conn.begin():
                    _write(conn, 256 * KIB)
                log.tend(conn, events=1)
            assert reader.execute(text("SELECT count(*) FROM ballast")).scalar_one() == before == 1

        assert conn.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one() == 9


def test_the_writer_copies_once_after_a_commit_of_its_own(engine: Engine) -> None:
    """What others committed since the last copy is left until the writer commits again."""
    log = WriteAheadLog(sqlite_path(engine), copy_every=1)
    sizes = []
    with writer_connection(engine) as conn:
        with conn.begin():
            _write(conn, KIB)
        log.tend(conn, events=1)
        for _ in range(2):
            with write_transaction(engine) as other:
                _write(other, KIB * KIB)
            log.tend(conn, events=1)
            sizes.append(sqlite_path(engine).stat().st_size)
        with conn.begin():
            _write(conn, KIB)
        log.tend(conn, events=1)
        sizes.append(sqlite_path(engine).stat().st_size)

    assert sizes[0] == sizes[1] < KIB * KIB < sizes[2]


def test_who_waited_for_readers_in_vain_does_not_copy_again(engine: Engine) -> None:
    """After tries to begin the log anew it is not copied before the writer commits again."""
    log = WriteAheadLog(sqlite_path(engine), copy_every=1, long_bytes=KIB * KIB, tries=1)
    with writer_connection(engine) as conn:
        with read_connection(engine) as reader:
            reader.execute(text("SELECT count(*) FROM sqlite_master")).scalar_one()
            with conn.begin():
                _write(conn, 2 * KIB * KIB)
            assert log.tend(conn, events=1) is False
        with write_transaction(engine) as other:
            _write(other, KIB * KIB)
        before = sqlite_path(engine).stat().st_size
        assert log.tend(conn, events=1) is None
        assert sqlite_path(engine).stat().st_size == before


@pytest.mark.long
def test_nothing_is_lost_under_readers_that_never_pause(database_url: str) -> None:
    """Small commits, readers all the time, on SQLite a copy after each few: every row stays.

    Somebody else commits as well, as retention and commands do, and never copies.
    ``TOOLFAULT_WAL_STRESS_SECONDS`` says how long; an hour before a release.
    """
    seconds = float(os.environ.get("TOOLFAULT_WAL_STRESS_SECONDS", "120"))
    engine = open_engine(database_url)
    log = WriteAheadLog(sqlite_path(engine), copy_every=5) if is_sqlite(engine) else None
    committed, beside, stop = [0], [0], threading.Event()
    wrong: list[str] = []

    def write_beside() -> None:
        while not stop.is_set():
            with write_transaction(engine) as other:
                other.exec_driver_sql("INSERT INTO ballast (text) VALUES ('row')")
            beside[0] += 1

    def read() -> None:
        while not stop.is_set():
            least = committed[0] + beside[0]
            with read_connection(engine) as conn:
                found = conn.execute(text("SELECT count(*) FROM ballast")).scalar_one()
            if found < least:
                wrong.append(f"{found} rows of at least {least}")
                return

    with writer_connection(engine) as conn:
        with conn.begin():
            conn.exec_driver_sql("CREATE TABLE ballast (text TEXT)")
        threads = [threading.Thread(target=each) for each in (read, read, read, write_beside)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not wrong:
            with conn.begin():
                conn.exec_driver_sql("INSERT INTO ballast (text) VALUES ('row')")
            committed[0] += 1
            if log is not None:
                log.tend(conn, events=1)
        stop.set()
        for thread in threads:
            thread.join()

        assert wrong == []
        stored = conn.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one()
        assert stored == committed[0] + beside[0]
        assert beside[0] > 0
        if log is not None:
            assert conn.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
    engine.dispose()
