"""What named the conversation of a call, in SQL."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, case

from toolfault_collector.protocol.ladder import EXPLICIT, NONE

__all__ = ["rung"]


def rung(table: FromClause) -> ColumnElement[str]:
    """Return what named the conversation of a row of ``tool_call``, as `ladder.rung_of` says."""
    call = table.c
    return case(
        (call.session_id.is_(None), NONE),
        (call.conversation_rung.not_in(("", NONE)), call.conversation_rung),
        (call.session_id == call.run_id, "framework"),
        else_=EXPLICIT,
    )
