"""A call of a trace as an event of protocol v1, the same whenever it is made."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from toolfault_collector.clock import MILLISECOND_US, format_time
from toolfault_collector.importers.assembly import fingerprint_of
from toolfault_collector.importers.classify import Classification, classify
from toolfault_collector.importers.events import error_of, without_nones
from toolfault_collector.otlp.calls.calls import SeenCall, rule_of

__all__ = ["call_event", "digest_of", "encoded"]

# Members of an event that a call has under the same name.
_SAME: Final = (
    *("event_id", "detection", "turn", "tool", "call_id", "run_id", "trace_id", "span_id"),
    *("model", "provider", "user", "agent", "environment", "release"),
)
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def call_event(call: SeenCall) -> dict[str, Any]:
    """Return the event of *call*; what no column holds stands beside it (`wire.ImportedCall`)."""
    ended, rung = call.end_us or call.start_us, call.conversation_rung
    found = None
    if call.failed:
        found = classify(call.error_text, tool=call.tool, rule=rule_of(call))
    event: dict[str, Any] = {
        **{name: getattr(call, name) for name in _SAME},
        "type": "tool_call",
        # A span without times keeps the order of its kind, and no page shows any.
        "occurred_at": format_time(ended),
        "time_source": "import" if ended else "none",
        "session_id": call.conversation,
        "success": not call.failed,
        "args_recorded": call.arguments is not None,
        "args_fingerprint": fingerprint_of(call.arguments, key=_key_of(call)),
        "derived_by": found.rule if found else None,
        "error": _error(call, found) if found else None,
        "dialect": call.dialect or None,
        "reached": None if call.reached else False,
        "span_ids": list(call.span_ids[:20]) if len(call.span_ids) > 1 else None,
        "conversation_rung": None if rung == "explicit" else rung,
    }
    if 0 < call.start_us <= ended:
        event["duration_ms"] = (ended - call.start_us) / MILLISECOND_US
    return without_nones(event)


def encoded(event: Mapping[str, Any]) -> bytes:
    """Return the JSON of an event; the same event is the same bytes."""
    return _ENCODER.encode(event)


def digest_of(encoded_event: bytes) -> str:
    """Return what tells whether the event of a call has changed."""
    return blake2b(encoded_event, digest_size=12).hexdigest()


def _error(call: SeenCall, found: Classification) -> dict[str, Any]:
    error = dict(error_of(call.error_text, found, tool=call.tool))
    raised = {
        "type": call.exception_type or call.error_type,
        "message": call.exception_message,
        "traceback": call.exception_stack,
    }
    if any(raised.values()):
        error["exception"] = without_nones(raised)
    return error


def _key_of(call: SeenCall) -> bytes:
    """Return what keys the hashes of a conversation's arguments."""
    return blake2b((call.conversation or call.trace_id or "").encode()).digest()
