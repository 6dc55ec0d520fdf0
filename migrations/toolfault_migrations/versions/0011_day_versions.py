"""Versions of days, by which a reader knows that what it counted of a day is still true.

Revision: 0011
Follows: 0010

A day that no transaction has raised yet has version 0, which would do; what the rollups know of it
is put in so that a version says how much a day holds at least.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "day_version",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_day_version_project_id_project"
        ),
        sa.PrimaryKeyConstraint("project_id", "day", name="pk_day_version"),
    )
    op.execute(
        "INSERT INTO day_version (project_id, day, version) SELECT project_id, period, sum(calls)"
        " FROM failure_counts WHERE \"by\" = 'tool' AND period > 0 GROUP BY project_id, period"
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("day_version")
