"""The write-ahead log of SQLite stays short, whoever reads and however long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, event
from tests.factories import failure
from tests.statements import Statements

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.checks import examine
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    LOG_KEPT_BYTES,
    open_engine,
    read_connection,
    sqlite_path,
    write_transaction,
    writer_connection,
)
from toolfault_collector.storage.database.wal import LONG_BYTES, WriteAheadLog
from toolfault_collector.storage.store import store_events

MIB = 1024 * 1024


@pytest.fixture
def engine(sqlite_engine: Engine) -> Engine:
    """An open SQLite database."""
    return sqlite_engine


def _write(conn: Connection, size: int = MIB) -> None:
    with conn.begin():
        conn.exec_driver_sql("CREATE TABLE IF NOT EXISTS ballast (text BLOB)")
        conn.exec_driver_sql("INSERT INTO ballast VALUES (zeroblob(?))", (size,))


def _read(conn: Connection) -> None:
    conn.exec_driver_sql("SELECT count(*) FROM tool_call").scalar_one()


@contextmanager
def _never_without_a_reader(engine: Engine) -> Iterator[None]:
    """Let two readers take turns while the block lasts: each ends once the other has begun."""
    stop = threading.Event()
    turns = [threading.Event(), threading.Event()]

    def read(own: threading.Event, other: threading.Event) -> None:
        while not stop.is_set():
            with read_connection(engine) as conn:
                _read(conn)
                other.set()
                own.wait(20)
                own.clear()
        other.set()

    threads = [
        threading.Thread(target=read, args=(turns[number], turns[1 - number])) for number in (0, 1)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)


def test_readers_that_overlap_do_not_let_it_grow(engine: Engine) -> None:
    """Ten times the length that is long is written, and the log is never twice as long."""
    log = WriteAheadLog(sqlite_path(engine), long_bytes=2 * MIB)
    sizes, begun_anew = [], []
    with writer_connection(engine) as conn, _never_without_a_reader(engine):
        for _ in range(20):
            _write(conn)
            begun_anew.append(log.tend(conn))
            sizes.append(log.size)

    assert False not in begun_anew
    assert begun_anew.count(True) >= 5
    assert max(sizes) < 4 * MIB


def test_a_long_reader_is_waited_for_ever_more_rarely(engine: Engine) -> None:
    """While one reads on, the log is tried at twice its length each time; then it begins anew."""
    log = WriteAheadLog(sqlite_path(engine), long_bytes=MIB, tries=1)
    with writer_connection(engine) as conn:
        with read_connection(engine) as reader:
            _read(reader)
            tended = []
            for _ in range(16):
                _write(conn)
                tended.append(log.tend(conn))

            assert tended.count(False) in (4, 5)
            assert True not in tended
            assert log.size > 16 * MIB
        _write(conn, 16 * MIB)

        assert log.tend(conn) is True
        assert log.size == 0
        assert conn.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 10_000


def test_a_short_log_costs_no_statement(engine: Engine) -> None:
    """What is not long is not looked at by the database."""
    log = WriteAheadLog(sqlite_path(engine))
    with writer_connection(engine) as conn:
        _write(conn)
        with Statements(engine, conn) as statements:
            assert log.tend(conn) is None

    assert statements == []


def test_the_log_is_not_begun_anew_while_another_writes(engine: Engine) -> None:
    """Waiting for another writer, the log is not even copied; after its commit it begins anew."""
    log = WriteAheadLog(sqlite_path(engine), long_bytes=MIB, tries=1)
    with writer_connection(engine) as conn:
        _write(conn, 2 * MIB)
        before = sqlite_path(engine).stat().st_size
        with write_transaction(engine):
            assert log.tend(conn) is False
        assert sqlite_path(engine).stat().st_size == before
        _write(conn, 4 * MIB)

        assert log.tend(conn) is True
        assert log.size == 0


def test_space_is_given_back_after_a_long_read(engine: Engine) -> None:
    """Without any waiting the log of a long reader is cut when it begins anew by itself."""
    log = WriteAheadLog(sqlite_path(engine), copy_every=1)
    with writer_connection(engine) as conn:
        with read_connection(engine) as reader:
            _read(reader)
            while log.size <= LOG_KEPT_BYTES:
                _write(conn, 16 * MIB)
        log.tend(conn, events=1)
        _write(conn)  # begins it anew

        assert log.size <= LOG_KEPT_BYTES


@pytest.mark.long
def test_the_collector_tends_it(engine: Engine) -> None:
    """The collector says how long the log is, and begins it anew although readers overlap."""
    collector = Collector(Settings(), engine=engine)
    collector.start()
    log = WriteAheadLog(sqlite_path(engine))
    with writer_connection(engine) as conn, _never_without_a_reader(engine):
        with read_connection(engine) as reader:
            _read(reader)
            while log.size <= LONG_BYTES:
                _write(conn, 16 * MIB)
        gauge = collector.metrics.registry.get_sample_value("toolfault_wal_bytes")
        assert gauge == log.size
        assert _stored_one(collector) == 1

        assert _stored_one(collector) == 1
        assert log.size < LOG_KEPT_BYTES
    collector.stop()


def test_the_collector_tends_it_while_nothing_comes(engine: Engine) -> None:
    """What another process wrote beside an idle collector (an import) is copied by the writer."""
    collector = Collector(Settings(), engine=engine)
    looked = threading.Event()

    def note(*_: object) -> None:
        if threading.current_thread().name == "toolfault-writer":
            looked.set()

    event.listen(engine, "checkout", note)
    log, other = WriteAheadLog(sqlite_path(engine)), open_engine(str(engine.url))
    with writer_connection(other) as conn:
        while log.size <= LONG_BYTES:
            _write(conn, 16 * MIB)
        gauge = collector.metrics.registry.get_sample_value("toolfault_wal_bytes")
        assert gauge == log.size
        collector.start()
        assert looked.wait(60)
        collector.writer.stop()

        assert log.size < LOG_KEPT_BYTES
    collector.stop()
    other.dispose()


def _stored_one(collector: Collector) -> int:
    with write_transaction(collector.engine) as conn:
        context = Context(ensure_project(conn, "demo"), now_us())
    return collector.writer.store(read_events([failure()], context)).accepted


def test_the_doctor_sees_a_long_one(engine: Engine) -> None:
    """A log that somebody holds is a warning that says what to look for."""
    with write_transaction(engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), [failure()], received_at=now_us())
    path = sqlite_path(engine)
    with Path(f"{path}-wal").open("r+b") as file:
        file.truncate(2 * LONG_BYTES + 1)  # of nothing: what follows the last frame is not read

    (finding,) = (each for each in examine(Settings(), engine) if each.name == "log")

    assert finding.level == "warning"
    assert "export" in finding.text
