"""How much was called, failed, retried and recovered in a scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Row,
    Select,
    case,
    func,
    not_,
    or_,
    select,
    union,
    union_all,
)

from toolfault_collector.tables import call_counts, chain, conversation, conversation_end, tool_call
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.queries import rollups
from toolfault_dashboard.queries.conditions import calls_of, chains_of, counts_of, failures_of
from toolfault_dashboard.queries.rows import Overview, Summary, ToolCount
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, not_restricting_calls
from toolfault_dashboard.search.keys import RESTRICTING_CALLS
from toolfault_dashboard.search.outcomes import outcome_at
from toolfault_dashboard.search.sql import matches_any, patterns_of

__all__ = ["ChainTotals", "calls_by", "chain_totals", "overview", "summary"]


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
    for row in _failures_by_tool_and_code(conn, scope):
        by_tool[row.tool] += row.failures
        by_code[row.code or ""] += row.failures
        outside += row.outside
        untimed += row.untimed
    chains = chain_totals(conn, scope)
    all_calls, all_failures = calls.total(), by_tool.total()
    recovered = chains.chains.get("recovered", 0)
    tools = sorted(calls | by_tool, key=lambda name: (-by_tool[name], -calls[name], name))
    counted = Summary(
        conversations=_conversations(conn, scope),
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


def calls_by(conn: Connection, scope: Scope, column: str) -> Counter[str]:
    """Return calls by *column* (``tool``, ``model``, ...), folded successes included.

    Calls that carry nothing there are counted under the empty text.
    """
    folded = (
        select(call_counts.c[column], func.sum(call_counts.c.calls))
        .where(counts_of(scope), call_counts.c.tool.is_not(None))
        .group_by(call_counts.c[column])
    )
    if column == "tool" and rollups.usable(conn, scope):
        found = rollups.calls_by_tool(conn, scope)
        rows = conn.execute(folded)
    else:
        found = Counter()
        reported = (
            select(tool_call.c[column], func.count())
            .where(calls_of(scope))
            .group_by(tool_call.c[column])
        )
        rows = conn.execute(union_all(reported, folded))
    for name, calls in rows:
        found[name or ""] += int(calls)
    return found


def chain_totals(conn: Connection, scope: Scope) -> ChainTotals:
    """Add the chains of the scope up by their outcome at ``scope.now``."""
    outcome = outcome_at(scope.now).label("outcome")
    inner = (
        select(outcome, chain.c.round_trips, chain.c.failures).where(chains_of(scope)).subquery()
    )
    rows = conn.execute(
        select(
            inner.c.outcome,
            func.count().label("chains"),
            func.sum(inner.c.round_trips).label("round_trips"),
            func.sum(inner.c.failures).label("failures"),
        ).group_by(inner.c.outcome)
    ).all()
    return ChainTotals(
        chains={row.outcome: row.chains for row in rows},
        round_trips=sum(int(row.round_trips) for row in rows),
        recovered_failures=sum(int(row.failures) for row in rows if row.outcome == "recovered"),
    )


def _failures_by_tool_and_code(conn: Connection, scope: Scope) -> Sequence[Row[Any]]:
    statement = (
        select(
            tool_call.c.tool,
            tool_call.c.code,
            func.count().label("failures"),
            func.count().filter(tool_call.c.chain_id.is_(None)).label("outside"),
            func.count().filter(tool_call.c.time_source == "none").label("untimed"),
        )
        .where(failures_of(scope))
        .group_by(tool_call.c.tool, tool_call.c.code)
    )
    return conn.execute(statement).all()


def _conversations(conn: Connection, scope: Scope) -> int:
    """Count conversations: those that are stored, and those known from counters alone.

    A conversation without any call counts where the query asks for nothing that a call has. A
    sender counts every conversation that ended into its counters and says ``conversation_end``
    where there was a failure, so one with that event is in the counters already.
    """
    stored = _stored_conversations(scope)
    of_tool = call_counts.c.tool
    folded = (
        select(func.coalesce(func.sum(call_counts.c.conversations), 0))
        .where(
            counts_of(scope),
            of_tool.is_not(None) if scope.query.has("tool") else of_tool.is_(None),
        )
        .scalar_subquery()
    )
    in_both = (
        select(func.count())
        .where(
            conversation.c.project_id == scope.project_id,
            conversation.c.end_event_id.is_not(None),
            conversation.c.session_id.in_(stored),
        )
        .scalar_subquery()
    )
    row = conn.execute(
        select(
            select(func.count()).select_from(stored.subquery()).scalar_subquery().label("known"),
            folded.label("folded"),
            # Looked up only where senders fold successes at all.
            case((folded > 0, in_both), else_=0).label("in_both"),
        )
    ).one()
    return int(row.known) + max(0, int(row.folded) - int(row.in_both))


def _stored_conversations(scope: Scope) -> Select[tuple[str]] | CompoundSelect[tuple[str]]:
    restricting = {clause.key for clause in scope.query.clauses} & RESTRICTING_CALLS
    if restricting == {"since"}:
        # A conversation has a call at or after a moment when its last call is.
        since, _ = window(scope)
        return select(conversation.c.session_id).where(
            conversation.c.project_id == scope.project_id, conversation.c.last_at >= since
        )
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
