"""The log of SQLite is copied beside the writer, every so many events."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine

from toolfault_collector.checkpoints import Checkpoints
from toolfault_collector.engine import sqlite_path, writer_connection
from toolfault_collector.wal import WriteAheadLog

KIB = 1024


@pytest.fixture
def engine(sqlite_engine: Engine) -> Engine:
    """An open SQLite database."""
    return sqlite_engine


def _write(conn: Connection) -> None:
    with conn.begin():
        conn.exec_driver_sql("CREATE TABLE IF NOT EXISTS ballast (text BLOB)")
        conn.exec_driver_sql("INSERT INTO ballast VALUES (randomblob(?))", (256 * KIB,))


@pytest.mark.parametrize(("every", "short"), [(100, True), (10_000, False)])
def test_the_log_begins_anew_without_a_commit_that_copies(
    engine: Engine, every: int, short: bool
) -> None:
    """Eight megabytes pass through a log of three where events are enough, else of eight."""
    checkpoints = Checkpoints(engine, every_events=every)
    log = WriteAheadLog(sqlite_path(engine), checkpoints=checkpoints)
    with writer_connection(engine) as conn:
        for _ in range(32):
            _write(conn)
            log.tend(conn, events=50)
            checkpoints.wait()

        assert (log.size < 3 * KIB * KIB) is short
        assert conn.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one() == 32
    log.stop()


def test_a_reader_is_not_waited_for(engine: Engine) -> None:
    """While somebody reads, the log is copied as far as it goes, and nothing is lost."""
    checkpoints = Checkpoints(engine, every_events=1)
    with writer_connection(engine) as conn:
        _write(conn)
        with engine.connect() as reader, reader.begin():
            before = reader.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one()
            for _ in range(8):
                _write(conn)
                checkpoints.stored(conn, 1)
                checkpoints.wait()
            assert reader.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one() == before

        assert conn.exec_driver_sql("SELECT count(*) FROM ballast").scalar_one() == 9
    checkpoints.stop()
