"""Opportunities as arrays, so that those of a day are small, kept, and joined with other days'.

Of a day of a large project there are ten thousand, and most fixes have one or two of them: sums of
each would hardly be smaller, and could not say what some of them come to together. Conversations
and chains are numbers here. Each has all its opportunities in one set of arrays: who divides a
window leaves out those that reach beyond a part of it (``queries.fixes.fix_evidence``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toolfault_dashboard.analysis.fixes.fixes import Outline, Tallied, Tally, tallied
from toolfault_dashboard.analysis.fixes.opportunities import FixKey, Opportunity
from toolfault_dashboard.analysis.fixes.wordings import Answers

Whole = NDArray[np.signedinteger[Any]]

__all__ = ["ByFix", "OpportunityArrays", "Wording", "arrays_of", "joined"]

Wording = tuple[str, str, int]
"""Tool, code and number of what was said."""

_NONE: Final = -1  # in an array, for what an opportunity does not have


@dataclass(frozen=True, slots=True)
class OpportunityArrays:
    """Opportunities; arrays of whole numbers, each as narrow as these are.

    Attributes:
        keys: The fixes.
        codes: The codes.
        key: Of each sort the place of its fix: the opportunities of one sort have also one kind and
            said the same.
        code: Of each sort the place of its code.
        kind: Of each sort; -1 for none.
        said: Of each sort; -1 for none.
        sort: Of each opportunity, as all that follow.
        conversation: Its number, from 0 on.
        chain: Its number within the conversation, from 0 on; -1 for none.
        answer: See `Opportunity`.
        occurred_at: Microseconds; -1 for none.
    """

    keys: Sequence[FixKey]
    codes: Sequence[str]
    key: Whole
    code: Whole
    kind: Whole
    said: Whole
    sort: Whole
    conversation: Whole
    chain: Whole
    saved: Whole
    cost: Whole
    round_trips: Whole
    abandoned: Whole
    answer: Whole
    occurred_at: Whole

    def __len__(self) -> int:
        return len(self.sort)

    @property
    def first_at(self) -> int | None:
        """When the first of them ended; None where none has a time."""
        timed = self.occurred_at[self.occurred_at != _NONE]
        return int(timed.min()) if len(timed) else None

    @property
    def kinds(self) -> frozenset[int]:
        """The kinds of their failures."""
        return frozenset(self.kind[self.sort].tolist()) - {_NONE}

    def of_kinds(self, kinds: Collection[int]) -> tuple[OpportunityArrays, OpportunityArrays]:
        """Return those of *kinds*, and the others."""
        wanted = np.isin(self.kind, list(kinds))[self.sort]
        return self._only(wanted), self._only(~wanted)

    def wordings(self) -> dict[Wording, Answers]:
        """Return what came of the failures with each wording; those outside chains are left out."""
        wordings, of_sorts = self.wordings_of_sorts()
        of_each, in_chain = of_sorts[self.sort], self.chain != _NONE
        sums = (
            np.bincount(of_each[in_chain & (self.answer >= least)], minlength=len(wordings))
            for least in (2, 1, 0)
        )
        counted = zip(wordings, zip(*(each.tolist() for each in sums), strict=True), strict=True)
        return {each: Answers(*counts) for each, counts in counted if each[2] != _NONE}

    def wordings_of_sorts(self) -> tuple[list[Wording], Whole]:
        """Return the wordings, and of each sort the place of its own."""
        places: dict[str, int] = {}
        tools = [places.setdefault(key.tool, len(places)) for key in self.keys]
        said, codes = self.said.astype(np.int64) - _NONE, max(1, len(self.codes))
        width = int(said.max(initial=0)) + 1
        packed = (np.asarray(tools, dtype=np.int64)[self.key] * codes + self.code) * width + said
        known, of_sorts = np.unique(packed, return_inverse=True)
        names = list(places)
        wordings = [
            (names[each // width // codes], self.codes[each // width % codes], each % width + _NONE)
            for each in known.tolist()
        ]
        return wordings, of_sorts

    def _only(self, wanted: NDArray[np.bool_]) -> OpportunityArrays:
        return replace(self, **{name: getattr(self, name)[wanted] for name in _OF_EACH})


_OF_SORTS: Final = ("key", "code", "kind", "said")
_OF_EACH: Final = tuple(
    each.name
    for each in fields(OpportunityArrays)
    if each.name not in {"keys", "codes", *_OF_SORTS}
)


def arrays_of(found: Iterable[Opportunity]) -> OpportunityArrays:
    """Return *found* as arrays, in the order of their time, in which they take the least room."""
    in_order = sorted(found, key=lambda each: _number(each.occurred_at))
    sort_of_each = [
        (each.key, each.code, _number(each.kind), _number(each.said)) for each in in_order
    ]
    sorts = {sort: place for place, sort in enumerate(sorted(set(sort_of_each)))}
    keys = {key: place for place, key in enumerate(sorted({key for key, *_ in sorts}))}
    codes = {code: place for place, code in enumerate(sorted({code for _, code, *_ in sorts}))}
    talks: dict[str, int] = {}
    chains: defaultdict[int, dict[str, int]] = defaultdict(dict)
    rows = []
    for sort, each in zip(sort_of_each, in_order, strict=True):
        talk = talks.setdefault(each.conversation, len(talks))
        own, chain = chains[talk], each.chain_id
        rows.append(
            (
                sorts[sort],
                talk,
                own.setdefault(chain, len(own)) if chain else _NONE,
                int(each.saved),
                int(each.cost),
                each.round_trips,
                int(each.abandoned),
                each.answer,
                _number(each.occurred_at),
            )
        )
    of_sorts = [(keys[key], codes[code], kind, said) for key, code, kind, said in sorts]
    return OpportunityArrays(
        list(keys), list(codes), *_columns(of_sorts, _OF_SORTS), *_columns(rows, _OF_EACH)
    )


def joined(parts: Sequence[OpportunityArrays]) -> OpportunityArrays:
    """Return the opportunities of all *parts*, of which no two have a conversation in common."""
    places: dict[FixKey, int] = {}
    codes: dict[str, int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in (*_OF_SORTS, *_OF_EACH)}
    sorts = talks = 0
    for part in parts:
        own = {name: getattr(part, name) for name in columns}
        of_keys = [places.setdefault(key, len(places)) for key in part.keys]
        own["key"] = np.asarray(of_keys, dtype=np.int32)[part.key]
        of_codes = [codes.setdefault(code, len(codes)) for code in part.codes]
        own["code"] = np.asarray(of_codes, dtype=np.int32)[part.code]
        own["sort"] = part.sort.astype(np.int32) + sorts
        own["conversation"] = part.conversation.astype(np.int32) + talks
        sorts += len(part.key)
        talks += int(part.conversation.max(initial=_NONE)) + 1
        for name, values in own.items():
            columns[name].append(values)
    return OpportunityArrays(
        list(places), list(codes), **{name: np.concatenate(each) for name, each in columns.items()}
    )


class ByFix(Mapping[FixKey, Outline]):
    """What opportunities come to by fix, and on request one by one."""

    def __init__(self, found: OpportunityArrays) -> None:
        self._found = found
        key = found.key[found.sort]
        self._order = np.argsort(key, kind="stable")
        places, begins = np.unique(key[self._order], return_index=True)
        ends = np.append(begins, len(key))[1:]
        self._slices = {
            found.keys[place]: slice(begin, end)
            for place, begin, end in zip(
                places.tolist(), begins.tolist(), ends.tolist(), strict=True
            )
        }
        self._outlines: dict[FixKey, Outline] = dict(
            zip(self._slices, self._summed(begins), strict=True)
        )

    def _summed(self, begins: Any) -> Iterator[Outline]:
        found, order = self._found, self._order
        if not len(order):
            return
        said = found.said[found.sort][order]
        low, high = np.minimum.reduceat(said, begins), np.maximum.reduceat(said, begins)
        failures = np.diff(np.append(begins, len(order)))
        sums = (
            *(
                np.add.reduceat(each[order], begins, dtype=np.int64)
                for each in (found.saved, found.cost, found.abandoned)
            ),
            failures,
            np.maximum.reduceat(found.occurred_at[order], begins),
            np.where(low == high, low, _NONE),
        )
        for saved, cost, abandoned, number, last_at, message in zip(
            *(each.tolist() for each in sums), strict=True
        ):
            yield Outline(
                saved=float(saved),
                abandoned=abandoned,
                failures=number,
                last_at=_known(last_at),
                cost=float(cost),
                message=_known(message),
            )

    def __getitem__(self, key: FixKey) -> Outline:
        return self._outlines[key]

    def __iter__(self) -> Iterator[FixKey]:
        return iter(self._outlines)

    def __len__(self) -> int:
        return len(self._outlines)

    def opportunities(self, key: FixKey) -> list[Opportunity]:
        """Return those of *key* one by one, their conversations and chains named by numbers."""
        return self._one_by_one(key, self._order[self._slices[key]])

    def tally(self, key: FixKey) -> Tallied:
        """Return those of *key* added up, as `tallies` would; of many that takes a tenth."""
        found, own = self._found, self._order[self._slices[key]]
        columns = (found.saved, found.cost, found.round_trips, found.abandoned)
        return self._tallied(key, own, *(each[own] for each in columns))

    def answered(
        self, wanted: Collection[Wording]
    ) -> Iterator[tuple[Wording, Tallied, Counter[FixKey]]]:
        """Yield each wording *wanted* with those that were answered, as if each saved one call.

        With them comes how many of them stand under which fix.
        """
        wordings, of_sorts = self._found.wordings_of_sorts()
        places = [place for place, each in enumerate(wordings) if each in wanted]
        rows = np.flatnonzero(self._found.answer > 0)
        of_each = of_sorts[self._found.sort[rows]]
        for place in places:
            key, own = FixKey(wordings[place][0], "", "reword"), rows[of_each == place]
            under = self._found.key[self._found.sort[own]].tolist()
            none = np.zeros(len(own), dtype=np.int8)
            yield (
                wordings[place],
                self._tallied(key, own, none + 1, none, none, none),
                Counter(self._found.keys[each] for each in under),
            )

    def _tallied(
        self,
        key: FixKey,
        own: Any,
        saved: Whole,
        cost: Whole,
        round_trips: Whole,
        abandoned: Whole,
    ) -> Tallied:
        """Return those at the places *own* added up, with these numbers of each."""
        found, sort = self._found, self._found.sort[own]
        talks = list(map(str, found.conversation[own].tolist()))
        chains = zip(talks, found.chain[own].tolist(), strict=True)
        said = Counter(map(_known, found.said[sort].tolist())) if key.remedy == "open" else None
        return tallied(
            Tally(
                failures=len(own),
                round_trips=int(round_trips.sum(dtype=np.int64)),
                saved=_sums(talks, saved),
                costs=_sums(talks, cost),
                chains={f"{talk}.{chain}" for talk, chain in chains if chain != _NONE},
                abandoned=int(abandoned.sum(dtype=np.int64)),
                kinds=set(found.kind[sort].tolist()) - {_NONE},
                said=said or Counter(),
                last_at=_known(int(found.occurred_at[own].max(initial=_NONE))),
            )
        )

    def _one_by_one(self, key: FixKey, own: Any) -> list[Opportunity]:
        found = self._found
        sort = found.sort[own]
        columns = (
            found.conversation[own], found.chain[own], found.saved[own], found.occurred_at[own],
            found.cost[own], found.round_trips[own], found.abandoned[own], found.kind[sort],
            found.said[sort], found.code[sort], found.answer[own],
        )  # fmt: skip
        return [
            Opportunity(
                key,
                conversation=str(talk),
                chain_id=None if chain == _NONE else f"{talk}.{chain}",
                saved=float(saved),
                occurred_at=_known(at),
                cost=float(cost),
                round_trips=trips,
                abandoned=bool(abandoned),
                kind=_known(kind),
                said=_known(said),
                code=found.codes[code],
                answer=answer,
            )
            for talk, chain, saved, at, cost, trips, abandoned, kind, said, code, answer in zip(
                *(each.tolist() for each in columns), strict=True
            )
        ]


def _sums(names: Sequence[str], numbers: Whole) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, number in zip(names, numbers.tolist(), strict=True):
        found[name] = found.get(name, 0.0) + number
    return found


def _columns(rows: Sequence[Sequence[int]], names: Sequence[str]) -> list[Whole]:
    """Return the columns of *rows*, each of the narrowest type that holds it."""
    whole = np.asarray(rows, dtype=np.int64).reshape(-1, len(names))
    return [_narrow(column) for column in whole.T]


def _narrow(column: Whole) -> Whole:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    widths: tuple[type[np.signedinteger[Any]], ...] = (np.int8, np.int16, np.int32, np.int64)
    wide = next(each for each in widths if np.iinfo(each).min <= low and high <= np.iinfo(each).max)
    return column.astype(wide)


def _number(value: int | None) -> int:
    return _NONE if value is None else value


def _known(number: int) -> int | None:
    return None if number == _NONE else number
