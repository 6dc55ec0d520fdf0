"""When a conversation was last received counts its ends; sampled calls stand for others.

Revision: 0003
Follows: 0002

Revision 0002 took the newest call alone, so a recount found conversations wrong whose end arrived
after their last call. What sampled calls stand for is kept in the rollups from now on: it is
counted here from the calls that are there.
"""

# ruff: noqa: S608 - constants of this file only

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

_DAY_US = 24 * 3_600_000_000


def upgrade() -> None:
    """Let ends count, and fill the rollup of what was not sent."""
    same = "e.project_id = conversation.project_id AND e.session_id = conversation.session_id"
    op.execute(
        "UPDATE conversation SET received_at = (SELECT max(e.received_at) FROM conversation_end e"
        f" WHERE {same}) WHERE received_at < (SELECT max(e.received_at) FROM conversation_end e"
        f" WHERE {same})"
    )
    # Where there was no call 0002 took the sender's time.
    op.execute(
        "UPDATE conversation SET received_at = (SELECT max(e.received_at) FROM conversation_end e"
        f" WHERE {same}) WHERE NOT EXISTS (SELECT 1 FROM tool_call e WHERE {same})"
        f" AND EXISTS (SELECT 1 FROM conversation_end e WHERE {same})"
    )
    day = f"c.occurred_at / {_DAY_US} * {_DAY_US}"
    unsent = (
        "CASE WHEN c.sample_rate < 0.000001 THEN 999999000000"
        " ELSE CAST(round(1000000.0 / c.sample_rate) AS BIGINT) - 1000000 END"
    )
    op.execute(
        'INSERT INTO failure_counts (project_id, "by", period, tool, name, failures, calls)'
        " SELECT c.project_id, 'unsent',"
        f" CASE WHEN c.time_source = 'none' THEN 0 ELSE {day} END, c.tool, coalesce(c.code, ''),"
        f" sum(CASE WHEN c.success THEN 0 ELSE {unsent} END), sum({unsent})"
        " FROM tool_call c WHERE c.sample_rate < 1 GROUP BY 1, 3, 4, 5"
    )


def downgrade() -> None:
    """Drop the rollup; the times stay, since they are right."""
    op.execute("DELETE FROM failure_counts WHERE \"by\" = 'unsent'")
