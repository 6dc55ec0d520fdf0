"""The failures, calls and conversations of a scope: what most pages begin with, by one statement.

A large window is counted otherwise (`counting.segments`): there each of them is a question of its
own, of which most days are known. So it is on ClickHouse, which is asked for what is needed only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, select, union_all

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.weights import Amount, Amounts
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.memoise import answered, memoised, remember
from toolfault_dashboard.queries.counting.sampling_weights import added, amount, counted, sampling
from toolfault_dashboard.queries.counting.together import (
    Question,
    are_asked_together,
    ask_together,
)
from toolfault_dashboard.queries.failures.codes import (
    failures_by_issue_code,
    issue_codes,
    of_issue_codes,
)
from toolfault_dashboard.queries.figures.conversation_counts import (
    conversations_in,
    count_conversations,
    number_of,
)
from toolfault_dashboard.queries.periods import ends, ends_of, ends_of_calls
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window

__all__ = [
    "Extent",
    "Pair",
    "Totals",
    "call_questions",
    "calls_by",
    "extent",
    "pairs",
    "remember_calls",
    "totals",
]


class Extent(NamedTuple):
    """The times of the first and the last failure in microseconds, and how many have none."""

    first_at: int | None
    last_at: int | None
    untimed: int


class Pair(NamedTuple):
    """The failures of one tool with one own code.

    ``times`` is None where they come from the rollups, which hold days alone; then all have one.
    """

    failures: Amount
    outside: Amount  # those in no chain
    times: Extent | None = None

    @property
    def untimed(self) -> int:
        """Failures without a time."""
        return 0 if self.times is None else self.times.untimed


Pairs = Mapping[tuple[str, str], Pair]


@dataclass(frozen=True, slots=True)
class Totals:
    """What there is of a scope.

    Attributes:
        pairs: Failures by tool and own code.
        issues: Failures by tool and the code of an issue, where their own code is another one.
        calls: Calls by tool, folded successes included.
        conversations: How many.
    """

    pairs: Pairs
    issues: Mapping[tuple[str, str], Amount]
    calls: Amounts
    conversations: int


@memoised
def totals(conn: Connection, scope: Scope) -> Totals:
    """Count everything in the scope that pages begin with."""
    if not are_asked_together(conn, scope):
        return Totals(
            pairs(conn, scope),
            failures_by_issue_code(conn, scope),
            calls_by(conn, scope, "tool"),
            count_conversations(conn, scope)[0],
        )
    by_pair = [Question(each, 2) for each in _pair_selects(conn, scope)]
    by_issue, talked = (
        Question(issue_codes(conn, scope), 2),
        Question(conversations_in(conn, scope), 0),
    )
    by_tool = call_questions(conn, scope)
    # Where the window has no beginning a chart begins with the first call.
    axis = [Question(ends(scope), 0)] if window(scope)[0] is None else []
    asked = [by_issue, talked, *axis, *by_pair, *by_tool]
    of_issues, talks, *rest = ask_together(conn, asked)
    if axis:
        (outermost,), *rest = rest
        remember(conn, ends_of_calls, ends_of(outermost), scope)
    found = Totals(
        _pairs_of(conn, scope, [row for rows in rest[: len(by_pair)] for row in rows]),
        of_issue_codes(of_issues),
        _calls_of(row for rows in rest[len(by_pair) :] for row in rows),
        number_of(talks[0]),
    )
    remember(conn, pairs, found.pairs, scope)
    remember(conn, failures_by_issue_code, found.issues, scope)
    remember(conn, calls_by, found.calls, scope, "tool")
    return found


@memoised
def pairs(conn: Connection, scope: Scope) -> Pairs:
    """Return failures by tool and own code."""
    if _are_in_rollups(conn, scope):
        return _of_rollups(rollups.failures_by_pair(conn, scope))
    (statement,) = _pair_selects(conn, scope)
    return _pairs_of(conn, scope, conn.execute(statement).all())


def _are_in_rollups(conn: Connection, scope: Scope) -> bool:
    sampled = sampling(conn, scope.project_id).failures
    return not sampled and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS)


def _pair_selects(conn: Connection, scope: Scope) -> list[Select[Any]]:
    if _are_in_rollups(conn, scope):
        return rollups.pair_selects(scope)
    sampled = sampling(conn, scope.project_id).failures
    pair = (rollups.tool_of_call(), tool_call.c.code)
    outside = counted(sampled=sampled, only=tool_call.c.chain_id.is_(None))
    found = select(
        *pair,
        *counted(sampled=sampled),
        *(column.label(f"outside_{column.key}") for column in outside),
        *_extent_columns(),
    )
    return [found.where(failures_of(scope)).group_by(*pair)]


def _of_rollups(known: Mapping[tuple[str, str], tuple[int, int]]) -> Pairs:
    return {
        pair: Pair(amount([failures]), amount([outside]))
        for pair, (failures, outside) in known.items()
    }


def _pairs_of(conn: Connection, scope: Scope, rows: Sequence[Any]) -> Pairs:
    if _are_in_rollups(conn, scope):
        return _of_rollups(rollups.pairs_of(rows))
    width = len(counted(sampled=sampling(conn, scope.project_id).failures))
    found: dict[tuple[str, str], Pair] = {}
    for tool, code, *numbers in rows:
        alone = numbers[width : 2 * width]
        times = _extent_of(numbers[2 * width :])
        found[tool, code or ""] = Pair(amount(numbers[:width]), amount(alone), times)
    return found


def _extent_columns() -> list[Any]:
    timed = tool_call.c.time_source != "none"
    return [
        func.min(tool_call.c.occurred_at).filter(timed),
        func.max(tool_call.c.occurred_at).filter(timed),
        func.count().filter(tool_call.c.time_source == "none"),
    ]


def _extent_of(row: Any) -> Extent:
    first, last, untimed = (None if each is None else int(each) for each in row)
    return Extent(first, last, untimed or 0)


def extent(conn: Connection, scope: Scope) -> Extent:
    """Return the first and last time of a failure, and how many have none."""
    known = answered(conn, pairs, scope)
    if known is not None and all(pair.times is not None for pair in known.values()):
        times = [pair.times for pair in known.values() if pair.times is not None]
        return Extent(
            min((each.first_at for each in times if each.first_at is not None), default=None),
            max((each.last_at for each in times if each.last_at is not None), default=None),
            sum(each.untimed for each in times),
        )
    return _extent_of(conn.execute(select(*_extent_columns()).where(failures_of(scope))).one())


@memoised
def calls_by(conn: Connection, scope: Scope, column: str) -> Amounts:
    """Return calls by *column* (``tool``, ``model``, ...), folded successes included.

    Calls that carry nothing there are counted under the empty text. Each stands for as many as its
    sender left out.
    """
    return _calls_of(conn.execute(union_all(*_call_selects(conn, scope, column))))


def call_questions(conn: Connection, scope: Scope) -> list[Question]:
    """Return what `calls_by` asks to count by tool."""
    return [Question(each, 1) for each in _call_selects(conn, scope, "tool")]


def remember_calls(conn: Connection, scope: Scope, rows: Iterable[Any]) -> None:
    """Remember the *rows* of `call_questions` as the answer of `calls_by`."""
    remember(conn, calls_by, _calls_of(rows), scope, "tool")


def _call_selects(conn: Connection, scope: Scope, column: str) -> list[Select[Any]]:
    sampled = sampling(conn, scope.project_id).calls
    if column == "tool" and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        return rollups.call_selects(scope, sampled=sampled)
    folded = (
        select(call_counts.c[column], *added(call_counts.c.calls, sampled=sampled))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(call_counts.c[column])
    )
    name: Any = func.coalesce(tool_call.c[column], "").label("name")  # see `tool_of_call`
    reported = select(name, *counted(sampled=sampled)).where(calls_of(scope)).group_by(name)
    return [reported, folded]


def _calls_of(rows: Any) -> Amounts:
    found = Amounts()
    for name, *numbers in rows:
        found.add(name or "", amount(numbers))
    return found
