"""Which compiled statements are kept for the next question."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

__all__ = ["LONGEST_KEPT", "keep_no_long_statements"]

LONGEST_KEPT: Final = 400
"""Characters of a query text whose statements are kept. The cache counts statements, not bytes, and
those of a long query are large and seldom asked again: ever new ones would fill the memory."""


def keep_no_long_statements(conn: Connection, text: str) -> None:
    """Compile every statement on *conn* anew if the query *text* is long."""
    if len(text) > LONGEST_KEPT:
        conn.execution_options(compiled_cache=None)
