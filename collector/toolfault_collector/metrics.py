"""Counters of one collector process, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from toolfault_collector.protocol.receipt import Receipt

__all__ = ["Metrics"]

# Reasons come from senders: past this many, further ones are counted as "other".
MAX_REASONS: Final = 30


class Metrics:
    """What one collector has done since it started. Each has its own registry: no globals."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        about = "Requests by status."
        self.requests = Counter("toolfault_requests", about, ["status"], registry=registry)
        about = "Events by what became of them."
        self.events = Counter("toolfault_events", about, ["result"], registry=registry)
        self.conflicts = Counter(
            "toolfault_event_conflicts",
            "Resent events that differ from what was stored first under their id.",
            registry=registry,
        )
        self.sender_dropped = Counter(
            "toolfault_sender_dropped",
            "Events that senders say they dropped.",
            ["reason"],
            registry=registry,
        )
        self.group_seconds = Histogram(
            "toolfault_group_seconds",
            "Duration of a write transaction, from BEGIN to the end of COMMIT.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
            registry=registry,
        )
        self.group_events = Histogram(
            "toolfault_group_events",
            "Events stored in one write transaction.",
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000),
            registry=registry,
        )
        self.queued_events = Gauge(
            "toolfault_queued_events", "Events waiting to be stored.", registry=registry
        )
        self.write_failures = Counter(
            "toolfault_write_failures",
            "Write transactions that failed, by kind.",
            ["kind"],
            registry=registry,
        )
        self.names_over_limit = Counter(
            "toolfault_names_over_limit",
            "Events whose tool, code or argument was one too many and is counted as other.",
            ["kind"],
            registry=registry,
        )
        self.wal_bytes = Gauge(
            "toolfault_wal_bytes", "Bytes of SQLite's write-ahead log.", registry=registry
        )
        self.retention_refused = Gauge(
            "toolfault_retention_refused",
            "1 while retention removes nothing, since the clock of this machine is doubted.",
            registry=registry,
        )
        self.outbox_entries = Gauge(
            "toolfault_outbox_entries",
            "Changes that are not shipped to ClickHouse yet.",
            registry=registry,
        )
        self._reasons: set[str] = set()
        self._accepted = self.events.labels("accepted")
        self._duplicate = self.events.labels("duplicate")
        self._rejected = self.events.labels("rejected")

    def watch_log(self, size: Callable[[], int]) -> None:
        """Show the bytes of the log, as *size* returns them whenever somebody asks."""
        self.wal_bytes.set_function(size)

    def watch_outbox(self, entries: Callable[[], int]) -> None:
        """Show the changes that wait for ClickHouse, as *entries* counts them when asked."""
        self.outbox_entries.set_function(entries)

    def count_receipt(self, receipt: Receipt) -> None:
        """Count what became of a batch."""
        self._accepted.inc(receipt.accepted)
        if receipt.duplicate:
            self._duplicate.inc(receipt.duplicate)
            self.conflicts.inc(receipt.conflicts)
        if receipt.rejected:
            self._rejected.inc(len(receipt.rejected))

    def count_renamed(self, renamed: Mapping[str, int]) -> None:
        """Count events whose names were too many, by kind of name."""
        for kind, count in renamed.items():
            self.names_over_limit.labels(kind).inc(count)

    def count_dropped(self, dropped: Mapping[str, int]) -> None:
        """Count what a sender reports to have dropped, by reason."""
        for reason, count in dropped.items():
            if len(self._reasons) < MAX_REASONS:
                self._reasons.add(reason)
            label = reason if reason in self._reasons else "other"
            self.sender_dropped.labels(label).inc(count)
