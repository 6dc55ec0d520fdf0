"""One collector process: the database, the writer and what requests share."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import structlog
from sqlalchemy import Engine

from toolfault_collector.admin.keys import KeyCache
from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import open_events
from toolfault_collector.clickhouse.shipping import Shipping
from toolfault_collector.metrics import Metrics
from toolfault_collector.pipeline.quota import Quota
from toolfault_collector.pipeline.writer import Writer
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import MIB, Settings
from toolfault_collector.storage.database.cancel import readings_of
from toolfault_collector.storage.database.engine import is_sqlite, open_engine, read_connection
from toolfault_collector.storage.database.schema import prepare
from toolfault_collector.storage.database.server_lock import only_server
from toolfault_collector.storage.database.wal import advice_on_version

__all__ = ["Collector"]

_log = structlog.get_logger(__name__)


class Collector:
    """What takes data in and keeps it, from `start` before the first request to `stop`.

    Args:
        settings: The settings of the process.
        engine: The database, if it is open already; else it is opened from the settings.

    Attributes:
        events: ClickHouse, where pages read events if it is set up.
        stopping: Set as soon as the server is told to stop; requests that would stay open end then.
    """

    def __init__(self, settings: Settings, *, engine: Engine | None = None) -> None:
        self.settings = settings
        self.stopping = threading.Event()
        self._stopped = threading.Event()
        self._stop_by: float | None = None
        self._alone = ExitStack()
        self.engine = engine or open_engine(
            settings.database_url,
            synchronous=settings.synchronous,
            busy_seconds=settings.busy_seconds,
        )
        self.metrics = Metrics()
        self.keys = KeyCache(self.engine)
        self.quota = Quota(settings.quota_events_per_minute)
        self.writer = Writer(self.engine, settings=settings, metrics=self.metrics, quota=self.quota)
        self.maintenance = Maintenance(self.engine, settings, metrics=self.metrics)
        self.events = (
            open_events(settings.events_url, settings.events_password)
            if settings.events_url
            else None
        )
        self.shipping = (
            None
            if self.events is None
            else Shipping(
                self.engine,
                self.events,
                metrics=self.metrics,
                most_bytes=settings.outbox_mib * MIB,
            )
        )

    def start(self) -> None:
        """Bring the schema up to date if allowed, and begin to store.

        Raises:
            DatabaseInUse: Another server has the SQLite file.
            SchemaError: The database has a schema this version must not touch.
        """
        with ExitStack() as alone:
            alone.enter_context(only_server(self.engine))
            prepare(self.engine, migrate=self.settings.migrate)
            self._alone = alone.pop_all()
        advice = advice_on_version() if is_sqlite(self.engine) else None
        if advice is not None:
            _log.warning("sqlite_version", advice=advice)
        self.writer.start()
        self.maintenance.start()
        if self.shipping is not None:
            self.shipping.start()
        else:
            self._say_if_unshipped()

    def _say_if_unshipped(self) -> None:
        with read_connection(self.engine) as conn:
            if outbox.is_installed(conn):
                advice = "set TOOLFAULT_EVENTS_URL, or run `toolfault db forget-events`"
                _log.warning("outbox_grows", waiting=outbox.count(conn), advice=advice)

    def begin_stop(self) -> None:
        """Let requests finish, but none so long that the stop would take more than it may."""
        self.stopping.set()
        self._stop_by = time.monotonic() + self.settings.stop_seconds
        # A quarter is left for what else there is to do.
        grace = threading.Timer(self.settings.stop_seconds * 3 / 4, self._end_readings)
        grace.daemon = True
        grace.start()

    def stop(self) -> None:
        """Store what is queued and close the database."""
        left = self.settings.stop_seconds
        if self._stop_by is not None:
            left = max(1.0, self._stop_by - time.monotonic())
        self.maintenance.stop(1.0)
        if self.shipping is not None:
            self.shipping.stop(1.0)
        self.writer.stop(left)
        self.engine.dispose()
        if self.events is not None:
            self.events.dispose()
        self._alone.close()
        self._stopped.set()

    def _end_readings(self) -> None:
        readings_of(self.engine).end_until(self._stopped)
