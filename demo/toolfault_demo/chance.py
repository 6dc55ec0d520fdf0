"""Seeded chance, and a clock that moves when it is told to."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["DAY", "HOUR", "Pace", "SimulatedPace", "StoppedError", "WallPace", "chances"]

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


def chances(seed: int, *parts: object) -> random.Random:
    """Return the random stream that belongs to ``seed`` and ``parts``.

    Every conversation has a stream of its own, so its calls do not depend on which others ran.
    """
    name = "/".join(str(part) for part in (seed, *parts))
    return random.Random(name)  # noqa: S311 - a simulation, no secret


class Pace(Protocol):
    """How time passes for an agent and its tools."""

    def now(self) -> float:
        """Return the time in seconds since the epoch; the clock handed to the SDK."""

    def move_to(self, moment: float) -> None:
        """Let time pass until ``moment``, between two conversations."""

    async def think(self, seconds: float) -> None:
        """Let ``seconds`` pass between two turns of an agent."""

    async def spend(self, seconds: float) -> None:
        """Let ``seconds`` pass in an asynchronous tool."""

    def block(self, seconds: float) -> None:
        """Let ``seconds`` pass in a synchronous tool."""


class SimulatedPace:
    """Time that passes only when spent: two weeks take some seconds to live through."""

    def __init__(self, start: float) -> None:
        self._now = start

    def now(self) -> float:
        """Return the simulated time."""
        return self._now

    def move_to(self, moment: float) -> None:
        """Jump to ``moment``; never backwards, since the SDK may rely on it."""
        self._now = max(self._now, moment)

    async def think(self, seconds: float) -> None:
        """Move the clock."""
        self._now += seconds

    async def spend(self, seconds: float) -> None:
        """Move the clock."""
        self._now += seconds

    def block(self, seconds: float) -> None:
        """Move the clock."""
        self._now += seconds


class StoppedError(Exception):
    """An agent wanted to go on after everything was told to stop."""


class WallPace:
    """Real time.

    Args:
        stop: Waits so many seconds at most, and says whether to stop: then it returns at once.
    """

    def __init__(self, stop: Callable[[float], bool]) -> None:
        self._stop = stop

    def now(self) -> float:
        """Return the time of day."""
        return time.time()

    def move_to(self, moment: float) -> None:
        """Wait until ``moment``.

        Raises:
            StoppedError: Everything was told to stop.
        """
        if self._stop(max(0.0, moment - self.now())):
            raise StoppedError

    async def think(self, seconds: float) -> None:
        """Wait between two turns, in which nothing else goes on.

        Raises:
            StoppedError: Everything was told to stop.
        """
        self.move_to(self.now() + seconds)

    async def spend(self, seconds: float) -> None:
        """Wait without holding up the other calls of the turn."""
        await asyncio.sleep(seconds)

    def block(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
