"""One side of a comparison: what each conversation did, by tool, model and agent.

A *cell* is one conversation within one stratum (tool, model, agent). Folded successes have no
conversation of their own; of them a side knows the calls per stratum, how many conversations there
were and the sum of their squared calls, which is all that the variance needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from toolfault_dashboard.analysis.weights import Amount

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.comparisons.columns import Columns, Floats

__all__ = ["Cell", "Folded", "SideData", "Stratum", "without_model"]

Stratum = tuple[str, str, str]
"""Tool, model and agent; "" where unknown."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One conversation within one stratum; whole numbers where nothing was sampled."""

    conversation: str
    stratum: Stratum
    calls: float
    failures: float
    chains: float
    unchained: float  # failures that are in no chain
    round_trips: float
    recovered: float
    closed: float  # chains that are no longer open
    timed: float = 0  # calls whose source has times
    time_lost_ms: float = 0.0  # on failing calls of chains and between their attempts
    tokens_lost: float = 0  # of failed calls in chains that report them
    told: float = 0  # chains that report tokens


@dataclass(frozen=True, slots=True)
class Folded:
    """Successes that senders counted: they have no failure and no conversation of their own."""

    calls: Mapping[Stratum, int] = field(default_factory=dict)
    conversations: int = 0  # beyond those of the cells
    calls_squared: float = 0.0  # over these conversations
    # By tool: conversations with calls of it that no cell has, and the sum of their squares.
    of_tools: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All folded calls that no cell has."""
        return sum(self.calls.values())


@dataclass(frozen=True)
class SideData:
    """Everything a comparison needs of one side.

    Where calls were sampled, ``cells`` count what rows stand for; ``rows`` is the same side counted
    in rows, and ``squares`` in squared weights, which the size of a sample is known from.
    ``beside`` has the cells of which only successes were counted, of the same conversations.
    """

    label: str
    query: str
    cells: Sequence[Cell]
    folded: Folded = field(default_factory=Folded)
    rows: SideData | None = None
    squares: SideData | None = None
    beside: Columns | None = None

    @cached_property
    def columns(self) -> Columns:
        """The cells column by column."""
        from toolfault_dashboard.analysis.comparisons.columns import Columns, columns_of

        return self.cells if isinstance(self.cells, Columns) else columns_of(self.cells)

    @property
    def blocks(self) -> tuple[Columns, ...]:
        """All cells: those column by column, and those beside them."""
        return (self.columns,) if self.beside is None else (self.columns, self.beside)

    def calls_by_conversation(self) -> Floats:
        """Return the calls of each conversation, in the order of their names."""
        first, *others = (block.by_conversation(block.calls) for block in self.blocks)
        return sum(others, first)

    @cached_property
    def known(self) -> dict[str, Any]:
        """What was worked out of this side and is needed again, by name."""
        return {}

    @property
    def strata(self) -> dict[Stratum, float]:
        """Calls per stratum."""
        found: dict[Stratum, float] = dict(self.folded.calls)
        for block in self.blocks:
            own = block.by_stratum(block.calls)
            for stratum, calls in zip(block.strata, own, strict=True):
                found[stratum] = found.get(stratum, 0) + calls
        return found

    @property
    def conversations(self) -> int:
        """Conversations, those known from counters alone included."""
        return self.columns.conversations + self.folded.conversations

    @property
    def calls(self) -> Amount:
        """Calls as the summary counts them."""
        own, folded = self._amount("calls"), self.folded.total
        return own + Amount(folded, folded, folded)

    @property
    def failures(self) -> Amount:
        """Failures of the side."""
        return self._amount("failures")

    @property
    def chains(self) -> Amount:
        """Chains of the side."""
        return self._amount("chains")

    def _amount(self, name: str) -> Amount:
        counted = _sum(self, name)
        if self.rows is None or self.squares is None:
            return Amount(int(counted), int(counted), int(counted))
        rows, squares = _sum(self.rows, name), _sum(self.squares, name)
        return Amount(int(rows), float(counted), float(squares))


def _sum(side: SideData, name: str) -> float:
    return sum(float(getattr(block, name).sum()) for block in side.blocks)


def without_model(side: SideData) -> SideData:
    """Return *side* with the mix of tools and agents alone.

    For sides of different models: that is what is compared, so it cannot be kept equal.
    """
    calls: dict[Stratum, int] = {}
    for (tool, _, agent), number in side.folded.calls.items():
        calls[tool, "", agent] = calls.get((tool, "", agent), 0) + number
    return replace(
        side,
        cells=_of_any_model(side.columns),
        beside=None if side.beside is None else _of_any_model(side.beside),
        folded=replace(side.folded, calls=calls),
        rows=None if side.rows is None else without_model(side.rows),
        squares=None if side.squares is None else without_model(side.squares),
    )


def _of_any_model(cells: Columns) -> Columns:
    from toolfault_dashboard.analysis.comparisons.columns import numbered

    strata: dict[Stratum, int] = {}
    places = numbered(((tool, "", agent) for tool, _, agent in cells.strata), strata)
    return replace(cells, strata=tuple(strata), stratum=places[cells.stratum])
