"""Shipping while a collector runs: a thread that copies what was committed, again and again.

Of several collectors on one PostgreSQL one ships; another takes over when it is gone.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import prepare_events
from toolfault_collector.clickhouse.shipper import Shipper
from toolfault_collector.errors import CollectorError
from toolfault_collector.metrics import Metrics
from toolfault_collector.storage.database.advisory_lock import alone
from toolfault_collector.storage.database.engine import read_connection

__all__ = ["Shipping"]

PAUSE_SECONDS: Final = 1.0
"""Between two looks into the outbox: so far pages may be behind, and no block is tiny."""

_LONGEST_PAUSE_SECONDS: Final = 30.0
_WORK: Final = 7_061_746_663  # for one collector at a time (`alone`)

_log = structlog.get_logger(__name__)


class Shipping:
    """The thread.

    Args:
        engine: The database that accepts events.
        events: ClickHouse; it may be away.
        metrics: Where it shows how far behind it is.
        most_bytes: Of changes that wait while ClickHouse is away; beyond, all is copied anew.
    """

    def __init__(
        self, engine: Engine, events: Engine, *, metrics: Metrics, most_bytes: int
    ) -> None:
        self._engine, self._events, self._metrics = engine, events, metrics
        self._most_bytes = most_bytes
        self._shipper = Shipper(engine, events)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="toolfault-shipping", daemon=True)
        self._failing = False

    def start(self) -> None:
        """Note what changes from now on, and begin to ship."""
        if outbox.install_beside_writers(self._engine):
            _log.info("outbox_installed")
        self._metrics.watch_outbox(self._waiting)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """End after the block under way; at most *timeout* seconds."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def is_failing(self) -> bool:
        """Whether the last try failed: the outbox grows."""
        return self._failing

    def _waiting(self) -> int:
        with read_connection(self._engine) as conn:
            return outbox.count(conn)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            self.run_once()
            longer = min(_LONGEST_PAUSE_SECONDS, max(PAUSE_SECONDS, 2 * pause))
            pause = longer if self._failing else PAUSE_SECONDS

    def run_once(self) -> None:
        """Ship until nothing waits; what fails is logged and tried again next time."""
        try:
            self._ship_alone()
        except Exception as error:  # noqa: BLE001 - must not end the thread
            if not self._failing:
                # Only the product's own texts are known to quote no row and no password.
                said = str(error) if isinstance(error, CollectorError) else ""
                _log.warning("shipping_failed", error=type(error).__name__, reason=said)
            self._failing = True
            with suppress(SQLAlchemyError):  # the next try looks again
                self._give_up_beyond_bound()
        else:
            if self._failing:
                _log.info("shipping_resumed")
            self._failing = False

    def _ship_alone(self) -> None:
        with alone(self._engine, _WORK) as is_alone:
            if not is_alone:
                return
            prepare_events(self._events)
            with read_connection(self._engine) as conn:
                is_noting = outbox.is_noting(conn)
            if not is_noting:
                outbox.install_beside_writers(self._engine)
                _log.info("outbox_installed")
            while not self._stopping.is_set() and self._shipper.ship():
                pass

    def _give_up_beyond_bound(self) -> None:
        with read_connection(self._engine) as conn:
            waiting = outbox.size(conn) if outbox.is_noting(conn) else 0
        if waiting > self._most_bytes:
            outbox.give_up(self._engine)
            advice = "everything is copied anew once ClickHouse answers"
            _log.warning("outbox_given_up", bytes=waiting, advice=advice)
