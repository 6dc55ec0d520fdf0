"""The SQL that a block of a test sends."""

from __future__ import annotations

from sqlalchemy import Engine, event

__all__ = ["Statements"]


class Statements:
    """Notes the text of every statement that *engine* sends inside a ``with`` block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sent: list[str] = []

    def __enter__(self) -> list[str]:
        event.listen(self._engine, "before_cursor_execute", self._note)
        return self._sent

    def __exit__(self, *_: object) -> None:
        event.remove(self._engine, "before_cursor_execute", self._note)

    def _note(self, _conn: object, _cursor: object, statement: str, *_: object) -> None:
        self._sent.append(statement)
