"""Tables of projects and of what people do: keys, accounts, sessions, views, fixes, the log."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from toolfault_collector.storage.tables.common import id_column, metadata, project_column

__all__ = [
    "api_key",
    "audit_log",
    "kind_state",
    "login_session",
    "picked_fix",
    "project",
    "quota_bucket",
    "saved_view",
    "user_account",
]

project = Table(
    "project",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    # What Settings changed; null where the environment of the server decides.
    Column("retention_days", Integer),  # 0 keeps everything
    Column("retention_calls", BigInteger),  # 0 sets no limit
    Column("token_prices", Text),
    Column("new_kind_days", Integer),  # how long a kind of failure counts as new
    Column("soft_rules", Text),  # JSON: rules that were switched, how and since when
    # The number of a deleted project never comes back: what was counted of it stays in memory.
    sqlite_autoincrement=True,
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Integer, primary_key=True),
    project_column(),
    Column("kind", String(8), nullable=False),  # ingest | read
    Column("key_hash", String(64), nullable=False, unique=True),  # SHA-256 of a 256-bit key
    Column("prefix", String(16), nullable=False),  # shown in lists so that a key is recognised
    Column("label", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("revoked_at", BigInteger),
)

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
    # What was predicted then; NULL where the project had too little data to predict anything.
    Column("predicted_per_week", Float),  # calls saved a week
    Column("predicted_low", Float),
    Column("predicted_high", Float),
    Column("predicted_n", Integer),  # failures that the prediction rests on
    Column("predicted_operations", Float),  # of the tool, a week
    Column("predicted_weeks", Float),  # that it rests on
    Column("predicted_squares", Float),  # of the calls saved of each conversation, added up
    UniqueConstraint("project_id", "tool", "field", "remedy"),
)

# What somebody decided about a kind of failure: one row for each kind that was ever touched. What
# follows from it (regressed, an ignore that has run out) is worked out when it is read.
kind_state = Table(
    "kind_state",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("fingerprint", String(32), primary_key=True),  # as in signature, which it outlives
    Column("state", String(16), nullable=False),  # open | acknowledged | fixed | ignored
    Column("owner", String(128)),
    Column("note", Text),
    Column("changed_by", String(128), nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    # Of what is fixed: since when, by which change, and the release that change names.
    Column("fixed_at", BigInteger),
    Column("fixed_by", String(36)),
    Column("fixed_label", String(200)),
    Column("fixed_release", String(128)),
    # Of what is ignored: since when, and until which moment or how many further failures.
    Column("ignored_at", BigInteger),
    Column("ignored_until", BigInteger),
    Column("ignored_count", Integer),
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

# What a project may still send, where there is a quota: one bucket for all collectors (`quota`).
quota_bucket = Table(
    "quota_bucket",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("events_left", Float, nullable=False),
    Column("filled_at", BigInteger, nullable=False),  # by the database's clock
)
