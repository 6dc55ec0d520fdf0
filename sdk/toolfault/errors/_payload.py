"""The machine form of a failure for the model: 14 keys, always all of them, at most 8 KiB."""

from __future__ import annotations

import json

from toolfault.errors._codes import CATALOGUE_HINTS, is_retryable, visible_code
from toolfault.errors._enums import ErrorCategory
from toolfault.errors._grammar import clean_name, clean_received
from toolfault.errors._redact import redact_text
from toolfault.errors._render import (
    LONGEST_RECEIVED,
    called,
    clean_issues,
    fit_lines,
    llm_text,
    shown_hint,
    shown_snippet,
)
from toolfault.errors._text import cut, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolfault.errors._error import ToolError
    from toolfault.errors._issue import Issue

__all__ = ["MOST_PAYLOAD_BYTES", "bounded_context", "llm_payload"]

MOST_PAYLOAD_BYTES = 8_192
MOST_CONTEXT_BYTES = 4_096
_MOST_ISSUES = 20
_SHORTEST_MESSAGE = 256
_LONGEST_CONTEXT_TEXT = 520


def llm_payload(error: ToolError) -> dict[str, object]:
    """The payload of *error*; see contract.md 3.7."""
    payload: dict[str, object] = {
        "ok": False,
        "success": False,
        "tool": called(error),
        "code": visible_code(error.code, error.category, authored=bool(error.llm_message)),
        "category": error.category.value,
        "message": llm_text(error),
        "field": None,
        "expected": None,
        "received": None,
        "snippet": None,
        "issues": [],
        "retryable": is_retryable(error.code, error.category),
        "retry_hint": _hint(error),
        "retry_context": None,
    }
    if error.category is ErrorCategory.PARAMETER:
        payload.update(_corrective(error))
    return _fitted(payload)


def _hint(error: ToolError) -> str | None:
    if error.category is ErrorCategory.AVAILABILITY:
        return None
    if error.category is ErrorCategory.PARAMETER or error.retry_hint:
        return shown_hint(error)
    return CATALOGUE_HINTS.get(error.code.value)


def _corrective(error: ToolError) -> dict[str, object]:
    field = clean_name(error.field) if error.field else None
    received = clean_received(
        error.received,
        field=error.field,
        received_type=error.received_type,
        limit=LONGEST_RECEIVED,
    )
    return {
        "field": field,
        "expected": None if error.expected is None else cut(redact_text(error.expected), 500),
        "received": received,
        "snippet": shown_snippet(error),
        "issues": [_issue(issue) for issue in clean_issues(error)[:_MOST_ISSUES]],
        "retry_context": bounded_context(error),
    }


def _issue(issue: Issue) -> dict[str, str | None]:
    return {
        "field": issue.field,
        "code": issue.code.value,
        "message": issue.message,
        "expected": issue.expected,
        "received": issue.received,
        "received_type": issue.received_type,
    }


def bounded_context(error: ToolError) -> dict[str, object] | None:
    """The retry context as JSON values, redacted, at most 4 KiB; its last keys go first."""
    if not error.retry_context:
        return None
    from toolfault.errors._json import to_jsonable

    cleaned = to_jsonable(
        error.retry_context, redact=True, max_items=50, max_string=_LONGEST_CONTEXT_TEXT
    )
    if type(cleaned) is not dict:
        return None
    while cleaned and _size(cleaned) > MOST_CONTEXT_BYTES:
        cleaned.popitem()
    return cleaned or None


def _size(value: object) -> int:
    """Bytes of *value* as ASCII JSON, the longest form a caller may choose."""
    return len(json.dumps(value, allow_nan=False))


def _fitted(payload: dict[str, object]) -> dict[str, object]:
    """*payload* within 8 KiB: snippet, context and issues go before the message is cut."""
    if _size(payload) <= MOST_PAYLOAD_BYTES:
        return payload
    for key in ("snippet", "retry_context"):
        payload[key] = None
        if _size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    issues = payload["issues"]
    while type(issues) is list and issues:
        issues.pop()
        if _size(payload) <= MOST_PAYLOAD_BYTES:
            return payload
    return _with_short_texts(payload)


def _with_short_texts(payload: dict[str, object]) -> dict[str, object]:
    message = str(payload["message"])
    limit = len(message)
    while _size(payload) > MOST_PAYLOAD_BYTES and limit > _SHORTEST_MESSAGE:
        limit = max(limit * 3 // 4, _SHORTEST_MESSAGE)
        payload["message"] = fit_lines(message, limit)
    for key in ("retry_hint", "expected", "received", "field", "tool"):
        text = payload[key]
        if _size(payload) > MOST_PAYLOAD_BYTES and type(text) is str:
            payload[key] = plain(text, 64)
    return payload
