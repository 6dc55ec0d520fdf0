"""What a running collector does now and then: partitions, outcomes, retention, old rejects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from sqlalchemy import Connection, Engine, Row, and_, func, or_, select, update

from toolfault_collector.chains import IDLE_US, outcome_at
from toolfault_collector.clock import DAY_US, ClockWatch, now_us
from toolfault_collector.engine import is_sqlite, read_connection, write_transaction
from toolfault_collector.errors import PruneRefused
from toolfault_collector.partitions import analyze_grown, keep_ahead
from toolfault_collector.project_settings import kept, settings_of
from toolfault_collector.projects import list_projects
from toolfault_collector.retention import Limits, prune_projects, prune_rejects
from toolfault_collector.settings import Settings
from toolfault_collector.tables import chain, conversation, tool_call

__all__ = ["Maintenance", "settle_outcomes"]

# Idle time is half an hour, so a stored outcome is at most this much late; readers apply idle time
# themselves and are never late.
INTERVAL_SECONDS: Final = 300.0
# Outcomes of conversations that had no call for so long do not change any more.
SETTLED_US: Final = DAY_US
# Outcomes written in one transaction.
CHAINS_AT_ONCE: Final = 1_000
# One collector at a time; any number will do as long as all take the same.
_LOCK: Final = 7_061_746_662

_log = structlog.get_logger(__name__)


class Maintenance:
    """A thread beside the writer; what it does waits its turn like any other writer.

    Args:
        engine: The database.
        settings: What to keep.
        clock: Returns microseconds since the epoch; what it says is believed as `ClockWatch` says.
        watch: Says whether the clock can be believed.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        clock: Callable[[], int] = now_us,
        watch: ClockWatch | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._watch = watch or ClockWatch()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolfault-care", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """End after the step under way; at most *timeout* seconds."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def run_once(self) -> None:
        """Do everything once; what fails is logged and tried again next time."""
        try:
            with _alone(self._engine) as alone:
                if alone:
                    self._run_steps()
        except Exception as error:  # noqa: BLE001 - must not end the thread
            _log.error("maintenance_failed", step="begin", error=type(error).__name__)

    def _run(self) -> None:
        self._try(self._see_to_partitions)
        while not self._stopping.wait(INTERVAL_SECONDS):
            self.run_once()

    def _run_steps(self) -> None:
        for step in (self._see_to_partitions, self._settle, self._remove_old):
            if self._stopping.is_set():
                return
            self._try(step)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except PruneRefused as refused:
            _log.error("retention_refused", reason=str(refused))
        except Exception as error:  # noqa: BLE001 - the other steps may go well
            _log.error("maintenance_failed", step=step.__name__, error=type(error).__name__)

    def _settle(self) -> None:
        settle_outcomes(self._engine, now=self._clock())

    def _remove_old(self) -> None:
        with read_connection(self._engine) as conn:
            received = select(tool_call.c.received_at).order_by(tool_call.c.id.desc()).limit(1)
            newest = conn.execute(received).scalar_one_or_none()
        now = self._clock()
        if not self._watch.believes(now, newest=newest):
            # Nothing is urgent about removing; what was removed by mistake is gone.
            _log.error("clock_doubted", now=now, newest=newest)
            return
        prune_rejects(self._engine, clock=lambda: now)
        with read_connection(self._engine) as conn:
            limits = {
                each.id: kept(settings_of(conn, each.id), self._settings)
                for each in list_projects(conn)
            }
        wanted = {
            project_id: Limits(days or None, calls or None)
            for project_id, (days, calls) in limits.items()
            if days or calls
        }
        prune_projects(self._engine, wanted, waiting=True, clock=lambda: now)

    def _see_to_partitions(self) -> None:
        """Make the next ones; any number of collectors may do this at once."""
        made = keep_ahead(self._engine)
        if made:
            _log.info("partitions_made", partitions=made)
        analyze_grown(self._engine)


def settle_outcomes(engine: Engine, *, now: int) -> int:
    """Write the outcome that unresolved chains have at *now*, for those who read SQL.

    They are found without holding up any writer.

    Returns:
        How many were written.
    """
    settled = 0
    with read_connection(engine) as conn:
        projects = [each.id for each in list_projects(conn)]
    for project_id in projects:
        after = 0
        while True:
            with read_connection(engine) as conn:
                found = _unsettled(conn, project_id, now=now, after=after)
            if not found:
                break
            after = found[-1].id
            with write_transaction(engine) as conn:
                settled += _write_outcomes(conn, found)
    return settled


def _unsettled(
    conn: Connection, project_id: int, *, now: int, after: int
) -> list[Row[tuple[int, str]]]:
    """Return some chains, by id, whose stored outcome is not the one they have *now*."""
    wanted = outcome_at(now)
    same = and_(
        conversation.c.project_id == chain.c.project_id,
        conversation.c.session_id == chain.c.session_id,
    )
    # Or something came late that had happened long before.
    recent = or_(
        conversation.c.last_at >= now - IDLE_US - SETTLED_US,
        conversation.c.received_at >= now - IDLE_US - SETTLED_US,
    )
    late = (
        select(chain.c.id, wanted.label("outcome"))
        .join(conversation, same)
        .where(
            chain.c.project_id == project_id,
            chain.c.id > after,
            chain.c.recovered_at.is_(None),
            chain.c.outcome != wanted,
            recent | (chain.c.outcome == "open"),
        )
        .order_by(chain.c.id)
        .limit(CHAINS_AT_ONCE)
    )
    return list(conn.execute(late))


def _write_outcomes(conn: Connection, found: list[Row[tuple[int, str]]]) -> int:
    """Write outcomes, but not over a recovery that came meanwhile; return how many."""
    written = 0
    for outcome in sorted({row.outcome for row in found}):
        ids = [row.id for row in found if row.outcome == outcome]
        unresolved = chain.c.id.in_(ids) & chain.c.recovered_at.is_(None)
        written += conn.execute(update(chain).where(unresolved).values(outcome=outcome)).rowcount
    return written


@contextmanager
def _alone(engine: Engine) -> Iterator[bool]:
    """Yield whether no other collector does this now; holds for the length of the block.

    SQLite's writers take turns anyway.
    """
    if is_sqlite(engine):
        yield True
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        alone = bool(conn.execute(select(func.pg_try_advisory_lock(_LOCK))).scalar())
        try:
            yield alone
        finally:
            if alone:
                conn.execute(select(func.pg_advisory_unlock(_LOCK)))
