"""The SQL that a block of a test sends."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, Engine, event

__all__ = ["Statements"]

_VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b")


class Statements:
    """Notes the text of every statement that is sent inside a ``with`` block.

    Args:
        engine: Of which statements are noted as SQLAlchemy sends them.
        conn: An SQLite connection of *engine*, of which also those are noted that the collector
            sends through the driver; values are replaced by ``?``.
    """

    def __init__(self, engine: Engine, conn: Connection | None = None) -> None:
        self._engine = engine
        self._driver: Any = None
        if conn is not None and engine.dialect.name == "sqlite":
            self._driver = conn.connection.driver_connection
        self._sent: list[str] = []

    def __enter__(self) -> list[str]:
        if self._driver is not None:
            self._driver.set_trace_callback(lambda sql: self._sent.append(_VALUE.sub("?", sql)))
        else:
            event.listen(self._engine, "before_cursor_execute", self._note)
        return self._sent

    def __exit__(self, *_: object) -> None:
        if self._driver is not None:
            self._driver.set_trace_callback(None)
        else:
            event.remove(self._engine, "before_cursor_execute", self._note)

    def _note(self, _conn: object, _cursor: object, statement: str, *_: object) -> None:
        self._sent.append(statement)
