"""Where readers read: from the database alone, or events from ClickHouse and the rest from it.

Every question is asked of one connection, whichever it is. With ClickHouse a `_Both` stands for
it: it looks which tables a statement names and hands it to the side that has them. The few
statements over events that also name a small table of SQL (states of kinds) run on ClickHouse,
beside a copy of that table as it is in the reader's snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Executable, Table, select, text
from sqlalchemy.sql import visitors

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import client_of
from toolfault_collector.clickhouse.tables import SHIPPED, type_of
from toolfault_collector.clickhouse.turns import reading_turn
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import metadata

__all__ = ["read_events_from", "read_until", "reading"]

_EVENTS: Final[WeakKeyDictionary[Engine, Engine]] = WeakKeyDictionary()
_SHIPPED: Final = frozenset(each.table.name for each in SHIPPED)


def read_events_from(engine: Engine, events: Engine) -> None:
    """Let `reading` of *engine* take events from *events*, an engine of ClickHouse."""
    _EVENTS[engine] = events


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yield what all questions of one answer are asked of: one snapshot, or one shipment.

    Args:
        engine: The database that accepts events.
    """
    events = _EVENTS.get(engine)
    with read_connection(engine) as sql:
        if events is None:
            yield sql
            return
        with reading_turn(sql), events.connect() as there, there.begin():
            yield cast("Connection", _Both(sql, there))


def read_until(conn: Connection) -> int | None:
    """Return when what *conn* reads was true, in microseconds since the epoch.

    None: it reads all that is stored; 0: what was there at first is still being copied.
    """
    return conn.until if isinstance(conn, _Both) else None


class _Both:
    """A connection to both sides, with what questions use of one."""

    def __init__(self, sql: Connection, events: Connection) -> None:
        self._sql, self._events = sql, events
        self._copied: set[str] = set()
        self.until = outbox.shipped_until(sql)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    def execute(self, statement: Executable, parameters: Any = None, **more: Any) -> Any:
        """Run *statement* on the side that has its tables."""
        named = _tables_of(statement)
        if not named & _SHIPPED:
            return self._sql.execute(statement, parameters, **more)
        for name in named - _SHIPPED - self._copied:
            self._copy(name)
        return self._events.execute(statement, parameters, **more)

    def _copy(self, name: str) -> None:
        """Make a copy of a small table on ClickHouse, which ends with its session."""
        table = metadata.tables[name]
        made = ", ".join(f"`{each.name}` {type_of(each)}" for each in table.columns)
        self._events.execute(
            text(f"CREATE OR REPLACE TEMPORARY TABLE `{name}` ({made}) ENGINE = Memory")
        )
        rows = self._sql.execute(select(table)).all()
        if rows:
            names = [each.name for each in table.columns]
            client_of(self._events).insert(name, [tuple(row) for row in rows], column_names=names)
        self._copied.add(name)


def _tables_of(statement: Executable) -> set[str]:
    asked = visitors.iterate(cast("Any", statement))
    return {each.name for each in asked if isinstance(each, Table)}
