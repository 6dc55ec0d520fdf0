"""The cells of a side column by column: what one pass over a hundred thousand of them needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from toolfault_dashboard.analysis.sides import Cell, Stratum

__all__ = ["Columns", "columns_of"]

_Numbers = NDArray[np.int64]
_Floats = NDArray[np.float64]
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Cells as arrays of one length; a metric reads them as it reads one cell.

    Attributes:
        conversation: Number of the conversation of each cell.
        conversations: How many conversations there are.
        stratum: Position of its stratum in ``strata``.
        strata: The strata that any cell has.
    """

    conversation: _Numbers
    conversations: int
    stratum: _Numbers
    strata: tuple[Stratum, ...]
    calls: _Floats
    failures: _Floats
    chains: _Floats
    unchained: _Floats
    round_trips: _Floats
    recovered: _Floats
    closed: _Floats
    timed: _Floats
    time_lost_ms: _Floats
    tokens_lost: _Floats
    told: _Floats

    def by_stratum(self, values: Any) -> list[float]:
        """Return the sums of *values* by stratum, in the order of ``strata``."""
        return [float(each) for each in self._added(self.stratum, values, len(self.strata))]

    def by_conversation(self, values: Any) -> _Floats:
        """Return the sums of *values* by conversation."""
        return self._added(self.conversation, values, self.conversations)

    def of_strata(self, numbers: Sequence[float]) -> _Floats:
        """Return for every cell the number of its stratum."""
        return np.asarray(numbers, dtype=np.float64)[self.stratum]

    def _added(self, key: _Numbers, values: Any, length: int) -> _Floats:
        return np.bincount(key, weights=values, minlength=length).astype(np.float64)


def columns_of(cells: Sequence[Cell]) -> Columns:
    """Return *cells* as columns."""
    conversation, conversations = _numbered(cell.conversation for cell in cells)
    stratum, strata = _numbered(cell.stratum for cell in cells)
    return Columns(
        conversation=conversation,
        conversations=len(conversations),
        stratum=stratum,
        strata=tuple(strata),
        calls=_numbers(cell.calls for cell in cells),
        failures=_numbers(cell.failures for cell in cells),
        chains=_numbers(cell.chains for cell in cells),
        unchained=_numbers(cell.unchained for cell in cells),
        round_trips=_numbers(cell.round_trips for cell in cells),
        recovered=_numbers(cell.recovered for cell in cells),
        closed=_numbers(cell.closed for cell in cells),
        timed=_numbers(cell.timed for cell in cells),
        time_lost_ms=_numbers(cell.time_lost_ms for cell in cells),
        tokens_lost=_numbers(cell.tokens_lost for cell in cells),
        told=_numbers(cell.told for cell in cells),
    )


def _numbers(values: Iterable[float]) -> _Floats:
    # Whole numbers up to 2 ** 53 are exact.
    return np.fromiter(values, dtype=np.float64)


def _numbered(values: Iterable[_Key]) -> tuple[_Numbers, dict[_Key, int]]:
    """Number *values* in the order in which each is first seen."""
    known: dict[_Key, int] = {}
    found = np.fromiter((known.setdefault(each, len(known)) for each in values), dtype=np.int64)
    return found, known
