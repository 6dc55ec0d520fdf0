"""Where readers read: from the database alone, or events from ClickHouse and the rest from it.

Every question is asked of one connection, whichever it is. With ClickHouse a `_Both` stands for
it: it looks which tables a statement names and hands it to the side that has them. The few
statements over events that also name a small table of SQL (states of kinds) run on ClickHouse,
beside a copy of that table as it is in the reader's snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cached_property
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Executable, Table, select, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.sql import visitors

from toolfault_collector.clickhouse import outbox
from toolfault_collector.clickhouse.database import client_of
from toolfault_collector.clickhouse.tables import SHIPPED, type_of
from toolfault_collector.clickhouse.turns import reading_turn
from toolfault_collector.errors import CollectorError
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import metadata

__all__ = [
    "EventsUnavailable",
    "limit_statements",
    "read_events_from",
    "read_until",
    "reading",
    "sql_of",
]

_EVENTS: Final[WeakKeyDictionary[Engine, Engine]] = WeakKeyDictionary()
_SMALL: Final = frozenset({"change", "kind_state", "project"})
_SHIPPED: Final = frozenset(each.table.name for each in SHIPPED)


def read_events_from(engine: Engine, events: Engine) -> None:
    """Let `reading` of *engine* take events from *events*, an engine of ClickHouse."""
    _EVENTS[engine] = events


class EventsUnavailable(CollectorError):  # noqa: N818 - the collector's tree reads as states
    """ClickHouse does not answer; what arrives is stored all the same."""

    def __init__(self) -> None:
        super().__init__(
            "ClickHouse does not answer, so there are no figures for now. Events are stored and"
            " will be copied there; see toolfault_outbox_entries in /metrics."
        )


@contextmanager
def reading(engine: Engine, *, takes_turn: bool = True) -> Iterator[Connection]:
    """Yield what all questions of one answer are asked of: one snapshot, or one shipment.

    Args:
        engine: The database that accepts events.
        takes_turn: Whether a shipment waits for the answer. A download keeps none waiting: its rows
            are one statement, which ClickHouse answers from one state, however long that takes.

    Raises:
        EventsUnavailable: A question was for ClickHouse, which does not answer.
    """
    events = _EVENTS.get(engine)
    with read_connection(engine) as sql:
        if events is None:
            yield sql
            return
        with reading_turn(sql) if takes_turn else nullcontext(), ExitStack() as stack:
            yield cast("Connection", _Both(sql, events, stack))


def read_until(conn: Connection) -> int | None:
    """Return when what *conn* reads was true, in microseconds since the epoch.

    None: it reads all that is stored; 0: what was there at first is still being copied.
    """
    until: int | None = getattr(conn, "until", None)
    return until


def sql_of(conn: Connection) -> Connection:
    """Return the side of *conn* that accepts events, which knows all projects."""
    return getattr(conn, "sql", conn)


def limit_statements(conn: Connection, seconds: float) -> None:
    """Let no statement of ClickHouse on *conn* take longer than *seconds*; 0 is no limit."""
    both: object = conn
    if isinstance(both, _Both):
        both.limit(seconds)
    else:
        client_of(conn).set_client_setting("max_execution_time", seconds)


class _Both:
    """A connection to both sides, with what questions use of one; ClickHouse once it is asked."""

    def __init__(self, sql: Connection, events: Engine, stack: ExitStack) -> None:
        self.sql, self._engine, self._stack = sql, events, stack
        self._copied: set[str] = set()
        self._options: dict[str, Any] = {}
        self.engine, self.dialect = events, events.dialect
        self.info: dict[str, Any] = {}
        self.until = outbox.shipped_until(sql)
        self._seconds = 0.0

    @cached_property
    def events(self) -> Connection:
        """The connection to ClickHouse."""
        try:
            conn = self._stack.enter_context(self._engine.connect())
        except DBAPIError:
            raise EventsUnavailable from None
        self._stack.enter_context(conn.begin())
        limit_statements(conn, self._seconds)
        return conn.execution_options(**self._options)

    def limit(self, seconds: float) -> None:
        """Let no statement of ClickHouse take longer than *seconds*, once it is asked."""
        self._seconds = seconds
        if "events" in self.__dict__:
            limit_statements(self.events, seconds)

    @property
    def connection(self) -> Any:
        """The driver's connection to ClickHouse."""
        return self.events.connection

    def execute(self, statement: Executable, parameters: Any = None, **more: Any) -> Any:
        """Run *statement* on the side that has its tables."""
        named = _tables_of(statement)
        if not named & _SHIPPED:
            return self.sql.execute(statement, parameters, **more)
        try:
            for name in named - _SHIPPED - self._copied:
                assert name in _SMALL, f"{name} is too large to be copied for an answer"
                self._copy(name)
            return self.events.execute(statement, parameters, **more)
        except OperationalError:  # it went away after a pooled connection was opened
            raise EventsUnavailable from None

    def execution_options(self, **options: Any) -> _Both:
        """Set *options* for the statements of both sides."""
        self._options |= options
        self.sql.execution_options(**options)
        if "events" in self.__dict__:
            self.events.execution_options(**options)
        return self

    def get_execution_options(self) -> Any:
        """Return the options of SQL, which say that nothing is written."""
        return self.sql.get_execution_options()

    def get_transaction(self) -> Any:
        """Return the transaction of SQL, whose length is that of the answer."""
        return self.sql.get_transaction()

    def _copy(self, name: str) -> None:
        """Make a copy of a small table on ClickHouse, which ends with its session."""
        table = metadata.tables[name]
        made = ", ".join(f"`{each.name}` {type_of(each)}" for each in table.columns)
        self.events.execute(
            text(f"CREATE OR REPLACE TEMPORARY TABLE `{name}` ({made}) ENGINE = Memory")
        )
        rows = self.sql.execute(select(table)).all()
        if rows:
            names = [each.name for each in table.columns]
            client_of(self.events).insert(name, [tuple(row) for row in rows], column_names=names)
        self._copied.add(name)


def _tables_of(statement: Executable) -> set[str]:
    asked = visitors.iterate(cast("Any", statement))
    return {each.name for each in asked if isinstance(each, Table)}
