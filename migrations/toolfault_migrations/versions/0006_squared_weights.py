"""The squares of what sampled calls stand for: what the interval of a weighed rate needs.

Revision: 0006
Follows: 0005

Counted from the calls that are there, in thousandths, as the collector keeps them from now on.
"""

# ruff: noqa: S608 - constants of this file only

from __future__ import annotations

from typing import Final

from alembic import op

revision = "0006"
down_revision = "0005"

_DAY_US: Final = 86_400_000_000
_WEIGHT: Final = (
    "CASE WHEN c.sample_rate < 0.0001 THEN 10000000"
    " ELSE CAST(round(1000000.0 / c.sample_rate) AS BIGINT) / 1000 END"
)
_SQUARED: Final = f"({_WEIGHT}) * ({_WEIGHT}) / 1000 - 1000"


def upgrade() -> None:
    """Fill the rollup."""
    op.execute(
        'INSERT INTO failure_counts (project_id, "by", period, tool, name, failures, calls)'
        " SELECT c.project_id, 'squared',"
        f" CASE WHEN c.time_source = 'none' THEN 0 ELSE c.occurred_at / {_DAY_US} * {_DAY_US} END,"
        f" c.tool, coalesce(c.code, ''), sum(CASE WHEN c.success THEN 0 ELSE {_SQUARED} END),"
        f" sum({_SQUARED}) FROM tool_call c WHERE c.sample_rate < 1 GROUP BY 1, 3, 4, 5"
    )


def downgrade() -> None:
    """Drop the rollup."""
    op.execute("DELETE FROM failure_counts WHERE \"by\" = 'squared'")
