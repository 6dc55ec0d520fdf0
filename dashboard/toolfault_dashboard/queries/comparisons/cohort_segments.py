"""A cohort of a comparison in segments of its window, as columns that can be kept and added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, compress
from operator import add
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from toolfault_dashboard.analysis.comparisons.cells import (
    COUNTS,
    Columns,
    Floats,
    Layout,
    Names,
    Numbers,
    Stratum,
    added,
    layout_of,
    numbered,
    placed,
)
from toolfault_dashboard.analysis.weights import Amounts
from toolfault_dashboard.queries.counting.sampling_weights import amount
from toolfault_dashboard.queries.transpose import transposed

__all__ = [
    "NOTHING_COUNTED",
    "CodeSegment",
    "Counted",
    "Ended",
    "Ends",
    "Segment",
    "cells_of_rows",
    "code_segment",
    "code_segment_of_rows",
    "ended_of",
    "more_calls",
    "only",
    "together",
    "views_of",
]

Ends = Mapping[str, Sequence[tuple[int, Mapping[str, int]]]]
"""By conversation the moment of each of its ends, and the calls per tool that it named."""

_Name = TypeVar("_Name", str, Stratum)

_DECODE = msgspec.json.Decoder(list[dict[str, int]])
_HALF = 2  # cells that take as much memory as a row of another answer


class Counted(NamedTuple):
    """What senders counted.

    Attributes:
        calls: Folded calls by stratum.
        conversations: Conversations that ended.
        squared: The sum of their squared calls.
        conversations_of: Those with calls of a tool, by tool.
        squared_of: The sum of the squares of these calls, by tool.
    """

    calls: Counter[Stratum]
    conversations: int
    squared: int
    conversations_of: Counter[str]
    squared_of: Counter[str]

    def __add__(self, other: Counted) -> Counted:  # type: ignore[override]
        return Counted(
            _added(self.calls, other.calls),
            self.conversations + other.conversations,
            self.squared + other.squared,
            _added(self.conversations_of, other.conversations_of),
            _added(self.squared_of, other.squared_of),
        )


NOTHING_COUNTED: Final = Counted(Counter(), 0, 0, Counter(), Counter())


def _added(one: Counter[_Name], other: Counter[_Name]) -> Counter[_Name]:
    """Return the sum; unlike that of counters it has a name that was counted zero times, too."""
    found = Counter(one)
    found.update(other)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """The calls that ``conversation_end`` named, conversation by conversation.

    Attributes:
        conversation: The conversations that have ended, as positions among those of the segment.
        total: All calls that each of them named.
        first: When its first call began that was reported, in microseconds.
        last: When its last call ended that was reported.
        at: When it ended.
        of: Position of the conversation of each pair of conversation and tool.
        tool: Position of its tool in ``tools``.
        calls: Calls of each pair.
        several: Each end by itself, of conversations that ended more than once: every process that
            takes part in one tells its end, and counts its own calls. Above is their sum.
    """

    conversation: Numbers
    total: Floats
    first: Numbers
    last: Numbers
    at: Numbers
    of: Numbers
    tools: tuple[str, ...]
    tool: Numbers
    calls: Floats
    several: Ends


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """What a cohort has in a segment of its window.

    Attributes:
        views: Its cells counted in rows and, where calls were sampled, in what they stand for and
            its squares; alike in everything but their counts.
        ended: What their conversations said at their end.
        more: `more_calls` of its cells.
        counted: What senders counted.
        codes: Its failures by code, where they were asked for.
    """

    views: tuple[Columns, ...]
    ended: Ended
    more: Floats
    counted: Counted
    codes: CodeSegment | None = None

    def __len__(self) -> int:
        own = len(self.views) * len(self.views[0]) // _HALF + 1
        return own if self.codes is None else own + len(self.codes)


def views_of(rows: Sequence[Sequence[Any]], number: int) -> tuple[Columns, ...]:
    """Return cells as columns, once for each of the *number* sets of counts that a row has.

    Args:
        rows: Conversation, tool, model, agent and the counts.
        number: Sets of counts.
    """
    columns = transposed(rows, 4 + number * len(COUNTS))
    names = Names()
    strata: dict[Stratum, int] = {}
    conversation = names.taking(columns[0])
    stratum = numbered(zip(*columns[1:4], strict=True), strata)
    counts = [np.asarray(column, dtype=np.float64) for column in columns[4:]]
    width = len(COUNTS)
    return tuple(
        Columns(names, conversation, tuple(strata), stratum, *counts[at : at + width])
        for at in range(0, number * width, width)
    )


def cells_of_rows(calls: Sequence[Sequence[Any]], chains: Sequence[Sequence[Any]]) -> Columns:
    """Return the cells of single calls and chains.

    Args:
        calls: Conversation, tool, model, agent, and whether each failed, failed outside of any
            chain, and has a time, as 0 or 1.
        chains: Conversation, tool, model, agent, round trips, whether each recovered and is closed,
            milliseconds and tokens lost, and whether it reports tokens.
    """
    of_calls, of_chains = transposed(calls, 8), transposed(chains, 10)
    names, strata = Names(), dict[Stratum, int]()
    talks = [names.taking(each[0]) for each in (of_calls, of_chains)]
    own = [numbered(zip(*each[1:4], strict=True), strata) for each in (of_calls, of_chains)]
    width = max(1, len(strata))
    cells, place = np.unique(
        np.concatenate(talks) * width + np.concatenate(own), return_inverse=True
    )
    of_call, of_chain = place[: len(calls)], place[len(calls) :]

    def summed(where: Numbers, values: Any) -> Floats:
        return added(where, np.asarray(values, dtype=np.float64), len(cells))

    failed, unchained, timed = (summed(of_call, each) for each in of_calls[4:7])
    round_trips, *others = (summed(of_chain, each) for each in of_chains[4:])
    recovered, closed, time_lost_ms, tokens_lost, with_tokens = others
    return Columns(
        names=names,
        conversation=cells // width,
        strata=tuple(strata),
        stratum=cells % width,
        calls=added(of_call, np.ones(len(calls)), len(cells)),
        failures=failed,
        chains=added(of_chain, np.ones(len(chains)), len(cells)),
        unchained=unchained,
        round_trips=round_trips,
        recovered=recovered,
        closed=closed,
        timed=timed,
        time_lost_ms=time_lost_ms,
        tokens_lost=tokens_lost,
        with_tokens=with_tokens,
    )


def ended_of(rows: Sequence[Sequence[Any]], cells: Columns, several: Ends) -> Ended:
    """Return what conversations of *cells* said at their end, by conversation and tool.

    Args:
        rows: Conversation, its calls per tool as JSON, two columns that do not matter here, and
            when its first call began, its last one ended, and it ended itself.
        cells: Cells that each of these conversations has.
        several: Each end of those that ended more than once.
    """
    tools: dict[str, int] = {}
    names, texts, _, _, *moments = transposed(rows, 7)[:7]
    conversation = cells.names.of(names)
    # All texts as one: a conversation may name dozens of tools, so these are the longest columns.
    named = _DECODE.decode(f"[{','.join(texts)}]")
    calls = np.fromiter(chain.from_iterable(map(dict.values, named)), dtype=np.float64)
    place = np.repeat(np.arange(len(named)), np.fromiter(map(len, named), dtype=np.int64))
    first, last, at = (np.asarray(each, dtype=np.int64) for each in moments)
    return Ended(
        conversation=conversation,
        total=added(place, calls, len(named)),
        first=first,
        last=last,
        at=at,
        of=conversation[place],
        tool=numbered(chain.from_iterable(named), tools),
        tools=tuple(tools),
        calls=calls,
        several=several,
    )


def together(segments: Sequence[Segment], *_args: object) -> Segment:
    """Return all *segments* as one."""
    if len(segments) == 1:
        return segments[0]
    number = max(len(segment.views) for segment in segments)
    layout = layout_of([segment.views[0] for segment in segments])
    # Where nothing was sampled all views are the same.
    views = [
        segment.views if len(segment.views) == number else segment.views * number
        for segment in segments
    ]
    summed = tuple(layout.sum_of(each) for each in zip(*views, strict=True))
    ended = _ended_together([segment.ended for segment in segments], layout)
    return Segment(
        views=summed,
        ended=ended,
        more=_more_together(segments[layout.base].more, summed[0], ended, layout),
        counted=reduce(add, (segment.counted for segment in segments)),
        codes=_codes_together([segment.codes for segment in segments], layout),
    )


def only(segment: Segment, chosen: NDArray[np.bool_]) -> Segment:
    """Return *segment* with the *chosen* of its conversations alone, without what was counted."""
    cells, ended, codes = segment.views[0], segment.ended, segment.codes
    kept = {name: place for place, name in enumerate(compress(cells.names, chosen))}
    names = Names(kept)
    ids = np.cumsum(chosen) - 1
    own, talks, pairs = (
        chosen[each] for each in (cells.conversation, ended.conversation, ended.of)
    )
    views = tuple(
        replace(
            view,
            names=names,
            conversation=ids[view.conversation[own]],
            stratum=view.stratum[own],
            **{name: getattr(view, name)[own] for name in COUNTS},
        )
        for view in segment.views
    )
    if codes is not None:
        failing = chosen[codes.conversation]
        codes = replace(
            codes,
            code=codes.code[failing],
            conversation=ids[codes.conversation[failing]],
            failures=codes.failures[failing],
            amounts=Amounts(),
        )
    return Segment(
        views=views,
        ended=replace(
            ended,
            conversation=ids[ended.conversation[talks]],
            **{name: getattr(ended, name)[talks] for name in ("total", "first", "last", "at")},
            of=ids[ended.of[pairs]],
            tool=ended.tool[pairs],
            calls=ended.calls[pairs],
            several={name: each for name, each in ended.several.items() if name in kept},
        ),
        more=segment.more[own],
        counted=NOTHING_COUNTED,
        codes=codes,
    )


def _ended_together(segments: Sequence[Ended], layout: Layout) -> Ended:
    """Return all of *segments* as one; a conversation is taken from the first that has it."""
    largest = segments[layout.base]
    tools = {tool: number for number, tool in enumerate(largest.tools)}
    taken = np.zeros(len(layout.names), dtype=np.bool_)
    taken[largest.conversation] = True
    of_each = ("total", "first", "last", "at")
    found = [
        (
            *(largest.conversation, *(getattr(largest, name) for name in of_each)),
            *(largest.of, largest.tool, largest.calls),
        )
    ]
    for place, (segment, ids) in enumerate(zip(segments, layout.renumbered, strict=True)):
        if place == layout.base:
            continue
        conversation, of = ids[segment.conversation], ids[segment.of]
        own, new, pairs = numbered(segment.tools, tools), ~taken[conversation], ~taken[of]
        taken[conversation] = True
        found.append(
            (
                *(conversation[new], *(getattr(segment, name)[new] for name in of_each)),
                *(of[pairs], own[segment.tool[pairs]], segment.calls[pairs]),
            )
        )
    whole = [np.concatenate(column) for column in zip(*found, strict=True)]
    conversation, total, first, last, at, of, tool, calls = whole
    several = {name: ends for segment in segments for name, ends in segment.several.items()}
    return Ended(conversation, total, first, last, at, of, tuple(tools), tool, calls, several)


def _more_together(known: Floats, cells: Columns, ended: Ended, layout: Layout) -> Floats:
    """Return `more_calls` of a sum: known for conversations that only the largest segment has."""
    more = np.zeros(len(cells), dtype=np.float64)
    more[: len(known)] = known
    touched = np.flatnonzero(layout.touched[cells.conversation])
    pairs = layout.touched[ended.of]
    own = replace(ended, of=ended.of[pairs], tool=ended.tool[pairs], calls=ended.calls[pairs])
    more[touched] = more_calls(cells, own, touched)
    return more


def more_calls(cells: Columns, ended: Ended, which: Numbers | None = None) -> Floats:
    """Return how many folded successes each cell has beside the calls that were reported.

    A conversation names its calls per tool; of several models or agents it is not known which had
    them, and always the same cell is taken.

    Args:
        cells: The cells.
        ended: What their conversations said at their end.
        which: Positions of the cells that are asked for, by default all: whole conversations.
    """
    chosen = np.arange(len(cells)) if which is None else which
    more = np.zeros(len(chosen), dtype=np.float64)
    if not len(ended.of) or not len(chosen):
        return more
    stratum = cells.stratum[chosen]
    tools: dict[str, int] = {}
    of_stratum = numbered((each[0] for each in cells.strata), tools)
    # Tools that no cell has come after those.
    of_ended = numbered(ended.tools, tools)[ended.tool]
    width = len(tools)
    key = cells.conversation[chosen] * width + of_stratum[stratum]
    rank = np.empty(len(cells.strata), dtype=np.int64)
    rank[sorted(range(len(rank)), key=cells.strata.__getitem__)] = np.arange(len(rank))
    # The cells of a conversation and tool one after the other, the first of which takes them.
    order = np.lexsort((rank[stratum], key))
    in_order = key[order]
    is_first = np.append(True, in_order[1:] != in_order[:-1])
    pairs = in_order[is_first]
    reported = added(np.cumsum(is_first) - 1, cells.calls[chosen][order], len(pairs))
    named = np.zeros(len(pairs), dtype=np.float64)
    wanted = ended.of * width + of_ended
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    there = pairs[at] == wanted
    named[at[there]] = ended.calls[there]
    more[order[is_first]] = np.maximum(0.0, named - reported)
    return more


@dataclass(frozen=True, slots=True, eq=False)
class CodeSegment:
    """The failures of a segment by code and conversation, each pair once, as arrays of one length.

    Attributes:
        codes: The codes.
        code: Position of the code.
        conversation: Position of the conversation among those of the segment.
        failures: How many, each as what it stands for.
        amounts: Failures by code.
    """

    codes: tuple[str, ...]
    code: Numbers
    conversation: Numbers
    failures: Floats
    amounts: Amounts

    def __len__(self) -> int:
        return len(self.code) // _HALF


def code_segment(rows: Sequence[Sequence[Any]], cells: Columns) -> CodeSegment:
    """Return failures of *cells* as columns.

    Args:
        rows: Code, conversation and the columns of `sampling_weights.counted`.
        cells: The cells of the same calls.
    """
    code, names, *counts = transposed(rows, 3)
    codes: dict[str, int] = {}
    of_code = numbered(code, codes)
    sums = [added(of_code, np.asarray(each, dtype=np.float64), len(codes)) for each in counts]
    amounts = Amounts(
        {
            name: amount(numbers)
            for name, numbers in zip(codes, zip(*sums, strict=True), strict=True)
        }
    )
    return CodeSegment(
        codes=tuple(codes),
        code=of_code,
        conversation=cells.names.of(names),
        failures=np.asarray(counts[1 if len(counts) > 1 else 0], dtype=np.float64),
        amounts=amounts,
    )


def code_segment_of_rows(
    calls: Sequence[Sequence[Any]], further: Sequence[Sequence[Any]], cells: Columns
) -> CodeSegment:
    """Return the failures among single *calls* as columns.

    Args:
        calls: As in `cells_of_rows`, and the code of each.
        further: Conversation, code, and failures that have an issue of this code beside their own.
        cells: The cells of the calls.
    """
    failed = [row for row in calls if row[4]]
    codes: dict[str, int] = {}
    own = numbered((row[7] for row in failed), codes)
    others = numbered((row[1] for row in further), codes)
    talks = [cells.names.of(row[0] for row in rows) for rows in (failed, further)]
    counts = np.asarray([row[2] for row in further], dtype=np.float64)
    width = max(1, len(cells.names))
    pairs, place = np.unique(
        np.concatenate([own, others]) * width + np.concatenate(talks), return_inverse=True
    )
    failures = added(place, np.concatenate([np.ones(len(failed)), counts]), len(pairs))
    code = pairs // width
    of_codes = added(code, failures, len(codes)).tolist()
    return CodeSegment(
        codes=tuple(codes),
        code=code,
        conversation=pairs % width,
        failures=failures,
        amounts=Amounts(
            {name: amount((number,)) for name, number in zip(codes, of_codes, strict=True)}
        ),
    )


def _codes_together(segments: Sequence[CodeSegment | None], layout: Layout) -> CodeSegment | None:
    """Return all of *segments* as one, the largest segment of the cohort first."""
    largest = segments[layout.base]
    if largest is None:
        return None
    pairs = list(zip(segments, layout.renumbered, strict=True))
    others = [
        (segment, ids)
        for number, (segment, ids) in enumerate(pairs)
        if segment is not None and number != layout.base
    ]
    codes = {code: number for number, code in enumerate(largest.codes)}
    amounts = Amounts(largest.amounts)
    code, conversation = [], []
    for segment, ids in others:
        code.append(numbered(segment.codes, codes)[segment.code])
        conversation.append(ids[segment.conversation])
        for name, own in segment.amounts.items():
            amounts.add(name, own)
    width = len(layout.names)
    place, new = placed(
        largest.code * width + largest.conversation,
        layout.touched[largest.conversation],
        np.concatenate(code) * width + np.concatenate(conversation),
    )
    failures = added(
        place,
        np.concatenate([segment.failures for segment, _ in others]),
        len(largest.code) + len(new),
    )
    failures[: len(largest.code)] += largest.failures
    return CodeSegment(
        codes=tuple(codes),
        code=np.concatenate([largest.code, new // max(1, width)]),
        conversation=np.concatenate([largest.conversation, new % max(1, width)]),
        failures=failures,
        amounts=amounts,
    )
