"""The state of a kind of failure at a moment, as a column of any statement over ``signature``.

What a person decided is stored (``kind_state``); whether a kind that was fixed came back, and
whether an ignore has run out, is worked out here from the stored failures. So storing failures
costs nothing more, and a late, repeated or removed failure changes the state as it should. The
definitions in words are in ``docs/kinds.md``.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    and_,
    case,
    exists,
    false,
    func,
    literal,
    or_,
    select,
)

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.tables import kind_state, project, signature, tool_call

__all__ = [
    "KIND_STATES",
    "MOST_IGNORED",
    "NEW_DAYS",
    "KindState",
    "kinds_with_state",
    "seen_after_fix",
    "state_at",
]

KindState = Literal["new", "open", "acknowledged", "fixed", "ignored", "regressed"]
KIND_STATES: Final[tuple[KindState, ...]] = get_args(KindState)

NEW_DAYS: Final = 7
"""Days for which a kind counts as new where its project has no number of its own."""

MOST_IGNORED: Final = 10_000
"""Most further failures that a kind can be ignored for; no more are counted than that."""


def kinds_with_state() -> FromClause:
    """Return ``signature`` with the row of ``kind_state`` of each, if it has one."""
    same = and_(
        kind_state.c.project_id == signature.c.project_id,
        kind_state.c.fingerprint == signature.c.fingerprint,
    )
    return signature.outerjoin(kind_state, same)


def state_at(now: int) -> ColumnElement[str]:
    """Return the state at *now* (microseconds) of the rows of `kinds_with_state`."""
    stored = kind_state.c.state
    return case(
        (and_(stored == "ignored", _still_ignored(now)), literal("ignored")),
        (and_(stored == "fixed", _regressed()), literal("regressed")),
        (stored == "fixed", literal("fixed")),
        (stored == "acknowledged", literal("acknowledged")),
        (and_(stored.is_(None), _new(now)), literal("new")),
        else_=literal("open"),
    )


def seen_after_fix(table: FromClause = tool_call) -> ColumnElement[bool]:
    """Return whether a failure of the kind in *table* says that its fix did not hold.

    It ended after the moment of the fix, by a clock: failures without times never count. Where the
    fix names a release, it came from that release, or from one in which the kind had not been seen
    before: agents that still run an older release say nothing of the fix.
    """
    older = tool_call.alias("older")
    known_before = exists(
        select(literal(1))
        .select_from(older)
        .where(
            older.c.project_id == signature.c.project_id,
            older.c.signature_id == signature.c.id,
            older.c.success == false(),
            older.c.time_source != "none",
            older.c.occurred_at <= kind_state.c.fixed_at,
            older.c.release == table.c.release,
        )
        .correlate(signature, kind_state, table)
    )
    release = kind_state.c.fixed_release
    return and_(
        *_failures_after(table, kind_state.c.fixed_at),
        or_(
            release.is_(None),
            table.c.release == release,
            and_(table.c.release.is_not(None), ~known_before),
        ),
    )


def _failures_after(table: FromClause, moment: ColumnElement[int]) -> list[ColumnElement[bool]]:
    return [
        table.c.project_id == signature.c.project_id,
        table.c.tool == signature.c.tool,
        table.c.signature_id == signature.c.id,
        table.c.success == false(),
        table.c.time_source != "none",
        table.c.occurred_at > moment,
        # Never before the last failure: what was fixed since has none to look for.
        table.c.occurred_at <= signature.c.last_at,
    ]


def _regressed() -> ColumnElement[bool]:
    # Newest first: what came back is there, at the end of all failures, and found at once.
    return (
        select(literal(1))
        .select_from(tool_call)
        .where(seen_after_fix())
        .order_by(tool_call.c.occurred_at.desc())
        .limit(1)
        .correlate(signature, kind_state)
        .scalar_subquery()
        .is_not(None)
    )


def _still_ignored(now: int) -> ColumnElement[bool]:
    row = kind_state.c
    further = (
        select(literal(1))
        .select_from(tool_call)
        .where(*_failures_after(tool_call, row.ignored_at))
        .limit(MOST_IGNORED)
        .correlate(signature, kind_state)
        .subquery()
    )
    seen = select(func.count()).select_from(further).scalar_subquery()
    return and_(
        or_(row.ignored_until.is_(None), row.ignored_until > now),
        or_(row.ignored_count.is_(None), seen < row.ignored_count),
    )


def _new(now: int) -> ColumnElement[bool]:
    days = (
        select(project.c.new_kind_days)
        .where(project.c.id == signature.c.project_id)
        .correlate(signature)
        .scalar_subquery()
    )
    timed = (
        select(literal(1))
        .select_from(tool_call)
        .where(
            tool_call.c.project_id == signature.c.project_id,
            tool_call.c.signature_id == signature.c.id,
            tool_call.c.time_source != "none",
        )
        .correlate(signature)
    )
    length = func.coalesce(days, NEW_DAYS) * literal(DAY_US, BigInteger())
    return and_(signature.c.first_at > now - length, exists(timed))
