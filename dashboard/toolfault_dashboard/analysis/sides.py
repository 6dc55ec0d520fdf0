"""One side of a comparison: what each conversation did, by tool, model and agent.

A *cell* is one conversation within one stratum (tool, model, agent). Folded successes have no
conversation of their own; of them a side knows the calls per stratum, how many conversations there
were and the sum of their squared calls, which is all that the variance needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.columns import Columns

__all__ = ["Cell", "Folded", "SideData", "Stratum"]

Stratum = tuple[str, str, str]
"""Tool, model and agent; "" where unknown."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One conversation within one stratum."""

    conversation: str
    stratum: Stratum
    calls: int
    failures: int
    chains: int
    unchained: int  # failures that are in no chain
    round_trips: int
    recovered: int
    closed: int  # chains that are no longer open
    timed: int = 0  # calls whose source has times
    time_lost_ms: float = 0.0  # on failing calls of chains and between their attempts
    tokens_lost: int = 0  # of failed calls in chains that report them
    told: int = 0  # chains that report tokens


@dataclass(frozen=True, slots=True)
class Folded:
    """Successes that senders counted: they have no failure and no conversation of their own."""

    calls: Mapping[Stratum, int] = field(default_factory=dict)
    conversations: int = 0  # beyond those of the cells
    calls_squared: float = 0.0  # over these conversations

    @property
    def total(self) -> int:
        """All folded calls that no cell has."""
        return sum(self.calls.values())


@dataclass(frozen=True)
class SideData:
    """Everything a comparison needs of one side."""

    label: str
    query: str
    cells: tuple[Cell, ...]
    folded: Folded = field(default_factory=Folded)

    def only(self, strata: Iterable[Stratum]) -> SideData:
        """Return the side reduced to some strata; what is folded keeps its conversations."""
        wanted = set(strata)
        calls = {key: calls for key, calls in self.folded.calls.items() if key in wanted}
        return SideData(
            self.label,
            self.query,
            tuple(cell for cell in self.cells if cell.stratum in wanted),
            Folded(calls, self.folded.conversations, self.folded.calls_squared),
        )

    @cached_property
    def columns(self) -> Columns:
        """The cells column by column."""
        from toolfault_dashboard.analysis.columns import columns_of

        return columns_of(self.cells)

    @property
    def strata(self) -> Counter[Stratum]:
        """Calls per stratum."""
        found = Counter(self.folded.calls)
        own = self.columns.by_stratum(self.columns.calls)
        for stratum, calls in zip(self.columns.strata, own, strict=True):
            found[stratum] += int(calls)
        return found

    @property
    def conversations(self) -> int:
        """Conversations, those known from counters alone included."""
        return self.columns.conversations + self.folded.conversations

    @property
    def calls(self) -> int:
        """Calls as the summary counts them."""
        return int(self.columns.calls.sum()) + self.folded.total

    @property
    def failures(self) -> int:
        """Failures of the side."""
        return int(self.columns.failures.sum())

    @property
    def chains(self) -> int:
        """Chains of the side."""
        return int(self.columns.chains.sum())
