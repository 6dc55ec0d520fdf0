"""The cells of a cohort column by column: what one pass over a hundred thousand of them needs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COUNTS",
    "Cell",
    "CodeColumns",
    "Columns",
    "Floats",
    "Layout",
    "Names",
    "Numbers",
    "Stratum",
    "added",
    "code_columns",
    "columns_of",
    "distinct",
    "layout_of",
    "numbered",
    "placed",
]

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
_Key = TypeVar("_Key", bound=Hashable)

COUNTS: Final = (
    "calls", "failures", "chains", "unchained", "round_trips", "recovered", "closed", "timed",
    "time_lost_ms", "tokens_lost", "with_tokens",
)  # fmt: skip
"""What is counted of a cell, in the order of its fields."""


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
    with_tokens: float = 0  # chains that report tokens


class Names:
    """The conversations of cells, numbered in the order in which each was first seen."""

    def __init__(self, numbers: dict[str, int] | None = None) -> None:
        self._numbers: dict[str, int] = {} if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """The conversations by their numbers."""
        return tuple(self._numbers)

    def taking(self, values: Iterable[str]) -> Numbers:
        """Return the numbers of *values*, and take in those that are new."""
        return numbered(values, self._numbers)

    def of(self, values: Iterable[str]) -> Numbers:
        """Return the numbers of *values*, all of which are there."""
        return np.fromiter(map(self._numbers.__getitem__, values), dtype=np.int64)

    def copy(self) -> Names:
        """Return the same, to which more can be added."""
        return Names(self._numbers.copy())


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Sequence[Cell]):
    """Cells as arrays of one length; a metric reads them as it reads one cell.

    Attributes:
        names: The conversations.
        conversation: Position of the conversation of each cell in ``names``.
        strata: The strata that any cell has.
        stratum: Position of its stratum in ``strata``.
    """

    names: Names
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
    with_tokens: Floats

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
            self.names.in_order[self.conversation[place]],
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

    def with_calls(self, more: Floats) -> Columns:
        """Return the same with *more* calls of each cell."""
        return replace(self, calls=self.calls + more)


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the cells of several parts come to lie when they are added up.

    The largest part stays as it is and what the others have beside it comes behind, so that adding
    an hour to a week costs what an hour costs.

    Attributes:
        names: The conversations of all parts.
        strata: The strata of all parts.
        conversation: Of each cell of the sum.
        stratum: Of each cell of the sum.
        base: Which of the parts is the largest.
        place: Of each cell of the other parts, one after the other: its position in the sum.
        renumbered: Of each part: the positions of its conversations in ``names``.
        touched: Of each conversation: whether a part other than the largest has it.
    """

    names: Names
    strata: tuple[Stratum, ...]
    conversation: Numbers
    stratum: Numbers
    base: int
    place: Numbers
    renumbered: tuple[Numbers, ...]
    touched: NDArray[np.bool_]

    def sum_of(self, parts: Sequence[Columns]) -> Columns:
        """Return the sum of *parts*, cells of one conversation and stratum as one."""
        length = len(self.conversation)
        others = [part for number, part in enumerate(parts) if number != self.base]

        def sums(name: str) -> Floats:
            more = np.concatenate([getattr(part, name) for part in others])
            found = added(self.place, more, length)
            found[: len(parts[self.base])] += getattr(parts[self.base], name)
            return found

        return Columns(self.names, self.conversation, self.strata, self.stratum, *map(sums, COUNTS))


def layout_of(parts: Sequence[Columns]) -> Layout:
    """Return where the cells of *parts*, of which there are several, come to lie in their sum."""
    base = max(range(len(parts)), key=lambda number: len(parts[number]))
    largest = parts[base]
    others = [part for number, part in enumerate(parts) if number != base]
    names = largest.names.copy()
    strata = {stratum: number for number, stratum in enumerate(largest.strata)}
    renumbered = [names.taking(part.names) for part in others]
    own = [numbered(part.strata, strata) for part in others]
    conversation = np.concatenate(
        [ids[part.conversation] for ids, part in zip(renumbered, others, strict=True)]
    )
    stratum = np.concatenate([ids[part.stratum] for ids, part in zip(own, others, strict=True)])
    touched = np.zeros(len(names), dtype=np.bool_)
    touched[conversation] = True
    # Strata are few, so both numbers fit into one.
    width = max(1, len(strata))
    place, new = placed(
        largest.conversation * width + largest.stratum,
        touched[largest.conversation],
        conversation * width + stratum,
    )
    renumbered.insert(base, np.arange(len(largest.names)))
    return Layout(
        names=names,
        strata=tuple(strata),
        conversation=np.concatenate([largest.conversation, new // width]),
        stratum=np.concatenate([largest.stratum, new % width]),
        base=base,
        place=place,
        renumbered=tuple(renumbered),
        touched=touched,
    )


def placed(
    known: Numbers, candidates: NDArray[np.bool_], wanted: Numbers
) -> tuple[Numbers, Numbers]:
    """Find keys among others.

    Args:
        known: Keys, each once.
        candidates: Which of them may be wanted; only these are looked at.
        wanted: Keys, in any number.

    Returns:
        The position of each wanted key, in *known* or in the new ones behind it; and the new ones.
    """
    some = np.flatnonzero(candidates)
    keys, own = np.unique(np.concatenate([known[some], wanted]), return_inverse=True)
    places = np.full(len(keys), -1, dtype=np.int64)
    places[own[: len(some)]] = some
    is_new = places < 0
    places[is_new] = len(known) + np.arange(np.count_nonzero(is_new))
    return places[own[len(some) :]], keys[is_new]


def columns_of(cells: Sequence[Cell]) -> Columns:
    """Return *cells* as columns."""
    names = Names()
    strata: dict[Stratum, int] = {}
    return Columns(
        conversation=names.taking(cell.conversation for cell in cells),
        stratum=numbered((cell.stratum for cell in cells), strata),
        names=names,
        strata=tuple(strata),
        # Whole numbers up to 2 ** 53 are exact.
        **{
            name: np.fromiter((getattr(cell, name) for cell in cells), dtype=np.float64)
            for name in COUNTS
        },
    )


@dataclass(frozen=True, slots=True, eq=False)
class CodeColumns:
    """Failures of a cohort by code and conversation, each pair once, as arrays of one length.

    Attributes:
        codes: The codes.
        code: Position of the code in ``codes``.
        conversation: Position of the conversation in the columns of the cohort.
        failures: How many, each as what it stands for.
    """

    codes: Sequence[str]
    code: Numbers
    conversation: Numbers
    failures: Floats

    def by_code(self, values: Any) -> Floats:
        """Return the sums of *values* by code."""
        return added(self.code, values, len(self.codes))


def code_columns(failures: Mapping[str, Mapping[str, float]], cohort: Columns) -> CodeColumns:
    """Return *failures*, by code and conversation, as columns beside those of their cohort."""
    rows = [
        (place, name, count)
        for place, own in enumerate(failures.values())
        for name, count in own.items()
    ]
    code, conversation, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return CodeColumns(
        tuple(failures),
        np.asarray(code, dtype=np.int64),
        cohort.names.of(conversation),
        np.asarray(counts, dtype=np.float64),
    )


def numbered(values: Iterable[_Key], known: dict[_Key, int]) -> Numbers:
    """Number *values* in the order in which each is first seen, and take them into *known*."""
    own = list(values)
    # Each value once, then all by look-up: neither runs any code of ours for each of them.
    for each in dict.fromkeys(own):
        known.setdefault(each, len(known))
    return np.fromiter(map(known.__getitem__, own), dtype=np.int64, count=len(own))


def distinct(key: Numbers, below: int) -> tuple[Numbers, Numbers]:
    """Return what ``numpy.unique`` does with the places of all: without sorting, where it may.

    Args:
        key: Numbers that are not negative.
        below: What all of them are below; room for as many is made where they are not far more
            than the numbers themselves.
    """
    if below > 4 * len(key) + 1_000:
        return np.unique(key, return_inverse=True)
    is_there = np.zeros(below, dtype=np.bool_)
    is_there[key] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[key]


def added(key: Numbers, values: Any, length: int) -> Floats:
    """Return the sums of *values* by *key*, a number below *length*."""
    return np.bincount(key, weights=values, minlength=length).astype(np.float64, copy=False)
