"""The first schema.

Revision: 0001_first_schema
Follows: nothing

On PostgreSQL calls and their issues lie in partitions, ranges of the ids of calls. No index of such
a table says that an event is there once, so event ids stand in a table of their own, ``event_key``.
Calls, issues and chains have no foreign keys there: four checks per failure cost a third of storing
it. SQLite, where a check is a lookup in the same process, has them.
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
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)

revision = "0001_first_schema"
down_revision = None

# Ids in a partition; `toolfault_collector.retention.partitions` makes the later ones.
_WIDTH: Final = 4_194_304
# Children after their parents.
_DAY: Final = 86_400_000_000  # microseconds
_OVERNIGHT: Final = text(
    f"(first_at / {_DAY} <> last_at / {_DAY} OR first_at / {_DAY} <> ended_at / {_DAY})"
)

_TABLES: Final = (
    *("project", "api_key", "user_account", "login_session", "saved_view", "picked_fix"),
    "kind_state",
    *("quota_bucket", "audit_log", "change", "conversation", "conversation_end", "tool_call"),
    *("event_key", "issue", "chain", "message", "signature", "call_counts", "failure_counts"),
    *("quarter_version", "stored_answer", "drop_counts", "rejected_event"),
    *("trace", "trace_batch", "otlp_request", "metric_calls", "metric_series"),
    *("alert_channel", "alert_rule", "alert_state", "alert_message", "alert_lease"),
)


def upgrade() -> None:
    """Make every table."""
    sqlite = _is_sqlite()
    _make_accounts()
    _make_conversations()
    _make_calls(sqlite=sqlite)
    _make_chains(sqlite=sqlite)
    _make_counts()
    _make_otlp()
    _make_alerts()
    if not sqlite:
        _make_partitions()
    elif not op.get_context().as_sql:
        _put_indexes_in_order()


def _put_indexes_in_order() -> None:
    """Make the indexes again, by name from the last to the first.

    SQLite takes the one that was made first where it holds several for equally good, and SQLAlchemy
    makes those of a table in no order: the same question took 0.05 s of one database and 2.3 s of
    another.
    """
    conn = op.get_bind()
    made = conn.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        " ORDER BY name DESC"
    ).all()
    for name, _ in made:
        conn.exec_driver_sql(f'DROP INDEX "{name}"')
    for _, statement in made:
        conn.exec_driver_sql(statement)


def downgrade() -> None:
    """Drop every table."""
    for name in reversed(_TABLES):
        if name != "event_key" or not _is_sqlite():
            op.drop_table(name)


def _is_sqlite() -> bool:
    return op.get_context().dialect.name == "sqlite"


def _id() -> Column[int]:
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def _project(*, checked: bool = True) -> Column[int]:
    parent = [ForeignKey("project.id")] if checked else []
    return Column("project_id", Integer, *parent, nullable=False)


def _context() -> list[Column[str]]:
    lengths = {"agent": 128, "model": 128, "environment": 128, "release": 128, "variant": 256}
    return [Column(name, String(length)) for name, length in lengths.items()]


def _make_accounts() -> None:
    op.create_table(
        "project",
        Column("id", Integer, primary_key=True),
        Column("name", String(128), nullable=False, unique=True),
        Column("created_at", BigInteger, nullable=False),
        Column("retention_days", Integer),
        Column("retention_calls", BigInteger),
        Column("token_prices", Text),
        Column("new_kind_days", Integer),
        Column("soft_rules", Text),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "api_key",
        Column("id", Integer, primary_key=True),
        _project(),
        Column("kind", String(8), nullable=False),
        Column("key_hash", String(64), nullable=False, unique=True),
        Column("prefix", String(16), nullable=False),
        Column("label", String(128), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("last_used_at", BigInteger),
        Column("revoked_at", BigInteger),
    )
    op.create_table(
        "user_account",
        Column("id", Integer, primary_key=True),
        Column("name", String(128), nullable=False, unique=True),
        Column("role", String(16), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("disabled_at", BigInteger),
    )
    op.create_table(
        "login_session",
        Column("id", Integer, primary_key=True),
        Column(
            "user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE"), nullable=False
        ),
        Column("kind", String(8), nullable=False),
        Column("token_hash", String(64), nullable=False, unique=True),
        Column("created_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        Column("used_at", BigInteger),
        Column("revoked_at", BigInteger),
    )
    op.create_table(
        "saved_view",
        Column("id", Integer, primary_key=True),
        _project(),
        Column("user_id", Integer, ForeignKey("user_account.id", ondelete="CASCADE")),
        Column("name", String(128), nullable=False),
        Column("page", String(64), nullable=False),
        Column("query", Text, nullable=False),
        Column("shared", Boolean, nullable=False),
        Column("created_at", BigInteger, nullable=False),
    )
    op.create_table(
        "picked_fix",
        _id(),
        _project(),
        Column("tool", String(256), nullable=False),
        Column("field", String(256), nullable=False),
        Column("remedy", String(64), nullable=False),
        Column("event_id", String(36), nullable=False),
        Column("added_by", String(128), nullable=False),
        Column("added_at", BigInteger, nullable=False),
        Column("predicted_per_week", Float),
        Column("predicted_low", Float),
        Column("predicted_high", Float),
        Column("predicted_n", Integer),
        Column("predicted_operations", Float),
        Column("predicted_weeks", Float),
        Column("predicted_squares", Float),
        UniqueConstraint("project_id", "tool", "field", "remedy"),
    )
    op.create_table(
        "kind_state",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("fingerprint", String(32), primary_key=True),
        Column("state", String(16), nullable=False),
        Column("owner", String(128)),
        Column("note", Text),
        Column("changed_by", String(128), nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Column("fixed_at", BigInteger),
        Column("fixed_by", String(36)),
        Column("fixed_label", String(200)),
        Column("fixed_release", String(128)),
        Column("ignored_at", BigInteger),
        Column("ignored_until", BigInteger),
        Column("ignored_count", Integer),
    )
    op.create_table(
        "quota_bucket",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("events_left", Float, nullable=False),
        Column("filled_at", BigInteger, nullable=False),
    )
    op.create_table(
        "audit_log",
        _id(),
        Column("occurred_at", BigInteger, nullable=False),
        Column("actor", String(128), nullable=False),
        Column("action", String(64), nullable=False),
        Column("project_id", Integer),
        Column("detail", JSON),
        Index(None, "occurred_at"),
    )
    op.create_table(
        "change",
        _id(),
        _project(),
        Column("event_id", String(36), nullable=False),
        Column("occurred_at", BigInteger, nullable=False),
        Column("received_at", BigInteger, nullable=False),
        Column("label", String(200), nullable=False),
        Column("tool", String(256)),
        Column("kind", String(16), nullable=False),
        Column("source", String(16), nullable=False),
        Column("flags", JSON),
        UniqueConstraint("project_id", "event_id"),
        Index(None, "project_id", "occurred_at"),
    )


def _make_conversations() -> None:
    op.create_table(
        "conversation",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("session_id", String(256), primary_key=True),
        Column("first_at", BigInteger, nullable=False),
        Column("last_at", BigInteger, nullable=False),
        Column("ended_at", BigInteger),
        Column("end_event_id", String(36)),
        Column("end_calls", JSON),
        Column("ends", Integer, nullable=False, server_default="0"),
        Column("successes", JSON),
        Column("time_source", String(8), nullable=False, server_default="client"),
        Column("rung", String(16), nullable=False, server_default="none"),
        Column("received_at", BigInteger, nullable=False, server_default="0"),
        Index(
            "ix_conversation_last",
            *("project_id", "last_at", "ended_at", "first_at", "ends", "rung"),
        ),
        Index(None, "project_id", "received_at"),
        Index(
            "ix_conversation_overnight",
            *("project_id", "last_at", "first_at"),
            sqlite_where=_OVERNIGHT,
            postgresql_where=_OVERNIGHT,
        ),
    )
    op.create_table(
        "conversation_end",
        _id(),
        _project(),
        Column("event_id", String(36), nullable=False),
        Column("session_id", String(256), nullable=False),
        Column("occurred_at", BigInteger, nullable=False),
        Column("received_at", BigInteger, nullable=False),
        Column("calls", JSON, nullable=False),
        Column("flags", JSON),
        UniqueConstraint("project_id", "event_id"),
        Index(None, "project_id", "session_id"),
    )


def _make_calls(*, sqlite: bool) -> None:
    once: list[UniqueConstraint | Index] = [UniqueConstraint("project_id", "event_id")]
    parent = [ForeignKey("tool_call.id", ondelete="CASCADE")]
    if not sqlite:
        once, parent = [Index(None, "project_id", "event_id")], []
    op.create_table(
        "tool_call",
        _id(),
        _project(checked=sqlite),
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
        *_context(),
        Column("provider", String(128)),
        Column("user", String(128)),
        Column("framework", String(64)),
        Column("side", String(16)),
        Column("conversation_rung", String(16)),
        Column("started_at", BigInteger, nullable=False),
        Column("occurred_at", BigInteger, nullable=False),
        Column("received_at", BigInteger, nullable=False),
        Column("time_source", String(8), nullable=False, server_default="client"),
        Column("duration_ms", Float),
        Column("success", Boolean, nullable=False),
        Column("sample_rate", Float, nullable=False, server_default="1"),
        Column("detection", String(64), nullable=False, server_default="explicit"),
        Column("derived_by", String(64)),
        Column("chain_id", String(36)),
        Column("attempt", Integer),
        Column("chain_marks", Integer),
        Column("lost_us", BigInteger),
        Column("args_fingerprint", String(64)),
        Column("args_recorded", Boolean),
        Column("args_diff", JSON),
        Column("coercions", JSON),
        Column("phantom_arguments", JSON),
        Column("idempotent", Boolean),
        Column("repeated", Boolean),
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
        *once,
        Index(None, "project_id", "session_id", "tool", "started_at", "seq"),
        Index(
            "ix_tool_call_failures",
            *("project_id", "success", "occurred_at", "id", "tool", "code", "category", "audience"),
            *("detection", "time_source", "chain_id"),
        ),
        Index(None, "project_id", "tool", "occurred_at", "success"),
        Index(
            "ix_tool_call_signature",
            *("signature_id", "occurred_at"),
            sqlite_where=text("signature_id IS NOT NULL"),
            postgresql_where=text("signature_id IS NOT NULL"),
        ),
        Index(None, "project_id", "chain_id"),
        Index(None, "project_id", "received_at", "id"),
        Index(
            "ix_tool_call_alone",
            *("project_id", "received_at", "id"),
            sqlite_where=text("session_id IS NULL"),
            postgresql_where=text("session_id IS NULL"),
        ),
        Index(
            "ix_tool_call_phantom",
            *("project_id", "tool", "occurred_at"),
            sqlite_where=text("phantom_arguments IS NOT NULL"),
            postgresql_where=text("phantom_arguments IS NOT NULL"),
        ),
        Index(
            "ix_tool_call_executed",
            *("project_id", "session_id", "tool", "args_fingerprint", "occurred_at", "id"),
            sqlite_where=text("args_fingerprint IS NOT NULL AND success = 1"),
            postgresql_where=text("args_fingerprint IS NOT NULL AND success"),
        ),
        Index(
            "ix_tool_call_trace",
            *("project_id", "trace_id"),
            sqlite_where=text("trace_id IS NOT NULL"),
            postgresql_where=text("trace_id IS NOT NULL"),
        ),
        Index(
            "ix_tool_call_server",
            *("project_id",),
            sqlite_where=text("side = 'server'"),
            postgresql_where=text("side = 'server'"),
        ),
        postgresql_partition_by="RANGE (id)",
    )
    if not sqlite:
        op.create_table(
            "event_key",
            Column("project_id", Integer, primary_key=True, autoincrement=False),
            Column("event_id", String(36), primary_key=True),
        )
    op.create_table(
        "issue",
        _project(checked=sqlite),
        Column("tool_call_id", BigInteger, *parent, primary_key=True),
        Column("position", Integer, primary_key=True),
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
        Index(None, "project_id", "field_pattern", "occurred_at"),
        postgresql_partition_by="RANGE (tool_call_id)",
    )


def _make_chains(*, sqlite: bool) -> None:
    op.create_table(
        "chain",
        _id(),
        _project(checked=sqlite),
        Column("chain_id", String(36), nullable=False),
        Column("session_id", String(256), nullable=False),
        Column("tool", String(256), nullable=False),
        *_context(),
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
        Column("other_calls", Integer, nullable=False, server_default="0"),
        Column("outcome", String(16), nullable=False),
        Column("settles_at", BigInteger, nullable=False),
        Column("recovered_at", BigInteger),
        Column("first_retry_fix", Boolean, nullable=False),
        Column("identical_repeats", Integer, nullable=False),
        Column("serial_discovery", Boolean, nullable=False),
        Column("repeat_confusion", Boolean, nullable=False),
        Column("time_lost_ms", Float, nullable=False),
        Column("tokens_lost", BigInteger),
        Column("serial_discoveries", Integer, nullable=False),
        Column("repeat_confusions", Integer, nullable=False),
        Column("token_reports", Integer, nullable=False),
        Column("time_source", String(8), nullable=False, server_default="client"),
        Column("state", JSON),
        UniqueConstraint("project_id", "chain_id"),
        Index(None, "project_id", "session_id", "tool", "started_at", "first_seq"),
        Index(None, "project_id", "started_at"),
        Index(None, "project_id", "first_failed_at", "id"),
        Index(None, "project_id", "tool", "started_at"),
        Index(
            "ix_chain_unresolved",
            *("project_id", "session_id"),
            sqlite_where=text("recovered_at IS NULL"),
            postgresql_where=text("recovered_at IS NULL"),
        ),
        Index(
            "ix_chain_settles_at",
            *("project_id", "settles_at"),
            sqlite_where=text("settles_at > 0"),
            postgresql_where=text("settles_at > 0"),
        ),
    )


def _make_counts() -> None:
    op.create_table(
        "message",
        _id(),
        _project(),
        Column("digest", String(32), nullable=False),
        Column("text", Text, nullable=False),
        Column("first_at", BigInteger, nullable=False),
        Column("last_at", BigInteger, nullable=False),
        UniqueConstraint("project_id", "digest"),
    )
    op.create_table(
        "signature",
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
    op.create_table(
        "call_counts",
        _id(),
        _project(),
        Column("event_id", String(36), nullable=False),
        Column("minute", BigInteger, nullable=False),
        Column("received_at", BigInteger, nullable=False),
        Column("tool", String(256)),
        *_context(),
        Column("calls", BigInteger, nullable=False),
        Column("duration_sum_ms", Float),
        Column("duration_max_ms", Float),
        Column("duration_buckets", JSON),
        Column("repairs", JSON),
        Column("phantom_arguments", JSON),
        Column("repeated", BigInteger),
        Column("conversations", BigInteger, nullable=False),
        Column("calls_squared", BigInteger, nullable=False),
        Column("flags", JSON),
        UniqueConstraint("project_id", "event_id"),
        Index("ix_call_counts_minute", "project_id", "minute", "tool", "calls", "conversations"),
        Index(
            "ix_call_counts_phantom",
            *("project_id", "tool", "minute"),
            sqlite_where=text("phantom_arguments IS NOT NULL"),
            postgresql_where=text("phantom_arguments IS NOT NULL"),
        ),
        Index(
            "ix_call_counts_repeated",
            *("project_id", "tool", "minute"),
            sqlite_where=text("repeated IS NOT NULL"),
            postgresql_where=text("repeated IS NOT NULL"),
        ),
    )
    op.create_table(
        "failure_counts",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("by", String(8), primary_key=True),
        Column("period", BigInteger, primary_key=True),
        Column("tool", String(256), primary_key=True),
        Column("name", String(256), primary_key=True),
        Column("failures", BigInteger, nullable=False),
        Column("calls", BigInteger, nullable=False),
    )
    op.create_table(
        "quarter_version",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("starts_at", BigInteger, primary_key=True),
        Column("version", BigInteger, nullable=False),
    )
    op.create_table(
        "stored_answer",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("question", String(32), primary_key=True),
        Column("starts_at", BigInteger, primary_key=True),
        Column("ends_at", BigInteger, primary_key=True),
        Column("version", BigInteger, nullable=False),
        Column("counted_by", String(32), nullable=False),
        Column("answer", LargeBinary, nullable=False),
    )
    op.create_table(
        "drop_counts",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("period", BigInteger, primary_key=True),
        Column("reason", String(64), primary_key=True),
        Column("events", BigInteger, nullable=False),
    )
    op.create_table(
        "rejected_event",
        _id(),
        _project(),
        Column("received_at", BigInteger, nullable=False),
        Column("event_id", String(64)),
        Column("code", String(64), nullable=False),
        Column("pointer", String(256), nullable=False),
        Column("body", Text),
        Index(None, "project_id", "received_at"),
        Index(None, "project_id", "event_id"),
    )


def _make_otlp() -> None:
    op.create_table(
        "trace",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("trace_id", String(32), primary_key=True),
        Column("received_at", BigInteger, nullable=False),
        Column("spans", Integer, nullable=False),
        Column("size", Integer, nullable=False),
        Column("reads", Integer, nullable=False),
        Column("calls", JSON),
        Index(None, "project_id", "received_at"),
    )
    op.create_table(
        "trace_batch",
        _id(),
        _project(),
        Column("trace_id", String(32), nullable=False),
        Column("spans", Integer, nullable=False),
        Column("body", LargeBinary, nullable=False),
        Index(None, "project_id", "trace_id"),
    )
    op.create_table(
        "otlp_request",
        _id(),
        _project(),
        Column("received_at", BigInteger, nullable=False),
        Column("signal", String(8), nullable=False),
        Column("encoding", String(8), nullable=False),
        Column("sender", String(128)),
        Column("items", Integer, nullable=False),
        Column("calls", Integer, nullable=False),
        Column("rejected", Integer, nullable=False),
        Column("detail", JSON),
        Index(None, "project_id", "id"),
    )
    op.create_table(
        "metric_calls",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("day", BigInteger, primary_key=True),
        Column("source", String(16), primary_key=True),
        Column("tool", String(256), primary_key=True),
        Column("error_type", String(256), primary_key=True),
        Column("calls", BigInteger, nullable=False),
    )
    op.create_table(
        "metric_series",
        Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
        Column("digest", String(32), primary_key=True),
        Column("started_at", BigInteger, nullable=False),
        Column("ended_at", BigInteger, nullable=False),
        Column("calls", BigInteger, nullable=False),
        Index(None, "ended_at"),
    )


def _make_alerts() -> None:
    op.create_table(
        "alert_channel",
        _id(),
        _project(),
        Column("name", String(128), nullable=False),
        Column("kind", String(16), nullable=False),
        Column("url", Text, nullable=False),
        Column("secret", String(128)),
        Column("created_by", String(128), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("failures", Integer, nullable=False),
        Column("error", String(256)),
        Column("retry_at", BigInteger, nullable=False),
        Column("sent_at", BigInteger),
        UniqueConstraint("project_id", "name"),
    )
    op.create_table(
        "alert_rule",
        _id(),
        _project(),
        Column("name", String(128), nullable=False),
        Column("condition", String(24), nullable=False),
        Column("query", Text, nullable=False),
        Column("audience", String(8), nullable=False),
        Column("threshold", Float, nullable=False),
        Column("least", Integer, nullable=False),
        Column("window_us", BigInteger, nullable=False),
        Column("channel_id", BigInteger, ForeignKey("alert_channel.id")),
        Column("quiet", String(16), nullable=False),
        Column("zone", String(64), nullable=False),
        Column("snoozed_until", BigInteger, nullable=False),
        Column("created_by", String(128), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("evaluated_at", BigInteger, nullable=False),
        Column("seen", String(64), nullable=False),
        Column("figure", JSON),
        Column("problem", String(256)),
        UniqueConstraint("project_id", "name"),
    )
    op.create_table(
        "alert_state",
        _project(),
        Column(
            "rule_id",
            BigInteger,
            ForeignKey("alert_rule.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        Column("subject", String(64), primary_key=True),
        Column("phase", String(8), nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("clear_since", BigInteger),
        Column("told", Boolean, nullable=False),
        Column("told_until", BigInteger, nullable=False),
    )
    op.create_table(
        "alert_message",
        _id(),
        _project(),
        Column("message_id", String(36), nullable=False, unique=True),
        Column("rule_id", BigInteger, nullable=False),
        Column("rule_name", String(128), nullable=False),
        Column("channel_id", BigInteger, ForeignKey("alert_channel.id", ondelete="SET NULL")),
        Column("channel_name", String(128), nullable=False),
        Column("event", String(8), nullable=False),
        Column("subject", String(64), nullable=False),
        Column("title", Text, nullable=False),
        Column("body", Text, nullable=False),
        Column("query", Text, nullable=False),
        Column("decided_at", BigInteger, nullable=False),
        Column("not_before", BigInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("sent_at", BigInteger),
        Column("error", String(256)),
        Index(None, "sent_at", "not_before"),
        Index(None, "project_id", "decided_at"),
    )
    op.create_table(
        "alert_lease",
        Column("name", String(16), primary_key=True),
        Column("holder", String(64), nullable=False),
        Column("expires_at", BigInteger, nullable=False),
    )


def _make_partitions() -> None:
    """Make the first two, and what takes the rows of no other."""
    for table in ("tool_call", "issue"):
        part = f"CREATE TABLE {table}_{{}} PARTITION OF {table}"
        op.execute(part.format(0) + f" FOR VALUES FROM (MINVALUE) TO ({_WIDTH})")
        op.execute(part.format(_WIDTH) + f" FOR VALUES FROM ({_WIDTH}) TO ({2 * _WIDTH})")
        op.execute(part.format("default") + " DEFAULT")
