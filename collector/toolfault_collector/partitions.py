"""Partitions of calls and their issues on PostgreSQL: ranges of ids, made ahead of the writers.

Ids are the order of arrival, so a partition holds what came in during one stretch of time. Each
holds so many ids, not so many days: no clock is believed, and a small database has one. What no
partition takes (or was kept of one that is gone) is in the default partition, so nothing is refused
when one is late.

SQLite has none of this, and every function here does nothing there.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from toolfault_collector.engine import is_sqlite, write_transaction

__all__ = [
    "DEFAULTS",
    "WIDTH",
    "Partition",
    "analyze_grown",
    "is_lock_timeout",
    "keep_ahead",
    "list_partitions",
    "lock_all",
    "newest_id",
]

# Ids in a partition: some gigabytes of failures. 14,000 calls a second fill one in five minutes,
# after which maintenance comes by again.
WIDTH: Final = 4_194_304
# What takes the calls of no other partition, and their issues.
DEFAULTS: Final = ("tool_call_default", "issue_default")
# Any number will do as long as every collector takes the same.
_LOCK: Final = 7_061_746_663
# Whoever waits for a lock on all calls holds up everybody who comes after.
_LOCK_MS: Final = 100
_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.25
_LOCK_NOT_AVAILABLE: Final = "55P03"
_EVER: Final = 2**62

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


def lock_all(conn: Connection, names: list[str]) -> None:
    """Hold the tables *names* against everybody until the transaction ends.

    Asked for again and again: somebody may read them for minutes (an export), and who waits for
    such a lock holds up all who come after.

    Raises:
        DBAPIError: Somebody had one of them each time.
    """
    pause = threading.Event()
    conn.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_MS}")
    tables = ", ".join(f"ONLY {name}" for name in names)
    for left in reversed(range(_TRIES)):
        try:
            with conn.begin_nested():
                conn.exec_driver_sql(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        except DBAPIError as error:
            if not left or not is_lock_timeout(error):
                raise
            pause.wait(_PAUSE_SECONDS)
        else:
            return


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether *error* says that somebody else had a lock for too long."""
    original = getattr(error, "orig", None)
    return getattr(original, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def analyze_grown(engine: Engine) -> list[str]:
    """Analyse the partitioned tables whose statistics are old; return their names.

    Autovacuum sees to every partition, and never to the whole, of which the planner asks how many
    different values there are.
    """
    if is_sqlite(engine):
        return []
    grown = (
        "SELECT p.relname FROM pg_class p LEFT JOIN pg_stat_all_tables s ON s.relid = p.oid"
        " WHERE p.oid IN ('tool_call'::regclass, 'issue'::regclass)"
        " AND (s.last_analyze < now() - interval '1 day' OR 2 * greatest(p.reltuples, 500) <"
        " (SELECT sum(c.reltuples) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = p.oid))"
    )
    with write_transaction(engine) as conn:
        names = list(conn.exec_driver_sql(grown).scalars())
    for name in names:
        with write_transaction(engine) as conn:
            # Newer versions can leave out the partitions, which are analysed already.
            new = int(conn.exec_driver_sql("SHOW server_version_num").scalar_one()) >= 180_000
            conn.exec_driver_sql(f"ANALYZE {'ONLY ' if new else ''}{name}")
    return names
