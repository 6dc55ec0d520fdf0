"""Settings of a project that people may change, and fixes that were picked by hand.

Revision: 0009
Follows: 0006
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0006"

_SETTINGS: Final = {
    "retention_days": sa.Integer,
    "retention_calls": sa.BigInteger,
    "token_prices": sa.Text,
}


def upgrade() -> None:
    """Add columns that are null at first: the environment decides as before."""
    for name, kind in _SETTINGS.items():
        op.add_column("project", sa.Column(name, kind))
    op.create_table(
        "picked_fix",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("project_id", sa.Integer, nullable=False),
        sa.Column("tool", sa.String(256), nullable=False),
        sa.Column("field", sa.String(256), nullable=False),
        sa.Column("remedy", sa.String(64), nullable=False),
        sa.Column("event_id", sa.String(36), nullable=False),
        sa.Column("added_by", sa.String(128), nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_picked_fix"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_picked_fix_project_id_project"
        ),
        sa.UniqueConstraint(
            "project_id",
            "tool",
            "field",
            "remedy",
            name="uq_picked_fix_project_id_tool_field_remedy",
        ),
    )


def downgrade() -> None:
    """Forget what was set and picked."""
    op.drop_table("picked_fix")
    for name in _SETTINGS:
        op.drop_column("project", name)
