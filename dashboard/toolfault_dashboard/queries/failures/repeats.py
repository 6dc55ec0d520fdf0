"""Repeated execution: a call that succeeded after the same one had, in the same conversation.

No failure tells of it. Of a tool that declares that it is not idempotent the sender knows: it says
so of a call, or counts it with the successes of a minute. Calls that are here one by one are
compared as well, unless their tool is idempotent: the same call succeeded before. That is asked
when it is counted, by an index of its own, and kept in no column, since a call that arrives late,
is taken out or grows too old may change it for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, exists, false, func, or_, select, union_all

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting.sampling_weights import amount, counted, sampling
from toolfault_dashboard.queries.figures.breakdown import Told, rated_pairs, together
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search.sql import by_storage

__all__ = ["RepeatRow", "repeated_executions"]


@dataclass(frozen=True, slots=True)
class RepeatRow:
    """The repeated executions of one tool by one model."""

    tool: str
    model: str  # "" where calls name none
    idempotent: bool | None  # false as the tool declares; None where it does not
    calls: int  # that were executed before
    rate: Rate  # of all calls that the model made of the tool


# Calls of a window from which days are counted apart and kept: each success is looked for among
# those before it, which costs 3 us on SQLite and 5 us on PostgreSQL.
_MANY: Final = 10_000


def repeated_executions(conn: Connection, scope: Scope) -> tuple[RepeatRow, ...]:
    """Count the repeated executions of the scope by tool and model, those of marked tools first."""
    rows = [RepeatRow(*row) for row in rated_pairs(conn, scope, _counted, many=_MANY)]
    return tuple(
        sorted(rows, key=lambda row: (row.idempotent is None, -row.calls, row.tool, row.model))
    )


def _counted(conn: Connection, scope: Scope) -> Told[bool | None]:
    call, minute = tool_call.c, call_counts.c
    by_call = (call.tool, func.coalesce(call.model, "").label("model"), call.idempotent)
    by_minute = (minute.tool, func.coalesce(minute.model, "").label("model"))
    numbers = counted(sampled=sampling(conn, scope.project_id).calls)
    of_calls = (
        select(*by_call, *numbers)
        .where(
            calls_of(scope),
            call.success,
            or_(call.idempotent.is_(None), ~call.idempotent),
            or_(call.repeated, _was_executed(scope)),
        )
        .group_by(*by_call)
    )
    of_minutes = (
        select(*by_minute, false(), *(func.sum(minute.repeated) for _ in numbers))
        .where(counts_of(scope), minute.tool.is_not(None), minute.repeated.is_not(None))
        .group_by(*by_minute)
    )
    rows: Any = conn.execute(union_all(of_calls, of_minutes))
    found = [(tool, model, declared, amount(told)) for tool, model, declared, *told in rows]
    return together([found])


def _was_executed(scope: Scope) -> ColumnElement[bool]:
    """Return the condition for successes that had one with the same arguments before them."""
    call, other = tool_call.c, tool_call.alias("executed")
    before = other.c
    executed = (
        before.project_id == scope.project_id,
        # What the index is restricted by.
        before.args_fingerprint.is_not(None),
        before.success,
    )
    same = (before.session_id, before.tool, before.args_fingerprint)
    number = func.row_number().over(partition_by=same, order_by=(before.occurred_at, before.id))
    numbered = (
        select(before.id, number.label("number"))
        .where(*executed, before.session_id.is_not(None))
        .correlate(None)
        .subquery()
    )
    return and_(
        call.args_fingerprint.is_not(None),
        by_storage(
            exists().where(
                *executed,
                *(each == call[each.name] for each in same),
                before.occurred_at <= call.occurred_at,
                or_(before.occurred_at < call.occurred_at, before.id < call.id),
            ),
            call.id.in_(select(numbered.c.id).where(numbered.c.number > 1)),
        ),
    )
