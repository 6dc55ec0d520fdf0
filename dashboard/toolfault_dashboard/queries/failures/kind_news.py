"""Kinds of failure that became new, or came back after their fix, since a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, exists, literal, or_, select

from toolfault_collector.storage.tables import kind_state, signature, tool_call
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.failures.kinds import fields_in_words
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search.states import kinds_with_state, seen_after_fix, state_at

__all__ = ["KindNews", "kinds_since"]


@dataclass(frozen=True, slots=True)
class KindNews:
    """A kind that became new or regressed, with the failure that told."""

    fingerprint: str
    tool: str
    code: str
    fields: str  # arguments in words; "" where none is named
    state: Literal["new", "regressed"]
    owner: str
    event_id: str  # the failure of the scope that arrived first and made it so
    occurred_at: int  # when that failure ended
    received_at: int  # when it arrived


def kinds_since(conn: Connection, scope: Scope, since: int) -> tuple[KindNews, ...]:
    """Return the kinds that became ``new`` or ``regressed`` since a moment, the earliest first.

    What counts is when the failure *arrived* that made a kind so: one that comes late is told of
    when it is there, and asking again with the last moment asked for misses none and repeats none.
    A kind that a person touched meanwhile is what the person made of it, and is not returned.

    Args:
        conn: Open connection.
        scope: Whose failures, and seen from which moment (``scope.now``); a time window of its
            query restricts when they happened.
        since: Microseconds since the epoch; failures that arrived at it or later tell.
    """
    rows = conn.execute(
        select(
            *(signature.c[name] for name in ("id", "fingerprint", "tool", "code", "fields")),
            kind_state.c.owner,
            state_at(scope.now).label("state"),
        )
        .select_from(kinds_with_state())
        .where(
            signature.c.project_id == scope.project_id,
            signature.c.id.in_(_arrived(scope, since)),
            state_at(scope.now).in_(["new", "regressed"]),
            ~_known_before(since),
        )
    )
    found = [news for row in rows if (news := _news(conn, scope, since, row)) is not None]
    return tuple(sorted(found, key=lambda each: (each.received_at, each.fingerprint)))


def _arrived(scope: Scope, since: int) -> Any:
    return select(tool_call.c.signature_id).where(
        failures_of(scope), tool_call.c.received_at >= since
    )


def _tells() -> ColumnElement[bool]:
    """Return whether a failure makes its kind new or regressed."""
    of_kind = and_(
        tool_call.c.signature_id == signature.c.id,
        tool_call.c.time_source != "none",
    )
    return and_(of_kind, or_(kind_state.c.fixed_at.is_(None), seen_after_fix()))


def _known_before(since: int) -> ColumnElement[bool]:
    earlier = select(literal(1)).select_from(tool_call)
    return exists(
        earlier.where(_tells(), tool_call.c.received_at < since).correlate(signature, kind_state)
    )


def _news(conn: Connection, scope: Scope, since: int, row: Any) -> KindNews | None:
    first = conn.execute(
        select(tool_call.c.event_id, tool_call.c.occurred_at, tool_call.c.received_at)
        .select_from(kinds_with_state().join(tool_call, tool_call.c.signature_id == signature.c.id))
        .where(
            signature.c.id == row.id, _tells(), failures_of(scope), tool_call.c.received_at >= since
        )
        .order_by(tool_call.c.received_at, tool_call.c.id)
        .limit(1)
    ).first()
    if first is None:
        return None
    return KindNews(
        fingerprint=row.fingerprint,
        tool=row.tool,
        code=row.code,
        fields=fields_in_words(row.fields),
        state=row.state,
        owner=row.owner or "",
        event_id=first.event_id,
        occurred_at=first.occurred_at,
        received_at=first.received_at,
    )
