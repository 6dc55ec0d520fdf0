"""Traces that are over: their spans are forgotten, the calls that were made of them stay."""

# ruff: noqa: S608 - only names and numbers of this code are put into statements

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.database.bulk import fetch, run
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    write_transaction,
)

__all__ = ["KEPT_TRACES", "KEPT_US", "remove_all_old_traces", "remove_old_traces"]

# A trace that is quiet for so long is over: what comes later is a trace of its own, whose calls
# have the same ids, so those that are stored stay as they are.
KEPT_US: Final = 30 * MINUTE_US
# Of one project; the ones that were quiet the longest go first.
KEPT_TRACES: Final = 10_000
# A series of metric points of which nothing is heard for so long is over.
SERIES_US: Final = 7 * DAY_US
# A time that is so far ahead was written by a clock that was wrong.
_AHEAD_US: Final = DAY_US


def remove_old_traces(conn: Connection, project_id: int, *, now: int) -> int:
    """Forget traces of a project that are quiet, or too many; return how many.

    Args:
        conn: In a write transaction.
        project_id: The project.
        now: Microseconds since the epoch.
    """
    beyond = fetch(
        conn,
        "SELECT received_at FROM trace WHERE project_id = ?"
        f" ORDER BY received_at DESC LIMIT 1 OFFSET {KEPT_TRACES}",
        (project_id,),
    )
    line = max([now - KEPT_US - 1, *(int(row[0]) for row in beyond)])
    old = fetch(
        conn,
        "SELECT trace_id FROM trace WHERE project_id = ? AND (received_at <= ? OR received_at > ?)"
        + ("" if is_sqlite(conn) else " FOR UPDATE SKIP LOCKED"),
        (project_id, line, now + _AHEAD_US),
    )
    keys = [(project_id, row[0]) for row in old]
    for table in ("trace_batch", "trace"):
        run(conn, f"DELETE FROM {table} WHERE project_id = ? AND trace_id = ?", keys)
    return len(keys)


def remove_all_old_traces(engine: Engine, *, now: int) -> int:
    """Forget old traces of every project, and series of metrics; return how many traces.

    Each project in a transaction of its own.
    """
    with read_connection(engine) as conn:
        projects = [
            row[0]
            for row in fetch(
                conn,
                "SELECT id FROM project WHERE EXISTS"
                " (SELECT 1 FROM trace WHERE trace.project_id = project.id)",
            )
        ]
    removed = 0
    for project_id in projects:
        with write_transaction(engine) as conn:
            removed += remove_old_traces(conn, project_id, now=now)
    with write_transaction(engine) as conn:
        run(conn, "DELETE FROM metric_series WHERE ended_at < ?", [(now - SERIES_US,)])
    return removed
