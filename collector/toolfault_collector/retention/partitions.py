"""Partitions of calls and their issues on PostgreSQL: ranges of ids, made ahead of the writers.

Ids are the order of arrival, so a partition holds what came in during one stretch of time. Each
holds so many ids, not so many days: no clock is believed, and a small database has one. Retention
empties them, and one that is empty is dropped, which gives its room back. What no partition takes
is in the default partition, so nothing is refused when one is late.

SQLite has none of this, and every function here does nothing there.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from toolfault_collector.storage.database.engine import (
    is_sqlite,
    read_connection,
    write_transaction,
)

__all__ = ["WIDTH", "Partition", "drop_emptied", "keep_ahead", "list_partitions", "newest_id"]

# Ids in a partition: some gigabytes of failures. 14,000 calls a second fill one in five minutes,
# after which maintenance comes by again.
WIDTH: Final = 4_194_304
# Any number will do as long as every collector takes the same.
_LOCK: Final = 7_061_746_663
# Whoever waits for a lock on all calls holds up everybody who comes after.
_LOCK_MS: Final = 100
_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.25
_LOCK_NOT_AVAILABLE: Final = "55P03"
_EVER: Final = 2**62

_log = structlog.get_logger(__name__)
_BOUNDS: Final = re.compile(r"FROM \((MINVALUE|'?-?\d+'?)\) TO \('?(-?\d+)'?\)")


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of ``tool_call`` and its companion of ``issue``.

    Attributes:
        calls: Name of the one.
        issues: Name of the other.
        low: The first id of a call that belongs to them.
        high: The first id after that which does not.
    """

    calls: str
    issues: str
    low: int
    high: int


def list_partitions(conn: Connection) -> list[Partition]:
    """Return the partitions in the order of their ids, without the default ones."""
    if is_sqlite(conn):
        return []
    sql = (
        "SELECT p.relname, c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i"
        " JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent IN ('tool_call'::regclass, 'issue'::regclass)"
    )
    names: dict[tuple[int, int], dict[str, str]] = {}
    for parent, name, text in conn.exec_driver_sql(sql):
        bounds = _BOUNDS.search(text)
        if bounds is not None:
            low = -_EVER if bounds[1] == "MINVALUE" else int(bounds[1].strip("'"))
            names.setdefault((low, int(bounds[2])), {})[parent] = name
    return [
        Partition(both["tool_call"], both["issue"], low, high)
        for (low, high), both in sorted(names.items())
    ]


def newest_id(conn: Connection) -> int:
    """Return the newest id that any writer was given, its call stored or not (PostgreSQL)."""
    return int(conn.exec_driver_sql("SELECT last_value FROM tool_call_id_seq").scalar_one())


def keep_ahead(engine: Engine, *, width: int = WIDTH) -> list[str]:
    """Make partitions until a whole empty one lies ahead of the writers; return their names.

    Each is made beside the table and then attached, which holds up no writer, and readers for some
    milliseconds.

    Args:
        engine: The database; others may go on using it.
        width: Ids in a partition.

    Raises:
        DBAPIError: They could not be made; until they are, the default partition takes the calls.
    """
    made: list[str] = []
    if is_sqlite(engine):
        return made
    while name := _patiently(engine, lambda conn: _make_next(conn, width)):
        made.append(name)
    return made


def _make_next(conn: Connection, width: int) -> str | None:
    """Make the next partition if it is wanted by now, and return its name."""
    conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    newest, known = newest_id(conn), list_partitions(conn)
    low = known[-1].high if known else 0
    if low > newest + width:
        return None
    if low <= newest:
        # Too late: calls are in the default partition already, and some more will come.
        low = newest + max(1, width // 8)
    for table, key in (("tool_call", "id"), ("issue", "tool_call_id")):
        name, bounds = f"{table}_{low}", f"FROM ({low}) TO ({low + width})"
        # The check spares the one who attaches a look at rows that are not there.
        check = f"CHECK ({key} IS NOT NULL AND {key} >= {low} AND {key} < {low + width})"
        conn.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table} INCLUDING DEFAULTS)")
        conn.exec_driver_sql(f"ALTER TABLE {name} ADD CONSTRAINT bounds {check}")
        conn.exec_driver_sql(f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES {bounds}")
        conn.exec_driver_sql(f"ALTER TABLE {name} DROP CONSTRAINT bounds")
    return f"tool_call_{low}"


def drop_emptied(engine: Engine) -> list[str]:
    """Drop the partitions behind the writers that hold nothing any more; return their names.

    That gives their room back at once. One that somebody reads for long is left for the next time.

    Args:
        engine: The database; others may go on using it.
    """
    dropped: list[str] = []
    if is_sqlite(engine):
        return dropped
    with read_connection(engine) as conn:
        newest = newest_id(conn)
        behind = [each for each in list_partitions(conn) if each.high <= newest]
        empty = [each for each in behind if _is_empty(conn, each)]
    for each in empty:
        try:
            name = _patiently(engine, partial(_drop, part=each))
        except DBAPIError as error:
            if not is_lock_timeout(error):
                raise
            _log.info("partition_kept", partition=each.calls, reason="somebody reads it")
        else:
            dropped += [] if name is None else [name]
    return dropped


def _is_empty(conn: Connection, part: Partition) -> bool:
    # By the least key, which has an index: else all that was removed is read up to what is left.
    least = (
        f"SELECT min({key}) FROM {name}"  # noqa: S608 - names from the catalog
        for name, key in ((part.calls, "id"), (part.issues, "tool_call_id"))
    )
    return all(conn.exec_driver_sql(each).scalar() is None for each in least)


def _drop(conn: Connection, part: Partition) -> str | None:
    """Drop *part*, unless a writer that was given its ids long ago has stored a call meanwhile."""
    tables = f"ONLY tool_call, ONLY issue, {part.calls}, {part.issues}"
    conn.exec_driver_sql(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    if not _is_empty(conn, part):
        return None
    conn.exec_driver_sql(f"DROP TABLE {part.calls}, {part.issues}")
    return part.calls


def _patiently(engine: Engine, act: Callable[[Connection], str | None]) -> str | None:
    """Return what *act* does in a transaction that never waits long for a lock, tried anew."""
    pause = threading.Event()
    for left in reversed(range(_TRIES)):
        try:
            with write_transaction(engine) as conn:
                conn.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_MS}")
                return act(conn)
        except DBAPIError as error:
            if not left or not is_lock_timeout(error):
                raise
        pause.wait(_PAUSE_SECONDS)
    raise AssertionError  # the loop returns or raises


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether *error* says that somebody else had a lock for too long."""
    original = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None) == _LOCK_NOT_AVAILABLE
