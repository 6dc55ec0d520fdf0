"""One cohort of a comparison: what each conversation did, by tool, model and agent.

A *cell* is one conversation within one stratum (tool, model, agent). Folded successes have no
conversation of their own; of them a cohort knows the calls per stratum, how many conversations
there were and the sum of their squared calls, which is all that the variance needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from toolfault_dashboard.analysis.comparisons.cells import (
    Cell,
    Columns,
    Floats,
    Stratum,
    columns_of,
    numbered,
)
from toolfault_dashboard.analysis.weights import Amount

__all__ = ["Cohort", "Folded", "without_model"]


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
class Cohort:
    """Everything a comparison needs of one cohort.

    Where calls were sampled, ``cells`` count what rows stand for; ``rows`` is the same cohort
    counted in rows, and ``squares`` in squared weights, which the size of a sample is known from.
    ``beside`` has the cells of which only successes were counted, of the same conversations.
    """

    label: str
    query: str
    cells: Sequence[Cell]
    folded: Folded = field(default_factory=Folded)
    rows: Cohort | None = None
    squares: Cohort | None = None
    beside: Columns | None = None

    @cached_property
    def columns(self) -> Columns:
        """The cells column by column."""
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
        """What was worked out of this cohort and is needed again, by name."""
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
        """Failures of the cohort."""
        return self._amount("failures")

    @property
    def chains(self) -> Amount:
        """Chains of the cohort."""
        return self._amount("chains")

    def _amount(self, name: str) -> Amount:
        counted = _sum(self, name)
        if self.rows is None or self.squares is None:
            return Amount(int(counted), int(counted), int(counted))
        rows, squares = _sum(self.rows, name), _sum(self.squares, name)
        return Amount(int(rows), float(counted), float(squares))


def _sum(cohort: Cohort, name: str) -> float:
    return sum(float(getattr(block, name).sum()) for block in cohort.blocks)


def without_model(cohort: Cohort) -> Cohort:
    """Return *cohort* with the mix of tools and agents alone.

    For cohorts of different models: that is what is compared, so it cannot be kept equal.
    """
    calls: dict[Stratum, int] = {}
    for (tool, _, agent), number in cohort.folded.calls.items():
        calls[tool, "", agent] = calls.get((tool, "", agent), 0) + number
    return replace(
        cohort,
        cells=_of_any_model(cohort.columns),
        beside=None if cohort.beside is None else _of_any_model(cohort.beside),
        folded=replace(cohort.folded, calls=calls),
        rows=None if cohort.rows is None else without_model(cohort.rows),
        squares=None if cohort.squares is None else without_model(cohort.squares),
    )


def _of_any_model(cells: Columns) -> Columns:
    strata: dict[Stratum, int] = {}
    places = numbered(((tool, "", agent) for tool, _, agent in cells.strata), strata)
    return replace(cells, strata=tuple(strata), stratum=places[cells.stratum])
