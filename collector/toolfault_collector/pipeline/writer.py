"""Group commit: one thread writes, and requests that arrive while it does share the next commit.

A commit costs an fsync whatever it holds, so the rate of single events is not bounded by the disk.
The answer to a request is sent after its commit. A batch that cannot be stored is taken apart until
only the events at fault are left.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from toolfault_collector import failpoints
from toolfault_collector.admin.keys import mark_used
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.errors import DatabaseReplaced, StoreUnavailable
from toolfault_collector.metrics import Metrics
from toolfault_collector.otlp.traces import resolve
from toolfault_collector.pipeline.queue import FairQueue
from toolfault_collector.pipeline.quota import Quota, Spent
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.refused import with_bodies
from toolfault_collector.protocol.submission import Submission
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    is_replaced,
    is_sqlite,
    must_reopen,
    sqlite_path,
    writer_connection,
)
from toolfault_collector.storage.database.errors import classify, let_frames_go
from toolfault_collector.storage.database.statistics import FirstEvents
from toolfault_collector.storage.database.wal import WriteAheadLog
from toolfault_collector.storage.drops import count_drops
from toolfault_collector.storage.name_limits import NameLimits
from toolfault_collector.storage.store import Stored, store_group

__all__ = ["Deliver", "Result", "Ticket", "Writer"]

# A group is read for so long, then what was read of it is committed: longer than a full group of
# small batches takes, and no longer than anybody should wait.
READ_SECONDS: Final = 0.25
# So often a writer of SQLite that has nothing to store looks at the length of the log, into which
# others write too: an import, retention. It grows by some ten megabytes in that time.
IDLE_SECONDS: Final = 1.0
# A lost race (deadlock, the same event through two collectors) is over at the next attempt.
MAX_ATTEMPTS: Final = 4
# Kinds of fault that are of no event: the sender keeps the batch and tries later. So is a race that
# was lost `MAX_ATTEMPTS` times; PostgreSQL takes a second to see each deadlock, so no more are run.
_LATER: Final = frozenset({"full", "unavailable", "again"})

_log = structlog.get_logger(__name__)

Result = Receipt | Exception
Deliver = Callable[[list[tuple["Ticket", Result]]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One batch in the queue.

    Attributes:
        read: Makes the submission; called in the writer's thread before a transaction begins, so
            that all work on a batch happens in one thread and the others are not held up by it.
            None says that there is more to do: other batches are committed before it is called
            again. What it raises is the result.
        deliver: Called from the writer's thread, once for all tickets of a group that have the
            same one, with each ticket and its receipt, or the error because of which nothing of
            it was stored.
    """

    read: Callable[[], Submission | None]
    deliver: Deliver


@dataclass(slots=True)
class _Group:
    """Batches that were taken from the queue together, to be stored in one transaction.

    Attributes:
        taken: What the queue gave.
        unread: Of these, what was not looked at yet.
        begun: What was, and is not read to its end.
        read: Batches that can be stored.
        results: What is to be answered.
    """

    taken: list[tuple[int, Ticket, int, int]]
    unread: deque[tuple[int, Ticket, int, int]] = field(init=False)
    begun: list[tuple[int, Ticket, int, int]] = field(default_factory=list)
    read: list[tuple[Ticket, Submission]] = field(default_factory=list)
    results: list[tuple[Ticket, Result]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unread = deque(self.taken)

    def read_next(self) -> bool:
        """Read one more batch, or a slice of a long one, if there is one."""
        if not self.unread:
            return False
        taken = self.unread.popleft()
        ticket = taken[1]
        try:
            submission = ticket.read()
        except Exception as error:  # noqa: BLE001 - is the answer to that batch
            self.results.append((ticket, error))
            return True
        if submission is None:
            self.begun.append(taken)
        else:
            self.read.append((ticket, submission))
        return True

    def leave(self) -> list[tuple[int, Ticket, int, int]]:
        """Give back what is not read, which is no part of the group any more."""
        left = [*self.unread, *self.begun]
        if left:
            self.taken = [taken for taken in self.taken if taken not in left]
        return left


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the writers of one process have in common."""

    queue: FairQueue[Ticket]
    limits: NameLimits


class Writer:
    """The thread that stores everything a collector process takes in.

    Args:
        engine: The database.
        settings: Limits of the queue and of a group.
        metrics: Where groups are counted.
        quota: Is told, at each commit, what all let in.
        shared: What it has in common with another one.

    PostgreSQL works in a process of its own, so there a second thread reads batches while the first
    waits. They are to each other what two collectors are.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        settings: Settings,
        metrics: Metrics,
        quota: Quota | None = None,
        shared: _Shared | None = None,
    ) -> None:
        self._engine = engine
        self._group_events = settings.group_events
        self._metrics = metrics
        self._queued = metrics.queued_events
        self._connection: Connection | None = None
        self._expected = 1
        self._keys_noted, self._quota = dict[int, int](), quota or Quota(0)
        self._first_events = FirstEvents(engine)
        first = shared is None
        shared = shared or _Shared(
            FairQueue(max_events=settings.queue_events, max_bytes=settings.queue_bytes),
            NameLimits(
                max_tools=settings.max_tools,
                max_codes=settings.max_codes,
                max_arguments=settings.max_arguments,
            ),
        )
        self._write_ahead_log: WriteAheadLog | None = None
        if is_sqlite(engine):
            self._write_ahead_log = WriteAheadLog(sqlite_path(engine))
            log = self._write_ahead_log
            metrics.watch_log(lambda: log.size)
        self._queue, self._limits = shared.queue, shared.limits
        self.is_full = shared.queue.is_full  # of a project: any batch would be refused now
        self._second: Writer | None = None
        if first and not is_sqlite(engine):
            self._second = Writer(
                engine, settings=settings, metrics=metrics, quota=quota, shared=shared
            )
        self._thread = threading.Thread(target=self._run, name="toolfault-writer", daemon=True)

    def start(self) -> None:
        """Begin to store."""
        self._queue.open()
        self._thread.start()
        if self._second is not None:
            self._second.start()

    def stop(self, timeout: float | None = None) -> None:
        """Take in nothing more, store what is queued, and end; at most *timeout* seconds."""
        self._queue.close()
        until = None if timeout is None else time.monotonic() + timeout
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._second is not None:
            self._second.stop(None if until is None else max(0.0, until - time.monotonic()))

    @property
    def alive(self) -> bool:
        """Whether each thread runs."""
        return self._thread.is_alive() and (self._second is None or self._second.alive)

    def submit(
        self, ticket: Ticket, *, project_id: int, events: int, size: int, wake: bool = True
    ) -> None:
        """Queue *ticket*, whose result is delivered after the commit.

        Args:
            ticket: What to store, and who waits.
            project_id: Whose it is.
            events: About how many events it has, for the bound of the queue.
            size: Its bytes, for the bound of the queue.
            wake: Begin at once. An event loop queues all that is ready first, then calls `wake`:
                threads that fight for the interpreter lose more than they gain.

        Raises:
            WriterBusy: The queue is full or the collector is stopping; nothing was queued.
        """
        self._queue.put(ticket, project_id=project_id, events=events, size=size, wake=wake)
        self._queued.set(self._queue.events)

    def wake(self) -> None:
        """Begin to store what was queued."""
        self._queue.wake()

    def store(self, submission: Submission) -> Receipt:
        """Queue *submission* and wait for its receipt; for callers that are no request."""
        future: Future[Receipt] = Future()

        def deliver(results: list[tuple[Ticket, Result]]) -> None:
            _, result = results[0]
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        ticket = Ticket(lambda: submission, deliver)
        self.submit(ticket, project_id=submission.project_id, events=submission.size, size=0)
        return future.result()

    def _run(self) -> None:
        try:
            self._store_what_comes()
        except BaseException:
            # Nothing would be stored any more, and every sender would wait: whoever watches over
            # the process starts it again.
            _log.critical("writer_died", exc_info=True)
            os.kill(os.getpid(), signal.SIGTERM)
            raise
        self._disconnect()

    def _store_what_comes(self) -> None:
        while group := self._wait():
            self._take_in(group)
            self._queue.put_back(group.leave())
            self._queue.release(group.taken)
            # Who was answered will send again: with who waits, one commit instead of two.
            self._expected = len(group.taken) + self._queue.items
            self._queued.set(self._queue.events)
            events = sum(events for _, _, events, _ in group.taken)
            if self._write_ahead_log is not None and self._connection is not None:
                self._write_ahead_log.tend(self._connection, events=events)
            self._first_events.stored(events)

    def _wait(self) -> _Group | None:
        """Wait for a group, and keep the log short meanwhile; None once all is stored."""
        log = self._write_ahead_log
        while True:
            closed = self._queue.closed  # asked first: what comes after it is still stored
            taken = self._queue.take(
                self._group_events,
                expected=self._expected,
                patience=None if log is None else IDLE_SECONDS,
            )
            if taken or closed:
                return _Group(taken) if taken else None
            if log is not None and log.is_due:
                self._tend_idle(log)

    def _tend_idle(self, log: WriteAheadLog) -> None:
        try:
            conn = self._connected()
            if is_replaced(conn):
                self._disconnect(reopen=True)
            else:
                log.tend(conn)
        except Exception as error:  # noqa: BLE001 - the next write says what is wrong
            _log.error("log_not_copied", error=type(error).__name__)
            self._disconnect()

    def _take_in(self, group: _Group) -> None:
        """Read what can be in a moment, store it together, and deliver every result."""
        until = time.perf_counter() + READ_SECONDS
        while group.read_next() and time.perf_counter() < until:
            pass
        if group.read:
            stored = self._store([submission for _, submission in group.read])
            group.results += zip([ticket for ticket, _ in group.read], stored, strict=True)
        by_receiver: dict[Deliver, list[tuple[Ticket, Result]]] = {}
        for ticket, result in group.results:
            by_receiver.setdefault(ticket.deliver, []).append((ticket, result))
        for deliver, of_receiver in by_receiver.items():
            try:
                deliver(of_receiver)
            except Exception as error:  # noqa: BLE001 - its event loop has ended; others wait
                _log.error("not_delivered", error=type(error).__name__, batches=len(of_receiver))

    def _store(self, group: list[Submission]) -> Sequence[Result]:
        try:
            return self._attempt(group)
        except Exception as error:  # noqa: BLE001 - whatever it is, the waiting must be answered
            let_frames_go(error)
            return self._settle_failure(group, error)

    def _settle_failure(self, group: list[Submission], error: Exception) -> Sequence[Result]:
        kind = classify(error)
        self._metrics.write_failures.labels(kind).inc()
        _log.error("write_failed", kind=kind, error=type(error).__name__, batches=len(group))
        if kind in _LATER:
            return [StoreUnavailable(kind) for _ in group]
        if len(group) > 1:
            return [result for each in group for result in self._store([each])]
        return [self._take_apart(group[0])]

    def _attempt(self, submissions: list[Submission]) -> list[Receipt]:
        """Store *submissions* in one transaction, again if it only lost a race."""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            started = time.perf_counter()
            spent: Spent = {}
            try:
                with self._connected().begin() as transaction:
                    stored, used = self._write(transaction.connection, submissions)
                    projects = [each.project_id for each in submissions]
                    spent = self._quota.share(transaction.connection, projects)
                    transaction.commit()
                _must_not_be_replaced(self._connected())
                failpoints.reach("committed")
            except Exception as error:
                self._quota.shared(spent, committed=False)
                self._disconnect(reopen=must_reopen(error))
                if attempt == MAX_ATTEMPTS or not _worth_another(error, attempt):
                    raise
                let_frames_go(error)
                continue
            self._quota.shared(spent, committed=True)
            self._keys_noted.update(used)
            self._metrics.count_renamed(stored.renamed)
            self._metrics.group_seconds.observe(time.perf_counter() - started)
            self._metrics.group_events.observe(sum(each.size for each in submissions))
            return stored.receipts
        raise AssertionError  # the loop returns or raises

    def _write(
        self, conn: Connection, submissions: list[Submission]
    ) -> tuple[Stored, dict[int, int]]:
        failpoints.reach("begun")
        stored = store_group(conn, resolve(conn, submissions), limits=self._limits)
        used = self._note_keys(conn, submissions)
        told = [(each.project_id, each.received_at, each.dropped) for each in submissions]
        count_drops(conn, [each for each in told if each[2]])
        failpoints.reach("inserted")
        return stored, used

    def _connected(self) -> Connection:
        """Return the writer's own connection, which keeps what it has cached between groups."""
        if self._connection is None:
            self._connection = writer_connection(self._engine)
        return self._connection

    def _disconnect(self, *, reopen: bool = False) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                if reopen:
                    connection.invalidate()
                connection.close()
        if reopen:  # connections of one process share what they know of the file
            self._engine.dispose()

    def _note_keys(self, conn: Connection, submissions: list[Submission]) -> dict[int, int]:
        """Write when keys were used, once a minute each: it is shown to people."""
        used = {
            each.key_id: each.received_at
            for each in submissions
            if each.key_id is not None
            and abs(each.received_at - self._keys_noted.get(each.key_id, 0)) >= MINUTE_US
        }
        if used:
            mark_used(conn, used, at=max(used.values()))
        return used

    def _take_apart(self, submission: Submission) -> Receipt | Exception:
        """Store *submission* without the events at fault, which are found by halving."""
        total = Receipt(dropped=submission.dropped)
        bad = list[tuple[Any, Exception]]()
        pending = [submission.units]
        try:
            while pending:
                units = pending.pop()
                try:
                    total.add(*self._attempt([submission.of_units(units, [])]))
                except Exception as error:
                    if classify(error) in _LATER:
                        raise
                    if len(units) > 1:
                        middle = len(units) // 2
                        pending += [units[middle:], units[:middle]]
                    else:
                        bad.append((units[0], error))
            errors = [error for _, error in bad]
            if errors and len(errors) == len(submission.units) and classify(errors[0]) == "bug":
                return errors[0]  # nothing of it can be stored by this version: its sender keeps it
            refused = [submission.unstorable(unit) for unit, _ in bad]
            refused = with_bodies(refused, submission.resource)
            rest = submission.of_units([], [*submission.rejected, *refused])
            total.add(*self._attempt([replace(rest, dropped=submission.dropped)]))
        except Exception as error:  # noqa: BLE001 - the waiting must be answered
            return StoreUnavailable(classify(error), partly=total.accepted > 0)
        return total


def _must_not_be_replaced(conn: Connection) -> None:
    """Acknowledge nothing that was written to a file which nobody can open any more."""
    if is_replaced(conn):
        _log.error("database_replaced", next="restore the file, or start again on the new one")
        raise DatabaseReplaced


def _worth_another(error: Exception, attempt: int) -> bool:
    """Return whether the same may succeed at once: a lost race, or a connection that had died."""
    died = isinstance(error, DBAPIError) and error.connection_invalidated
    return attempt == 1 if died else classify(error) in ("again", "taken")
