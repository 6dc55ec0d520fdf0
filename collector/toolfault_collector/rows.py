"""Prepared events as rows: tuples in the order of the columns named beside them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolfault_collector import wire
from toolfault_collector.bulk import columns
from toolfault_collector.prepared import (
    PreparedCall,
    PreparedChange,
    PreparedCounts,
    PreparedEnd,
)

__all__ = [
    "CALL_COLUMNS",
    "CHANGE_COLUMNS",
    "COUNTS_COLUMNS",
    "END_COLUMNS",
    "ISSUE_COLUMNS",
    "call_row",
    "change_row",
    "counts_row",
    "end_row",
    "issue_rows",
    "json_text",
]

CALL_COLUMNS: Final = columns(
    "id project_id event_id event_type session_id turn seq call_id run_id trace_id span_id tool"
    " tool_requested agent model provider environment release variant user started_at occurred_at"
    " received_at time_source duration_ms success sample_rate detection attempt chain_id"
    " chain_marks lost_us args_fingerprint args_recorded args_diff coercions validation_mode"
    " validation_version schema_hash tokens tags extra flags"
    " code category audience reason kind phase field expected received received_type snippet"
    " retryable retry_hint retry_context issues_total text_user text_llm text_system"
    " exception_type exception_module exception_message traceback adapter_failed signature_id"
    " message_id"
)
ISSUE_COLUMNS: Final = columns(
    "project_id tool_call_id tool occurred_at position field field_pattern root_field code type"
    " message expected received received_type near_miss"
)
COUNTS_COLUMNS: Final = columns(
    "project_id event_id minute received_at tool agent model environment release variant calls"
    " duration_sum_ms duration_max_ms duration_buckets repairs conversations calls_squared flags"
)
END_COLUMNS: Final = columns("project_id event_id session_id occurred_at received_at calls flags")
CHANGE_COLUMNS: Final = columns(
    "project_id event_id occurred_at received_at label tool kind source flags"
)

_NO_FAILURE: Final = (None,) * 25
_NO_TEXTS: Final = wire.Renderings()
_NO_EXCEPTION: Final = wire.RaisedException()
_NO_VALIDATION: Final = wire.Validation()
_NO_DURATION: Final = wire.Duration()


def json_text(value: Any) -> str | None:
    """Return *value* as JSON text, and nothing (None, empty) as SQL null."""
    return msgspec.json.encode(value).decode() if value else None


def call_row(call: PreparedCall) -> tuple[Any, ...]:
    """Return the row of ``tool_call``, in the order of `CALL_COLUMNS`."""
    event, default = call.event, call.resource.get
    validation = event.validation or _NO_VALIDATION
    return (
        call.id,
        call.project_id,
        call.event_id,
        "tool_call" if isinstance(event, wire.ToolCall) else "tool_error",
        call.session_id,
        event.turn,
        event.seq,
        event.call_id,
        event.run_id,
        event.trace_id,
        event.span_id,
        event.tool,
        event.tool_requested,
        event.agent or default("agent"),
        event.model or default("model"),
        event.provider or default("provider"),
        event.environment or default("environment"),
        event.release or default("release"),
        event.variant or default("variant"),
        event.user or default("user"),
        call.started_at,
        call.occurred_at,
        call.received_at,
        call.time_source,
        event.duration_ms,
        call.success,
        event.sample_rate,
        call.detection,
        call.attempt,
        call.chain_id,
        call.chain_marks,
        call.lost_us,
        event.args_fingerprint,
        event.args_recorded,
        json_text(event.args_diff),
        json_text(event.coercions),
        validation.mode,
        validation.version,
        event.schema_hash,
        event.tokens,
        json_text(event.tags),
        json_text(call.extra),
        json_text(call.flags),
        *(_NO_FAILURE if call.success or event.error is None else _failure(call, event.error)),
    )


def _failure(call: PreparedCall, error: wire.Failure) -> tuple[Any, ...]:
    texts = error.renderings or _NO_TEXTS
    raised = error.exception or _NO_EXCEPTION
    return (
        call.code,
        call.category,
        call.audience,
        error.reason,
        error.kind,
        error.phase,
        error.field,
        error.expected,
        error.received,
        error.received_type,
        error.snippet,
        error.retryable,
        error.retry_hint,
        json_text(error.retry_context),
        len(call.issues) if error.issues_total is None else error.issues_total,
        texts.user,
        texts.llm,
        texts.system,
        raised.type,
        raised.module,
        raised.message,
        raised.traceback,
        error.adapter_failed,
        call.signature_id,
        call.message_id,
    )


def issue_rows(call: PreparedCall) -> list[tuple[Any, ...]]:
    """Return the rows of ``issue``, in the order of `ISSUE_COLUMNS`."""
    owner = (call.project_id, call.id, call.event.tool, call.occurred_at)
    return [owner + issue for issue in call.issues]


def counts_row(counts: PreparedCounts) -> tuple[Any, ...]:
    """Return the row of ``call_counts``, in the order of `COUNTS_COLUMNS`."""
    event, default = counts.event, counts.resource.get
    duration = event.duration_ms or _NO_DURATION
    return (
        counts.project_id,
        counts.event_id,
        counts.minute,
        counts.received_at,
        event.tool,
        event.agent or default("agent"),
        event.model or default("model"),
        event.environment or default("environment"),
        event.release or default("release"),
        event.variant or default("variant"),
        event.calls,
        duration.sum,
        duration.max,
        json_text(duration.buckets),
        json_text(event.repairs),
        event.conversations,
        event.calls_squared,
        json_text(counts.flags),
    )


def end_row(end: PreparedEnd) -> tuple[Any, ...]:
    """Return the row of ``conversation_end``, in the order of `END_COLUMNS`."""
    return (
        end.project_id,
        end.event_id,
        end.session_id,
        end.occurred_at,
        end.received_at,
        msgspec.json.encode(end.event.calls).decode(),
        json_text(end.flags),
    )


def change_row(change: PreparedChange) -> tuple[Any, ...]:
    """Return the row of ``change``, in the order of `CHANGE_COLUMNS`."""
    event = change.event
    return (
        change.project_id,
        change.event_id,
        change.occurred_at,
        change.received_at,
        event.label,
        event.tool,
        event.kind,
        change.recorded_by,
        json_text(change.flags),
    )
