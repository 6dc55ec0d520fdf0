"""What the demo's tools work on, and the troubles that are nobody's fault."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from toolfault_demo.chance import DAY, HOUR, Pace, chances

__all__ = ["FILES", "OUTAGE", "TABLES", "Outage", "RateLimitedError", "UpstreamError", "World"]

_SOURCE: Final = "def total(items):\n    return total\n\n"
FILES: Final[Mapping[str, str]] = {
    "src/cart.py": _SOURCE,
    "src/orders.py": _SOURCE,
    "src/search.py": _SOURCE,
}
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "orders": ("id", "customer_id", "state", "total"),
}


class RateLimitedError(Exception):
    """A service says that it was asked too often; the SDK reads ``status_code``."""

    status_code = 429


class UpstreamError(Exception):
    """A service fails; the SDK reads ``status_code``."""

    status_code = 503


@dataclass(frozen=True, slots=True)
class Outage:
    """Some hours in which a service of one tool mostly fails.

    Attributes:
        tool: The tool that depends on the service.
        after_days: Start, days after the start of the history.
        hours: Length.
        rate: Share of calls that fail meanwhile.
    """

    tool: str
    after_days: float
    hours: float
    rate: float


OUTAGE: Final = Outage("search_flights", after_days=8.3, hours=9.0, rate=0.8)

# Typical seconds a call takes; the tail is log-normal.
_LATENCY: Final[Mapping[str, float]] = {
    "http_request": 0.4,
    "search_flights": 1.1,
    "book_hotel": 0.7,
    "run_sql": 0.25,
    "send_email": 0.15,
    "apply_patch": 0.05,
    "get_weather": 0.2,
}
_ELSE: Final = 0.03

# Share of calls that meet each trouble on an ordinary day.
_TROUBLES: Final[Mapping[str, tuple[tuple[float, type[Exception], str], ...]]] = {
    "http_request": (
        (0.02, TimeoutError, "read timed out after 30 s"),
        (0.015, ConnectionError, "connection reset by peer"),
    ),
    "search_flights": (
        (0.015, TimeoutError, "the fare service did not answer within 20 s"),
        (0.02, RateLimitedError, "429 from the fare service"),
    ),
    "run_sql": ((0.02, TimeoutError, "statement timeout"),),
    "get_weather": ((0.01, RateLimitedError, "429 from the weather service"),),
    "book_hotel": ((0.01, KeyError, "rate_plan"),),
    "send_email": ((0.008, ConnectionError, "the mail relay refused the connection"),),
}


class World:
    """The surroundings of one agent's tools.

    Args:
        pace: How time passes.
        started_at: Start of the history, seconds since the epoch; outages count from it. None in
            the live part, where no outage is planted.
        scale: Length of the history over 14 days.
    """

    def __init__(self, pace: Pace, *, started_at: float | None, scale: float = 1.0) -> None:
        self.pace = pace
        self.rng: random.Random = chances(0, "nobody")
        self._started_at = started_at
        self._scale = scale

    async def work(self, tool: str) -> None:
        """Take the time a call of ``tool`` takes; raise the trouble it meets."""
        await self.pace.spend(self._seconds(tool))
        self._trouble(tool)

    def work_blocking(self, tool: str) -> None:
        """Do the same as ``work`` in a synchronous tool."""
        self.pace.block(self._seconds(tool))
        self._trouble(tool)

    def _seconds(self, tool: str) -> float:
        return _LATENCY.get(tool, _ELSE) * self.rng.lognormvariate(0.0, 0.6)

    def _trouble(self, tool: str) -> None:
        if self._is_out(tool) and self.rng.random() < OUTAGE.rate:
            raise UpstreamError("503 from the fare service: maintenance")
        for rate, trouble, text in _TROUBLES.get(tool, ()):
            if self.rng.random() < rate:
                raise trouble(text)

    def _is_out(self, tool: str) -> bool:
        if self._started_at is None or tool != OUTAGE.tool:
            return False
        since = self.pace.now() - self._started_at - OUTAGE.after_days * DAY * self._scale
        return 0 <= since < OUTAGE.hours * HOUR * self._scale
