"""How much was called, failed, retried and recovered in a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    func,
    literal,
    not_,
    or_,
    select,
    union,
    union_all,
)

from toolfault_collector.tables import call_counts, conversation, conversation_end, tool_call
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.queries import rollups
from toolfault_dashboard.queries.conditions import calls_of, counts_of, failures_of
from toolfault_dashboard.queries.once import once
from toolfault_dashboard.queries.round_trips import combinations
from toolfault_dashboard.queries.rows import Overview, Summary, ToolCount
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, not_restricting_calls
from toolfault_dashboard.search.keys import RESTRICTING_CALLS
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = [
    "ChainTotals",
    "calls_by",
    "chain_totals",
    "count_conversations",
    "overview",
    "summary",
]


@dataclass(frozen=True, slots=True)
class ChainTotals:
    """The chains of a scope, added up by outcome."""

    chains: Mapping[str, int]  # outcome -> chains
    round_trips: int
    recovered_failures: int  # failures inside recovered chains

    @property
    def total(self) -> int:
        """All chains of the scope."""
        return sum(self.chains.values())


def summary(conn: Connection, scope: Scope) -> Summary:
    """Count everything in the scope; exact, no window, no limit."""
    return _counted(conn, scope)[0]


def _counted(conn: Connection, scope: Scope) -> tuple[Summary, int, int]:
    """Return the summary, the failures that are in no chain, and those without a time."""
    calls = calls_by(conn, scope, "tool")
    by_tool: Counter[str] = Counter()
    by_code: Counter[str] = Counter()
    outside = untimed = 0
    for tool, code, failures, alone, without_time in _failures_by_pair(conn, scope):
        by_tool[tool] += failures
        by_code[code] += failures
        outside += alone
        untimed += without_time
    chains = chain_totals(conn, scope)
    all_calls, all_failures = calls.total(), by_tool.total()
    recovered = chains.chains.get("recovered", 0)
    tools = sorted(calls | by_tool, key=lambda name: (-by_tool[name], -calls[name], name))
    counted = Summary(
        conversations=count_conversations(conn, scope)[0],
        calls=all_calls,
        failures=all_failures,
        failure_rate=all_failures / all_calls if all_calls else None,
        chains=chains.total,
        recovered=recovered,
        switched=chains.chains.get("switched", 0),
        abandoned=chains.chains.get("abandoned", 0),
        open=chains.chains.get("open", 0),
        round_trips=chains.round_trips,
        mean_failures_before_recovery=chains.recovered_failures / recovered if recovered else None,
        tools={name: ToolCount(calls=calls[name], failures=by_tool[name]) for name in tools},
        codes=dict(sorted(by_code.items(), key=lambda item: (-item[1], item[0]))),
    )
    return counted, outside, untimed


def overview(conn: Connection, scope: Scope) -> Overview:
    """Return the summary with intervals, first-try success and what the reader must know."""
    found, outside, untimed = _counted(conn, scope)
    closed = found.chains - found.open
    # An operation is a call that is no retry; it fails at the first try when it opens a chain, or
    # fails where no chain can exist.
    operations = max(found.calls - found.round_trips, found.chains + outside)
    return Overview(
        summary=found,
        failure_rate=rate(found.failures, found.calls),
        recovery_rate=rate(found.recovered, closed),
        first_try=rate(operations - found.chains - outside, operations),
        round_trips_per_failure=found.round_trips / found.failures if found.failures else None,
        untimed_failures=untimed,
        not_restricting_calls=not_restricting_calls(scope.query),
    )


@once
def calls_by(conn: Connection, scope: Scope, column: str) -> Counter[str]:
    """Return calls by *column* (``tool``, ``model``, ...), folded successes included.

    Calls that carry nothing there are counted under the empty text.
    """
    if column == "tool" and rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        return rollups.calls_by_tool(conn, scope)
    folded = (
        select(call_counts.c[column], func.sum(call_counts.c.calls))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(call_counts.c[column])
    )
    reported = (
        select(tool_call.c[column], func.count())
        .where(calls_of(scope))
        .group_by(tool_call.c[column])
    )
    found: Counter[str] = Counter()
    for name, calls in conn.execute(union_all(reported, folded)):
        found[name or ""] += int(calls)
    return found


def chain_totals(conn: Connection, scope: Scope) -> ChainTotals:
    """Add the chains of the scope up by their outcome at ``scope.now``."""
    rows = combinations(conn, scope, ("tool",))
    chains: Counter[str] = Counter()
    for row in rows:
        chains[row["outcome"]] += row["chains"]
    return ChainTotals(
        chains=chains,
        round_trips=sum(int(row["round_trips"]) for row in rows),
        recovered_failures=sum(
            int(row["failures"]) for row in rows if row["outcome"] == "recovered"
        ),
    )


def _failures_by_pair(conn: Connection, scope: Scope) -> Iterable[tuple[str, str, int, int, int]]:
    """Return tool, code, failures, those of them in no chain, and those without a time."""
    if rollups.usable(conn, scope, keys=rollups.PAIR_KEYS):
        return [
            (tool, code, failures, outside, 0)
            for (tool, code), (failures, outside) in rollups.failures_by_pair(conn, scope).items()
        ]
    pair = (tool_call.c.tool, tool_call.c.code)
    rows = conn.execute(
        select(
            *pair,
            func.count(),
            func.count() - func.count(tool_call.c.chain_id),
            func.count().filter(tool_call.c.time_source == "none"),
        )
        .where(failures_of(scope))
        .group_by(*pair)
    )
    return [(row[0], row[1] or "", row[2], row[3], row[4]) for row in rows]


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
    numbers: tuple[Any, ...] = func.count(), func.count(conversation.c.ended_at)
    restricting = {clause.key for clause in scope.query.clauses} & RESTRICTING_CALLS
    if restricting == {"since"}:
        # A conversation has a call at or after a moment when its last call is.
        since, _ = window(scope)
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
