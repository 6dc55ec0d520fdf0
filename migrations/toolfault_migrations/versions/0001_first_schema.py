"""The first schema.

Revision: 0001
Follows: nothing

The tables are spelled out here as they were, so that this revision never changes with the code.
"""

from __future__ import annotations

from typing import Final

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

revision = "0001"
down_revision = None

NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

metadata: Final = MetaData(naming_convention=NAMING)


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _project() -> Column[int]:
    return Column("project_id", Integer, ForeignKey("project.id"), nullable=False)


project = Table(
    "project",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)

api_key = Table(
    "api_key",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("kind", String(8), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("prefix", String(16), nullable=False),
    Column("label", String(128), nullable=False, server_default=""),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("revoked_at", BigInteger),
)

user_account = Table(
    "user_account",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(128), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("password_hash", String(255)),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
)

login_session = Table(
    "login_session",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
    Column("revoked_at", BigInteger),
)

conversation = Table(
    "conversation",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("session_id", String(256), primary_key=True),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("end_event_id", String(36)),
    Column("end_calls", JSON),
    Column("success_tool", String(256)),
    Column("success_at", BigInteger),
    Column("success_seq", BigInteger),
    Column("success_turn", String(128)),
    Column("other_success_tool", String(256)),
    Column("other_success_at", BigInteger),
    Column("other_success_seq", BigInteger),
    Column("other_success_turn", String(128)),
    Column("time_source", String(8), nullable=False, server_default="client"),
    Index(None, "project_id", "last_at"),
)

conversation_end = Table(
    "conversation_end",
    metadata,
    _id(),
    _project(),
    Column("event_id", String(36), nullable=False),
    Column("session_id", String(256), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("calls", JSON, nullable=False),
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "session_id"),
)

message = Table(
    "message",
    metadata,
    _id(),
    _project(),
    Column("digest", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "digest"),
)

signature = Table(
    "signature",
    metadata,
    _id(),
    _project(),
    Column("fingerprint", String(32), nullable=False),
    Column("tool", String(256), nullable=False),
    Column("code", String(64), nullable=False),
    Column("fields", Text, nullable=False),
    Column("exception_type", String(256)),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "fingerprint"),
)

tool_call = Table(
    "tool_call",
    metadata,
    _id(),
    _project(),
    Column("event_id", String(36), nullable=False),
    Column("event_type", String(16), nullable=False),
    Column("session_id", String(256)),
    Column("turn", String(128)),
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("call_id", String(128)),
    Column("run_id", String(128)),
    Column("trace_id", String(128)),
    Column("span_id", String(128)),
    Column("tool", String(256), nullable=False),
    Column("tool_requested", String(256)),
    Column("agent", String(128)),
    Column("model", String(128)),
    Column("provider", String(128)),
    Column("environment", String(128)),
    Column("release", String(128)),
    Column("variant", String(256)),
    Column("user", String(128)),
    Column("started_at", BigInteger, nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("time_source", String(8), nullable=False, server_default="client"),
    Column("duration_ms", Float),
    Column("success", Boolean, nullable=False),
    Column("sample_rate", Float, nullable=False, server_default="1"),
    Column("detection", String(64), nullable=False, server_default="explicit"),
    Column("attempt", Integer),
    Column("chain_id", String(36)),
    Column("args_fingerprint", String(64)),
    Column("args_recorded", Boolean),
    Column("args_diff", JSON),
    Column("coercions", JSON),
    Column("validation_mode", String(16)),
    Column("validation_version", String(64)),
    Column("schema_hash", String(64)),
    Column("tokens", BigInteger),
    Column("tags", JSON),
    Column("extra", JSON),
    Column("flags", JSON),
    Column("code", String(64)),
    Column("category", String(16)),
    Column("audience", String(8)),
    Column("reason", String(64)),
    Column("kind", String(32)),
    Column("phase", String(32)),
    Column("field", String(256)),
    Column("expected", String(512)),
    Column("received", Text),
    Column("received_type", String(64)),
    Column("snippet", Text),
    Column("retryable", Boolean),
    Column("retry_hint", Text),
    Column("retry_context", JSON),
    Column("issues_total", Integer),
    Column("text_user", Text),
    Column("text_llm", Text),
    Column("text_system", Text),
    Column("exception_type", String(256)),
    Column("exception_module", String(256)),
    Column("exception_message", Text),
    Column("traceback", Text),
    Column("adapter_failed", Boolean),
    Column("signature_id", BigInteger),
    Column("message_id", BigInteger),
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "session_id", "tool", "started_at", "seq"),
    Index(None, "project_id", "success", "occurred_at", "id"),
    Index(None, "project_id", "tool", "occurred_at", "success"),
    Index(None, "project_id", "chain_id"),
)

issue = Table(
    "issue",
    metadata,
    _id(),
    _project(),
    Column(
        "tool_call_id", BigInteger, ForeignKey("tool_call.id", ondelete="CASCADE"), nullable=False
    ),
    Column("position", Integer, nullable=False),
    Column("tool", String(256), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("field", String(256), nullable=False),
    Column("field_pattern", String(256), nullable=False),
    Column("root_field", String(256), nullable=False),
    Column("code", String(64), nullable=False),
    Column("type", String(64)),
    Column("message", Text),
    Column("expected", String(512)),
    Column("received", Text),
    Column("received_type", String(64)),
    Column("near_miss", JSON),
    UniqueConstraint("tool_call_id", "position"),
    Index(None, "project_id", "field_pattern", "occurred_at"),
)

chain = Table(
    "chain",
    metadata,
    _id(),
    _project(),
    Column("chain_id", String(36), nullable=False),
    Column("session_id", String(256), nullable=False),
    Column("tool", String(256), nullable=False),
    Column("agent", String(128)),
    Column("model", String(128)),
    Column("environment", String(128)),
    Column("release", String(128)),
    Column("variant", String(256)),
    Column("started_at", BigInteger, nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("first_failed_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    Column("last_started_at", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("last_event_id", String(36), nullable=False),
    Column("failed_until", BigInteger, nullable=False),
    Column("last_failure_turn", String(128)),
    Column("first_code", String(64), nullable=False),
    Column("first_category", String(16)),
    Column("first_field", String(256)),
    Column("first_message_id", BigInteger),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("round_trips", Integer, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("recovered_at", BigInteger),
    Column("first_retry_fix", Boolean, nullable=False),
    Column("identical_repeats", Integer, nullable=False),
    Column("serial_discovery", Boolean, nullable=False),
    Column("repeat_confusion", Boolean, nullable=False),
    Column("time_lost_ms", Float, nullable=False),
    Column("tokens_lost", BigInteger),
    Column("time_source", String(8), nullable=False, server_default="client"),
    Column("state", JSON),
    UniqueConstraint("project_id", "chain_id"),
    Index(None, "project_id", "session_id", "tool", "started_at", "first_seq"),
    Index(None, "project_id", "started_at"),
    Index(None, "project_id", "tool", "started_at"),
)

call_counts = Table(
    "call_counts",
    metadata,
    _id(),
    _project(),
    Column("event_id", String(36), nullable=False),
    Column("minute", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("tool", String(256)),
    Column("agent", String(128)),
    Column("model", String(128)),
    Column("environment", String(128)),
    Column("release", String(128)),
    Column("variant", String(256)),
    Column("calls", BigInteger, nullable=False),
    Column("duration_sum_ms", Float),
    Column("duration_max_ms", Float),
    Column("duration_buckets", JSON),
    Column("repairs", JSON),
    Column("conversations", BigInteger, nullable=False),
    Column("calls_squared", BigInteger, nullable=False),
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "minute", "tool"),
)

change = Table(
    "change",
    metadata,
    _id(),
    _project(),
    Column("event_id", String(36), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("label", String(200), nullable=False),
    Column("tool", String(256)),
    Column("kind", String(16), nullable=False),
    Column("source", String(16), nullable=False),
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "occurred_at"),
)

rejected_event = Table(
    "rejected_event",
    metadata,
    _id(),
    _project(),
    Column("received_at", BigInteger, nullable=False),
    Column("event_id", String(64)),
    Column("code", String(64), nullable=False),
    Column("pointer", String(256), nullable=False),
    Column("body", Text),
    Index(None, "project_id", "received_at"),
)

saved_view = Table(
    "saved_view",
    metadata,
    Column("id", Integer, primary_key=True),
    _project(),
    Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE")),
    Column("name", String(128), nullable=False),
    Column("page", String(64), nullable=False),
    Column("query", Text, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

audit_log = Table(
    "audit_log",
    metadata,
    _id(),
    Column("occurred_at", BigInteger, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("action", String(64), nullable=False),
    Column("project_id", Integer),
    Column("detail", JSON),
    Index(None, "occurred_at"),
)


def upgrade() -> None:
    """Create every table of the first schema."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Drop every table, children first."""
    metadata.drop_all(op.get_bind())
