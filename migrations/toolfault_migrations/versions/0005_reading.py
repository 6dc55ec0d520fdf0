"""Indexes that hold what pages count, and rollups by tool and code, and by tool and argument.

Revision: 0005
Follows: 0003

The rollup of fields counted issues, which no page asks for; it now counts failures by argument.
Rows are counted from the calls that are there, as before.
"""

# ruff: noqa: S608 - constants of this file only

from __future__ import annotations

from typing import Final

from alembic import op

revision = "0005"
down_revision = "0003"

_DAY_US: Final = 86_400_000_000
_DAY: Final = (
    f"CASE WHEN c.time_source = 'none' THEN 0 ELSE c.occurred_at / {_DAY_US} * {_DAY_US} END"
)
_TARGET: Final = (
    'INSERT INTO failure_counts (project_id, "by", period, tool, name, failures, calls)'
)
_FAILURES: Final = "ix_tool_call_failures"
_OLD_FAILURES: Final = "ix_tool_call_project_id_success_occurred_at_id"
_MINUTES: Final = "ix_call_counts_minute"
_OLD_MINUTES: Final = "ix_call_counts_project_id_minute_tool"
_SIGNATURES: Final = "ix_tool_call_signature_id"
_CONVERSATIONS: Final = "ix_conversation_project_id_last_at_ended_at"
_OLD_CONVERSATIONS: Final = "ix_conversation_project_id_last_at"
_CHAINS: Final = "ix_chain_project_id_first_failed_at_id"


def upgrade() -> None:
    """Make the indexes anew and count."""
    op.create_index(
        _FAILURES,
        "tool_call",
        [
            *("project_id", "success", "occurred_at", "id", "tool", "code", "category"),
            *("audience", "detection", "time_source", "chain_id"),
        ],
    )
    op.drop_index(_OLD_FAILURES, "tool_call")
    op.create_index(_SIGNATURES, "tool_call", ["signature_id"])
    op.create_index(_CHAINS, "chain", ["project_id", "first_failed_at", "id"])
    op.create_index(
        _MINUTES, "call_counts", ["project_id", "minute", "tool", "calls", "conversations"]
    )
    op.drop_index(_OLD_MINUTES, "call_counts")
    op.create_index(_CONVERSATIONS, "conversation", ["project_id", "last_at", "ended_at"])
    op.drop_index(_OLD_CONVERSATIONS, "conversation")
    op.execute("DELETE FROM failure_counts WHERE \"by\" = 'field'")
    op.execute(
        f"{_TARGET} SELECT c.project_id, 'pair', {_DAY}, c.tool, c.code, count(*),"
        " sum(CASE WHEN c.session_id IS NULL THEN 1 ELSE 0 END)"
        " FROM tool_call c WHERE c.code IS NOT NULL GROUP BY 1, 3, 4, 5"
    )
    op.execute(
        f"{_TARGET} SELECT c.project_id, 'field', {_DAY}, c.tool, i.root_field,"
        " count(DISTINCT c.id), 0 FROM issue i JOIN tool_call c ON c.id = i.tool_call_id"
        " WHERE c.code IS NOT NULL AND i.root_field <> '' GROUP BY 1, 3, 4, 5"
    )
    op.execute(
        f"{_TARGET} SELECT c.project_id, 'field', {_DAY}, c.tool, '', count(*), 0"
        " FROM tool_call c WHERE c.code IS NOT NULL AND NOT EXISTS"
        " (SELECT 1 FROM issue i WHERE i.tool_call_id = c.id AND i.root_field <> '')"
        " GROUP BY 1, 3, 4"
    )
    day = f"f.minute / {_DAY_US} * {_DAY_US}"
    op.execute(
        f"{_TARGET} SELECT f.project_id, 'folded', {day}, '', f.tool, 0, sum(f.calls)"
        " FROM call_counts f WHERE f.tool IS NOT NULL GROUP BY 1, 3, 5"
    )
    op.execute(
        f"{_TARGET} SELECT f.project_id, 'ended', {day}, '', coalesce(f.tool, ''), 0,"
        " sum(f.conversations) FROM call_counts f GROUP BY 1, 3, 5"
    )


def downgrade() -> None:
    """Count fields as before and make the former indexes."""
    op.execute("DELETE FROM failure_counts WHERE \"by\" IN ('pair', 'field', 'folded', 'ended')")
    op.execute(
        f"{_TARGET} SELECT c.project_id, 'field', {_DAY}, c.tool, i.field_pattern, count(*), 0"
        " FROM issue i JOIN tool_call c ON c.id = i.tool_call_id GROUP BY 1, 3, 4, 5"
    )
    op.create_index(_OLD_CONVERSATIONS, "conversation", ["project_id", "last_at"])
    op.drop_index(_CONVERSATIONS, "conversation")
    op.create_index(_OLD_MINUTES, "call_counts", ["project_id", "minute", "tool"])
    op.drop_index(_MINUTES, "call_counts")
    op.drop_index(_CHAINS, "chain")
    op.drop_index(_SIGNATURES, "tool_call")
    op.create_index(_OLD_FAILURES, "tool_call", ["project_id", "success", "occurred_at", "id"])
    op.drop_index(_FAILURES, "tool_call")
