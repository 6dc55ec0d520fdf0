"""Partitions on PostgreSQL: ranges of ids that retention drops as a whole.

Revision: 0012
Follows: 0011

A table of calls that is partitioned by their ids cannot have a unique index over their event ids,
so those stand in a narrow table of their own, which is not partitioned. What is stored already
becomes the first partition, without being copied. SQLite stays as it is.
"""

# ruff: noqa: S608 - constants of this file only

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

# Ids in a partition; `toolfault_collector.partitions` makes the later ones.
_WIDTH: Final = 4_194_304


class _Table(NamedTuple):
    """A table, the id by which it is partitioned, and its constraints and indexes before and now.

    ``kept`` are those that every partition has; ``plain`` those that only the table without
    partitions can have, ``parted`` those that take their place.
    """

    name: str
    key: str
    kept: dict[str, str]
    plain: dict[str, str]
    parted: dict[str, str]


_EVENTS: Final = "(project_id, event_id)"
_TABLES: Final = (
    _Table(
        "tool_call",
        "id",
        kept={
            "pk_tool_call": "PRIMARY KEY (id)",
            "ix_tool_call_project_id_session_id_tool_started_at_seq": (
                "(project_id, session_id, tool, started_at, seq)"
            ),
            "ix_tool_call_failures": (
                "(project_id, success, occurred_at, id, tool, code, category, audience,"
                " detection, time_source, chain_id)"
            ),
            "ix_tool_call_project_id_tool_occurred_at_success": (
                "(project_id, tool, occurred_at, success)"
            ),
            "ix_tool_call_signature_id": "(signature_id)",
            "ix_tool_call_project_id_chain_id": "(project_id, chain_id)",
        },
        plain={"uq_tool_call_project_id_event_id": f"UNIQUE {_EVENTS}"},
        parted={"ix_tool_call_project_id_event_id": _EVENTS},
    ),
    _Table(
        "issue",
        "tool_call_id",
        kept={
            "uq_issue_tool_call_id_position": "UNIQUE (tool_call_id, position)",
            "ix_issue_project_id_field_pattern_occurred_at": (
                "(project_id, field_pattern, occurred_at)"
            ),
        },
        plain={"pk_issue": "PRIMARY KEY (id)"},
        parted={},
    ),
)


def upgrade() -> None:
    """Make the table of keys, and what is stored the first partition."""
    if op.get_bind().dialect.name == "sqlite":
        return
    op.create_table(
        "event_key",
        sa.Column("project_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("event_id", sa.String(36), nullable=False),
    )
    op.execute(
        "INSERT INTO event_key (project_id, event_id) SELECT project_id, event_id FROM tool_call"
    )
    op.create_primary_key("pk_event_key", "event_key", ["project_id", "event_id"])
    newest = op.get_bind().execute(sa.text("SELECT last_value FROM tool_call_id_seq")).scalar_one()
    high = (newest // _WIDTH + 1) * _WIDTH
    for table in _TABLES:
        _part(table, high)
    if newest > 1:  # what is analysed while it is empty is not looked at when it has grown
        op.execute("ANALYZE event_key, tool_call, issue")


def downgrade() -> None:
    """Put all partitions into one table again, and drop the table of keys."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table in _TABLES:
        _unite(table)
    op.drop_table("event_key")


def _part(table: _Table, high: int) -> None:
    """Make *table* a partition, for the ids below *high*, of a new one of its name."""
    name, first = table.name, f"{table.name}_0"
    for each in table.plain:
        op.execute(f"ALTER TABLE {name} DROP CONSTRAINT {each}")
    op.execute(f"ALTER TABLE {name} RENAME TO {first}")
    for each in table.kept:
        op.execute(f"ALTER INDEX {each} RENAME TO {each}_0")
    op.execute(
        f"CREATE TABLE {name} (LIKE {first} INCLUDING DEFAULTS) PARTITION BY RANGE ({table.key})"
    )
    op.execute(f"ALTER SEQUENCE {name}_id_seq OWNED BY {name}.id")
    _index(name, {**table.kept, **table.parted})
    op.execute(
        f"ALTER TABLE {name} ATTACH PARTITION {first} FOR VALUES FROM (MINVALUE) TO ({high})"
    )
    bounds = f"FROM ({high}) TO ({high + _WIDTH})"
    op.execute(f"CREATE TABLE {name}_{high} PARTITION OF {name} FOR VALUES {bounds}")
    op.execute(f"CREATE TABLE {name}_default PARTITION OF {name} DEFAULT")


def _unite(table: _Table) -> None:
    """Make one table of *table* and its partitions."""
    name, parted = table.name, f"{table.name}_parted"
    op.execute(f"ALTER TABLE {name} RENAME TO {parted}")
    op.execute(f"CREATE TABLE {name} (LIKE {parted} INCLUDING DEFAULTS)")
    op.execute(f"INSERT INTO {name} SELECT * FROM {parted}")
    op.execute(f"ALTER SEQUENCE {name}_id_seq OWNED BY {name}.id")
    op.execute(f"DROP TABLE {parted}")
    _index(name, {**table.kept, **table.plain})


def _index(table: str, wanted: dict[str, str]) -> None:
    for name, definition in wanted.items():
        if definition.startswith("("):
            op.execute(f"CREATE INDEX {name} ON {table} {definition}")
        else:
            op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
