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
    ScalarSelect,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.tables import kind_state, project, signature, tool_call
from toolfault_dashboard.search.sql import by_storage

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
    before = (
        older.c.signature_id == signature.c.id,
        older.c.time_source != "none",
        older.c.occurred_at <= kind_state.c.fixed_at,
    )
    known_before = by_storage(
        exists(
            select(literal(1))
            .select_from(older)
            .where(*before, older.c.release == table.c.release)
            .correlate(signature, kind_state, table)
        ),
        tuple_(table.c.signature_id, table.c.release).in_(
            select(older.c.signature_id, older.c.release)
            .select_from(kinds_with_state().join(older, before[0]))
            .where(
                *before[1:],
                older.c.occurred_at
                <= _outermost(
                    func.max(kind_state.c.fixed_at), kind_state.c.fixed_release.is_not(None)
                ),
            )
            .correlate(None)
        ),
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
    # A signature belongs to one project, and failures alone have one. Nothing more is said, so that
    # SQLite takes the index by signature and time: of indexes it takes the one with most columns.
    return [
        table.c.signature_id == signature.c.id,
        table.c.time_source != "none",
        table.c.occurred_at > moment,
        # Never before the last failure: what was fixed since has none to look for.
        table.c.occurred_at <= signature.c.last_at,
    ]


def _regressed() -> ColumnElement[bool]:
    back = seen_after_fix()
    return by_storage(
        # Newest first: what came back is there, at the end of all failures, and found at once.
        select(literal(1))
        .select_from(tool_call)
        .where(back)
        .order_by(tool_call.c.occurred_at.desc())
        .limit(1)
        .correlate(signature, kind_state)
        .scalar_subquery()
        .is_not(None),
        signature.c.id.in_(_of_all_kinds("fixed", kind_state.c.fixed_at).where(back)),
    )


def _of_all_kinds(state: KindState, since: ColumnElement[int]) -> Select[tuple[int]]:
    """Return the select of the kind of every failure of kinds in a stored *state*.

    It refers to no statement around it. Only failures later than *since* matter, a column of
    ``kind_state``: where no kind is in that state, none is read.
    """
    is_in_state = kind_state.c.state == state
    same = tool_call.c.signature_id == signature.c.id
    return (
        select(tool_call.c.signature_id)
        .select_from(kinds_with_state().join(tool_call, same))
        .where(is_in_state, tool_call.c.occurred_at > _outermost(func.min(since), is_in_state))
        .correlate(None)
    )


def _outermost(of: ColumnElement[int], where: ColumnElement[bool]) -> ScalarSelect[int]:
    """Return the least or the greatest moment of ``kind_state``; null where there is none."""
    return select(of).select_from(kind_state).where(where).correlate(None).scalar_subquery()


def _still_ignored(now: int) -> ColumnElement[bool]:
    row = kind_state.c
    after = _failures_after(tool_call, row.ignored_at)
    further = (
        select(literal(1))
        .select_from(tool_call)
        .where(*after)
        .limit(MOST_IGNORED)
        .correlate(signature, kind_state)
        .subquery()
    )
    seen = select(func.count()).select_from(further).scalar_subquery()
    over = (
        _of_all_kinds("ignored", row.ignored_at)
        .where(*after)
        .group_by(tool_call.c.signature_id, row.ignored_count)
        .having(func.count() >= row.ignored_count)
    )
    return and_(
        or_(row.ignored_until.is_(None), row.ignored_until > now),
        or_(
            row.ignored_count.is_(None),
            by_storage(seen < row.ignored_count, signature.c.id.not_in(over)),
        ),
    )


def _new(now: int) -> ColumnElement[bool]:
    days = select(project.c.new_kind_days).where(project.c.id == signature.c.project_id)
    has_time = tool_call.c.time_source != "none"
    timed = (
        select(literal(1))
        .select_from(tool_call)
        .where(tool_call.c.signature_id == signature.c.id, has_time)
        .correlate(signature)
    )

    def recent(days: ColumnElement[int]) -> ColumnElement[bool]:
        length = func.coalesce(days, NEW_DAYS) * literal(DAY_US, BigInteger())
        return signature.c.first_at > now - length

    own = project.c.id == signature.c.project_id
    is_new = recent(project.c.new_kind_days)
    kinds, new = signature.join(project, own), select(signature.c.id)
    # No failure of a kind ended before the kind was first seen.
    first = select(func.min(signature.c.first_at)).select_from(kinds).where(is_new).correlate(None)
    of_calls = select(tool_call.c.signature_id).where(
        has_time, tool_call.c.occurred_at >= first.scalar_subquery()
    )
    return by_storage(
        and_(recent(days.correlate(signature).scalar_subquery()), exists(timed)),
        signature.c.id.in_(
            new.select_from(kinds).where(is_new, signature.c.id.in_(of_calls)).correlate(None)
        ),
    )
