"""What a running collector does now and then: settle outcomes, retention, old rejects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import structlog
from sqlalchemy import Connection, Engine, and_, select, text, update

from toolfault_collector.chains import IDLE_US, outcome_at
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.engine import is_sqlite, write_transaction
from toolfault_collector.errors import PruneRefused
from toolfault_collector.projects import list_projects
from toolfault_collector.retention import prune, prune_rejects
from toolfault_collector.settings import Settings
from toolfault_collector.tables import chain, conversation

__all__ = ["Maintenance", "settle_outcomes"]

# Idle time is half an hour, so a stored outcome is at most this much late; readers apply idle time
# themselves and are never late.
INTERVAL_SECONDS: Final = 300.0
# Outcomes of conversations that had no call for so long do not change any more.
SETTLED_US: Final = DAY_US
# One collector at a time; any number will do as long as all take the same.
_LOCK: Final = 7_061_746_662

_log = structlog.get_logger(__name__)


class Maintenance:
    """A thread beside the writer; what it does waits its turn like any other writer."""

    def __init__(
        self, engine: Engine, settings: Settings, *, clock: Callable[[], int] = now_us
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock
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
        for step in (self._settle, self._prune, self._prune_rejects):
            if self._stopping.is_set():
                return
            try:
                step()
            except PruneRefused as refused:
                _log.error("retention_refused", reason=str(refused))
            except Exception as error:  # noqa: BLE001 - must not end the thread
                _log.error("maintenance_failed", step=step.__name__, error=type(error).__name__)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_SECONDS):
            self.run_once()

    def _settle(self) -> None:
        settle_outcomes(self._engine, now=self._clock())

    def _prune(self) -> None:
        days, calls = self._settings.retention_days, self._settings.retention_calls
        if days or calls:
            prune(self._engine, days=days or None, max_calls=calls or None, clock=self._clock)

    def _prune_rejects(self) -> None:
        prune_rejects(self._engine, clock=self._clock)


def settle_outcomes(engine: Engine, *, now: int) -> int:
    """Write the outcome that unresolved chains have at *now*, for those who read SQL.

    Returns:
        How many were written.
    """
    settled = 0
    wanted = outcome_at(now)
    with engine.connect() as conn:
        projects = [each.id for each in list_projects(conn)]
    for project_id in projects:
        same = and_(
            conversation.c.project_id == chain.c.project_id,
            conversation.c.session_id == chain.c.session_id,
        )
        recent = conversation.c.last_at >= now - IDLE_US - SETTLED_US
        unresolved = select(chain.c.id, wanted.label("outcome")).join(conversation, same)
        late = unresolved.where(
            chain.c.project_id == project_id,
            chain.c.recovered_at.is_(None),
            chain.c.outcome != wanted,
            recent | (chain.c.outcome == "open"),
        ).limit(1_000)
        with write_transaction(engine) as conn:
            if not _alone(conn):
                return settled
            found = {row.id: row.outcome for row in conn.execute(late)}
            for outcome in sorted(set(found.values())):
                ids = [key for key, value in found.items() if value == outcome]
                conn.execute(update(chain).where(chain.c.id.in_(ids)).values(outcome=outcome))
        settled += len(found)
    return settled


def _alone(conn: Connection) -> bool:
    """Return whether no other collector does this now; holds until the transaction ends."""
    if is_sqlite(conn):
        return True
    query = text("SELECT pg_try_advisory_xact_lock(:lock)")
    return bool(conn.execute(query, {"lock": _LOCK}).scalar())
