"""Retention: old conversations go, whole, a few at a time, and never by mistake.

A conversation is removed with everything in it, so that no chain ever loses a part and a recount
stays exact. Age is measured on ``received_at``, the server's own time: what a client claims neither
keeps data for ever nor removes what came in today.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine, func, select

from toolfault_collector.bulk import bind, select_in
from toolfault_collector.clock import DAY_US, MINUTE_US, now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.errors import PruneRefused
from toolfault_collector.projects import list_projects
from toolfault_collector.rollups import add_counts, counted_by_sql
from toolfault_collector.tables import conversation, failure_counts, tool_call

__all__ = ["Pruned", "prune", "prune_rejects"]

# Conversations, and calls outside any, removed in one transaction: writers wait for some
# milliseconds, not for a clean-up of hours.
CONVERSATIONS_AT_ONCE: Final = 50
CALLS_AT_ONCE: Final = 500
# A clock that jumped ahead makes everything old. More than half of a project at once is not
# retention at work; below so many calls nobody minds being asked.
MAX_SHARE: Final = 0.5
ASK_FROM_CALLS: Final = 1_000
# Rejected events are kept to be looked at soon.
REJECTS_DAYS: Final = 7
REJECTS_PER_PROJECT: Final = 10_000

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Pruned:
    """What retention removed, or would remove."""

    conversations: int = 0
    calls: int = 0
    counts: int = 0

    def add(self, other: Pruned) -> None:
        """Add what was removed elsewhere."""
        self.conversations += other.conversations
        self.calls += other.calls
        self.counts += other.counts


def prune(
    engine: Engine,
    *,
    days: int | None = None,
    max_calls: int | None = None,
    project_id: int | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Callable[[], int] = now_us,
) -> Pruned:
    """Remove conversations that are older than *days*, and the oldest beyond *max_calls*.

    Args:
        engine: The database; others may go on writing to it.
        days: Keep what was received in the last so many days.
        max_calls: Keep about so many calls per project (whole conversations are removed).
        project_id: One project; all of them by default.
        force: Remove even more than half of a project at once.
        dry_run: Only count.
        clock: Returns microseconds since the epoch.

    Raises:
        PruneRefused: More than half of a project would go; nothing of it was removed.
    """
    with read_connection(engine) as conn:
        ids = [each.id for each in list_projects(conn)] if project_id is None else [project_id]
    total = Pruned()
    for each in ids:
        cutoff = _cutoff(engine, each, days=days, max_calls=max_calls, now=clock())
        if cutoff is None:
            continue
        wanted = _count(engine, each, cutoff)
        if not (force or dry_run):
            _guard(engine, each, wanted)
        total.add(wanted if dry_run else _remove(engine, each, cutoff))
    return total


def prune_rejects(engine: Engine, *, clock: Callable[[], int] = now_us) -> int:
    """Remove rejected events that are a week old, and the oldest beyond 10,000 per project."""
    removed = 0
    with read_connection(engine) as conn:
        ids = [each.id for each in list_projects(conn)]
    for project_id in ids:
        with write_transaction(engine) as conn:
            sql = bind(
                conn,
                "DELETE FROM rejected_event WHERE project_id = ? AND (received_at < ? OR id <="
                " (SELECT id FROM rejected_event WHERE project_id = ? ORDER BY id DESC"
                f" LIMIT 1 OFFSET {REJECTS_PER_PROJECT}))",
            )
            oldest = clock() - REJECTS_DAYS * DAY_US
            removed += conn.exec_driver_sql(sql, (project_id, oldest, project_id)).rowcount
    return removed


def _cutoff(
    engine: Engine, project_id: int, *, days: int | None, max_calls: int | None, now: int
) -> int | None:
    """Return the time before which conversations go; None if none has to."""
    cutoffs = [] if days is None else [now - days * DAY_US]
    if max_calls is not None:
        with read_connection(engine) as conn:
            newest = (
                select(tool_call.c.received_at)
                .where(tool_call.c.project_id == project_id)
                .order_by(tool_call.c.id.desc())
                .offset(max_calls)
                .limit(1)
            )
            over = conn.execute(newest).scalar_one_or_none()
        if over is not None:
            cutoffs.append(over + 1)
    return max(cutoffs, default=None)


def _count(engine: Engine, project_id: int, cutoff: int) -> Pruned:
    old = (conversation.c.project_id == project_id) & (conversation.c.received_at < cutoff)
    of_old = select(conversation.c.session_id).where(old)
    calls = select(func.count()).select_from(tool_call).where(tool_call.c.project_id == project_id)
    alone = calls.where(tool_call.c.session_id.is_(None), tool_call.c.received_at < cutoff)
    with read_connection(engine) as conn:
        return Pruned(
            conn.execute(select(func.count()).select_from(conversation).where(old)).scalar_one(),
            conn.execute(calls.where(tool_call.c.session_id.in_(of_old))).scalar_one()
            + conn.execute(alone).scalar_one(),
        )


def _guard(engine: Engine, project_id: int, wanted: Pruned) -> None:
    stored = select(func.sum(failure_counts.c.calls)).where(
        failure_counts.c.project_id == project_id, failure_counts.c.by == "tool"
    )
    with read_connection(engine) as conn:
        calls = int(conn.execute(stored).scalar_one() or 0)
    if wanted.calls >= ASK_FROM_CALLS and wanted.calls > MAX_SHARE * calls:
        message = (
            f"retention would remove {wanted.calls} of {calls} calls of project {project_id};"
            " check the clock of this machine, then run `toolfault db prune --force`"
        )
        raise PruneRefused(message)


def _remove(engine: Engine, project_id: int, cutoff: int) -> Pruned:
    total = Pruned()
    after: tuple[int, str] | None = (-(2**62), "")
    while after is not None:
        with write_transaction(engine) as conn:
            part, after = _remove_conversations(conn, project_id, cutoff, after=after)
        total.add(part)
    while True:
        with write_transaction(engine) as conn:
            part = _remove_calls_alone(conn, project_id, cutoff)
        if not part.calls:
            break
        total.add(part)
    with write_transaction(engine) as conn:
        total.counts = _remove_shared(conn, project_id, cutoff)
    _log.info("pruned", project=project_id, conversations=total.conversations, calls=total.calls)
    return total


def _remove_conversations(
    conn: Connection, project_id: int, cutoff: int, *, after: tuple[int, str]
) -> tuple[Pruned, tuple[int, str] | None]:
    """Remove some conversations; return what went, and where to go on.

    They are found by when they were last active, which has an index; that a conversation was
    received before the cutoff implies that it was active before it, but for a clock that is a
    minute ahead.
    """
    lock = "" if conn.dialect.name == "sqlite" else " FOR UPDATE"
    sql = bind(
        conn,
        "SELECT last_at, session_id, received_at FROM conversation WHERE project_id = ?"
        " AND (last_at, session_id) > (?, ?) AND last_at < ?"
        f" ORDER BY last_at, session_id LIMIT {CONVERSATIONS_AT_ONCE}{lock}",
    )
    found = conn.exec_driver_sql(sql, (project_id, *after, cutoff + MINUTE_US)).all()
    sessions = [row[1] for row in found if row[2] < cutoff]
    of_sessions = "SELECT id FROM tool_call WHERE project_id = ? AND session_id IN ?"
    calls = [row[0] for row in select_in(conn, of_sessions, fixed=(project_id,), among=sessions)]
    _remove_calls(conn, calls)
    for table in ("chain", "conversation_end", "conversation"):
        sql = f"DELETE FROM {table} WHERE project_id = ? AND session_id IN ?"
        _delete_in(conn, sql, fixed=(project_id,), among=sessions)
    going_on = (found[-1][0], found[-1][1]) if len(found) == CONVERSATIONS_AT_ONCE else None
    return Pruned(len(sessions), len(calls)), going_on


def _remove_calls_alone(conn: Connection, project_id: int, cutoff: int) -> Pruned:
    sql = bind(
        conn,
        "SELECT id FROM tool_call WHERE project_id = ? AND session_id IS NULL"
        f" AND received_at < ? LIMIT {CALLS_AT_ONCE}",
    )
    calls = list(conn.exec_driver_sql(sql, (project_id, cutoff)).scalars())
    _remove_calls(conn, calls)
    return Pruned(calls=len(calls))


def _remove_calls(conn: Connection, calls: list[int]) -> None:
    """Remove *calls* with their issues, and take them out of the rollups."""
    for low in range(0, len(calls), CALLS_AT_ONCE):
        part = calls[low : low + CALLS_AT_ONCE]
        # Numbers of this database's own making, so they may stand in the statement.
        failures, reported = counted_by_sql(conn, f"c.id IN ({', '.join(map(str, part))})")
        add_counts(conn, (_negative(failures), _negative(reported)))
        _delete_in(conn, "DELETE FROM issue WHERE tool_call_id IN ?", among=part)
        _delete_in(conn, "DELETE FROM tool_call WHERE id IN ?", among=part)


def _remove_shared(conn: Connection, project_id: int, cutoff: int) -> int:
    """Remove what belongs to no conversation: folded counts, and names nobody refers to."""
    sql = "DELETE FROM call_counts WHERE project_id = ? AND received_at < ?"
    removed = conn.exec_driver_sql(bind(conn, sql), (project_id, cutoff)).rowcount
    sql = "DELETE FROM failure_counts WHERE project_id = ? AND failures = 0 AND calls = 0"
    conn.exec_driver_sql(bind(conn, sql), (project_id,))
    # What was last seen before the oldest call that is left is seen in none.
    oldest = _oldest_call(conn, project_id)
    for table in ("signature", "message"):
        sql = f"DELETE FROM {table} WHERE project_id = ? AND last_at < ?"
        conn.exec_driver_sql(bind(conn, sql), (project_id, oldest))
    return removed


def _oldest_call(conn: Connection, project_id: int) -> int:
    oldest = select(func.min(tool_call.c.occurred_at)).where(tool_call.c.project_id == project_id)
    # Asked twice, since the index begins with success.
    found = [conn.execute(oldest.where(tool_call.c.success.is_(each))) for each in (True, False)]
    times = [at for result in found if (at := result.scalar_one()) is not None]
    return min(times, default=2**62)


def _negative(counts: Counter[Any]) -> Counter[Any]:
    return Counter({key: -count for key, count in counts.items()})


def _delete_in(
    conn: Connection, sql: str, *, among: list[Any], fixed: tuple[Any, ...] = ()
) -> None:
    """Run the delete *sql*, whose ``IN ?`` ends in the list *among*."""
    select_in(conn, sql + " RETURNING 1", fixed=fixed, among=among)
