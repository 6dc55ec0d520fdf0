"""What a running collector does now and then: partitions, retention, old rejects."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import structlog
from sqlalchemy import Engine

from toolfault_collector.clock import now_us
from toolfault_collector.errors import PruneRefused
from toolfault_collector.metrics import Metrics
from toolfault_collector.retention.partitions import drop_emptied, keep_ahead
from toolfault_collector.retention.policy import limits_of, prune_projects, prune_rejects
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.advisory_lock import alone
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.database.statistics import analyze_grown
from toolfault_collector.storage.old_traces import remove_all_old_traces

__all__ = ["Maintenance"]

INTERVAL_SECONDS: Final = 300.0
_WORK: Final = 7_061_746_662  # for one collector at a time (`alone`)

_log = structlog.get_logger(__name__)


class Maintenance:
    """A thread beside the writer; what it does waits its turn like any other writer.

    Args:
        engine: The database.
        settings: What to keep.
        metrics: Where it shows that retention removes nothing for now.
        clock: Returns microseconds since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        metrics: Metrics | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._metrics = metrics or Metrics()
        self._clock = clock
        self._refused = False
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
            with alone(self._engine, _WORK) as is_alone:
                if is_alone:
                    self._run_steps()
        except Exception as error:  # noqa: BLE001 - must not end the thread
            _log.error("maintenance_failed", step="begin", error=type(error).__name__)

    def _run(self) -> None:
        self._try(self._see_to_partitions)
        while not self._stopping.wait(INTERVAL_SECONDS):
            self.run_once()

    def _run_steps(self) -> None:
        removals = (self._remove_rejects, self._remove_traces, self._remove_old)
        for step in (self._see_to_partitions, *removals, self._drop_partitions):
            if self._stopping.is_set():
                return
            self._try(step)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the other steps may go well
            _log.error("maintenance_failed", step=step.__name__, error=type(error).__name__)

    def _remove_rejects(self) -> None:
        prune_rejects(self._engine, clock=self._clock)

    def _remove_traces(self) -> None:
        remove_all_old_traces(self._engine, now=self._clock())

    def _remove_old(self) -> None:
        with read_connection(self._engine) as conn:
            limits = limits_of(conn, self._settings)
        try:
            prune_projects(self._engine, limits, clock=self._clock)
        except PruneRefused as refused:
            self._note(str(refused))
        else:
            self._note(None)

    def _note(self, refusal: str | None) -> None:
        """Show whether retention removes nothing for now, and log when that changes."""
        refused = refusal is not None
        self._metrics.retention_refused.set(refused)
        if refused and not self._refused:
            _log.warning("retention_refused", reason=refusal)
        elif self._refused and not refused:
            _log.info("retention_resumed")
        self._refused = refused

    def _see_to_partitions(self) -> None:
        """Make the next ones; any number of collectors may do this at once."""
        made = keep_ahead(self._engine)
        if made:
            _log.info("partitions_made", partitions=made)
        analyze_grown(self._engine)

    def _drop_partitions(self) -> None:
        dropped = drop_emptied(self._engine)
        if dropped:
            _log.info("partitions_dropped", partitions=dropped)
