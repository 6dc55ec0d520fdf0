"""Quotas: so many events a minute for each project, where somebody wants a limit.

Every process decides by a bucket in memory, so a refusal costs no statement. What it let in is
taken out of the project's bucket in the database, in the transaction that stores it, and what is
left there, after all processes, is what the process goes on with. So the quota holds for all
collectors together, but for what each lets in between two of its commits. It is refilled by the
database's clock, since those of several machines differ.
"""

# ruff: noqa: S608 - text, since each commit runs it: 13 us, where Core would take a millisecond

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from sqlalchemy import Connection, select

from toolfault_collector.clock import MINUTE_US, now_us
from toolfault_collector.errors import OverQuota
from toolfault_collector.storage.database.bulk import fetch
from toolfault_collector.storage.database.engine import is_sqlite
from toolfault_collector.storage.tables import quota_bucket

__all__ = ["Quota", "Spent", "events_left"]

MINUTE = 60.0

# Events that were let in by project, and what is left in the database after them.
Spent = dict[int, tuple[float, float]]

_NOW: Final = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
# What is there and has run in since, at most a minute's worth; a clock that went back adds nothing.
_FILLED: Final = (
    "CASE WHEN excluded.filled_at < b.filled_at THEN b.events_left"
    " WHEN b.events_left + ? * (excluded.filled_at - b.filled_at) > ? THEN ?"
    " ELSE b.events_left + ? * (excluded.filled_at - b.filled_at) END"
)
_TAKE: Final = (
    "INSERT INTO quota_bucket AS b (project_id, events_left, filled_at) VALUES (?, ?, {now})"
    " ON CONFLICT (project_id) DO UPDATE SET"
    f" events_left = {_FILLED} - ?, filled_at = excluded.filled_at RETURNING events_left"
)


def events_left(conn: Connection, project_id: int, events_per_minute: int, *, now: int) -> int:
    """Return how many events a project may still send at this moment, as the database knows.

    Args:
        conn: Open connection.
        project_id: The project.
        events_per_minute: The quota in force, more than 0.
        now: Microseconds since the epoch.
    """
    row = conn.execute(
        select(quota_bucket.c.events_left, quota_bucket.c.filled_at).where(
            quota_bucket.c.project_id == project_id
        )
    ).one_or_none()
    if row is None:
        return events_per_minute
    run_in = max(0, now - int(row.filled_at)) * events_per_minute / MINUTE_US
    left = min(float(events_per_minute), max(0.0, float(row.events_left) + run_in))
    return math.floor(left)


class Quota:
    """A token bucket per project, filled once a minute's worth (RFC 2697 calls it a meter).

    Args:
        events_per_minute: 0 sets no limit.
        clock: Seconds that never go back.
    """

    def __init__(
        self, events_per_minute: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = events_per_minute
        self._clock = clock
        self._left: dict[int, tuple[float, float]] = {}
        self._untold: Counter[int] = Counter()
        self._lock = threading.Lock()

    def spend(self, project_id: int, events: int) -> None:
        """Take *events* out of the bucket of the project.

        Raises:
            OverQuota: The bucket does not hold them; nothing was taken.
        """
        if not self._limit:
            return
        with self._lock:
            now = self._clock()
            left, at = self._left.get(project_id, (float(self._limit), now))
            left = min(self._limit, left + (now - at) * self._limit / MINUTE)
            # A batch larger than the bucket is let through when the bucket is full, or never would.
            needed = min(events, self._limit)
            if left < needed:
                self._left[project_id] = (left, now)
                raise self._refusal(needed - left)
            self._left[project_id] = (left - needed, now)
            self._untold[project_id] += needed

    def give_back(self, project_id: int, events: int) -> None:
        """Undo `spend`: nothing of the batch was stored, and its sender will send it again."""
        if not self._limit:
            return
        with self._lock:
            needed = min(events, self._limit)
            left, at = self._left.get(project_id, (float(self._limit), self._clock()))
            self._left[project_id] = (min(self._limit, left + needed), at)
            self._untold[project_id] = max(0, self._untold[project_id] - needed)

    def share(self, conn: Connection, projects: Iterable[int]) -> Spent:
        """Take what was let in of *projects* out of their buckets in the database.

        Last in its transaction, since every collector wants the row; tell `shared` how it ended.
        """
        spent: Spent = {}
        for project_id in sorted(set(projects)):
            with self._lock:
                events = self._untold.pop(project_id, 0)
            if events:
                try:
                    spent[project_id] = (events, self._take(conn, project_id, events))
                except BaseException:
                    self.shared({**spent, project_id: (events, 0.0)}, committed=False)
                    raise
        return spent

    def shared(self, spent: Spent, *, committed: bool) -> None:
        """Go on with what is left in the database, if it was *committed*."""
        with self._lock:
            for project_id, (events, left) in spent.items():
                if committed:
                    self._left[project_id] = (left - self._untold[project_id], self._clock())
                else:
                    self._untold[project_id] += int(events)

    def _take(self, conn: Connection, project_id: int, events: float) -> float:
        limit, rate = float(self._limit), self._limit / MINUTE_US
        filled = (rate, limit, limit, rate, events)
        first = (project_id, limit - events)
        if is_sqlite(conn):
            rows = fetch(conn, _TAKE.format(now="?"), (*first, now_us(), *filled))
        else:
            rows = fetch(conn, _TAKE.format(now=_NOW), (*first, *filled))
        return float(rows[0][0])

    def _refusal(self, missing: float) -> OverQuota:
        return OverQuota(self._limit, math.ceil(missing * MINUTE / self._limit))
