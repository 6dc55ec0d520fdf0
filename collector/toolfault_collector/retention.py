"""Retention: old conversations go, whole, a few at a time, and never by mistake.

What is old is decided by the order in which calls came in (their ids); the server's clock only
marks the place: the line is drawn after the last old call before the first that was received within
the time to keep. Calls that were received while the clock was wrong lie between calls that were
received while it was right, and go with them, neither too early nor never. What a client claims
neither keeps data for ever nor removes what came in today.
"""

# ruff: noqa: S608 - only constants of this code are put into statements, values are bound

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from sqlalchemy import Connection, Engine, Table, func, select

from toolfault_collector.bulk import bind
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.errors import PruneRefused
from toolfault_collector.partition_drop import drop_partitions
from toolfault_collector.partitions import list_partitions, newest_id
from toolfault_collector.projects import list_projects
from toolfault_collector.removal import IS_OLD, Line, remove_before
from toolfault_collector.tables import call_counts, failure_counts, tool_call

__all__ = ["Limits", "Pruned", "preview", "prune", "prune_projects", "prune_rejects"]

# A clock that jumped ahead makes everything old. More than half of a project at once is not
# retention at work; below so many calls nobody minds being asked.
MAX_SHARE: Final = 0.5
ASK_FROM_CALLS: Final = 1_000
# Rejected events are kept to be looked at soon.
REJECTS_DAYS: Final = 7
REJECTS_PER_PROJECT: Final = 10_000
# A partition that came in within this share of the time to keep is waited for: a line drawn to the
# call would have removed each of its rows by itself, long before it could be dropped.
WAIT_SHARE: Final = 1 / 8

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a project keeps: what came in the last so many days, about so many calls, or both."""

    days: int | None = None
    max_calls: int | None = None


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
        PruneRefused: More than half of a project would go; nothing of it was removed. The other
            projects were pruned.
    """
    with read_connection(engine) as conn:
        ids = [each.id for each in list_projects(conn)] if project_id is None else [project_id]
    limits = dict.fromkeys(ids, Limits(days, max_calls))
    return prune_projects(engine, limits, force=force, dry_run=dry_run, clock=clock)


def prune_projects(
    engine: Engine,
    limits: Mapping[int, Limits],
    *,
    force: bool = False,
    dry_run: bool = False,
    waiting: bool = False,
    clock: Callable[[], int] = now_us,
) -> Pruned:
    """Remove what is beyond the *limits* of each project; see `prune`.

    On PostgreSQL partitions that have nothing else are dropped first.

    Args:
        engine: The database; others may go on writing to it.
        limits: By project.
        force: Remove even more than half of a project at once.
        dry_run: Only count.
        waiting: Leave what is old by its age alone until its partition can be dropped, if that is
            soon.
        clock: Returns microseconds since the epoch.

    Raises:
        PruneRefused: As for `prune`.
    """
    total = Pruned()
    refusals: list[str] = []
    lines: dict[int, Line] = {}
    for each, limit in limits.items():
        with read_connection(engine) as conn:
            line, wanted, refusal = _would_remove(conn, each, limit, now=clock(), waiting=waiting)
        if refusal is not None and not (force or dry_run):
            refusals.append(refusal)
        elif dry_run:
            total.add(wanted)
        elif line is not None:
            lines[each] = line
    dropped = drop_partitions(engine, lines)
    for each, line in lines.items():
        removed = Pruned(*remove_before(engine, line))
        removed.add(Pruned(dropped.conversations[each], dropped.calls[each]))
        _log.info("pruned", project=each, conversations=removed.conversations, calls=removed.calls)
        total.add(removed)
    if refusals:
        raise PruneRefused("; ".join(refusals))
    return total


def preview(
    conn: Connection, project_id: int, *, days: int | None, max_calls: int | None, now: int
) -> tuple[Pruned, str | None]:
    """Return what `prune` would remove of a project now, and why it would refuse to; see there."""
    _, wanted, refusal = _would_remove(conn, project_id, Limits(days, max_calls), now=now)
    return wanted, refusal


def _would_remove(
    conn: Connection, project_id: int, limits: Limits, *, now: int, waiting: bool = False
) -> tuple[Line | None, Pruned, str | None]:
    line = _draw(conn, project_id, limits, now=now, waiting=waiting)
    wanted = Pruned() if line is None else _count(conn, line)
    return line, wanted, _objection(conn, project_id, wanted)


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


def _draw(
    conn: Connection, project_id: int, limits: Limits, *, now: int, waiting: bool
) -> Line | None:
    """Return where the project is to be cut; None if everything stays."""
    since, first_call, max_calls = -(2**62), 0, limits.max_calls
    if limits.days is not None:
        kept = limits.days * DAY_US
        since = _partition_begin(conn, now - kept, kept) if waiting else now - kept
        first_call = _after_the_old(conn, tool_call, since, now=now)
    if max_calls is not None and _stored_calls(conn, project_id) > max_calls:
        newest = (
            select(tool_call.c.id, tool_call.c.received_at)
            .where(tool_call.c.project_id == project_id)
            .order_by(tool_call.c.id.desc())
            .offset(max_calls - 1)
            .limit(1)
        )
        row = conn.execute(newest).one_or_none()
        if row is not None and row.id > first_call:
            first_call, since = row.id, max(since, min(row.received_at, now) + 1)
    if not first_call:
        return None
    first_counts = _after_the_old(conn, call_counts, since, now=now)
    return Line(project_id, first_call, first_counts, since=since, until=now + DAY_US)


def _partition_begin(conn: Connection, since: int, kept: int) -> int:
    """Return when the partition began that *since* lies in, if it is worth waiting for it.

    Else *since* itself: where little comes in, or where calls are written still, rows go one by
    one.
    """
    parts = list_partitions(conn)
    newest = newest_id(conn) if parts else 0
    for part in parts:
        if part.high > newest:
            break
        first, last = (
            conn.exec_driver_sql(
                f"SELECT received_at FROM {part.calls} ORDER BY id {order} LIMIT 1"
            ).scalar_one_or_none()
            for order in ("", "DESC")
        )
        if first is not None and last is not None and last >= since:
            return first if since - kept * WAIT_SHARE < first <= since else since
    return since


def _after_the_old(conn: Connection, table: Table, since: int, *, now: int) -> int:
    """Return the id after the last row, of any project, that is older than *since*; 0 for none.

    That is the last one with such a time before the first one that was received since then, read in
    order of ids, which ends soon where retention has been at work before. A time in the future was
    written by a clock that was wrong, and says nothing.
    """
    row, received = table.c.id, table.c.received_at
    kept = select(row).where(received.between(since, now + DAY_US)).order_by(row).limit(1)
    first = conn.execute(kept).scalar_one_or_none()
    older = select(row).where(received < since).order_by(row.desc()).limit(1)
    last = conn.execute(older if first is None else older.where(row < first)).scalar_one_or_none()
    return 0 if last is None else int(last) + 1


def _stored_calls(conn: Connection, project_id: int) -> int:
    stored = select(func.sum(failure_counts.c.calls)).where(
        failure_counts.c.project_id == project_id, failure_counts.c.by == "tool"
    )
    return int(conn.execute(stored).scalar_one() or 0)


def _count(conn: Connection, line: Line) -> Pruned:
    """Return what `remove_before` would remove."""
    talks = (
        "SELECT count(*), coalesce(sum(calls), 0) FROM (SELECT (SELECT count(*) FROM tool_call c"
        " WHERE c.project_id = v.project_id AND c.session_id = v.session_id) AS calls"
        f" FROM conversation v WHERE v.project_id = ? AND {IS_OLD}) AS old"
    )
    values = (line.project_id, *line.old_values)
    conversations, calls = conn.exec_driver_sql(bind(conn, talks), values).one()
    call, counts = tool_call.c, call_counts.c
    alone = [
        select(func.count()).where(
            call.project_id == line.project_id,
            call.success.is_(success),
            call.session_id.is_(None),
            call.id < line.first_call,
        )
        for success in (False, True)
    ]
    folded = select(func.count()).where(
        counts.project_id == line.project_id, counts.id < line.first_counts
    )
    calls = int(calls) + sum(conn.execute(each).scalar_one() for each in alone)
    return Pruned(conversations, calls, conn.execute(folded).scalar_one())


def _objection(conn: Connection, project_id: int, wanted: Pruned) -> str | None:
    """Return why so much must not go without somebody asking for it; None if it may."""
    if wanted.calls < ASK_FROM_CALLS:
        return None
    calls = _stored_calls(conn, project_id)
    if wanted.calls <= MAX_SHARE * calls:
        return None
    return (
        f"retention would remove {wanted.calls} of {calls} calls of project {project_id}; check the"
        " limits and the clock of this machine, then run `toolfault db prune --force`"
    )
