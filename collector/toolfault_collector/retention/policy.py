"""Retention: what a project keeps, where its line is drawn, and whether the clock is believed.

What is old is decided by when it was received and by the order in which calls came in (their ids):
what a client claims neither keeps data for ever nor removes what came in today, and calls that were
received while the clock was wrong go with their neighbours, neither too early nor never.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import add
from typing import Final

import structlog
from sqlalchemy import Column, Connection, Engine, delete, extract, func, select, tuple_

from toolfault_collector.admin.project_settings import kept, settings_of
from toolfault_collector.admin.projects import list_projects
from toolfault_collector.clock import DAY_US, SECOND_US, format_time, now_us
from toolfault_collector.errors import PruneRefused
from toolfault_collector.retention.rows import EVER, Line, Pruned, count_before, remove_before
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.tables import (
    call_counts,
    drop_counts,
    failure_counts,
    project,
    rejected_event,
    tool_call,
)

__all__ = [
    "Limits",
    "Pruned",
    "limits_of",
    "prune",
    "prune_projects",
    "prune_rejects",
    "why_doubted",
    "why_refused",
]

# A conversation that goes on is cut this share of what is kept behind the line, at most a day: one
# that is shorter than that goes whole.
CUT_SHARE: Final = 8
# By so much a clock may have been set back without calls from before being taken for late ones.
SET_BACK_US: Final = 6 * HOUR_US
# Rejected events are kept to be looked at soon.
REJECTS_DAYS: Final = 7
# What senders say they lost; no alert looks back further than a week.
DROPS_DAYS: Final = 8
REJECTS_PER_PROJECT: Final = 10_000

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a project keeps: what came in the last so many days, about so many calls, or both."""

    days: int | None = None
    max_calls: int | None = None


def limits_of(conn: Connection, settings: Settings) -> dict[int, Limits]:
    """Return the limits of every project that has any: its own, or those of the environment."""
    found = {each.id: kept(settings_of(conn, each.id), settings) for each in list_projects(conn)}
    return {
        project_id: Limits(days or None, calls or None)
        for project_id, (days, calls) in found.items()
        if days or calls
    }


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
        max_calls: Keep about so many calls per project.
        project_id: One project; all of them by default.
        force: Remove although the clock is doubted.
        dry_run: Only count.
        clock: Returns microseconds since the epoch.

    Raises:
        PruneRefused: The clock is doubted (`why_refused`); nothing was removed.
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
    clock: Callable[[], int] = now_us,
) -> Pruned:
    """Remove what is beyond the *limits* of each project; for the rest see `prune`."""
    total, now = Pruned(), clock()
    with read_connection(engine) as conn:
        refusal = None if force or dry_run else why_refused(conn, limits, now)
    if refusal is not None:
        raise PruneRefused(f"nothing was removed: {refusal}; or run `toolfault prune --force`")
    for project_id, limit in limits.items():
        with read_connection(engine) as conn:
            line = _draw(conn, project_id, limit, now=now)
            counted = Pruned() if line is None or not dry_run else count_before(conn, line)
        if line is not None and not dry_run:
            counted = remove_before(engine, line)
            if any(counted):
                _log.info("pruned", project=project_id, **counted._asdict())
        total = Pruned(*map(add, total, counted))
    return total


def prune_rejects(engine: Engine, *, clock: Callable[[], int] = now_us) -> int:
    """Remove rejected events that are a week old, and the oldest beyond 10,000 per project.

    What senders said they lost (`drop_counts`) goes a day later, and is not counted here.
    """
    removed, row, told = 0, rejected_event.c, drop_counts.c
    with read_connection(engine) as conn:
        ids = [each.id for each in list_projects(conn)]
        # They may hold what people typed, so they go by age unless a clock is known to be wrong.
        doubted = why_doubted(conn, clock(), tolerance=HOUR_US) is not None
    for project_id in ids:
        mine, order = row.project_id == project_id, tuple_(row.received_at, row.id)
        newest = select(row.received_at, row.id).where(mine)
        newest = newest.order_by(row.received_at.desc(), row.id.desc())
        old = row.received_at < (0 if doubted else clock() - REJECTS_DAYS * DAY_US)
        with write_transaction(engine) as conn:
            first = conn.execute(newest.offset(REJECTS_PER_PROJECT).limit(1)).first()
            if first is not None:
                old |= order <= tuple(first)
            removed += conn.execute(delete(rejected_event).where(mine, old)).rowcount
            if not doubted:
                past = told.period < clock() - DROPS_DAYS * DAY_US
                conn.execute(delete(drop_counts).where(told.project_id == project_id, past))
    return removed


def why_refused(conn: Connection, limits: Mapping[int, Limits], now: int) -> str | None:
    """Return why nothing of what is beyond *limits* is removed for now; None if it may be.

    A clock that jumped ahead makes everything old, and what comes in from then on agrees with it;
    all that tells it from a server that was off for so long is time. So where everything would go
    that came more than an hour ago, calls must have come for an hour first.
    """
    if not any(_draw(conn, project_id, each, now=now) for project_id, each in limits.items()):
        return None
    doubt = why_doubted(conn, now, tolerance=HOUR_US)
    days = min((each.days for each in limits.values() if each.days), default=None)
    if doubt is not None or days is None:
        return doubt
    of_project = (
        select(func.max(at))
        .where(at.table.c.project_id == project.c.id, at <= now - HOUR_US)
        .scalar_subquery()
        for at in (tool_call.c.received_at, call_counts.c.minute)
    )
    came = conn.execute(select(*map(func.max, of_project)).select_from(project)).one()
    newest = max((at for at in came if at is not None), default=now)
    if newest >= now - days * DAY_US - HOUR_US:
        return None
    return (
        f"all that came more than an hour ago would go, the newest of {format_time(newest)}; if"
        " that is meant, wait until calls have come for an hour"
    )


def why_doubted(conn: Connection, now: int, *, tolerance: int) -> str | None:
    """Return what says that *now*, by the clock of this machine, is wrong; None if nothing does.

    The witnesses are the clock of the database, if that is PostgreSQL, and the newest call, which
    cannot have been received later than now.

    Args:
        conn: An open connection.
        now: Microseconds since the epoch.
        tolerance: By so many microseconds clocks may differ.
    """
    here = f"it is {format_time(now)} on this machine"
    if not is_sqlite(conn):
        seconds = conn.execute(select(extract("epoch", func.clock_timestamp()))).scalar_one()
        there = int(seconds * SECOND_US)
        if abs(there - now) > tolerance:
            return f"{here} and {format_time(there)} on that of the database; set the clock (NTP)"
    newest = _newest_received(conn)
    if newest is not None and newest > now + tolerance:
        return f"{here}, but events were received at {format_time(newest)}; set the clock (NTP)"
    return None


def _newest_received(conn: Connection) -> int | None:
    call = tool_call.c
    newest = select(func.max(call.id)).scalar_subquery()
    return conn.execute(select(call.received_at).where(call.id == newest)).scalar_one_or_none()


def _draw(conn: Connection, project_id: int, limits: Limits, *, now: int) -> Line | None:
    """Return where the project is to be cut; None if everything stays."""
    until, last, first_call, cut = now + DAY_US, -EVER, 0, -EVER
    call = tool_call.c
    if limits.days is not None:
        last = now - limits.days * DAY_US - 1
        first_call = _after_the_old(conn, call.received_at, project_id, last=last, until=until)
        cut = last - min(limits.days * DAY_US // CUT_SHARE, DAY_US)
    if limits.max_calls is not None:
        order = (call.received_at, call.id)
        mine = select(*order).where(call.project_id == project_id, call.received_at <= until)
        mine = mine.order_by(*order).limit(1)
        beyond = _dated_calls(conn, project_id, until) - limits.max_calls
        first = conn.execute(mine.offset(beyond)).first() if beyond > 0 else None
        if first is not None and first.received_at > last:
            last, first_call = first.received_at, first.id
        beyond -= limits.max_calls // CUT_SHARE
        first = conn.execute(mine.offset(beyond)).first() if beyond > 0 else None
        if first is not None:
            cut = max(cut, first.received_at)
    first_counts = _after_the_old(conn, call_counts.c.minute, project_id, last=last, until=until)
    if not first_call and not first_counts:
        return None
    return Line(project_id, last, first_call, first_counts, cut, until)


def _dated_calls(conn: Connection, project_id: int, until: int) -> int:
    """Return how many calls are stored, but for those received by a clock that was ahead."""
    counted, call = failure_counts.c, tool_call.c
    stored = select(func.coalesce(func.sum(counted.calls), 0)).where(
        counted.project_id == project_id, counted.by == "tool"
    )
    ahead = select(func.count()).where(call.project_id == project_id, call.received_at > until)
    return int(conn.execute(stored).scalar_one()) - conn.execute(ahead).scalar_one()


def _after_the_old(
    conn: Connection, at: Column[int], project_id: int, *, last: int, until: int
) -> int:
    """Return the first id that is surely not old, in the table of *at*; 0 where no row is old.

    Usually this is the id after the newest old row. A row that is to be kept may have a smaller id:
    the rows behind it with earlier times came while the clock was wrong, so its id is returned
    instead. Times beyond *until* come from such a clock too and are not looked at.
    """
    row, mine = at.table.c.id, at.table.c.project_id == project_id
    old = select(row).where(mine, at <= last).order_by(at.desc(), row.desc()).limit(1)
    newest_old: int | None = conn.execute(old).scalar_one_or_none()
    if newest_old is None:
        return 0
    kept = select(at).where(mine, at.between(last + 1, until)).order_by(at).limit(1)
    begins: int | None = conn.execute(kept).scalar_one_or_none()
    if begins is None:
        return newest_old + 1
    # Of the oldest rows that are kept the first to come: a clock that was set back by a few hours
    # gives later rows earlier times.
    # Of a sum, since the least of a column is looked for in an index of that column.
    first = select(func.min(row + 0)).where(mine, at.between(begins, begins + SET_BACK_US))
    return min(newest_old + 1, int(conn.execute(first).scalar_one()))
