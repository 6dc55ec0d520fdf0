"""Tables of what people do here: accounts, sessions, saved views, fixes picked by hand, the log."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from toolfault_collector.table_parts import id_column, metadata, project_column

__all__ = ["audit_log", "login_session", "picked_fix", "saved_view", "user_account"]

user_account = Table(
    "user_account",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("role", String(16), nullable=False),  # viewer | developer | operator | admin
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
)

login_session = Table(
    "login_session",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(8), nullable=False),  # link | cookie
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("revoked_at", BigInteger),
)

saved_view = Table(
    "saved_view",
    metadata,
    Column("id", Integer, primary_key=True),
    project_column(),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE")),
    Column("name", String(128), nullable=False),
    Column("page", String(64), nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# What a person put on Fix next by hand; one row for each thing to mend.
picked_fix = Table(
    "picked_fix",
    metadata,
    id_column(),
    project_column(),
    Column("tool", String(256), nullable=False),
    Column("field", String(256), nullable=False),  # a pattern, as Fix next names it
    Column("remedy", String(64), nullable=False),
    Column("event_id", String(36), nullable=False),  # the failure it was seen on
    Column("added_by", String(128), nullable=False),
    Column("added_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "tool", "field", "remedy"),
)

audit_log = Table(
    "audit_log",
    metadata,
    id_column(),
    Column("occurred_at", BigInteger, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("action", String(64), nullable=False),
    Column("project_id", Integer),
    Column("detail", JSON),
    Index(None, "occurred_at"),
)
