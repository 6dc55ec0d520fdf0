"""Successes as counters: exact totals for almost no bytes.

One row per (minute, tool, agent, model, variant, environment, release). Durations go into an
exponential histogram, the shape of OpenTelemetry's (data model, "ExponentialHistogram", scale 2):
bucket bounds are powers of 2**(1/4), so that any quantile read from it is within 9 % of the true
one, whatever the tool's speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LONGEST", "Folder", "Row", "RowKey", "bucket_bound"]

# Minute (of the epoch), tool (None: over all tools), agent, model, variant, environment, release.
RowKey = tuple[
    int,
    "str | None",
    "str | None",
    "str | None",
    "str | None",
    "str | None",
    "str | None",
]

_SMALLEST = -40  # 2**(-40/4) ms, one microsecond: below it all durations are alike
LONGEST = 1e12  # ms, some thirty years: what is longer is a clock that jumped
_REPAIRED_FIELDS = 100
_TOGETHER = 50  # durations measured at once, so that most calls do without logarithms
_BUCKETS = 64  # what an event of the protocol may carry


def bucket_of(duration_ms: float) -> int:
    """Return the number of the bucket a duration falls into."""
    if duration_ms <= 0.0:
        return _SMALLEST
    return max(math.ceil(math.log2(duration_ms) * 4.0 - 1e-9), _SMALLEST)


def bucket_bound(index: int) -> float:
    """Return the inclusive upper bound of a bucket, milliseconds, to six significant digits."""
    return float(f"{2.0 ** (index / 4.0):.6g}")


class Row:
    """Counters of one key: the calls of a minute, and the conversations that ended in it.

    Attributes:
        starts_at: Start of the minute, seconds since the epoch; no number once the row was handed
            on, so that no moment lies in it any more.
    """

    __slots__ = (
        "_latest",
        "buckets",
        "calls",
        "calls_squared",
        "conversations",
        "longest",
        "repairs",
        "starts_at",
        "total_ms",
    )

    def __init__(self, starts_at: float) -> None:
        self.starts_at = starts_at
        self._latest: list[float] = []  # durations that are not in the histogram yet
        self.calls = 0
        self.total_ms = 0.0
        self.longest = 0.0
        self.buckets: dict[int, int] = {}
        self.repairs: dict[str, int] = {}
        self.conversations = 0
        self.calls_squared = 0

    def add_call(self, duration_ms: float, repaired: Iterable[str]) -> None:
        """Count one success; its duration goes into the histogram with the next few."""
        if not 0.0 <= duration_ms < LONGEST:  # a clock of the host's that jumps, or says nan
            duration_ms = 0.0
        self.calls += 1
        self._latest.append(duration_ms)
        if len(self._latest) >= _TOGETHER:
            self.measure()
        for field in repaired:
            if field in self.repairs or len(self.repairs) < _REPAIRED_FIELDS:
                self.repairs[field] = self.repairs.get(field, 0) + 1

    def measure(self) -> None:
        """Put the latest durations into sum, maximum and histogram."""
        latest, self._latest = self._latest, []
        if not latest:
            return
        self.total_ms += sum(latest)
        self.longest = max(self.longest, *latest)
        for duration_ms in latest:
            bucket = bucket_of(duration_ms)
            self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    @property
    def weight(self) -> int:
        """Records the row stands for: its calls, and itself where it closes conversations."""
        return self.calls + (1 if self.conversations else 0)


class Folder:
    """The rows not yet handed to the queue. The outbox's lock guards it."""

    def __init__(self) -> None:
        self._rows: dict[RowKey, Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def weight(self) -> int:
        """Records that the rows stand for."""
        return sum(row.weight for row in self._rows.values())

    def row(self, key: RowKey) -> Row:
        """Return the row of ``key``, made when it is new."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(key[0] * 60.0)
        return row

    def end_conversation(self, key: RowKey, calls: int) -> int:
        """Count one conversation with ``calls`` calls; return by how much the weight grew."""
        row = self.row(key)
        grown = 0 if row.conversations else 1
        row.conversations += 1
        row.calls_squared += calls * calls
        return grown

    def drain(
        self, describe: Callable[[RowKey], dict[str, Any]]
    ) -> list[tuple[dict[str, Any], int]]:
        """Empty the rows into events, each with its weight.

        Args:
            describe: Makes the common members of an event from a row's key.
        """
        rows, self._rows = self._rows, {}
        for row in rows.values():
            row.starts_at = math.nan
        return [
            ({**describe(key), **_members(row, tool=key[1])}, row.weight)
            for key, row in rows.items()
        ]


def _histogram(buckets: dict[int, int]) -> list[list[float | int]]:
    """Return upper bounds with their counts, every other bound left out until 64 are enough."""
    width = 1
    while len(buckets) > _BUCKETS:
        width *= 2
        merged: dict[int, int] = {}
        for at, count in buckets.items():
            bound = -(-at // width) * width
            merged[bound] = merged.get(bound, 0) + count
        buckets = merged
    return [[bucket_bound(at), buckets[at]] for at in sorted(buckets)]


def _members(row: Row, *, tool: str | None) -> dict[str, Any]:
    totals: dict[str, Any] = {}
    if row.conversations:
        totals = {"conversations": row.conversations, "calls_squared": row.calls_squared}
    if tool is None:
        return totals
    members: dict[str, Any] = {"calls": row.calls, **totals}
    if row.calls:
        row.measure()
        members["duration_ms"] = {
            "sum": round(row.total_ms, 3),
            "max": round(row.longest, 3),
            "buckets": _histogram(row.buckets),
        }
    if row.repairs:
        members["repairs"] = row.repairs
    return members
