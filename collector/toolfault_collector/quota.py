"""Quotas: so many events a minute for each project, where somebody wants a limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from toolfault_collector.problems import Problem

__all__ = ["Quota"]

MINUTE = 60.0


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

    def spend(self, project_id: int, events: int) -> None:
        """Take *events* out of the bucket of the project.

        Raises:
            Problem: 429, when the bucket does not hold them; nothing was taken.
        """
        if not self._limit:
            return
        now = self._clock()
        left, at = self._left.get(project_id, (float(self._limit), now))
        left = min(self._limit, left + (now - at) * self._limit / MINUTE)
        # A batch larger than the bucket is let through when the bucket is full, or never would be.
        needed = min(events, self._limit)
        if left < needed:
            wait = math.ceil((needed - left) * MINUTE / self._limit)
            detail = f"over the quota of {self._limit} events a minute; send again in {wait} s"
            headers = {"Retry-After": str(max(1, min(wait, 300)))}
            self._left[project_id] = (left, now)
            raise Problem(429, "over_quota", detail, headers, {"limit": self._limit})
        self._left[project_id] = (left - needed, now)
