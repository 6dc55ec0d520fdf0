"""The simulation's own count of what it did, to hold against what the dashboard shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from toolfault_demo.slips import Slip

__all__ = ["Ledger"]

Place = tuple[str, str]


@dataclass(slots=True)
class Ledger:
    """Counts by tool, and by the field whose slip opened a chain.

    Attributes:
        conversations: Conversations lived through.
        calls: Calls by tool.
        failures: Failed calls by tool.
        repeated: Calls by tool that succeeded after the same had in their conversation.
        day: Day of a history of 14 that is lived through at present.
        calls_by_day: Calls by (tool, day).
        failures_by_day: Failed calls by (tool, day).
        opened: Chains opened, by (tool, field) of the slips that the error text named.
        round_trips: Calls after the first failure of a step, by the same.
    """

    conversations: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    day: int = 0
    calls_by_day: Counter[tuple[str, int]] = field(default_factory=Counter)
    failures_by_day: Counter[tuple[str, int]] = field(default_factory=Counter)
    opened: Counter[Place] = field(default_factory=Counter)
    round_trips: Counter[Place] = field(default_factory=Counter)

    def failure_rate(self, tool: str, first_day: int, last_day: int) -> float:
        """Return the share of failed calls of ``tool`` from ``first_day`` to ``last_day``."""
        days = range(first_day, last_day + 1)
        calls = sum(self.calls_by_day[tool, day] for day in days)
        return sum(self.failures_by_day[tool, day] for day in days) / calls

    def call(self, tool: str, *, success: bool, again: bool) -> None:
        """Count one call."""
        self.calls[tool] += 1
        self.repeated[tool] += again
        self.calls_by_day[tool, self.day] += 1
        if not success:
            self.failures[tool] += 1
            self.failures_by_day[tool, self.day] += 1

    def open_chain(self, slips: tuple[Slip, ...]) -> None:
        """Count a first failure that ``slips`` caused."""
        for slip in slips:
            self.opened[slip.tool, slip.field] += 1

    def round_trip(self, slips: tuple[Slip, ...]) -> None:
        """Count one more call after a failure that ``slips`` caused."""
        for slip in slips:
            self.round_trips[slip.tool, slip.field] += 1
