"""What several collectors at once need: one bucket per quota, and cheaper rows on PostgreSQL.

Revision: 0010
Follows: 0009

A call with an issue and a chain had four foreign keys checked on PostgreSQL, each with a query of
its own: a third of what storing it cost the database. The store writes and removes these rows in
the transaction of their call, and no project is ever removed. SQLite, where a check is a lookup in
the same process, keeps them.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_CHECKED: Final = (
    ("tool_call", "project_id", "project", None),
    ("issue", "project_id", "project", None),
    ("issue", "tool_call_id", "tool_call", "CASCADE"),
    ("chain", "project_id", "project", None),
)


def upgrade() -> None:
    """Make the buckets, and drop the foreign keys on PostgreSQL."""
    op.create_table(
        "quota_bucket",
        sa.Column("project_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("events_left", sa.Float, nullable=False),
        sa.Column("filled_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_quota_bucket"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_quota_bucket_project_id_project"
        ),
    )
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, column, parent, _ in _CHECKED:
        op.drop_constraint(f"fk_{table}_{column}_{parent}", table, type_="foreignkey")


def downgrade() -> None:
    """Drop the buckets, and make the foreign keys again."""
    op.drop_table("quota_bucket")
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, column, parent, on_delete in _CHECKED:
        name = f"fk_{table}_{column}_{parent}"
        op.create_foreign_key(name, table, parent, [column], ["id"], ondelete=on_delete)
