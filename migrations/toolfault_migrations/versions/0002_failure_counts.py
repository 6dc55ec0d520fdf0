"""Rollups of failures by code, tool and field; when a conversation was last received.

Revision: 0002
Follows: 0001

The rows are counted from the calls that are there, so that a list and its total agree at once.
Retention goes by the server's own time: that of imported conversations is years old.
"""

# ruff: noqa: S608 - constants of this file only

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_HOUR_US = 3_600_000_000
_DAY_US = 24 * _HOUR_US


def upgrade() -> None:
    """Make the table and the column, and fill both from the calls that are there."""
    op.add_column(
        "conversation",
        sa.Column("received_at", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.execute(
        "UPDATE conversation SET received_at = coalesce((SELECT max(c.received_at) FROM tool_call c"
        " WHERE c.project_id = conversation.project_id AND c.session_id = conversation.session_id),"
        " last_at)"
    )
    op.create_table(
        "failure_counts",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("by", sa.String(8), nullable=False),
        sa.Column("period", sa.BigInteger(), nullable=False),
        sa.Column("tool", sa.String(256), nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_failure_counts_project_id_project"
        ),
        sa.PrimaryKeyConstraint(
            "project_id", "by", "period", "tool", "name", name="pk_failure_counts"
        ),
    )
    target = 'INSERT INTO failure_counts (project_id, "by", period, tool, name, failures, calls)'
    hour, day = _period("c", _HOUR_US), _period("c", _DAY_US)
    op.execute(
        f"{target} SELECT c.project_id, 'code', {hour}, '', c.code, count(*), 0"
        " FROM tool_call c WHERE c.code IS NOT NULL GROUP BY 1, 3, 5"
    )
    op.execute(
        f"{target} SELECT c.project_id, 'tool', {day}, '', c.tool,"
        " sum(CASE WHEN c.success THEN 0 ELSE 1 END), count(*)"
        " FROM tool_call c GROUP BY 1, 3, 5"
    )
    op.execute(
        f"{target} SELECT c.project_id, 'field', {day}, c.tool, i.field_pattern, count(*), 0"
        " FROM issue i JOIN tool_call c ON c.id = i.tool_call_id GROUP BY 1, 3, 4, 5"
    )


def _period(call: str, width: int) -> str:
    start = f"{call}.occurred_at - {call}.occurred_at % {width}"
    return f"CASE WHEN {call}.time_source = 'none' THEN 0 ELSE {start} END"


def downgrade() -> None:
    """Drop both; they can be made again from the calls."""
    op.drop_table("failure_counts")
    with op.batch_alter_table("conversation") as batch:
        batch.drop_column("received_at")
