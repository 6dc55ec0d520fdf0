"""Cohorts of comparisons drawn at random: conversations that differ, and mixes that shift."""

from __future__ import annotations

import random
from collections.abc import Sequence

from toolfault_dashboard.analysis.comparisons.cells import Cell
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort

__all__ = ["cell", "cohort"]


def cell(
    conversation: str, tool: str = "t", *, calls: int, failures: int, round_trips: int = 0
) -> Cell:
    """One conversation with one tool; failures are one chain each half-way recovered."""
    return Cell(
        conversation=conversation,
        stratum=(tool, "m", "a"),
        calls=calls,
        failures=failures,
        chains=min(1, failures),
        unchained=0,
        round_trips=round_trips,
        recovered=min(1, failures),
        closed=min(1, failures),
    )


def cohort(
    rng: random.Random,
    conversations: int,
    rates: dict[str, float],
    *,
    mix: Sequence[float] = (1.0,),
    spread: float = 0.15,
    longest: int = 20,
) -> Cohort:
    """A cohort: each conversation has a rate of its own around that of its tool.

    Args:
        rng: Source of chance.
        conversations: How many.
        rates: Failure rate of each tool.
        mix: Share of the conversations that use each tool.
        spread: Standard deviation of the rates between conversations.
        longest: Most calls of a conversation.
    """
    tools = list(rates)
    cells = []
    for number in range(conversations):
        tool = rng.choices(tools, mix)[0]
        calls = rng.randrange(1, longest)
        own = min(1.0, max(0.0, rng.gauss(rates[tool], spread)))
        failures = sum(rng.random() < own for _ in range(calls))
        cells.append(cell(str(number), tool, calls=calls, failures=failures))
    return Cohort("x", "", tuple(cells))
