"""How much was called, failed, retried and recovered in a scope."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    func,
    literal,
    not_,
    or_,
    select,
    union,
    union_all,
)

from toolfault_collector.storage.tables import (
    call_counts,
    conversation,
    conversation_end,
    tool_call,
)
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.analysis.weights import Amount, Amounts, total, weighed_rate, whole
from toolfault_dashboard.queries.chains.round_trips import amount_of, combinations
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.counting.once import once
from toolfault_dashboard.queries.counting.weighing import added, amount, counted, sampling
from toolfault_dashboard.queries.failures.codes import failures_by_issue_code
from toolfault_dashboard.queries.figures import clusters
from toolfault_dashboard.queries.rows import Overview, Summary, ToolCount
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, not_restricting_calls
from toolfault_dashboard.search.keys import RESTRICTING_CALLS
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = [
    "ChainTotals",
    "ToolRates",
    "calls_by",
    "chain_totals",
    "count_conversations",
    "first_try",
    "overview",
    "rates_by_code",
    "rates_by_tool",
    "summary",
]


@dataclass(frozen=True, slots=True)
class ChainTotals:
    """The chains of a scope, added up by outcome."""

    chains: Amounts  # by outcome
    round_trips: Amount
    calls_spent: int
    recovered_failures: float  # failures inside recovered chains


@dataclass(frozen=True, slots=True)
class _Counted:
    """The counts of a scope as rows and as what they stand for."""

    calls: Amounts  # by tool
    failures: Amounts  # by tool
    codes: Amounts  # a failure under each of its codes
    outside_by_tool: Amounts  # failures that are in no chain
    untimed: int  # failures without a time
    chains: ChainTotals

    @property
    def outside(self) -> Amount:
        """Failures that are in no chain."""
        return self.outside_by_tool.total()


def summary(conn: Connection, scope: Scope) -> Summary:
    """Count everything in the scope; no window, no limit."""
    return _summary(_counted(conn, scope), conn, scope)


@once
def _counted(conn: Connection, scope: Scope) -> _Counted:
    by_tool, by_code = Amounts(), Amounts()
    outside, untimed = Amounts(), 0
    for tool, code, failures, alone, without_time in _failures_by_pair(conn, scope):
        by_tool.add(tool, failures)
        by_code.add(code, failures)
        outside.add(tool, alone)
        untimed += without_time
    for (_, code), failures in failures_by_issue_code(conn, scope).items():
        by_code.add(code, failures)
    calls = calls_by(conn, scope, "tool")
    return _Counted(calls, by_tool, by_code, outside, untimed, chain_totals(conn, scope))


def _summary(found: _Counted, conn: Connection, scope: Scope) -> Summary:
    calls, failures, chains = found.calls, found.failures, found.chains
    all_calls, all_failures = calls.total(), failures.total()
    recovered = chains.chains["recovered"]
    outcomes = {name: amount.whole for name, amount in chains.chains.items()}
    names = sorted(
        calls.keys() | failures.keys(),
        key=lambda name: (-failures[name].weight, -calls[name].weight, name),
    )
    codes = sorted(found.codes.items(), key=lambda item: (-item[1].weight, item[0]))
    return Summary(
        conversations=count_conversations(conn, scope)[0],
        calls=all_calls.whole,
        failures=all_failures.whole,
        failure_rate=all_failures.weight / all_calls.weight if all_calls.rows else None,
        chains=sum(outcomes.values()),
        recovered=outcomes.get("recovered", 0),
        switched=outcomes.get("switched", 0),
        abandoned=outcomes.get("abandoned", 0),
        open=outcomes.get("open", 0),
        round_trips=chains.round_trips.whole,
        calls_spent=chains.calls_spent,
        mean_failures_before_recovery=(
            chains.recovered_failures / recovered.weight if recovered.rows else None
        ),
        tools={
            name: ToolCount(calls=calls[name].whole, failures=failures[name].whole)
            for name in names
        },
        codes={code: amount.whole for code, amount in codes},
    )


def overview(conn: Connection, scope: Scope) -> Overview:
    """Return the summary with intervals, first-try success and what the reader must know."""
    found = _counted(conn, scope)
    calls, failures, chains = found.calls.total(), found.failures.total(), found.chains
    closed = total(each for name, each in chains.chains.items() if name != "open")
    first = found.outside + chains.chains.total()
    of_calls = clusters.calls_of_conversations(conn, scope)
    recovered, _ = clusters.chains_by_key(conn, scope, "tool")[()]
    return Overview(
        summary=_summary(found, conn, scope),
        failure_rate=weighed_rate(failures, calls, of_calls.failures),
        recovery_rate=weighed_rate(chains.chains["recovered"], closed, recovered),
        first_try=first_try(calls, chains.round_trips, first, of_calls.first_try_failures),
        round_trips_per_failure=(
            chains.round_trips.weight / failures.weight if failures.rows else None
        ),
        untimed_failures=found.untimed,
        not_restricting_calls=not_restricting_calls(scope.query),
        sampled=calls.sampled,
    )


def first_try(
    calls: Amount,
    round_trips: Amount,
    failed: Amount,
    moments: Moments | None = None,
) -> Rate:
    """Return the share of operations that succeeded at the first try.

    An operation is a call that is no retry; it fails at the first try when it opens a chain, or
    fails where no chain can exist.

    Args:
        calls: All calls.
        round_trips: Calls of them that are retries.
        failed: Operations that failed.
        moments: Of those that failed, over the conversations.
    """
    operations = calls - round_trips
    if operations.weight < failed.weight:  # a chain that goes on outside
        operations = failed
    succeeded = moments.complement() if moments is not None else None
    return weighed_rate(operations - failed, operations, succeeded)


@dataclass(frozen=True, slots=True)
class ToolRates:
    """The rates of one tool."""

    failure_rate: Rate
    first_try: Rate


def rates_by_tool(conn: Connection, scope: Scope) -> dict[str, ToolRates]:
    """Return the rates of every tool of `summary`."""
    found = _counted(conn, scope)
    chains, trips = Amounts(), Amounts()
    for row in combinations(conn, scope, ("tool",)):
        chains.add(row["tool"] or "", amount_of(row))
        trips.add(row["tool"] or "", amount_of(row, "trip"))
    of_calls = clusters.calls_of_conversations(conn, scope)
    return {
        name: ToolRates(
            weighed_rate(found.failures[name], found.calls[name], failed),
            first_try(
                found.calls[name],
                trips[name],
                chains[name] + found.outside_by_tool[name],
                first,
            ),
        )
        for name in found.calls.keys() | found.failures.keys()
        for failed, first in [of_calls.of_tool(name)]
    }


def rates_by_code(conn: Connection, scope: Scope) -> dict[str, Rate]:
    """Return the failure rate of every code of `summary`, of all calls."""
    found = _counted(conn, scope)
    calls, of_calls = found.calls.total(), clusters.calls_of_conversations(conn, scope)
    return {
        code: weighed_rate(amount, calls, of_calls.of_code(code))
        for code, amount in found.codes.items()
    }


@once
def calls_by(conn: Connection, scope: Scope, column: str) -> Amounts:
    """Return calls by *column* (``tool``, ``model``, ...), folded successes included.

    Calls that carry nothing there are counted under the empty text. Each stands for as many as its
    sender left out.
    """
    if column == "tool" and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        return rollups.calls_by_tool(conn, scope)
    sampled = sampling(conn, scope.project_id).calls
    folded = (
        select(call_counts.c[column], *added(call_counts.c.calls, sampled=sampled))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(call_counts.c[column])
    )
    reported = (
        select(tool_call.c[column], *counted(sampled=sampled))
        .where(calls_of(scope))
        .group_by(tool_call.c[column])
    )
    found = Amounts()
    for name, *numbers in conn.execute(union_all(reported, folded)):
        found.add(name or "", amount(numbers))
    return found


def chain_totals(conn: Connection, scope: Scope) -> ChainTotals:
    """Add the chains of the scope up by their outcome at ``scope.now``."""
    rows = combinations(conn, scope, ("tool",))
    chains = Amounts()
    for row in rows:
        chains.add(row["outcome"], amount_of(row))
    return ChainTotals(
        chains=chains,
        round_trips=total(amount_of(row, "trip") for row in rows),
        calls_spent=whole(sum(float(row["calls_spent"]) for row in rows)),
        recovered_failures=sum(
            float(row["failures"]) for row in rows if row["outcome"] == "recovered"
        ),
    )


def _failures_by_pair(
    conn: Connection, scope: Scope
) -> Iterable[tuple[str, str, Amount, Amount, int]]:
    """Return tool, code, failures, those of them in no chain, and those without a time."""
    sampled = sampling(conn, scope.project_id).failures
    if not sampled and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        return [
            (tool, code, amount([failures]), amount([outside]), 0)
            for (tool, code), (failures, outside) in rollups.failures_by_pair(conn, scope).items()
        ]
    pair = (tool_call.c.tool, tool_call.c.code)
    numbers = counted(sampled=sampled)
    width = len(numbers)
    alone = counted(sampled=sampled, only=tool_call.c.chain_id.is_(None))
    rows = conn.execute(
        select(
            *pair,
            *numbers,
            *alone,
            func.count().filter(tool_call.c.time_source == "none"),
        )
        .where(failures_of(scope))
        .group_by(*pair)
    )
    return [
        (
            row[0],
            row[1] or "",
            amount(row[2 : 2 + width]),
            amount(row[2 + width : 2 + 2 * width]),
            row[-1],
        )
        for row in rows
    ]


def count_conversations(conn: Connection, *scopes: Scope) -> list[int]:
    """Count the conversations of *scopes*: those stored, and those known from counters alone.

    A conversation without any call counts where the query asks for nothing that a call has. A
    sender counts every conversation that ended into its counters and says ``conversation_end``
    where there was a failure, so one with that event is in the counters already.
    """
    parts = [
        _conversations(conn, scope).add_columns(literal(number).label("scope"))
        for number, scope in enumerate(scopes)
    ]
    found = [0] * len(scopes)
    for known, ended, folded, number in conn.execute(union_all(*parts)):
        found[number] = int(known) + max(0, int(folded) - int(ended))
    return found


def _conversations(conn: Connection, scope: Scope) -> Select[Any]:
    """Return the select of conversations stored, those of them that ended, and those folded."""
    if rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        folded = rollups.folded_conversations(scope)
    else:
        of_tool = call_counts.c.tool
        folded = (
            select(func.coalesce(func.sum(call_counts.c.conversations), 0))
            .where(
                counts_of(scope),
                of_tool.is_not(None) if scope.query.has("tool") else of_tool.is_(None),
            )
            .scalar_subquery()
        )
    return _stored_conversations(scope).add_columns(folded)


def _stored_conversations(scope: Scope) -> Select[Any]:
    """Count the conversations that are stored, and those of them that a sender said have ended."""
    since, until = window(scope)
    # Counters have it in the minute of its end: one that ends elsewhere is not in those counted.
    within: list[ColumnElement[bool]] = [conversation.c.ended_at.is_not(None)]
    if since is not None:
        within.append(conversation.c.ended_at >= since)
    if until is not None:
        within.append(conversation.c.ended_at < until)
    numbers: tuple[Any, ...] = func.count(), func.count(case((and_(*within), 1)))
    restricting = {clause.key for clause in scope.query.clauses} & RESTRICTING_CALLS
    if restricting == {"since"}:
        # A conversation has a call at or after a moment when its last call is.
        return select(*numbers).where(
            conversation.c.project_id == scope.project_id, conversation.c.last_at >= since
        )
    stored = _sessions(scope, restricting).subquery()
    same = (conversation.c.session_id == stored.c.session_id) & (
        conversation.c.project_id == scope.project_id
    )
    return select(*numbers).select_from(stored.outerjoin(conversation, same))


def _sessions(
    scope: Scope, restricting: Set[str]
) -> Select[tuple[str]] | CompoundSelect[tuple[str]]:
    if restricting <= {"conversation"}:
        return union(
            *(
                select(table.c.session_id).where(
                    table.c.project_id == scope.project_id,
                    *(_of_conversation(clause, table) for clause in scope.query.of("conversation")),
                )
                for table in (conversation, conversation_end)
            )
        )
    return (
        select(tool_call.c.session_id)
        .distinct()
        .where(
            calls_of(scope),
            tool_call.c.session_id.is_not(None),
        )
    )


def _of_conversation(clause: Clause, table: FromClause) -> ColumnElement[bool]:
    found = or_(*matches_any(table.c.session_id, patterns_of(clause)))
    return not_(found) if clause.negated else found
