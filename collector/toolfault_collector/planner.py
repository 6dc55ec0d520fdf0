"""PostgreSQL's planner knows nothing of a table that was empty until a minute ago.

Autovacuum analyses a table at most a minute after it has grown. Until then every index that begins
with the project looks alike, and a lookup may read all that is stored of a project: measured, 200
microseconds instead of 10 for each event of a new database. So the first events have the tables
analysed that never were.
"""

from __future__ import annotations

from typing import Final

import structlog
from sqlalchemy import Connection, Engine

from toolfault_collector.engine import is_sqlite, write_transaction

__all__ = ["FirstEvents", "analyze_new_tables"]

# Enough that a column with one value and one with many differ, and stored within moments.
ANALYZE_AFTER: Final = 500
_TABLES: Final = [
    "call_counts", "chain", "conversation", "failure_counts", "issue", "message", "signature",
    "tool_call",
]  # fmt: skip


_log = structlog.get_logger(__name__)


class FirstEvents:
    """Has the tables analysed once a writer has stored its first events (PostgreSQL only)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = 0 if is_sqlite(engine) else ANALYZE_AFTER

    def stored(self, events: int) -> None:
        """Count *events*."""
        if self._left <= 0:
            return
        self._left -= events
        if self._left > 0:
            return
        try:
            with write_transaction(self._engine) as conn:
                analyze_new_tables(conn)
        except Exception as error:  # noqa: BLE001 - autovacuum will come by
            _log.warning("not_analyzed", error=type(error).__name__)


def analyze_new_tables(conn: Connection) -> list[str]:
    """Analyse the tables of ingest that never were and return their names (PostgreSQL only)."""
    sql = (
        "SELECT relname FROM pg_stat_user_tables WHERE relname = ANY(%s)"
        " AND last_analyze IS NULL AND last_autoanalyze IS NULL ORDER BY relname"
    )
    names = [str(name) for name in conn.exec_driver_sql(sql, (_TABLES,)).scalars()]
    if names:
        conn.exec_driver_sql(f"ANALYZE {', '.join(names)}")
    return names
