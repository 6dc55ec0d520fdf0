"""Tables of what agents sent, and what is counted of it."""

from __future__ import annotations

from typing import Final

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
    Table,
    Text,
    UniqueConstraint,
    text,
)

from toolfault_collector.storage.tables.common import (
    POSTGRESQL_ONLY,
    SQLITE_ONLY,
    id_column,
    metadata,
    project_column,
)

__all__ = [
    "OVERNIGHT",
    "call_counts",
    "chain",
    "change",
    "conversation",
    "conversation_end",
    "drop_counts",
    "event_key",
    "failure_counts",
    "issue",
    "message",
    "quarter_version",
    "rejected_event",
    "signature",
    "stored_answer",
    "tool_call",
]


def _context() -> list[Column[str]]:
    """Return what tells agents apart."""
    lengths = {"agent": 128, "model": 128, "environment": 128, "release": 128, "variant": 256}
    return [Column(name, String(length)) for name, length in lengths.items()]


_DAY: Final = 86_400_000_000  # microseconds
OVERNIGHT: Final = text(
    f"(first_at / {_DAY} <> last_at / {_DAY} OR first_at / {_DAY} <> ended_at / {_DAY})"
)
"""Condition on `conversation` alone: its calls and its end are not of one day (UTC). They are few;
a statement that repeats these words finds them by the index of them."""

conversation = Table(
    "conversation",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("session_id", String(256), primary_key=True),
    Column("first_at", BigInteger, nullable=False),  # earliest start of a call
    Column("last_at", BigInteger, nullable=False),  # latest occurred_at: idle time counts from here
    Column("ended_at", BigInteger),  # latest conversation_end; counts when >= last_at
    Column("end_event_id", String(36)),
    Column("end_calls", JSON),  # {tool: calls}, the sum over its conversation_end events
    Column("ends", Integer, nullable=False, server_default="0"),  # how many of these
    # What says whether another tool succeeded after a chain: [[started_at, seq, tool, turn], ...]
    Column("successes", JSON),
    Column("time_source", String(8), nullable=False, server_default="client"),
    # What named it, to the sender of any call the best (`protocol.ladder`); none without a call.
    Column("rung", String(16), nullable=False, server_default="none"),
    Column("received_at", BigInteger, nullable=False, server_default="0"),
    # Conversations of a window are counted without a look at the rest of a row, its JSON.
    Index(
        "ix_conversation_last",
        *("project_id", "last_at", "ended_at", "first_at", "ends", "rung"),
    ),
    Index(None, "project_id", "received_at"),  # for retention
    Index(
        "ix_conversation_overnight",
        *("project_id", "last_at", "first_at"),
        sqlite_where=OVERNIGHT,
        postgresql_where=OVERNIGHT,
    ),
)

# One row per conversation_end event: a resend is known, and several ends of one add up.
conversation_end = Table(
    "conversation_end",
    metadata,
    id_column(),
    project_column(),
    Column("event_id", String(36), nullable=False),
    Column("session_id", String(256), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("calls", JSON, nullable=False),  # {tool: calls}
    Column("flags", JSON),  # as in tool_call
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "session_id"),
)

message = Table(
    "message",
    metadata,
    id_column(),
    project_column(),
    Column("digest", String(32), nullable=False),
    Column("text", Text, nullable=False),  # normalised LLM-visible text
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "digest"),
)

signature = Table(
    "signature",
    metadata,
    id_column(),
    project_column(),
    Column("fingerprint", String(32), nullable=False),
    Column("tool", String(256), nullable=False),
    Column("code", String(64), nullable=False),
    Column("fields", Text, nullable=False),  # JSON list of [field pattern, issue code]
    Column("exception_type", String(256)),
    Column("first_at", BigInteger, nullable=False),
    Column("last_at", BigInteger, nullable=False),
    UniqueConstraint("project_id", "fingerprint"),
)

_ALONE: Final = text("session_id IS NULL")
_TRACED: Final = text("trace_id IS NOT NULL")
_SIGNED: Final = text("signature_id IS NOT NULL")
_PHANTOM: Final = text("phantom_arguments IS NOT NULL")
_EXECUTED: Final = "args_fingerprint IS NOT NULL AND success"
_REPEATED: Final = text("repeated IS NOT NULL")
_OF_SERVERS: Final = text("side = 'server'")

tool_call = Table(
    "tool_call",
    metadata,
    id_column(),
    project_column(**SQLITE_ONLY),
    Column("event_id", String(36), nullable=False),
    Column("event_type", String(16), nullable=False),  # tool_call | tool_error
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
    Column("framework", String(64)),  # whose integration saw the call
    Column("side", String(16)),  # agent | server (of tools); see `same_calls`
    Column("conversation_rung", String(16)),  # as it was told; see `protocol.ladder.rung_of`
    Column("started_at", BigInteger, nullable=False),
    Column("occurred_at", BigInteger, nullable=False),  # end of the call
    Column("received_at", BigInteger, nullable=False),
    Column("time_source", String(8), nullable=False, server_default="client"),  # or server, import
    Column("duration_ms", Float),
    Column("success", Boolean, nullable=False),
    Column("sample_rate", Float, nullable=False, server_default="1"),
    Column("detection", String(64), nullable=False, server_default="explicit"),  # or soft:<rule>
    # Rule by which an importer made code, category and texts out of what the model saw.
    Column("derived_by", String(64)),
    # Computed here (`chains.fold`): event id of the chain's first failure; position in the chain,
    # counted to 64, 65 is every later one; what the call is to the chain; time that it cost.
    Column("chain_id", String(36)),
    Column("attempt", Integer),
    Column("chain_marks", Integer),
    Column("lost_us", BigInteger),
    Column("args_fingerprint", String(64)),
    Column("args_recorded", Boolean),
    Column("args_diff", JSON),
    Column("coercions", JSON),
    Column("phantom_arguments", JSON),  # list of names that the tool ignored
    Column("idempotent", Boolean),  # as the tool declares
    Column("repeated", Boolean),  # the sender knows that the same call was executed before
    Column("validation_mode", String(16)),
    Column("validation_version", String(64)),
    Column("schema_hash", String(64)),
    Column("tokens", BigInteger),
    Column("tags", JSON),
    Column("extra", JSON),  # unknown members of the event, within caps
    Column("flags", JSON),  # what was changed on the way in: clock_skew, truncated:<member>, ...
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
    UniqueConstraint("project_id", "event_id", info=SQLITE_ONLY),
    Index(None, "project_id", "event_id", info=POSTGRESQL_ONLY),
    Index(None, "project_id", "session_id", "tool", "started_at", "seq"),
    # What lists and counts ask of failures; an index row of PostgreSQL has room for 2,700 bytes.
    Index(
        "ix_tool_call_failures",
        *("project_id", "success", "occurred_at", "id", "tool", "code", "category", "audience"),
        *("detection", "time_source", "chain_id"),
    ),
    Index(None, "project_id", "tool", "occurred_at", "success"),
    # The failures of a kind in time (`kind_state`); successes have no signature and no entry.
    Index(
        "ix_tool_call_signature",
        *("signature_id", "occurred_at"),
        sqlite_where=_SIGNED,
        postgresql_where=_SIGNED,
    ),
    Index(None, "project_id", "chain_id"),
    Index(None, "project_id", "received_at", "id"),  # for retention; that of calls alone as well
    Index(
        "ix_tool_call_alone",
        *("project_id", "received_at", "id"),
        sqlite_where=_ALONE,
        postgresql_where=_ALONE,
    ),
    # Calls with phantom arguments are few and looked for by themselves.
    Index(
        "ix_tool_call_phantom",
        *("project_id", "tool", "occurred_at"),
        sqlite_where=_PHANTOM,
        postgresql_where=_PHANTOM,
    ),
    # Whether the same call was executed before in its conversation.
    Index(
        "ix_tool_call_executed",
        *("project_id", "session_id", "tool", "args_fingerprint", "occurred_at", "id"),
        sqlite_where=text(f"{_EXECUTED} = 1"),
        postgresql_where=text(_EXECUTED),
    ),
    # What a trace and the SDK report of one call (`same_calls`).
    Index(
        "ix_tool_call_trace",
        *("project_id", "trace_id"),
        sqlite_where=_TRACED,
        postgresql_where=_TRACED,
    ),
    # Whether any server of tools reports its side: most projects have none, and no entry.
    Index(
        "ix_tool_call_server",
        *("project_id",),
        sqlite_where=_OF_SERVERS,
        postgresql_where=_OF_SERVERS,
    ),
    postgresql_partition_by="RANGE (id)",
)

# The events of ``tool_call``, each once: no index of its partitions (`partitions`) can say that.
event_key = Table(
    "event_key",
    metadata,
    Column("project_id", Integer, primary_key=True, autoincrement=False),
    Column("event_id", String(36), primary_key=True),
    info=POSTGRESQL_ONLY,
)

issue = Table(
    "issue",
    metadata,
    project_column(**SQLITE_ONLY),
    Column(
        "tool_call_id",
        BigInteger,
        ForeignKey("tool_call.id", ondelete="CASCADE", info=SQLITE_ONLY),
        primary_key=True,
    ),
    Column("position", Integer, primary_key=True),
    Column("tool", String(256), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("field", String(256), nullable=False),
    Column("field_pattern", String(256), nullable=False),  # list indexes as *
    Column("root_field", String(256), nullable=False),
    Column("code", String(64), nullable=False),
    Column("type", String(64)),  # the validator's own name of the error
    Column("message", Text),
    Column("expected", String(512)),
    Column("received", Text),
    Column("received_type", String(64)),
    Column("near_miss", JSON),  # list of remedies that would have accepted the value
    Index(None, "project_id", "field_pattern", "occurred_at"),
    postgresql_partition_by="RANGE (tool_call_id)",
)

chain = Table(
    "chain",
    metadata,
    id_column(),
    project_column(**SQLITE_ONLY),
    Column("chain_id", String(36), nullable=False),  # event id of its first failure
    Column("session_id", String(256), nullable=False),
    Column("tool", String(256), nullable=False),
    *_context(),
    Column("started_at", BigInteger, nullable=False),  # start of the first failure
    Column("first_seq", BigInteger, nullable=False),  # its seq: orders chains of untimed calls
    Column("first_failed_at", BigInteger, nullable=False),  # end of the first failure
    Column("last_at", BigInteger, nullable=False),  # latest end of its last members
    Column("last_started_at", BigInteger, nullable=False),  # order key of the last member
    Column("last_seq", BigInteger, nullable=False),
    Column("last_event_id", String(36), nullable=False),
    Column("failed_until", BigInteger, nullable=False),  # latest end of its last 64 failures
    Column("last_failure_turn", String(128)),
    Column("first_code", String(64), nullable=False),
    Column("first_category", String(16)),
    Column("first_field", String(256)),
    Column("first_message_id", BigInteger),
    Column("calls", Integer, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("round_trips", Integer, nullable=False),
    # Calls of other tools that it cost, at most 20 (`chains.other_calls`).
    Column("other_calls", Integer, nullable=False, server_default="0"),
    # A chain is open until `settles_at`, then it has its outcome. Over already: 0.
    Column("outcome", String(16), nullable=False),  # recovered | switched | abandoned
    Column("settles_at", BigInteger, nullable=False),
    Column("recovered_at", BigInteger),
    Column("first_retry_fix", Boolean, nullable=False),
    Column("identical_repeats", Integer, nullable=False),
    Column("serial_discovery", Boolean, nullable=False),
    Column("repeat_confusion", Boolean, nullable=False),
    Column("time_lost_ms", Float, nullable=False),
    Column("tokens_lost", BigInteger),
    # How many calls these are of, so that a late call can be added and a chain divided.
    Column("serial_discoveries", Integer, nullable=False),
    Column("repeat_confusions", Integer, nullable=False),
    Column("token_reports", Integer, nullable=False),
    Column("time_source", String(8), nullable=False, server_default="client"),
    Column("state", JSON),  # what the next call of the chain needs; null once recovered
    UniqueConstraint("project_id", "chain_id"),
    Index(None, "project_id", "session_id", "tool", "started_at", "first_seq"),
    Index(None, "project_id", "started_at"),
    Index(None, "project_id", "first_failed_at", "id"),
    Index(None, "project_id", "tool", "started_at"),
    # Chains without a success: those of a conversation, and those that are open still.
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

call_counts = Table(
    "call_counts",
    metadata,
    id_column(),
    project_column(),
    Column("event_id", String(36), nullable=False),
    Column("minute", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("tool", String(256)),  # null: over all tools, carries conversations and calls_squared
    *_context(),
    Column("calls", BigInteger, nullable=False),
    Column("duration_sum_ms", Float),
    Column("duration_max_ms", Float),
    Column("duration_buckets", JSON),  # [[upper bound in ms, calls], ...]
    Column("repairs", JSON),  # {field: repairs}
    Column("phantom_arguments", JSON),  # {name: calls}
    Column("repeated", BigInteger),  # calls that were executed before
    Column("conversations", BigInteger, nullable=False),
    Column("calls_squared", BigInteger, nullable=False),
    Column("flags", JSON),  # as in tool_call
    UniqueConstraint("project_id", "event_id"),
    Index("ix_call_counts_minute", "project_id", "minute", "tool", "calls", "conversations"),
    Index(
        "ix_call_counts_phantom",
        *("project_id", "tool", "minute"),
        sqlite_where=_PHANTOM,
        postgresql_where=_PHANTOM,
    ),
    Index(
        "ix_call_counts_repeated",
        *("project_id", "tool", "minute"),
        sqlite_where=_REPEATED,
        postgresql_where=_REPEATED,
    ),
)

# Numerators, kept in the transaction of the calls they count; `rollups` says what by what.
failure_counts = Table(
    "failure_counts",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("by", String(8), primary_key=True),
    Column("period", BigInteger, primary_key=True),
    Column("tool", String(256), primary_key=True),
    Column("name", String(256), primary_key=True),
    Column("failures", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)

# What was counted of a quarter of a day stays true while its version does; see `cache_versions`.
quarter_version = Table(
    "quarter_version",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("starts_at", BigInteger, primary_key=True),  # -1 for every quarter
    Column("version", BigInteger, nullable=False),
)

# What readers counted of days and quarters of days that are over; true while the version of the
# day is the one it was counted at (`toolfault_dashboard.queries.counting.stored_answers`).
stored_answer = Table(
    "stored_answer",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("question", String(32), primary_key=True),  # digest of what was asked
    Column("starts_at", BigInteger, primary_key=True),
    Column("ends_at", BigInteger, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("counted_by", String(32), nullable=False),  # digest of the code that did
    Column("answer", LargeBinary, nullable=False),
)

change = Table(
    "change",
    metadata,
    id_column(),
    project_column(),
    Column("event_id", String(36), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("label", String(200), nullable=False),
    Column("tool", String(256)),
    Column("kind", String(16), nullable=False),  # manual | release | schema | variant
    Column("source", String(16), nullable=False),  # sdk | cli | dashboard | api
    Column("flags", JSON),  # as in tool_call
    UniqueConstraint("project_id", "event_id"),
    Index(None, "project_id", "occurred_at"),
)

rejected_event = Table(
    "rejected_event",
    metadata,
    id_column(),
    project_column(),
    Column("received_at", BigInteger, nullable=False),
    Column("event_id", String(64)),
    Column("code", String(64), nullable=False),
    Column("pointer", String(256), nullable=False),
    Column("body", Text),  # redacted and capped, so that it can be retried after an upgrade
    Index(None, "project_id", "received_at"),
    Index(None, "project_id", "event_id"),  # a resend keeps nothing twice
)

# What senders say they lost, by the hour in which they said it.
drop_counts = Table(
    "drop_counts",
    metadata,
    Column("project_id", Integer, ForeignKey("project.id"), primary_key=True),
    Column("period", BigInteger, primary_key=True),  # start of the hour
    Column("reason", String(64), primary_key=True),
    Column("events", BigInteger, nullable=False),
)
