"""How many conversations a scope has: those stored, and those known from counters alone."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    union,
    union_all,
)

from toolfault_collector.protocol.ladder import NONE
from toolfault_collector.storage.tables import (
    call_counts,
    conversation,
    conversation_end,
    tool_call,
)
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause
from toolfault_dashboard.search.keys import RESTRICTING_CALLS
from toolfault_dashboard.search.sql import by_storage, matches_any, patterns_of

__all__ = ["conversations_in", "count_conversations", "number_of"]


def count_conversations(conn: Connection, *scopes: Scope) -> list[int]:
    """Count the conversations of *scopes*: those stored, and those known from counters alone.

    A conversation without any call counts where the query asks for nothing that a call has. A
    sender counts every conversation that ended into its counters and says ``conversation_end``
    where it saw a failure, so one with that event is in its counters already.
    """
    parts = [
        conversations_in(conn, scope).add_columns(literal(number).label("scope"))
        for number, scope in enumerate(scopes)
    ]
    found = [0] * len(scopes)
    for *row, number in conn.execute(union_all(*parts)):
        found[number] = number_of(row)
    return found


def number_of(row: Sequence[Any]) -> int:
    """Return how many conversations a row of `conversations_in` tells of."""
    known, ended, folded = (int(each) for each in row)
    return known + max(0, folded - ended)


def conversations_in(conn: Connection, scope: Scope) -> Select[Any]:
    """Return the select of conversations stored, how often these ended, and those folded."""
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
    """Count the conversations that are stored, and how often senders said that these ended."""
    since, until = window(scope)
    # Counters have it in the minute of its end: one that ends elsewhere is not in those counted.
    # Each sender counts its own end. Of one that began before the window the last is known to lie
    # in it.
    ended: list[ColumnElement[bool]] = [conversation.c.ended_at.is_not(None)]
    began: list[ColumnElement[bool]] = []
    if since is not None:
        ended.append(conversation.c.ended_at >= since)
        began.append(conversation.c.first_at < since)
    if until is not None:
        ended.append(conversation.c.ended_at < until)
    of_each = case(
        (not_(and_(*ended)), 0), *((each, 1) for each in began), else_=conversation.c.ends
    )
    numbers: tuple[Any, ...] = func.count(), func.coalesce(func.sum(of_each), 0)
    restricting = {clause.key for clause in scope.query.clauses} & RESTRICTING_CALLS
    if since is not None and restricting in ({"since"}, {"since", "until"}):
        return select(*numbers).where(*_with_a_call(scope, since, until))
    stored = _sessions(scope, restricting).subquery()
    same = (conversation.c.session_id == stored.c.session_id) & (
        conversation.c.project_id == scope.project_id
    )
    return select(*numbers).select_from(stored.outerjoin(conversation, same))


def _with_a_call(scope: Scope, since: int, until: int | None) -> list[ColumnElement[bool]]:
    """Return the conditions for conversations that have a call in [since, until)."""
    talk = conversation.c
    # It cannot have one unless it began before the end and went on after the beginning.
    found = [talk.project_id == scope.project_id, talk.last_at >= since]
    of_calls = talk.rung != NONE  # who has no call is named by none
    has_one = [and_(talk.first_at >= since, of_calls)]
    if until is None:
        # Its last moment is that of a call, unless it ended then.
        has_one.append(talk.ended_at.is_(None) | (talk.ended_at < talk.last_at))
    else:
        found.append(talk.first_at < until)
        has_one = [and_(has_one[0], talk.last_at < until)]
    # The calls of the others, which are few, are asked for. The project is named once: told twice
    # what it equals, SQLite reads all calls of the project for each of them.
    call = calls_of(scope, of_one_conversation=True)
    others = select(talk.session_id).where(*found, not_(or_(*has_one)))
    its_calls = select(tool_call.c.session_id).where(call, tool_call.c.session_id.in_(others))
    other = by_storage(
        exists().where(call, tool_call.c.session_id == talk.session_id),
        talk.session_id.in_(its_calls.correlate(None)),
    )
    return [*found, or_(*has_one, other)]


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
