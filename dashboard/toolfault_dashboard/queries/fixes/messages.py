"""Message efficacy: which wording leads to a call that succeeds.

A failure is *answered* when its chain went on after it: the model had seen the error and called the
tool again. It is *fixed* when that very call succeeded. Of failures in one model turn only the last
is asked, since the model saw their errors together and answered once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Subquery,
    and_,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)

from toolfault_collector.chains.fold import LOOK_BACK
from toolfault_collector.storage.tables import chain, message, tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, weighted_rate
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.sampling_weights import sampling, weight
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import sees
from toolfault_dashboard.search import Clause, Pattern, QueryError
from toolfault_dashboard.search.sql import by_storage

__all__ = [
    "MessageGroup",
    "MessageRow",
    "Wording",
    "message_efficacy",
    "most_frequent",
    "next_call",
    "next_calls",
    "texts_of",
    "wordings",
]


_FEW: Final = 1_000  # messages that are looked up at once


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One wording of one tool and code, and what the model made of it."""

    tool: str
    code: str
    message: str  # normalised
    query: str  # clauses that select its failures within the scope
    failures: int
    asked: int  # failures that had a next call, or whose chain ended without one
    answered: int  # of them, followed by another call of the tool
    fixed: int  # of these, that call succeeded
    recovery: Rate  # fixed of asked
    when_answered: Rate  # fixed of answered
    last_at: int | None  # newest failure with it


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """The wordings for the same tool and code, best first."""

    tool: str
    code: str
    rows: tuple[MessageRow, ...]
    failures: int
    best: MessageRow | None  # the first, where its interval lies above that of the worst
    worst: MessageRow | None


class Wording(NamedTuple):
    """What was counted of one wording of one tool and code; see `MessageRow`."""

    tool: str
    code: str
    number: int  # of its message
    last_at: int | None
    failures: Amount
    asked: Amount
    answered: Amount
    fixed: Amount

    def and_(self, other: Wording) -> Wording:
        """Return both added up."""
        times = [at for at in (self.last_at, other.last_at) if at is not None]
        # Written out: of a large window there are thousands.
        return Wording(
            tool=self.tool,
            code=self.code,
            number=self.number,
            last_at=max(times, default=None),
            failures=self.failures + other.failures,
            asked=self.asked + other.asked,
            answered=self.answered + other.answered,
            fixed=self.fixed + other.fixed,
        )


def most_frequent(
    conn: Connection, scope: Scope, *, minimum: int = 10, most: int | None = None, skip: int = 0
) -> tuple[tuple[MessageGroup, ...], int]:
    """Compare the wordings of every tool and code by recovery on the next call.

    Args:
        conn: Open connection.
        scope: Which failures.
        minimum: Failures below which a wording is neither best nor worst.
        most: How many groups to return; None for all.
        skip: Groups of this order to leave out before them.

    Returns:
        Groups with the most failures first, wordings by the lower end of their interval; and how
        many groups there are.

    Raises:
        QueryError: The reader may not see what the model saw.
    """
    if not sees(scope, "text_llm"):
        raise QueryError("Your role may not see messages.")
    groups: defaultdict[tuple[str, str], list[Wording]] = defaultdict(list)
    for each in wordings(conn, scope):
        groups[each.tool, each.code].append(each)
    ranked = sorted(
        groups.items(), key=lambda item: (-sum(each.failures.whole for each in item[1]), *item[0])
    )
    shown = ranked[skip : None if most is None else skip + most]
    messages = _messages(conn, (each.number for _, found in shown for each in found))
    return tuple(
        _group(key, [_row(each, *messages[each.number]) for each in found], minimum)
        for key, found in shown
    ), len(ranked)


def message_efficacy(
    conn: Connection, scope: Scope, *, minimum: int = 10
) -> tuple[MessageGroup, ...]:
    """Return all groups that `most_frequent` counts."""
    return most_frequent(conn, scope, minimum=minimum)[0]


@memoised
def wordings(conn: Connection, scope: Scope) -> Sequence[Wording]:
    """Count every wording of the scope, in no order."""
    segments = in_segments(conn, scope, _counted, outcomes=True, together=_together, stored=True)
    return segments[0] if len(segments) == 1 else _together(segments)


def texts_of(conn: Connection, numbers: Iterable[int]) -> dict[int, str]:
    """Return the texts of the messages with these numbers."""
    return {number: text for number, (_, text) in _messages(conn, numbers).items()}


def _messages(conn: Connection, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return digest and text of the messages with these numbers."""
    wanted, found = sorted(set(numbers)), dict[int, tuple[str, str]]()
    for at in range(0, len(wanted), _FEW):
        own = message.c.id.in_(wanted[at : at + _FEW])
        rows = conn.execute(select(message.c.id, message.c.digest, message.c.text).where(own))
        found.update((number, (digest, text)) for number, digest, text in rows)
    return found


def _together(segments: Sequence[list[Wording]]) -> list[Wording]:
    found: dict[tuple[str, str, int], Wording] = {}
    for segment in segments:
        for each in segment:
            key = (each.tool, each.code, each.number)
            known = found.get(key)
            found[key] = each if known is None else known.and_(each)
    return list(found.values())


def _beside(following: FromClause) -> ColumnElement[bool]:
    """Whether *following* was issued with the call before it, whose error was not seen yet.

    That is so when it has the same turn or, turns unknown, when it began before that one had ended.
    """
    turns = and_(tool_call.c.turn.is_not(None), following.c.turn.is_not(None))
    return or_(
        and_(turns, following.c.turn == tool_call.c.turn),
        and_(
            not_(turns),
            following.c.time_source != "none",
            following.c.started_at < tool_call.c.occurred_at,
        ),
    )


def next_call(
    failures: ColumnElement[bool],
) -> tuple[FromClause, ColumnElement[bool], ColumnElement[bool]]:
    """Return the next call in the chain of each of *failures*, a condition on `tool_call`.

    Whether it was issued beside that, whose error the model had not seen then, is the second; the
    third is what joins it.
    """
    following = tool_call.alias("following")
    # It began after the failure did, and ended later than that.
    first = select(func.min(tool_call.c.started_at)).where(failures).correlate(None)
    joins = and_(
        by_storage(true(), following.c.occurred_at >= first.scalar_subquery()),
        following.c.project_id == tool_call.c.project_id,
        following.c.chain_id == tool_call.c.chain_id,
        following.c.attempt == tool_call.c.attempt + 1,
        # Calls after that are not numbered.
        tool_call.c.attempt < LOOK_BACK,
    )
    return following, _beside(following), joins


def next_calls(scope: Scope, *, sampled: bool = False) -> Subquery:
    """Return the failures of the scope with what came next in their chain.

    Columns: id, tool, code, message_id, signature_id, session_id, chain_id, at (None for untimed
    ones); ``asked`` (0 or 1: the model saw this error and either answered or its chain is over),
    ``answered`` and ``fixed`` (0 or 1); ``weight``, what it stands for, where failures may be
    *sampled*.
    """
    failures = failures_of(scope)
    following, beside, joins = next_call(failures)
    of_project = chain.c.project_id == scope.project_id
    settled = chain.c.settles_at <= scope.now
    # Asked for only where no call followed.
    over = by_storage(
        exists(
            select(literal(1))
            .select_from(chain)
            .where(of_project, chain.c.chain_id == tool_call.c.chain_id, settled)
            .correlate(tool_call)
        ),
        tool_call.c.chain_id.in_(
            select(chain.c.chain_id)
            .where(
                *(of_project, settled),
                chain.c.chain_id.in_(select(tool_call.c.chain_id).where(failures).correlate(None)),
            )
            .correlate(None)
        ),
    )
    asked = case(
        (or_(tool_call.c.chain_id.is_(None), tool_call.c.attempt >= LOOK_BACK), 0),
        (following.c.id.is_(None), case((over, 1), else_=0)),
        (beside, 0),
        else_=1,
    )
    answered = case((following.c.id.is_not(None) & not_(beside), 1), else_=0)
    fixed = case((following.c.success.is_(True) & not_(beside), 1), else_=0)
    source = tool_call.outerjoin(following, joins)
    return (
        select(
            tool_call.c.id,
            # As an expression, or SQLite reads all of an index that is sorted by it.
            func.coalesce(tool_call.c.tool, "").label("tool"),
            tool_call.c.code,
            tool_call.c.message_id,
            tool_call.c.signature_id,
            tool_call.c.session_id,
            tool_call.c.chain_id,
            case((tool_call.c.time_source != "none", tool_call.c.occurred_at)).label("at"),
            *([weight().label("weight")] if sampled else []),
            asked.label("asked"),
            answered.label("answered"),
            fixed.label("fixed"),
        )
        .select_from(source)
        .where(failures)
        .subquery()
    )


def _counted(conn: Connection, scope: Scope) -> list[Wording]:
    sampled = sampling(conn, scope.project_id).failures
    each = next_calls(scope, sampled=sampled)
    weighed = [
        func.sum(factor * each.c[name] if name else factor).label(f"{name}_{kind}")
        for kind, factor in _factors(each, sampled=sampled)
        for name in ("", *_STEPS)
    ]
    # Grouped by the message's number: its text is looked up where it is shown.
    rows = conn.execute(
        select(
            each.c.tool,
            func.coalesce(each.c.code, "").label("code"),
            each.c.message_id,
            func.max(each.c.at).label("last_at"),
            func.count().label("failures"),
            *(func.sum(each.c[name]).label(name) for name in _STEPS),
            *weighed,
        )
        .where(each.c.message_id.is_not(None))
        .group_by(each.c.tool, each.c.code, each.c.message_id)
    )
    return [
        Wording(tool, code, number, last_at, *_amounts(numbers))
        for tool, code, number, last_at, *numbers in rows
    ]


_STEPS: Final = ("asked", "answered", "fixed")


def _factors(each: Subquery, *, sampled: bool) -> list[tuple[str, ColumnElement[Any]]]:
    if not sampled:
        return []
    return [("weight", each.c.weight), ("squares", each.c.weight * each.c.weight)]


def _amounts(numbers: Sequence[Any]) -> Iterable[Amount]:
    """Return failures and `_STEPS` as counted in rows and, where there are, weights and squares."""
    width = 1 + len(_STEPS)
    rows = [int(number) for number in numbers[:width]]
    return map(Amount, rows, numbers[width : 2 * width] or rows, numbers[2 * width :] or rows)


def _row(row: Wording, digest: str, text: str) -> MessageRow:
    clauses = (("tool", row.tool), ("own_code", row.code), ("message", digest))
    asked, answered, fixed = row.asked, row.answered, row.fixed
    return MessageRow(
        tool=row.tool,
        code=row.code,
        message=text,
        query=" ".join(str(Clause(key, (Pattern((value,)),))) for key, value in clauses),
        failures=row.failures.whole,
        asked=asked.whole,
        answered=answered.whole,
        fixed=fixed.whole,
        recovery=weighted_rate(fixed, asked),
        when_answered=weighted_rate(fixed, answered),
        last_at=row.last_at,
    )


def _group(key: tuple[str, str], rows: Iterable[MessageRow], minimum: int) -> MessageGroup:
    ranked = sorted(rows, key=lambda row: (-(row.recovery.low or 0.0), -row.failures, row.message))
    best, worst = ranked[0], min(ranked, key=lambda row: row.recovery.high or 0.0)
    enough = min(best.recovery.n, worst.recovery.n) >= minimum
    apart = enough and (best.recovery.low or 0.0) > (worst.recovery.high or 0.0)
    return MessageGroup(
        tool=key[0],
        code=key[1],
        rows=tuple(ranked),
        failures=sum(row.failures for row in ranked),
        best=best if apart else None,
        worst=worst if apart else None,
    )
