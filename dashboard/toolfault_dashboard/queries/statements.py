"""Which compiled statements are kept for the next question."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

__all__ = ["LONGEST_KEPT", "keep_no_long_statements"]

LONGEST_KEPT: Final = 400
"""Characters of a query text whose statements are kept. A query of thousands of characters has
statements of a hundred kilobytes that nobody asks again, and the cache counts statements, not
bytes: with new queries again and again it grew to hundreds of megabytes."""


def keep_no_long_statements(conn: Connection, text: str) -> None:
    """Compile every statement on *conn* anew if the query *text* is long."""
    if len(text) > LONGEST_KEPT:
        conn.execution_options(compiled_cache=None)
