"""The group-committing writer: sharing, isolation, refusal, recovery."""

from __future__ import annotations

import gc
import json
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest
from sqlalchemy import Engine, event, func, select
from sqlalchemy.exc import OperationalError
from tests.collector.poisons import DEADLOCK, POISONS, poison
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import change, failure, success
from tests.statements import Statements

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.errors import StoreUnavailable, WriterBusy
from toolfault_collector.pipeline.writer import Deliver, Result, Ticket
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import finish
from toolfault_collector.protocol.submission import Submission, read_batch
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_group
from toolfault_collector.storage.tables import (
    conversation,
    issue,
    message,
    metadata,
    rejected_event,
    signature,
    tool_call,
)

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


@pytest.fixture
def collector(engine: Engine) -> Iterator[Collector]:
    """A started collector on each engine, without HTTP."""
    settings = Settings(queue_events=1_000, group_events=1_000)
    running = Collector(settings, engine=engine)
    running.start()
    yield running
    running.stop()


def submission_of(engine: Engine, *events: object, **limits: int) -> Submission:
    """Prepare *events* as they would come over HTTP."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
    body = json.dumps({"events": events}).encode()
    return finish(read_batch(body, project_id=project_id, received_at=now_us(), **limits))


def _count(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return conn.execute(select(func.count()).select_from(tool_call)).scalar_one()


def _hold(collector: Collector, deliver: Deliver = lambda _results: None) -> threading.Event:
    """Keep every writer busy with a first commit until the returned event is set."""
    held, release = threading.Semaphore(0), threading.Event()
    to_hold = _writers(collector)

    def wait(_conn: object) -> None:
        nonlocal to_hold
        if to_hold:
            to_hold -= 1
            held.release()
            release.wait(20)

    event.listen(collector.engine, "commit", wait)
    for number in range(to_hold):
        _submit(collector, _submission_without_commit(number + 1), deliver)
        assert held.acquire(timeout=20)
    return release


def _writers(collector: Collector) -> int:
    """Return how many threads write."""
    return 1 if is_sqlite(collector.engine) else 2


def _somebody_waits(engine: Engine) -> bool:
    """Return whether anybody waits for a lock; a transaction is told the same all through."""
    sql = "SELECT wait_event_type FROM pg_stat_activity WHERE datname = current_database()"
    with read_connection(engine) as conn:
        return "Lock" in conn.exec_driver_sql(sql).scalars().all()


def _submit(collector: Collector, submission: Submission, deliver: Deliver) -> None:
    collector.writer.submit(
        Ticket(lambda: submission, deliver),
        project_id=submission.project_id,
        events=submission.size,
        size=1,
    )


def _submission_without_commit(days_ago: int) -> Submission:
    at = now_us() - days_ago * DAY_US  # shares no row with another, nor with what comes today
    events = [success(f"held-{days_ago}", session_id=None, at=at)]
    body = json.dumps({"events": events}).encode()
    return finish(read_batch(body, project_id=1, received_at=now_us()))


def _commits(collector: Collector) -> float | None:
    return collector.metrics.registry.get_sample_value("toolfault_group_seconds_count")


class _Results:
    """Collects what becomes of submissions."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._lock = threading.Lock()
        self.seen: list[Result] = []
        self._done = threading.Event()

    def __call__(self, results: list[tuple[Ticket, Result]]) -> None:
        with self._lock:
            self.seen += [result for _, result in results]
            if len(self.seen) == self._expected:
                self._done.set()

    def wait(self) -> list[Result]:
        assert self._done.wait(60), self.seen
        return self.seen


@POSTGRESQL_IS_LONG
def test_waiting_batches_share_a_commit(collector: Collector) -> None:
    """Batches that arrive during a commit are stored by the next one, together."""
    submissions = [submission_of(collector.engine, failure(), success()) for _ in range(20)]
    results, of_held = _Results(20), _Results(_writers(collector))
    release = _hold(collector, of_held)
    for submission in submissions:
        _submit(collector, submission, results)
    release.set()

    receipts = results.wait()
    of_held.wait()

    assert [receipt.accepted for receipt in receipts if isinstance(receipt, Receipt)] == [2] * 20
    assert _commits(collector) == _writers(collector) + 1
    assert _count(collector.engine) == 40 + _writers(collector)


@POSTGRESQL_IS_LONG
def test_a_batch_that_is_long_to_read_holds_up_no_other(collector: Collector) -> None:
    """Between two slices of the reading of one batch another project's is stored."""
    long, quick = (submission_of(collector.engine, failure(), success()) for _ in range(2))
    of_long, of_quick = _Results(1), _Results(1)
    slices = 0

    def read_on() -> Submission | None:
        nonlocal slices
        slices += 1
        if slices == 1:
            _submit(collector, quick, of_quick)
        return long if of_quick.seen else None  # until the other is answered

    ticket = Ticket(read_on, of_long)
    collector.writer.submit(ticket, project_id=long.project_id + 1, events=2, size=1)

    receipts = [*of_long.wait(), *of_quick.wait()]
    assert [each.accepted for each in receipts if isinstance(each, Receipt)] == [2, 2]
    assert slices > 1
    collector.writer.store(submission_of(collector.engine, success()))
    name = "toolfault_queued_events"
    assert collector.metrics.registry.get_sample_value(name) == 0


@POSTGRESQL
def test_batch_that_waits_for_a_row_holds_up_no_other(collector: Collector) -> None:
    """On PostgreSQL a second thread stores what comes while the first waits for the database."""
    slow = submission_of(collector.engine, failure("slow", session_id="slow"))
    quick = submission_of(collector.engine, failure("quick", session_id="quick"))
    known = submission_of(collector.engine, success("slow", session_id="slow"))
    collector.writer.store(known)
    results = _Results(1)
    with write_transaction(collector.engine) as conn:
        where = conversation.c.session_id == "slow"
        conn.execute(select(conversation.c.session_id).where(where).with_for_update())
        _submit(collector, slow, results)
        while not _somebody_waits(collector.engine):
            pass  # in one group with the other it would hold it up

        assert collector.writer.store(quick).accepted == 1
        assert results.seen == []

    assert [receipt.accepted for receipt in results.wait() if isinstance(receipt, Receipt)] == [1]


@pytest.fixture
def by_event(engine: Engine) -> Iterator[Collector]:
    """A collector that commits each event by itself."""
    running = Collector(Settings(group_events=1), engine=engine)
    running.start()
    yield running
    running.stop()


@SQLITE
def test_a_commit_that_fails_is_no_success(by_event: Collector) -> None:
    """Of two batches the first is not acknowledged; the second, a group of its own, is stored."""
    batches = [submission_of(by_event.engine, failure()) for _ in range(2)]
    results, release = _Results(2), _hold(by_event)
    for batch in batches:
        _submit(by_event, batch, results)

    def fail(_conn: object) -> None:
        raise OperationalError("COMMIT", None, sqlite3.OperationalError("database or disk is full"))

    event.listen(by_event.engine, "commit", fail, once=True)
    release.set()
    assert [isinstance(each, Receipt) for each in results.wait()] == [False, True]


@SQLITE
def test_one_id_twice_in_a_group(collector: Collector) -> None:
    """The first is stored; the others are duplicates, and conflicts if they say something else."""
    first = failure("one")
    same, other = dict(reversed(first.items())), {**first, "tool": "two"}
    batches = [submission_of(collector.engine, each) for each in (first, same, other)]
    with write_transaction(collector.engine) as conn:
        receipts = store_group(conn, batches).receipts

    assert [(each.accepted, each.duplicate, each.conflicts) for each in receipts] == [
        (1, 0, 0),
        (0, 1, 0),
        (0, 1, 1),
    ]
    with read_connection(collector.engine) as conn:
        assert conn.execute(select(tool_call.c.tool)).scalars().all() == ["one"]


@SQLITE
def test_one_id_twice_of_events_of_any_size(collector: Collector) -> None:
    """Events beyond the usual limit, where a server takes such, are compared as others are."""
    first = failure("one", planet="x" * 300_000)
    same, other = dict(reversed(first.items())), {**first, "tool": "two"}
    batch = submission_of(collector.engine, first, same, other, max_event_bytes=400_000)
    with write_transaction(collector.engine) as conn:
        (receipt,) = store_group(conn, [batch]).receipts

    assert (receipt.accepted, receipt.duplicate, receipt.conflicts) == (1, 2, 1)


def test_one_id_of_two_kinds(collector: Collector) -> None:
    """A call and a change of one id are both stored, and both known when they come again."""
    first = failure()
    marker = change(event_id=first["event_id"])
    for expected in ((2, 0), (0, 2)):
        receipt = collector.writer.store(submission_of(collector.engine, first, marker))
        assert (receipt.accepted, receipt.duplicate, receipt.conflicts) == (*expected, 0)


@SQLITE
def test_one_id_twice_with_members_of_importers(collector: Collector) -> None:
    """Members of importers are unknown ones of any other sender, also when two events compare."""
    first = failure(time_source={"whose": 1}, detection=["soft"])
    same, other = dict(reversed(first.items())), {**first, "tool": "two"}
    batch = submission_of(collector.engine, first, same, other)
    with write_transaction(collector.engine) as conn:
        (receipt,) = store_group(conn, [batch]).receipts

    assert (receipt.accepted, receipt.duplicate, receipt.conflicts) == (1, 2, 1)


@SQLITE
def test_full_queue_is_refused(collector: Collector) -> None:
    """Beyond the share of its project nothing is taken in, and what was is stored."""
    many = [success(session_id=None) for _ in range(400)]
    results = _Results(1)
    first, second = (submission_of(collector.engine, *many[:size]) for size in (400, 200))
    release = _hold(collector)
    _submit(collector, first, results)

    with pytest.raises(WriterBusy):
        _submit(collector, second, results)

    release.set()
    results.wait()
    assert _count(collector.engine) == 400 + _writers(collector)


@SQLITE
def test_stop_stores_what_is_queued(collector: Collector) -> None:
    """Stopping answers what was taken in, and takes in no more."""
    submission, late = (submission_of(collector.engine, failure()) for _ in range(2))
    results = _Results(1)
    release = _hold(collector)
    _submit(collector, submission, results)
    stopping = threading.Thread(target=collector.writer.stop)
    stopping.start()
    release.set()
    stopping.join(20)

    assert isinstance(results.wait()[0], Receipt)
    with pytest.raises(WriterBusy):
        _submit(collector, late, results)


def _ways_to_refuse() -> Iterator[Any]:
    """Yield engines with the ways in which each may refuse an event; one of each is enough."""
    for name, poisons in POISONS.items():
        marks = [pytest.mark.postgres] if name == "postgresql" else []
        for which in range(len(poisons)):
            yield pytest.param(name, which, marks=[*marks, *[pytest.mark.long] * (which > 0)])


@pytest.mark.parametrize(("database_url", "which"), [*_ways_to_refuse()], indirect=["database_url"])
def test_poison_event_is_left_out(collector: Collector, which: int) -> None:
    """An event the database refuses costs itself alone, whatever the error."""
    with write_transaction(collector.engine) as conn:
        poison(conn, which)
    events = [failure() for _ in range(40)]
    events.insert(17, failure("poison"))
    results = _Results(2)
    bad, good = submission_of(collector.engine, *events), submission_of(collector.engine, success())
    release = _hold(collector)
    _submit(collector, bad, results)
    _submit(collector, good, results)
    release.set()

    receipts = [receipt for receipt in results.wait() if isinstance(receipt, Receipt)]

    assert sorted(receipt.accepted for receipt in receipts) == [1, 40]
    (rejected,) = (each for receipt in receipts for each in receipt.rejected)
    assert (rejected.index, rejected.code, rejected.pointer) == (17, "unstorable", "/events/17")
    assert rejected.event_id == events[17]["event_id"]
    with read_connection(collector.engine) as conn:
        kept = conn.execute(select(rejected_event.c.event_id, rejected_event.c.code)).all()
    assert kept == [(events[17]["event_id"], "unstorable")]


@POSTGRESQL
def test_race_that_is_lost_every_time_is_no_fault_of_an_event(collector: Collector) -> None:
    """Who loses one deadlock after another is told to try later, and nothing is refused."""
    with write_transaction(collector.engine) as conn:
        poison(conn, DEADLOCK)
    submission = submission_of(collector.engine, failure(), failure("poison"))

    with pytest.raises(StoreUnavailable) as refused:
        collector.writer.store(submission)

    assert refused.value.kind == "unavailable"
    with write_transaction(collector.engine) as conn:
        assert conn.execute(select(func.count()).select_from(rejected_event)).scalar_one() == 0
        conn.exec_driver_sql("DROP TRIGGER poison ON tool_call")
    assert collector.writer.store(submission).accepted == 2


def test_stale_signature_is_looked_up_again(collector: Collector) -> None:
    """Signatures that another process removed are made again."""
    first, again = (
        submission_of(collector.engine, failure()),
        submission_of(collector.engine, failure()),
    )
    collector.writer.store(first)
    with write_transaction(collector.engine) as conn:
        conn.execute(issue.delete())
        conn.execute(tool_call.delete())
        for table in reversed(metadata.sorted_tables):
            if table.name in ("chain", "conversation", "message", "signature"):
                conn.execute(table.delete())

    assert collector.writer.store(again).accepted == 1

    with read_connection(collector.engine) as conn:
        assert conn.execute(select(func.count()).select_from(signature)).scalar_one() == 1


def test_first_and_last_seen(collector: Collector) -> None:
    """A signature and a message know when they were first seen, and the last hour in which."""
    at, hours = now_us() - 5 * HOUR_US, (0, -2, 2)
    for hour in hours:
        again = submission_of(collector.engine, failure(at=at + hour * HOUR_US, session_id=None))
        collector.writer.store(again)

    for table in (signature, message):
        with read_connection(collector.engine) as conn:
            (seen,) = conn.execute(select(table.c.first_at, table.c.last_at)).all()
        assert seen.first_at == at - 2 * HOUR_US
        assert 0 < seen.last_at - (at + 2 * HOUR_US) <= HOUR_US


def test_broken_schema_is_not_the_fault_of_events(collector: Collector) -> None:
    """Where a column is missing nothing is refused for good: the sender is told to try later."""
    submission = submission_of(collector.engine, failure())
    with write_transaction(collector.engine) as conn:
        conn.exec_driver_sql("ALTER TABLE issue DROP COLUMN code")

    with pytest.raises(StoreUnavailable):
        collector.writer.store(submission)

    assert _count(collector.engine) == 0


@SQLITE
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_writer_that_dies_ends_the_process(collector: Collector) -> None:
    """Nothing would be stored any more, so the process is told to stop, as by its supervisor."""
    # No event that a handler sets: a signal just before the wait for it would not end that wait.
    told, tell = socket.socketpair()
    tell.setblocking(False)
    told.settimeout(60)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    waking = signal.set_wakeup_fd(tell.fileno())
    try:
        collector.writer.submit(
            Ticket(sys.exit, lambda _results: None), project_id=1, events=1, size=1
        )
        assert told.recv(1) == bytes([signal.SIGTERM])
    finally:
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGTERM, before)
        told.close()
        tell.close()
    collector.writer.stop()
    assert not collector.writer.alive


def test_full_disk_is_said_and_passes(sqlite_url: str) -> None:
    """Without space nothing is stored and nothing broken; with space again all is as before."""
    collector = Collector(Settings(database_url=sqlite_url))
    pages = 200

    @event.listens_for(collector.engine, "connect")
    def _limit(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

    collector.start()
    stored, refused = 0, None
    while refused is None:
        submission = submission_of(collector.engine, *[failure() for _ in range(50)])
        try:
            stored += collector.writer.store(submission).accepted
        except StoreUnavailable as error:
            refused = error.kind
    assert refused == "full"
    assert _count(collector.engine) == stored
    with closing(sqlite3.connect(sqlite_path(collector.engine))) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    pages = 10_000_000
    collector.engine.dispose()
    assert collector.writer.store(submission).accepted == 50
    collector.stop()


def test_read_only_database_is_said_and_passes(sqlite_url: str) -> None:
    """A database that cannot be written to is "unavailable" until it can."""
    collector = Collector(Settings(database_url=sqlite_url))
    collector.start()
    submission = submission_of(collector.engine, failure())
    read_only = 1

    @event.listens_for(collector.engine, "checkout")
    def _limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA query_only={read_only}")

    with pytest.raises(StoreUnavailable) as refused:
        collector.writer.store(submission)
    assert refused.value.kind == "unavailable"

    read_only = 0
    assert collector.writer.store(submission).accepted == 1
    collector.stop()


def test_locked_database_is_said_and_passes(sqlite_url: str) -> None:
    """While another process holds the lock the answer is "unavailable", and then it works again."""
    collector = Collector(Settings(database_url=sqlite_url, busy_seconds=0.2))
    collector.start()
    submission = submission_of(collector.engine, failure())
    with closing(sqlite3.connect(sqlite_path(collector.engine))) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreUnavailable) as refused:
            collector.writer.store(submission)
        other.rollback()

    assert refused.value.kind == "unavailable"
    assert collector.writer.store(submission).accepted == 1
    collector.stop()


def test_what_is_refused_is_let_go(sqlite_url: str) -> None:
    """Nothing holds a batch that could not be stored, also while Python looks for no cycles."""
    collector = Collector(Settings(database_url=sqlite_url, busy_seconds=0.01))
    collector.start()
    submission = submission_of(collector.engine, failure())
    before = sys.getrefcount(submission.records)
    results: SimpleQueue[list[tuple[Ticket, Result]]] = SimpleQueue()
    gc.disable()
    try:
        with closing(sqlite3.connect(sqlite_path(collector.engine))) as other:
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(5):
                ticket = Ticket(partial(replace, submission), results.put)
                collector.writer.submit(ticket, project_id=submission.project_id, events=1, size=0)
                assert isinstance(results.get(timeout=60)[0][1], StoreUnavailable)
            other.rollback()
        collector.stop()
        held = sys.getrefcount(submission.records)
    finally:
        gc.enable()

    assert held == before


@POSTGRESQL_IS_LONG
def test_statements_do_not_grow_with_the_batch(collector: Collector) -> None:
    """Ten times the events are stored with the same number of statements."""
    sent = []
    for size in (30, 300):
        submission = submission_of(
            collector.engine, *[failure(session_id=f"{size}-{n}") for n in range(size)]
        )
        with Statements(collector.engine) as statements:
            collector.writer.store(submission)
        sent.append(len(statements))

    assert sent[1] <= sent[0]
