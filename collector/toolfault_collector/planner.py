"""PostgreSQL's planner knows nothing of a table that was empty until a minute ago.

Autovacuum analyses a table at most a minute after it has grown. Until then every index that begins
with the project looks alike, and a lookup may read all that is stored of a project: measured, 200
microseconds instead of 10 for each event of a new database. So the first events have the tables
analysed that never were, and so do the first of every partition.
"""

from __future__ import annotations

from typing import Final

import structlog
from sqlalchemy import Connection, Engine

from toolfault_collector.engine import is_sqlite, write_transaction

__all__ = ["FirstEvents", "analyze_new_tables"]

# Enough that a column with one value and one with many differ, and stored within moments.
ANALYZE_AFTER: Final = 500
# How often it is asked whether a new partition is being filled, which costs a millisecond, and from
# what size on: some hundred calls.
LOOK_AFTER: Final = 5_000
_BEGUN_BYTES: Final = 256 * 1024
_TABLES: Final = [
    "call_counts", "chain", "conversation", "event_key", "failure_counts", "issue", "message",
    "signature", "tool_call",
]  # fmt: skip


_log = structlog.get_logger(__name__)


class FirstEvents:
    """Has the tables analysed once a writer has stored the first events of each (PostgreSQL only).

    Partitions are made empty, so they are looked for as long as a writer writes.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._here = not is_sqlite(engine)
        self._left = ANALYZE_AFTER

    def stored(self, events: int) -> None:
        """Count *events*."""
        self._left -= events
        if self._left > 0 or not self._here:
            return
        self._left = LOOK_AFTER
        try:
            with write_transaction(self._engine) as conn:
                analyze_new_tables(conn)
        except Exception as error:  # noqa: BLE001 - autovacuum will come by
            _log.warning("not_analyzed", error=type(error).__name__)


def analyze_new_tables(conn: Connection) -> list[str]:
    """Analyse the tables of ingest that never were and return their names (PostgreSQL only).

    A partition may have been analysed while it was empty, which says nothing.
    """
    whole = "SELECT relname FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples < 0"
    begun = (
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent IN ('tool_call'::regclass, 'issue'::regclass)"
        " AND c.reltuples <= 0 AND pg_relation_size(c.oid) >= %s"
    )
    names = sorted(map(str, conn.exec_driver_sql(whole, (_TABLES,)).scalars()))
    if names:  # with the partitions of each
        conn.exec_driver_sql(f"ANALYZE {', '.join(names)}")
    parts = sorted(map(str, conn.exec_driver_sql(begun, (_BEGUN_BYTES,)).scalars()))
    if parts:
        conn.exec_driver_sql(f"ANALYZE {', '.join(parts)}")
    return [*names, *parts]
