"""One collector process: the database, the writer and what requests share."""

from __future__ import annotations

import os
import threading

from sqlalchemy import Engine

from toolfault_collector.engine import open_engine
from toolfault_collector.gatekeeper import Gatekeeper
from toolfault_collector.maintenance import Maintenance
from toolfault_collector.metrics import Metrics
from toolfault_collector.quota import Quota
from toolfault_collector.reader import Reader
from toolfault_collector.schema import prepare
from toolfault_collector.settings import Settings
from toolfault_collector.writer import Writer

__all__ = ["Collector"]


class Collector:
    """What takes data in and keeps it, from `start` before the first request to `stop`.

    Args:
        settings: The settings of the process.
        engine: The database, if it is open already; else it is opened from the settings.

    Attributes:
        stopping: Set as soon as the server is told to stop; requests that would stay open end then.
    """

    def __init__(self, settings: Settings, *, engine: Engine | None = None) -> None:
        self.settings = settings
        self.stopping = threading.Event()
        self.engine = engine or open_engine(
            settings.database_url,
            synchronous=settings.synchronous,
            busy_seconds=settings.busy_seconds,
        )
        self.metrics = Metrics()
        self.gatekeeper = Gatekeeper(self.engine)
        self.quota = Quota(settings.quota_events_per_minute)
        self.reader = Reader(enabled=settings.reader and _cores() > 1)
        self.writer = Writer(self.engine, settings=settings, metrics=self.metrics, quota=self.quota)
        self.maintenance = Maintenance(self.engine, settings)

    def start(self) -> None:
        """Bring the schema up to date if allowed, and begin to store.

        Raises:
            SchemaError: The database has a schema this version must not touch.
        """
        prepare(self.engine, migrate=self.settings.migrate)
        self.writer.start()
        self.maintenance.start()

    def stop(self) -> None:
        """Store what is queued and close the database."""
        self.maintenance.stop(1.0)
        self.writer.stop(self.settings.stop_seconds)
        self.reader.stop()
        self.engine.dispose()


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
