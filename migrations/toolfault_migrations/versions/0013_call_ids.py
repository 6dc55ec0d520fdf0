"""The sequence that gives calls their ids has another name (PostgreSQL).

Revision: 0013
Follows: 0012

A collector from before 0012 that still runs writes no keys of events (``event_key``), so a newer
one would store the same event again. It takes the ids of calls from the sequence by its old name;
as it finds none it stores nothing and answers 503 until it is stopped. SQLite stays as it is: its
table of calls itself has each event once.
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Give the sequence its new name."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute("ALTER SEQUENCE tool_call_id_seq RENAME TO tool_call_ids")


def downgrade() -> None:
    """Give the sequence its old name."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute("ALTER SEQUENCE tool_call_ids RENAME TO tool_call_id_seq")
