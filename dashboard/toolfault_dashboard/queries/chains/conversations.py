"""Conversations whole: the calls of all tools in order, and what happened beside a chain.

Failures are sent one by one, and so are successes while a chain is open; other successes are
counted, so that a conversation may have had more calls than are stored.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    and_,
    case,
    func,
    select,
    tuple_,
)

from toolfault_collector.chains.fold import Unresolved, switches
from toolfault_collector.storage.tables import chain, conversation, tool_call
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.queries.conditions import chains_of
from toolfault_dashboard.queries.rows import (
    Beside,
    CalledFirst,
    ChainDetail,
    ConversationCall,
    ConversationDetail,
)
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import sees

__all__ = ["CALLS_PER_PAGE", "calls_before_recovery", "calls_beside", "conversation_detail"]

CALLS_PER_PAGE: Final = 200
MOST_BESIDE: Final = 500
"""Calls that are looked at to find what happened beside a chain; few chains see more."""

MOST_RECOVERED: Final = 1_000
"""Newest recovered chains that are looked at for what their models called first."""
MOST: Final = 0.5

_ORDER: Final = (tool_call.c.started_at, tool_call.c.seq, tool_call.c.event_id)


def conversation_detail(
    conn: Connection, scope: Scope, name: str, *, page: int = 1
) -> ConversationDetail | None:
    """Return the conversation *name* with one page of its calls in order, or None.

    Args:
        conn: An open connection.
        scope: Project and reader; the query narrows nothing here.
        name: The id that its sender gave it.
        page: From 1, of `CALLS_PER_PAGE` calls each.
    """
    told = conn.execute(
        select(conversation.c.ended_at, conversation.c.end_calls, conversation.c.time_source).where(
            conversation.c.project_id == scope.project_id, conversation.c.session_id == name
        )
    ).one_or_none()
    if told is None:
        return None
    counted = conn.execute(
        select(
            func.count(),
            func.count().filter(~tool_call.c.success),
            func.count(tool_call.c.chain_id.distinct()),
        ).where(*_of(scope, name))
    ).one()
    calls, failures, chains = counted
    read = _calls(scope, name).order_by(*_ORDER)
    rows = conn.execute(read.limit(CALLS_PER_PAGE).offset((page - 1) * CALLS_PER_PAGE)).mappings()
    return ConversationDetail(
        name=name,
        ended=told.ended_at is not None,
        imported=told.time_source in {"import", "none"},
        calls=calls,
        failures=failures,
        chains=chains,
        only_counted=max(0, sum((told.end_calls or {}).values()) - calls),
        rows=tuple(map(_call, rows)),
        pages=max(1, -(-calls // CALLS_PER_PAGE)),
    )


def calls_beside(conn: Connection, scope: Scope, detail: ChainDetail) -> Beside:
    """Return what else the conversation called while a chain went on, and what followed it.

    Args:
        conn: An open connection.
        scope: Project and reader.
        detail: The chain.
    """
    bounds = ("last_started_at", "last_seq", "failed_until", "last_failure_turn")
    key = tuple_(tool_call.c.started_at, tool_call.c.seq)
    found = conn.execute(
        _calls(scope, detail.chain.conversation)
        .add_columns(
            *(tool_call.c[name] for name in ("started_at", "seq", "turn")),
            *(chain.c[name] for name in bounds),
        )
        .where(
            chain.c.project_id == scope.project_id,
            chain.c.chain_id == detail.chain.chain_id,
            key >= tuple_(chain.c.started_at, chain.c.first_seq),
        )
        .order_by(*_ORDER)
        .limit(MOST_BESIDE)
    ).mappings()
    between: list[list[ConversationCall]] = [[] for _ in detail.attempts]
    followed_by = None
    place = 0
    for each in found:
        if each["chain_id"] == detail.chain.chain_id:
            place += 1
        elif 0 < place < len(between):
            between[place].append(_call(each))
        elif (
            detail.chain.outcome == "switched"
            and each["success"]
            and switches(
                (each["started_at"], each["seq"], each["tool"], each["turn"]),
                Unresolved(detail.chain.tool, *(each[name] for name in bounds)),
            )
        ):
            followed_by = _call(each)
            break
    return Beside(between=tuple(map(tuple, between)), followed_by=followed_by)


def calls_before_recovery(
    conn: Connection, scope: Scope, tools: Collection[str]
) -> dict[tuple[str, str], CalledFirst]:
    """Return which other tool models called with success before a chain of *tools* recovered.

    By tool and first code, where it was the same tool in most of the chains, also at the lower end
    of the interval, which takes four of four: what fails may need it, as editing a file may need
    reading it. The newest `MOST_RECOVERED` recovered chains of the scope are looked at.
    """
    recovered = (
        select(chain)
        .where(chains_of(scope), chain.c.recovered_at.is_not(None), chain.c.tool.in_(tools))
        .order_by(chain.c.first_failed_at.desc(), chain.c.id.desc())
        .limit(MOST_RECOVERED)
        .cte("recovered")
        .c
    )
    kind = (recovered.tool, recovered.first_code)
    key = tuple_(tool_call.c.started_at, tool_call.c.seq)
    between = and_(
        tool_call.c.project_id == recovered.project_id,
        tool_call.c.session_id == recovered.session_id,
        tool_call.c.tool != recovered.tool,
        # As an expression, or SQLite reads all successes of the project for each of the chains.
        case((tool_call.c.success, 1), else_=0) == 1,
        key > tuple_(recovered.started_at, recovered.first_seq),
        key < tuple_(recovered.last_started_at, recovered.last_seq),
    )
    total = select(*kind, func.count().label("chains")).group_by(*kind).subquery().c
    number = func.count(recovered.chain_id.distinct())
    found = conn.execute(
        select(*kind, tool_call.c.tool, number, func.max(total.chains))
        .where(
            between,
            total.tool == recovered.tool,
            total.first_code == recovered.first_code,
        )
        .group_by(*kind, tool_call.c.tool)
        .order_by(number, func.count().desc(), tool_call.c.tool)
    )
    # The last one of each stays: most chains, and of equals the tool that is called less often.
    return {
        (tool, code): CalledFirst(first, chains, of)
        for tool, code, first, chains, of in found
        if (rate(chains, of).low or 0.0) > MOST
    }


def _of(scope: Scope, name: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return tool_call.c.project_id == scope.project_id, tool_call.c.session_id == name


def _calls(scope: Scope, name: str) -> Select[Any]:
    text = "text_llm" if sees(scope, "text_llm") else "text_user"
    names = (
        *("event_id", "tool", "occurred_at", "time_source", "duration_ms", "success"),
        *("code", "field", "chain_id"),
    )
    return select(*(tool_call.c[each] for each in names), tool_call.c[text].label("text")).where(
        *_of(scope, name)
    )


def _call(row: RowMapping) -> ConversationCall:
    return ConversationCall(
        event_id=row["event_id"],
        tool=row["tool"],
        success=row["success"],
        occurred_at=row["occurred_at"] if row["time_source"] != "none" else None,
        duration_ms=row["duration_ms"],
        code=row["code"],
        field=row["field"],
        chain_id=row["chain_id"],
        text=None if row["success"] else row["text"],
    )
