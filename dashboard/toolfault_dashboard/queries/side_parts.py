"""A side of a comparison in parts of its window, as columns that can be kept and added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolfault_dashboard.analysis.columns import (
    COUNTS,
    CodeColumns,
    Columns,
    Floats,
    Layout,
    Numbers,
    added,
    layout_of,
    numbered,
)
from toolfault_dashboard.analysis.sides import Stratum
from toolfault_dashboard.analysis.weights import Amounts
from toolfault_dashboard.queries.weighing import amount

__all__ = [
    "CodePart",
    "Counted",
    "Ended",
    "Part",
    "beside_side",
    "code_part",
    "codes_together",
    "ended_of",
    "more_calls",
    "together",
    "views_of",
]

_HALF = 2  # cells that take as much memory as a row of another answer

Counted = tuple[Counter[Stratum], int, int]
"""Folded calls by stratum, and conversations and squared calls as senders counted them."""


@dataclass(frozen=True, slots=True, eq=False)
class Ended:
    """The calls that ``conversation_end`` named, conversation by conversation.

    Attributes:
        conversation: The conversations that have ended, as positions among those of the part.
        total: All calls that each of them named.
        of: Position of the conversation of each pair of conversation and tool.
        tool: Position of its tool in ``tools``.
        calls: Calls of each pair.
    """

    conversation: Numbers
    total: Floats
    of: Numbers
    tools: tuple[str, ...]
    tool: Numbers
    calls: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What a side has in a part of its window.

    Attributes:
        views: Its cells counted in rows and, where calls were sampled, in what they stand for and
            its squares; alike in everything but their counts.
        ended: What their conversations said at their end.
        counted: What senders counted.
    """

    views: tuple[Columns, ...]
    ended: Ended
    counted: Counted

    def __len__(self) -> int:
        return len(self.views) * len(self.views[0]) // _HALF + 1


def views_of(rows: Sequence[Sequence[Any]], number: int) -> tuple[Columns, ...]:
    """Return cells as columns, once for each of the *number* sets of counts that a row has.

    Args:
        rows: Conversation, tool, model, agent and the counts.
        number: Sets of counts.
    """
    columns = list(zip(*rows, strict=True)) or [()] * (4 + number * len(COUNTS))
    names: dict[str, int] = {}
    strata: dict[Stratum, int] = {}
    conversation = numbered(columns[0], names)
    stratum = numbered(zip(*columns[1:4], strict=True), strata)
    counts = [np.asarray(column, dtype=np.float64) for column in columns[4:]]
    width = len(COUNTS)
    return tuple(
        Columns(tuple(names), conversation, tuple(strata), stratum, *counts[at : at + width])
        for at in range(0, number * width, width)
    )


def ended_of(ended: Mapping[str, Mapping[str, int]], cells: Columns) -> Ended:
    """Return what conversations of *cells* said at their *end*, by conversation and tool."""
    places = {name: place for place, name in enumerate(cells.names)} if ended else {}
    tools: dict[str, int] = {}
    conversation = [places[name] for name in ended]
    pairs = [
        (place, tools.setdefault(tool, len(tools)), calls)
        for place, named in zip(conversation, ended.values(), strict=True)
        for tool, calls in named.items()
    ]
    of, tool, calls = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Ended(
        conversation=np.asarray(conversation, dtype=np.int64),
        total=np.asarray([sum(named.values()) for named in ended.values()], dtype=np.float64),
        of=np.asarray(of, dtype=np.int64),
        tools=tuple(tools),
        tool=np.asarray(tool, dtype=np.int64),
        calls=np.asarray(calls, dtype=np.float64),
    )


def together(parts: Sequence[Part]) -> Part:
    """Return all *parts* as one."""
    if len(parts) == 1:
        return parts[0]
    number = max(len(part.views) for part in parts)
    layout = layout_of([part.views[0] for part in parts])
    # Where nothing was sampled all views are the same.
    views = [part.views if len(part.views) == number else part.views * number for part in parts]
    counted, conversations, squared = Counter[Stratum](), 0, 0
    for part in parts:
        counted.update(part.counted[0])
        conversations += part.counted[1]
        squared += part.counted[2]
    return Part(
        views=tuple(layout.sum_of(each) for each in zip(*views, strict=True)),
        ended=_ended_together([part.ended for part in parts], layout),
        counted=(counted, conversations, squared),
    )


def _ended_together(parts: Sequence[Ended], layout: Layout) -> Ended:
    """Return all of *parts* as one; a conversation is taken from the first that has it."""
    tools: dict[str, int] = {}
    taken = np.zeros(len(layout.names), dtype=np.bool_)
    found: list[tuple[Numbers, Floats, Numbers, Numbers, Floats]] = []
    for part, ids in zip(parts, layout.renumbered, strict=True):
        conversation, of = ids[part.conversation], ids[part.of]
        own, new = numbered(part.tools, tools), ~taken[conversation]
        pairs = ~taken[of]
        taken[conversation] = True
        found.append(
            (
                *(conversation[new], part.total[new]),
                *(of[pairs], own[part.tool[pairs]], part.calls[pairs]),
            )
        )
    whole = [np.concatenate(column) for column in zip(*found, strict=True)]
    return Ended(whole[0], whole[1], whole[2], tuple(tools), whole[3], whole[4])


def more_calls(cells: Columns, ended: Ended) -> Floats:
    """Return how many folded successes each cell has beside the calls that were reported.

    A conversation names its calls per tool; of several models or agents it is not known which had
    them, and always the same cell is taken.
    """
    more = np.zeros(len(cells), dtype=np.float64)
    if not len(ended.of) or not len(cells):
        return more
    tools: dict[str, int] = {}
    of_stratum = numbered((stratum[0] for stratum in cells.strata), tools)
    # Tools that no cell has come after those.
    of_ended = numbered(ended.tools, tools)[ended.tool]
    width = len(tools)
    key = cells.conversation * width + of_stratum[cells.stratum]
    pairs, place = np.unique(key, return_inverse=True)
    reported = added(place, cells.calls, len(pairs))
    named = np.zeros(len(pairs), dtype=np.float64)
    wanted = ended.of * width + of_ended
    at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
    there = pairs[at] == wanted
    named[at[there]] = ended.calls[there]
    rank = np.empty(len(cells.strata), dtype=np.int64)
    rank[sorted(range(len(rank)), key=cells.strata.__getitem__)] = np.arange(len(rank))
    order = np.lexsort((rank[cells.stratum], place))
    _, first = np.unique(place[order], return_index=True)
    more[order[first]] = np.maximum(0.0, named - reported)
    return more


@dataclass(frozen=True, slots=True, eq=False)
class CodePart:
    """The failures of a part by code and conversation, as arrays of one length.

    Attributes:
        codes: The codes.
        names: The conversations.
        code: Position of the code.
        conversation: Position of the conversation in ``names``.
        failures: How many, each as what it stands for.
        amounts: Failures by code.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    code: Numbers
    conversation: Numbers
    failures: Floats
    amounts: Amounts

    def __len__(self) -> int:
        return len(self.code) // _HALF + 1


def code_part(rows: Sequence[Sequence[Any]]) -> CodePart:
    """Return *rows* of code, conversation and the columns of `weighing.counted` as columns."""
    code, names, *counts = list(zip(*rows, strict=True)) or [()] * 3
    codes: dict[str, int] = {}
    known: dict[str, int] = {}
    of_code = numbered(code, codes)
    sums = [added(of_code, np.asarray(each, dtype=np.float64), len(codes)) for each in counts]
    amounts = Amounts(
        {
            name: amount(numbers)
            for name, numbers in zip(codes, zip(*sums, strict=True), strict=True)
        }
    )
    return CodePart(
        code=of_code,
        conversation=numbered(names, known),
        failures=np.asarray(counts[1 if len(counts) > 1 else 0], dtype=np.float64),
        codes=tuple(codes),
        names=tuple(known),
        amounts=amounts,
    )


def codes_together(parts: Sequence[CodePart]) -> CodePart:
    """Return all *parts* as one."""
    if len(parts) == 1:
        return parts[0]
    codes: dict[str, int] = {}
    names: dict[str, int] = {}
    code, conversation = [], []
    amounts = Amounts()
    for part in parts:
        code.append(numbered(part.codes, codes)[part.code])
        conversation.append(numbered(part.names, names)[part.conversation])
        for name, own in part.amounts.items():
            amounts.add(name, own)
    width = max(1, len(names))
    keys, place = np.unique(
        np.concatenate(code) * width + np.concatenate(conversation), return_inverse=True
    )
    failures = np.concatenate([part.failures for part in parts])
    return CodePart(
        codes=tuple(codes),
        names=tuple(names),
        code=keys // width,
        conversation=keys % width,
        failures=added(place, failures, len(keys)),
        amounts=amounts,
    )


def beside_side(part: CodePart, side: Columns) -> tuple[CodeColumns, Amounts]:
    """Return the failures of a whole side with conversations numbered as in its columns."""
    places = {name: place for place, name in enumerate(side.names)}
    own = np.asarray([places[name] for name in part.names], dtype=np.int64)
    found = CodeColumns(part.codes, part.code, own[part.conversation], part.failures)
    return found, part.amounts
