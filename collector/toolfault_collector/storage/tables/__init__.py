"""The schema of today: the one definition every statement is built from.

Times are ``BIGINT`` microseconds since the Unix epoch, UTC (see ``clock.py``): they sort, group and
compare alike on SQLite, PostgreSQL and ClickHouse. A conversation is keyed by the opaque
``session_id`` of the wire; rows that belong together repeat it, so reading needs no join.
``time_source`` ``none``: the source has no times, order is ``seq``, and no page shows any.
``message_id`` and ``signature_id`` are no foreign keys: removing one message would read every call.
History lives in ``toolfault_migrations``; a test compares both on each engine.
"""

from __future__ import annotations

from toolfault_collector.storage.tables.accounts import (
    api_key,
    audit_log,
    kind_state,
    login_session,
    picked_fix,
    project,
    quota_bucket,
    saved_view,
    user_account,
)
from toolfault_collector.storage.tables.alerts import (
    alert_channel,
    alert_lease,
    alert_message,
    alert_rule,
    alert_state,
)
from toolfault_collector.storage.tables.common import metadata
from toolfault_collector.storage.tables.events import (
    OVERNIGHT,
    call_counts,
    chain,
    change,
    conversation,
    conversation_end,
    drop_counts,
    event_key,
    failure_counts,
    issue,
    message,
    quarter_version,
    rejected_event,
    signature,
    stored_answer,
    tool_call,
)
from toolfault_collector.storage.tables.otlp import (
    metric_calls,
    metric_series,
    otlp_request,
    trace,
    trace_batch,
)

__all__ = [
    "OVERNIGHT",
    "alert_channel",
    "alert_lease",
    "alert_message",
    "alert_rule",
    "alert_state",
    "api_key",
    "audit_log",
    "call_counts",
    "chain",
    "change",
    "conversation",
    "conversation_end",
    "drop_counts",
    "event_key",
    "failure_counts",
    "issue",
    "kind_state",
    "login_session",
    "message",
    "metadata",
    "metric_calls",
    "metric_series",
    "otlp_request",
    "picked_fix",
    "project",
    "quarter_version",
    "quota_bucket",
    "rejected_event",
    "saved_view",
    "signature",
    "stored_answer",
    "tool_call",
    "trace",
    "trace_batch",
    "user_account",
]
