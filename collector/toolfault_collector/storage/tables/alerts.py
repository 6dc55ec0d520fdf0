"""Tables of alerts: rules, where their messages go, what state they are in, and the outbox.

Times are microseconds since the epoch. What a channel's address and secret are stands here and is
shown to nobody: a server cannot send without it.
"""

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

__all__ = ["alert_channel", "alert_lease", "alert_message", "alert_rule", "alert_state"]

# Where messages go.
alert_channel = Table(
    "alert_channel",
    metadata,
    id_column(),
    project_column(),
    Column("name", String(128), nullable=False),
    Column("kind", String(16), nullable=False),  # webhook | apprise
    Column("url", Text, nullable=False),
    Column("secret", String(128)),  # signs what a webhook is sent
    Column("created_by", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # How it goes: attempts that failed since one went well, why, and when to try again.
    Column("failures", Integer, nullable=False),
    Column("error", String(256)),
    Column("retry_at", BigInteger, nullable=False),
    Column("sent_at", BigInteger),
    UniqueConstraint("project_id", "name"),
)

# When to speak.
alert_rule = Table(
    "alert_rule",
    metadata,
    id_column(),
    project_column(),
    Column("name", String(128), nullable=False),
    Column("condition", String(24), nullable=False),
    Column("query", Text, nullable=False),
    Column("audience", String(8), nullable=False),  # the highest that its maker may see
    Column("threshold", Float, nullable=False),
    Column("least", Integer, nullable=False),
    Column("window_us", BigInteger, nullable=False),
    # Where to; null is every channel of the project.
    Column("channel_id", BigInteger, ForeignKey("alert_channel.id")),
    Column("quiet", String(16), nullable=False),  # 22:00-07:00, or empty
    Column("zone", String(64), nullable=False),
    Column("snoozed_until", BigInteger, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # What the last evaluation found, and of how much of the project.
    Column("evaluated_at", BigInteger, nullable=False),
    Column("seen", String(64), nullable=False),
    Column("figure", JSON),
    Column("problem", String(256)),
    UniqueConstraint("project_id", "name"),
)

# What each rule thinks of each of its subjects: the figure itself (''), or a kind of failure.
alert_state = Table(
    "alert_state",
    metadata,
    project_column(),
    Column(
        "rule_id", BigInteger, ForeignKey("alert_rule.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("subject", String(64), primary_key=True),
    Column("phase", String(8), nullable=False),  # quiet | pending | firing
    Column("since", BigInteger, nullable=False),
    Column("clear_since", BigInteger),
    Column("told", Boolean, nullable=False),
    Column("told_until", BigInteger, nullable=False),
)

# The outbox, and after sending the history: one row for each message and channel.
alert_message = Table(
    "alert_message",
    metadata,
    id_column(),
    project_column(),
    Column("message_id", String(36), nullable=False, unique=True),
    Column("rule_id", BigInteger, nullable=False),  # the rule may be gone; 0 is a test
    Column("rule_name", String(128), nullable=False),
    # Null where there was no channel.
    Column("channel_id", BigInteger, ForeignKey("alert_channel.id", ondelete="SET NULL")),
    Column("channel_name", String(128), nullable=False),
    Column("event", String(8), nullable=False),  # firing | resolved | digest | test
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

# Who sends: one server at a time, by the database's clock.
alert_lease = Table(
    "alert_lease",
    metadata,
    Column("name", String(16), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
