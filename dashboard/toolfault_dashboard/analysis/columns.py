"""The cells of a side column by column: what one pass over a hundred thousand of them needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from toolfault_dashboard.analysis.sides import Cell, Stratum

__all__ = [
    "COUNTS",
    "CodeColumns",
    "Columns",
    "Floats",
    "Layout",
    "Numbers",
    "added",
    "code_columns",
    "columns_of",
    "layout_of",
    "numbered",
]

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
_Key = TypeVar("_Key", bound=Hashable)

COUNTS: Final = (
    "calls", "failures", "chains", "unchained", "round_trips", "recovered", "closed", "timed",
    "time_lost_ms", "tokens_lost", "told",
)  # fmt: skip
"""What is counted of a cell, in the order of its fields."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Sequence[Cell]):
    """Cells as arrays of one length; a metric reads them as it reads one cell.

    Attributes:
        names: The conversations.
        conversation: Position of the conversation of each cell in ``names``.
        strata: The strata that any cell has.
        stratum: Position of its stratum in ``strata``.
    """

    names: Sequence[str]
    conversation: Numbers
    strata: tuple[Stratum, ...]
    stratum: Numbers
    calls: Floats
    failures: Floats
    chains: Floats
    unchained: Floats
    round_trips: Floats
    recovered: Floats
    closed: Floats
    timed: Floats
    time_lost_ms: Floats
    tokens_lost: Floats
    told: Floats

    def __len__(self) -> int:
        return len(self.conversation)

    @overload
    def __getitem__(self, place: int) -> Cell: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Cell]: ...
    def __getitem__(self, place: int | slice) -> Cell | Sequence[Cell]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return Cell(
            self.names[self.conversation[place]],
            self.strata[self.stratum[place]],
            *(float(getattr(self, name)[place]) for name in COUNTS),
        )

    @property
    def conversations(self) -> int:
        """How many conversations there are."""
        return len(self.names)

    def by_stratum(self, values: Any) -> list[float]:
        """Return the sums of *values* by stratum, in the order of ``strata``."""
        return [float(each) for each in added(self.stratum, values, len(self.strata))]

    def by_conversation(self, values: Any) -> Floats:
        """Return the sums of *values* by conversation."""
        return added(self.conversation, values, self.conversations)

    def of_strata(self, numbers: Sequence[float]) -> Floats:
        """Return for every cell the number of its stratum."""
        return np.asarray(numbers, dtype=np.float64)[self.stratum]

    def with_calls(self, more: Floats) -> Columns:
        """Return the same with *more* calls of each cell."""
        return replace(self, calls=self.calls + more)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the cells of several parts come to lie when they are added up.

    Attributes:
        names: The conversations of all parts.
        strata: The strata of all parts.
        conversation: Of each cell of the sum.
        stratum: Of each cell of the sum.
        place: Of each cell of all parts, one after the other: its position in the sum.
        renumbered: Of each part: the positions of its conversations in ``names``.
    """

    names: Sequence[str]
    strata: tuple[Stratum, ...]
    conversation: Numbers
    stratum: Numbers
    place: Numbers
    renumbered: tuple[Numbers, ...]

    def sum_of(self, parts: Sequence[Columns]) -> Columns:
        """Return the sum of *parts*, cells of one conversation and stratum as one."""
        length = len(self.conversation)
        sums = (
            added(self.place, np.concatenate([getattr(part, name) for part in parts]), length)
            for name in COUNTS
        )
        return Columns(self.names, self.conversation, self.strata, self.stratum, *sums)


def layout_of(parts: Sequence[Columns]) -> Layout:
    """Return where the cells of *parts* come to lie when they are added up."""
    names: dict[str, int] = {}
    strata: dict[Stratum, int] = {}
    renumbered = tuple(numbered(part.names, names) for part in parts)
    own = [numbered(part.strata, strata) for part in parts]
    pairs = zip(renumbered, parts, strict=True)
    conversation = np.concatenate([ids[part.conversation] for ids, part in pairs])
    stratum = np.concatenate([ids[part.stratum] for ids, part in zip(own, parts, strict=True)])
    # Strata are few, so both numbers fit into one.
    keys, first, place = np.unique(
        conversation * max(1, len(strata)) + stratum, return_index=True, return_inverse=True
    )
    if len(keys) == len(conversation):
        place = np.arange(len(conversation))
    else:
        conversation, stratum = conversation[first], stratum[first]
    return Layout(tuple(names), tuple(strata), conversation, stratum, place, renumbered)


def columns_of(cells: Sequence[Cell]) -> Columns:
    """Return *cells* as columns."""
    names: dict[str, int] = {}
    strata: dict[Stratum, int] = {}
    return Columns(
        conversation=numbered((cell.conversation for cell in cells), names),
        stratum=numbered((cell.stratum for cell in cells), strata),
        names=tuple(names),
        strata=tuple(strata),
        # Whole numbers up to 2 ** 53 are exact.
        **{
            name: np.fromiter((getattr(cell, name) for cell in cells), dtype=np.float64)
            for name in COUNTS
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class CodeColumns:
    """Failures of a side by code and conversation, each pair once, as arrays of one length.

    Attributes:
        codes: The codes.
        code: Position of the code in ``codes``.
        conversation: Position of the conversation in the columns of the side.
        failures: How many, each as what it stands for.
    """

    codes: Sequence[str]
    code: Numbers
    conversation: Numbers
    failures: Floats

    def by_code(self, values: Any) -> Floats:
        """Return the sums of *values* by code."""
        return added(self.code, values, len(self.codes))


def code_columns(failures: Mapping[str, Mapping[str, float]], side: Columns) -> CodeColumns:
    """Return *failures*, by code and conversation, as columns beside those of their side."""
    names = {name: number for number, name in enumerate(side.names)}
    rows = [
        (place, names[name], count)
        for place, own in enumerate(failures.values())
        for name, count in own.items()
    ]
    code, conversation, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return CodeColumns(
        tuple(failures),
        np.asarray(code, dtype=np.int64),
        np.asarray(conversation, dtype=np.int64),
        np.asarray(counts, dtype=np.float64),
    )


def numbered(values: Iterable[_Key], known: dict[_Key, int]) -> Numbers:
    """Number *values* in the order in which each is first seen, and take them into *known*."""
    return np.fromiter((known.setdefault(each, len(known)) for each in values), dtype=np.int64)


def added(key: Numbers, values: Any, length: int) -> Floats:
    """Return the sums of *values* by *key*, a number below *length*."""
    return np.bincount(key, weights=values, minlength=length).astype(np.float64)
