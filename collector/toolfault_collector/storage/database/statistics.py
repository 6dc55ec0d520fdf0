"""What PostgreSQL's planner knows of tables that grew a moment ago.

Autovacuum analyses a table at most a minute after it has grown. Until then every index that begins
with the project looks alike, and a lookup may read all that is stored of a project: measured, 200
microseconds instead of 10 for each event of a new database. A table as a whole, of which the
planner asks how many different values there are, autovacuum never analyses: it sees partitions.
"""

from __future__ import annotations

from typing import Final

import structlog
from sqlalchemy import Engine

from toolfault_collector.storage.database.engine import is_sqlite, write_transaction

__all__ = ["FirstEvents", "analyze_grown", "analyze_imported", "analyze_new"]

# Enough that a column with one value and one with many differ, and stored within moments.
ANALYZE_AFTER: Final = 500
GREW_BY: Final = 10  # an import of a tenth of a table's rows makes it notably larger
_TABLES: Final = [
    "call_counts", "chain", "conversation", "event_key", "failure_counts", "issue", "message",
    "signature", "tool_call",
]  # fmt: skip
_NEW: Final = "SELECT relname FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples < 0"
_SMALL: Final = "SELECT relname FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples < %s"
_DOUBLED: Final = (
    "SELECT p.relname FROM pg_class p LEFT JOIN pg_stat_all_tables s ON s.relid = p.oid"
    " WHERE p.oid = ANY(%s::regclass[]) AND p.relkind = 'p' AND p.reltuples >= 0"
    " AND (s.last_analyze < now() - interval '1 day' OR 2 * greatest(p.reltuples, 500) <"
    " (SELECT sum(c.reltuples) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
    " WHERE i.inhparent = p.oid))"
)

_log = structlog.get_logger(__name__)


class FirstEvents:
    """Has the tables analysed once a writer has stored its first events (PostgreSQL only)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = ANALYZE_AFTER

    def stored(self, events: int) -> None:
        """Count *events*."""
        left, self._left = self._left, self._left - events
        if self._left > 0 or left <= 0:
            return
        try:
            analyze_new(self._engine)
        except Exception as error:  # noqa: BLE001 - autovacuum will come by
            _log.warning("not_analyzed", error=type(error).__name__)


def analyze_new(engine: Engine) -> list[str]:
    """Analyse the tables of ingest that never were, and return their names."""
    return _analyze(engine, _NEW)


def analyze_grown(engine: Engine) -> list[str]:
    """Analyse the wholes that have doubled since, or a day ago, and return their names."""
    return _analyze(engine, _DOUBLED)


def analyze_imported(engine: Engine, events: int) -> list[str]:
    """Analyse the tables that so many events have made notably larger, and return their names.

    An import is followed by questions at once; autovacuum comes a minute later, and never to a
    table as a whole.
    """
    return [] if events < ANALYZE_AFTER else _analyze(engine, _SMALL, GREW_BY * events)


def _analyze(engine: Engine, which: str, *more: object) -> list[str]:
    if is_sqlite(engine):
        return []
    with write_transaction(engine) as conn:
        names = sorted(conn.exec_driver_sql(which, (_TABLES, *more)).scalars())
    for name in names:
        with write_transaction(engine) as conn:
            conn.exec_driver_sql(f"ANALYZE {name}")
    return names
