"""Removing old data in transactions that are short, and of which each leaves every count right.

A conversation goes with everything in it, so that no chain ever loses a part and a recount stays
exact. Killed between two transactions, nothing is half removed and the next run goes on.
"""

# ruff: noqa: S608 - only names of this code are put into statements, values are bound

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, func, select

from toolfault_collector import failpoints
from toolfault_collector.bulk import bind, select_in
from toolfault_collector.clock import MINUTE_US
from toolfault_collector.day_versions import Span, raise_versions
from toolfault_collector.engine import is_sqlite, read_connection, write_transaction
from toolfault_collector.rollups import add_counts, counted_by_sql, folded_by_sql
from toolfault_collector.tables import tool_call

__all__ = ["IS_OLD", "Line", "delete_calls", "negative", "remove_before"]

# Removed in one transaction: writers wait for some milliseconds, not for a clean-up of hours. A
# conversation of more calls than that goes by itself.
CONVERSATIONS_AT_ONCE: Final = 50
ROWS_AT_ONCE: Final = 500
_EVER: Final = 2**62
# Whether the conversation ``v`` is old; its ``?`` are `Line.old_values`.
# Counted, not asked whether there is one: PostgreSQL would make that a join, and without statistics
# (of a table that grew a moment ago) a join of all calls with all conversations.
IS_OLD: Final = (
    "NOT (v.received_at BETWEEN ? AND ?) AND (SELECT count(*) FROM tool_call k WHERE"
    " k.project_id = v.project_id AND k.session_id = v.session_id AND k.id >= ?) = 0"
)


@dataclass(frozen=True, slots=True)
class Line:
    """Where a project is cut; times are in microseconds.

    Attributes:
        project_id: The project.
        first_call: Id of the first call that stays.
        first_counts: Id of the first row of ``call_counts`` that stays.
        since: A conversation to which something came from then on stays ...
        until: ... up to then; a later time was written by a clock that was wrong.
    """

    project_id: int
    first_call: int
    first_counts: int
    since: int
    until: int

    @property
    def old_values(self) -> tuple[int, int, int]:
        """What `IS_OLD` is asked with."""
        return (self.since, self.until, self.first_call)


def remove_before(engine: Engine, line: Line) -> tuple[int, int, int]:
    """Remove what lies before *line*; return conversations, calls and rows of folded counts."""
    conversations = calls = 0
    for sessions in _old_conversations(engine, line):
        with write_transaction(engine) as conn:
            gone, of_them = _remove_conversations(conn, line, sessions)
            failpoints.reach("removed")
        failpoints.reach("removal_committed")
        conversations, calls = conversations + gone, calls + of_them
    for ids in _old_calls_alone(engine, line):
        with write_transaction(engine) as conn:
            there = _lock_calls(conn, ids)
            ended = "SELECT project_id, occurred_at, occurred_at FROM tool_call WHERE id IN ?"
            spans = [tuple(row) for row in select_in(conn, ended, among=there)]
            _remove_calls(conn, there)
            raise_versions(conn, spans)
            failpoints.reach("removed")
        failpoints.reach("removal_committed")
        calls += len(there)
    counts = _remove_counts(engine, line)
    with write_transaction(engine) as conn:
        _remove_unused(conn, line.project_id)
    return conversations, calls, counts


def _old_conversations(engine: Engine, line: Line) -> Iterator[list[str]]:
    """Yield the old conversations some at a time, found without holding up any writer.

    Found by when they were last active, which has an index: what was received before the line was
    active before it, but for a clock that is a minute ahead or was wrong altogether.
    """
    sql = (
        "SELECT v.last_at, v.session_id, (SELECT count(*) FROM tool_call c WHERE"
        " c.project_id = v.project_id AND c.session_id = v.session_id) FROM conversation v"
        " WHERE v.project_id = ? AND v.last_at >= ? AND v.last_at < ?"
        f" AND (v.last_at, v.session_id) > (?, ?) AND {IS_OLD}"
        f" ORDER BY v.last_at, v.session_id LIMIT {CONVERSATIONS_AT_ONCE}"
    )
    for low, high in ((-_EVER, line.since + MINUTE_US), (line.until, _EVER)):
        at, session = low, ""
        while True:
            with read_connection(engine) as conn:
                values = (line.project_id, at, high, at, session, *line.old_values)
                found = conn.exec_driver_sql(bind(conn, sql), values).all()
            if not found:
                break
            at, session = found[-1][0], found[-1][1]
            yield from _in_portions([(row[1], row[2]) for row in found])


def _in_portions(found: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield the names in *found* so that no portion has many more calls than `ROWS_AT_ONCE`."""
    portion: list[str] = []
    calls = 0
    for session, its_calls in found:
        if portion and calls + its_calls > ROWS_AT_ONCE:
            yield portion
            portion, calls = [], 0
        portion.append(session)
        calls += its_calls
    yield portion


def _remove_conversations(conn: Connection, line: Line, sessions: list[str]) -> tuple[int, int]:
    """Remove those of *sessions* that are still old; return how many, and their calls."""
    _lock_conversations(conn, line.project_id, sessions)
    # Asked anew: before the lock was taken another call may have come.
    still = (
        f"SELECT v.session_id FROM conversation v WHERE v.project_id = ? AND {IS_OLD}"
        " AND v.session_id IN ?"
    )
    values = (line.project_id, *line.old_values)
    old = [row[0] for row in select_in(conn, still, fixed=values, among=sessions)]
    of_old = "SELECT id FROM tool_call WHERE project_id = ? AND session_id IN ?"
    project = (line.project_id,)
    calls = [row[0] for row in select_in(conn, of_old, fixed=project, among=old)]
    spans = _spans(conn, line.project_id, old)
    _remove_calls(conn, calls)
    for table in ("chain", "conversation_end", "conversation"):
        sql = f"DELETE FROM {table} WHERE project_id = ? AND session_id IN ?"
        _delete_in(conn, sql, fixed=project, among=old)
    raise_versions(conn, spans)
    return len(old), len(calls)


def _spans(conn: Connection, project_id: int, sessions: list[str]) -> list[Span]:
    """Return from when to when each of *sessions* lasted."""
    lasted = (
        "SELECT project_id, first_at, last_at FROM conversation"
        " WHERE project_id = ? AND session_id IN ?"
    )
    rows = select_in(conn, lasted, fixed=(project_id,), among=sessions)
    return [(row[0], row[1], row[2]) for row in rows]


def _lock_conversations(conn: Connection, project_id: int, sessions: list[str]) -> None:
    """Keep collectors from adding to *sessions* meanwhile; they lock in the same order."""
    if not is_sqlite(conn):
        sql = (
            "SELECT 1 FROM conversation WHERE project_id = %s AND session_id = ANY(%s)"
            " ORDER BY project_id, session_id FOR UPDATE"
        )
        conn.exec_driver_sql(sql, (project_id, sessions))


def _old_calls_alone(engine: Engine, line: Line) -> Iterator[list[int]]:
    """Yield the ids of old calls outside any conversation, some at a time.

    By time within success or not, for which there is an index; see `_old_conversations`.
    """
    sql = (
        "SELECT occurred_at, id FROM tool_call WHERE project_id = ? AND success = ?"
        " AND occurred_at >= ? AND occurred_at < ? AND (occurred_at, id) > (?, ?)"
        " AND session_id IS NULL AND id < ?"
        f" ORDER BY occurred_at, id LIMIT {ROWS_AT_ONCE}"
    )
    windows = ((-_EVER, line.since + MINUTE_US), (line.until, _EVER))
    for success, (low, high) in itertools.product((False, True), windows):
        after = (low, 0)
        while True:
            with read_connection(engine) as conn:
                values = (line.project_id, success, after[0], high, *after, line.first_call)
                found = conn.exec_driver_sql(bind(conn, sql), values).all()
            if not found:
                break
            after = (found[-1][0], found[-1][1])
            yield [row[1] for row in found]


def _lock_calls(conn: Connection, ids: list[int]) -> list[int]:
    """Return those of *ids* that are there, which nobody else removes until this is done."""
    if is_sqlite(conn):
        return [
            row[0] for row in select_in(conn, "SELECT id FROM tool_call WHERE id IN ?", among=ids)
        ]
    sql = "SELECT id FROM tool_call WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
    return list(conn.exec_driver_sql(sql, (ids,)).scalars())


def _remove_calls(conn: Connection, calls: list[int]) -> None:
    """Remove *calls* with their issues, and take them out of the rollups."""
    for low in range(0, len(calls), ROWS_AT_ONCE):
        part = calls[low : low + ROWS_AT_ONCE]
        # Numbers of this database's own making, so they may stand in the statement.
        failures, reported = counted_by_sql(conn, f"c.id IN ({', '.join(map(str, part))})")
        add_counts(conn, (negative(failures), negative(reported)))
        delete_calls(conn, part)


def delete_calls(conn: Connection, calls: list[int]) -> None:
    """Delete *calls* with their issues and keys; the rollups are the caller's."""
    _delete_in(conn, "DELETE FROM issue WHERE tool_call_id IN ?", among=calls)
    if is_sqlite(conn):
        _delete_in(conn, "DELETE FROM tool_call WHERE id IN ?", among=calls)
    else:
        sql = (
            "WITH gone AS (DELETE FROM tool_call WHERE id = ANY(%s) RETURNING project_id, event_id)"
            " DELETE FROM event_key e USING gone WHERE e.project_id = gone.project_id"
            " AND e.event_id = gone.event_id"
        )
        conn.exec_driver_sql(sql, (calls,))


def _remove_counts(engine: Engine, line: Line) -> int:
    """Remove old rows of folded successes; return how many."""
    # Minutes have an index, and are at most one ahead of when their row was received.
    old = (
        "SELECT id, minute FROM call_counts"
        " WHERE project_id = ? AND id < ? AND (minute < ? OR minute >= ?)"
        f" LIMIT {ROWS_AT_ONCE}"
    )
    values = (line.project_id, line.first_counts, line.since + MINUTE_US, line.until)
    removed = 0
    while True:
        with write_transaction(engine) as conn:
            lock = "" if is_sqlite(conn) else " FOR UPDATE"
            found = conn.exec_driver_sql(bind(conn, old + lock), values).all()
            ids = [row[0] for row in found]
            if ids:
                failures, folded = folded_by_sql(conn, f"f.id IN ({', '.join(map(str, ids))})")
                add_counts(conn, (failures, negative(folded)))
                _delete_in(conn, "DELETE FROM call_counts WHERE id IN ?", among=ids)
                middles = [row[1] + MINUTE_US // 2 for row in found]
                raise_versions(conn, [(line.project_id, at, at) for at in middles])
        removed += len(ids)
        if len(ids) < ROWS_AT_ONCE:
            return removed


def _remove_unused(conn: Connection, project_id: int) -> None:
    """Remove counts that are zero, and signatures and messages that no call has any more."""
    sql = "DELETE FROM failure_counts WHERE project_id = ? AND failures = 0 AND calls = 0"
    conn.exec_driver_sql(bind(conn, sql), (project_id,))
    # What was last seen before the oldest call that is left is seen in none.
    oldest = _oldest_call(conn, project_id)
    for table in ("signature", "message"):
        sql = f"DELETE FROM {table} WHERE project_id = ? AND last_at < ?"
        conn.exec_driver_sql(bind(conn, sql), (project_id, oldest))


def _oldest_call(conn: Connection, project_id: int) -> int:
    oldest = select(func.min(tool_call.c.occurred_at)).where(tool_call.c.project_id == project_id)
    # Asked twice, since the index begins with success.
    found = [conn.execute(oldest.where(tool_call.c.success.is_(each))) for each in (True, False)]
    times = [at for result in found if (at := result.scalar_one()) is not None]
    return min(times, default=_EVER)


def negative(counts: Counter[Any]) -> Counter[Any]:
    """Return *counts* with every sign turned."""
    return Counter({key: -count for key, count in counts.items()})


def _delete_in(
    conn: Connection, sql: str, *, among: list[Any], fixed: tuple[Any, ...] = ()
) -> None:
    """Run the delete *sql*, whose ``IN ?`` ends in the list *among*."""
    select_in(conn, sql + " RETURNING 1", fixed=fixed, among=among)
