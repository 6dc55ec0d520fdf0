"""Events of protocol v1 as a sender would make them, for every test that needs some."""

from __future__ import annotations

import itertools
import random
import uuid
from typing import Any

import uuid_utils

from toolfault_collector.clock import MINUTE_US, SECOND_US, format_time, now_us

__all__ = ["change", "conversation_end", "counts", "event_id", "failure", "success", "tool_error"]

_seq = itertools.count(1)
# Calls without a given time follow each other, so closely that no run of the suite makes enough of
# them to reach the future, whose times a collector replaces by its own.
_began = now_us() - 10 * MINUTE_US
_APART_US = 2 * SECOND_US // 1_000


def event_id(generator: random.Random | None = None) -> str:
    """A new event id: a UUIDv7, or one drawn from *generator* where a test must repeat itself."""
    if generator is None:
        return str(uuid_utils.uuid7())
    return str(uuid.UUID(int=generator.getrandbits(128), version=4))


def _call(
    tool: str, session_id: str | None, at: int | None, members: dict[str, Any]
) -> dict[str, Any]:
    seq = next(_seq)
    event = {
        "event_id": event_id(),
        "type": "tool_call",
        "occurred_at": format_time(_began + seq * _APART_US if at is None else at),
        "seq": seq,
        "session_id": session_id,
        "tool": tool,
        "duration_ms": 1.0,
        **members,
    }
    return {name: value for name, value in event.items() if value is not ...}


def success(
    tool: str = "http_request",
    *,
    session_id: str | None = "conv-1",
    at: int | None = None,
    **members: Any,
) -> dict[str, Any]:
    """A call that succeeded; *at* is its end in microseconds, ``...`` leaves a member out."""
    return _call(tool, session_id, at, {"success": True, **members})


def failure(
    tool: str = "http_request",
    *,
    session_id: str | None = "conv-1",
    at: int | None = None,
    code: str = "wrong_type",
    field: str | None = "url",
    error: dict[str, Any] | None = None,
    **members: Any,
) -> dict[str, Any]:
    """A call that failed with one issue."""
    issue = {"field": field, "code": code, "message": "Input should be a valid string"}
    failed: dict[str, Any] = {
        "code": code,
        "category": "parameter",
        "audience": "llm",
        "kind": "validation",
        "phase": "validation",
        "field": field,
        "issues": [] if field is None else [issue],
        "retryable": True,
        "renderings": {
            "user": "The tool could not be used.",
            "llm": f"Invalid parameters: {field} - Input should be a valid string",
            "system": f"{tool}: {code} at {field}",
        },
        **(error or {}),
    }
    return _call(tool, session_id, at, {"success": False, "error": failed, **members})


def tool_error(tool: str = "http_request", **members: Any) -> dict[str, Any]:
    """A failure captured outside a call."""
    return failure(tool, **{"type": "tool_error", "success": ..., **members})


def counts(
    tool: str | None = "http_request", *, at: int | None = None, **members: Any
) -> dict[str, Any]:
    """Folded successes of one minute."""
    at = now_us() if at is None else at
    return {
        "event_id": event_id(),
        "type": "tool_call_counts",
        "occurred_at": format_time(at),
        "minute": format_time(at - at % (60 * SECOND_US)),
        "tool": tool,
        "calls": 10,
        "duration_ms": {"sum": 50.0, "max": 9.0, "buckets": [[5, 6], [10, 4]]},
        "conversations": 2,
        "calls_squared": 58,
        **members,
    }


def conversation_end(
    session_id: str = "conv-1", *, at: int | None = None, **members: Any
) -> dict[str, Any]:
    """The end of a conversation."""
    return {
        "event_id": event_id(),
        "type": "conversation_end",
        "occurred_at": format_time(now_us() if at is None else at),
        "session_id": session_id,
        "calls": {"http_request": 3},
        **members,
    }


def change(
    label: str = "coerce booleans", *, at: int | None = None, **members: Any
) -> dict[str, Any]:
    """A marker."""
    return {
        "event_id": event_id(),
        "type": "change",
        "occurred_at": format_time(now_us() if at is None else at),
        "label": label,
        "kind": "manual",
        **members,
    }
