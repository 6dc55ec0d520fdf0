"""Retention by dropping a partition (PostgreSQL): what lies before the line goes at once.

Deleting a call costs about what storing it did, and leaves room that only a vacuum finds again. A
partition of which every project has let go is dropped instead, in one transaction that leaves every
count right. Its long part locks that partition alone, and conversations that nobody adds to any
more; only to let it go, milliseconds, is everybody held off from calls.

The calls of a conversation that goes on stay. They move to the default partition, under their ids.
"""

# ruff: noqa: S608 - names of this code and numbers of this database are put into statements

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog
from sqlalchemy import Connection, Engine, Table
from sqlalchemy.exc import DBAPIError

from toolfault_collector import failpoints
from toolfault_collector.bulk import run
from toolfault_collector.clock import DAY_US
from toolfault_collector.day_versions import Span, raise_versions
from toolfault_collector.engine import is_sqlite, read_connection, write_transaction
from toolfault_collector.partitions import (
    DEFAULTS,
    Partition,
    is_lock_timeout,
    list_partitions,
    lock_all,
    newest_id,
)
from toolfault_collector.removal import IS_OLD, Line, delete_calls, negative
from toolfault_collector.rollups import Counts, add_counts, counted_by_sql
from toolfault_collector.tables import issue, tool_call

__all__ = ["Dropped", "drop_partitions"]

# Beyond so many calls that stay, moving them would hold up everybody for seconds: such a partition
# is left to be emptied row by row.
MOST_KEPT: Final = 10_000
# Rows that are deleted one by one, since they lie in other partitions, in one statement.
_AT_ONCE: Final = 1_000
_PATIENCE: Final = "SET LOCAL lock_timeout = '5s'"

_log = structlog.get_logger(__name__)

_OLD: Final = (
    IS_OLD.replace("?", "l.since", 1).replace("?", "l.until", 1).replace("?", "l.first_call", 1)
)
_SAME: Final = "{0}.project_id = g.project_id AND {0}.session_id = g.session_id"


@dataclass(slots=True)
class Dropped:
    """What went with partitions, by project."""

    conversations: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)


class _StaysError(Exception):
    """The partition is not to be dropped; says why."""


def drop_partitions(engine: Engine, lines: Mapping[int, Line]) -> Dropped:
    """Drop the partitions of which all calls lie before the line of their project.

    One that somebody reads for long stays for now, to be emptied row by row.

    Args:
        engine: The database; others may go on using it.
        lines: Where each project is cut. A project without a line keeps its partitions.
    """
    dropped = Dropped()
    if is_sqlite(engine):
        return dropped
    with read_connection(engine) as conn:
        old = [each for each in list_partitions(conn) if _is_old(conn, each, lines)]
    for each in old:
        try:
            with write_transaction(engine) as conn:
                conversations, calls = _drop(conn, each, lines)
                failpoints.reach("detached")
            failpoints.reach("detached_committed")
        except _StaysError as stays:
            _log.info("partition_kept", partition=each.calls, reason=str(stays))
        except DBAPIError as error:
            if not is_lock_timeout(error):
                raise
            _log.warning("partition_kept", partition=each.calls, reason="somebody reads it")
        else:
            _log.info("partition_dropped", partition=each.calls, calls=calls.total())
            dropped.conversations += conversations
            dropped.calls += calls
    return dropped


def _is_old(conn: Connection, part: Partition, lines: Mapping[int, Line]) -> bool:
    """Return whether nobody writes to *part* any more, and every project has let go of it."""
    if part.high > newest_id(conn):
        return False
    within = (
        f"SELECT p.id FROM project p WHERE EXISTS (SELECT 1 FROM {part.calls} c"
        " WHERE c.project_id = p.id)"
    )
    projects = set(conn.exec_driver_sql(within).scalars())
    if not projects <= lines.keys():
        return False
    newest = conn.exec_driver_sql(f"SELECT max(id) FROM {part.calls}").scalar_one()
    return all(newest < lines[each].first_call for each in projects)


def _drop(
    conn: Connection, part: Partition, lines: Mapping[int, Line]
) -> tuple[Counter[int], Counter[int]]:
    """Drop *part*; return how many conversations and calls of each project went."""
    conn.exec_driver_sql(_PATIENCE)
    # Readers go on. Nobody adds to it or changes it, so that what is counted is what goes.
    conn.exec_driver_sql(f"LOCK TABLE {part.calls}, {part.issues} IN SHARE ROW EXCLUSIVE MODE")
    if not _is_old(conn, part, lines):
        raise _StaysError("a call came meanwhile")
    _mark_conversations(conn, part, lines)
    _copy_what_stays(conn, part)
    conversations = _by_project(conn, "going_conversation g")
    going = f"NOT EXISTS (SELECT 1 FROM {_KEPT} k WHERE k.id = c.id)"
    calls = _by_project(conn, f"{part.calls} c WHERE {going}")
    taken = counted_by_sql(conn, going, calls=part.calls, issues=part.issues)
    spans = _days(conn, part, going)
    elsewhere = _calls_elsewhere(conn, part, lines)
    for low in range(0, len(elsewhere), _AT_ONCE):
        some = elsewhere[low : low + _AT_ONCE]
        ids = [row[1] for row in some]
        calls.update(row[0] for row in some)
        for total, more in zip(taken, counted_by_sql(conn, _among(ids)), strict=True):
            total.update(more)
        delete_calls(conn, ids)
    conn.exec_driver_sql(
        f"DELETE FROM event_key e USING {part.calls} c WHERE e.project_id = c.project_id"
        f" AND e.event_id = c.event_id AND {going}"
    )
    for table in ("chain", "conversation_end", "conversation"):
        same = _SAME.format("t")
        conn.exec_driver_sql(f"DELETE FROM {table} t USING going_conversation g WHERE {same}")
    _let_go(conn, part, taken=taken, spans=spans)
    return conversations, calls


_KEPT: Final = "kept_call"


def _mark_conversations(conn: Connection, part: Partition, lines: Mapping[int, Line]) -> None:
    """Note the old conversations that have a call in *part*, and lock them."""
    conn.exec_driver_sql(
        "CREATE TEMP TABLE going_line (project_id integer, since bigint, until bigint,"
        " first_call bigint) ON COMMIT DROP"
    )
    cuts = [(each.project_id, *each.old_values) for each in lines.values()]
    run(conn, "INSERT INTO going_line VALUES (?, ?, ?, ?)", cuts)
    conn.exec_driver_sql(
        "CREATE TEMP TABLE going_conversation (project_id integer, session_id text) ON COMMIT DROP"
    )
    # In the order in which collectors lock them. Nobody adds to them from here on.
    conn.exec_driver_sql(
        "INSERT INTO going_conversation SELECT v.project_id, v.session_id FROM conversation v"
        " JOIN going_line l ON l.project_id = v.project_id"
        f" JOIN (SELECT DISTINCT project_id, session_id FROM {part.calls}) c"
        " ON c.project_id = v.project_id AND c.session_id = v.session_id"
        " WHERE NOT (v.received_at BETWEEN l.since AND l.until)"
        " ORDER BY v.project_id, v.session_id FOR UPDATE OF v"
    )
    conn.exec_driver_sql("ANALYZE going_conversation")
    # Asked anew: before the lock was taken another call may have come.
    conn.exec_driver_sql(
        "DELETE FROM going_conversation g USING conversation v, going_line l"
        f" WHERE {_SAME.format('v')} AND l.project_id = v.project_id AND NOT ({_OLD})"
    )


def _copy_what_stays(conn: Connection, part: Partition) -> None:
    """Copy the calls of *part*, with their issues, whose conversation goes on."""
    conn.exec_driver_sql(
        f"CREATE TEMP TABLE {_KEPT} ON COMMIT DROP AS SELECT c.* FROM {part.calls} c"
        " WHERE c.session_id IS NOT NULL AND NOT EXISTS"
        f" (SELECT 1 FROM going_conversation g WHERE {_SAME.format('c')}) LIMIT {MOST_KEPT + 1}"
    )
    stay = conn.exec_driver_sql(f"SELECT count(*) FROM {_KEPT}").scalar_one()
    if stay > MOST_KEPT:
        raise _StaysError("too many calls stay")
    conn.exec_driver_sql(
        f"CREATE TEMP TABLE kept_issue ON COMMIT DROP AS SELECT i.* FROM {part.issues} i"
        f" WHERE i.tool_call_id IN (SELECT id FROM {_KEPT})"
    )
    conn.exec_driver_sql(f"ANALYZE {_KEPT}")


def _by_project(conn: Connection, source: str) -> Counter[int]:
    rows = conn.exec_driver_sql(f"SELECT project_id, count(*) FROM {source} GROUP BY project_id")
    return Counter({row[0]: row[1] for row in rows})


def _days(conn: Connection, part: Partition, going: str) -> list[Span]:
    """Return the spans of days that what goes touches, each once."""
    first, last, ended = (
        f"{name} / {DAY_US} * {DAY_US}" for name in ("v.first_at", "v.last_at", "c.occurred_at")
    )
    rows = conn.exec_driver_sql(
        f"SELECT v.project_id, {first}, {last} FROM conversation v JOIN going_conversation g"
        f" ON {_SAME.format('v')} GROUP BY 1, 2, 3"
        f" UNION SELECT c.project_id, {ended}, {ended} FROM {part.calls} c"
        f" WHERE c.session_id IS NULL AND {going} GROUP BY 1, 2"
    )
    return [(row[0], row[1], row[2]) for row in rows]


def _calls_elsewhere(
    conn: Connection, part: Partition, lines: Mapping[int, Line]
) -> list[tuple[int, int]]:
    """Return project and id of what the conversations have in other partitions.

    A look by index for each conversation, where the planner might read all calls; and none of
    partitions behind every line, since an old conversation has no call there.
    """
    ends = max((line.first_call for line in lines.values()), default=0)
    rows = conn.exec_driver_sql(
        "SELECT g.project_id, c.id FROM going_conversation g CROSS JOIN LATERAL"
        f" (SELECT id FROM tool_call c WHERE {_SAME.format('c')} AND c.id < {ends}"
        f" AND (c.id < {part.low} OR c.id >= {part.high}) OFFSET 0) c"
    )
    return [(row[0], row[1]) for row in rows]


def _among(ids: list[int]) -> str:
    return f"c.id IN ({', '.join(map(str, ids))})"


def _let_go(conn: Connection, part: Partition, *, taken: Counts, spans: list[Span]) -> None:
    """Drop *part*, put back what stays, and take the counts back, all before anybody looks.

    Rows that every writer wants are written only under the lock of all calls: else a writer might
    wait for them with a lock that this waits for.
    """
    lock_all(conn, ["tool_call", "issue", part.calls, part.issues, *DEFAULTS])
    conn.exec_driver_sql(_PATIENCE)
    failpoints.reach("detaching")
    conn.exec_driver_sql(f"DROP TABLE {part.calls}, {part.issues}")
    for table, kept in ((tool_call, _KEPT), (issue, "kept_issue")):
        _put_back(conn, table, kept)
    add_counts(conn, (negative(taken[0]), negative(taken[1])))
    raise_versions(conn, spans)


def _put_back(conn: Connection, table: Table, kept: str) -> None:
    names = ", ".join(f'"{column.name}"' for column in table.c)
    conn.exec_driver_sql(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {kept}")
