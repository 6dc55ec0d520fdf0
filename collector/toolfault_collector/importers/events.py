"""A conversation as events of protocol v1, the same on every import.

Ids are UUIDs of version 8 (RFC 9562, section 5.8): a hash of the conversation's key and the call's
identity in it. Neither depends on where the file lies or when it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import blake2b
from typing import Final
from uuid import UUID

from toolfault_collector.clock import MILLISECOND_US, format_time
from toolfault_collector.importers.classify import ArgumentIssue, Classification, classify, unwrap
from toolfault_collector.importers.items import Call, Conversation
from toolfault_collector.importers.members import cut
from toolfault_collector.protocol.redaction.rules import redact

__all__ = ["conversation_events", "error_of", "without_nones"]

MAX_TEXT: Final = 8_000

_Event = Mapping[str, object]


def conversation_events(conversation: Conversation, *, now: int) -> Iterator[_Event]:
    """Yield the events of a conversation.

    No end is said: a conversation without times is over by that, one with times when it was idle.

    Args:
        conversation: What the format understood.
        now: Time of the import in microseconds, which stands in where the source has no times.
    """
    for call in conversation.calls:
        if call.status == "missing":
            yield _unanswered(conversation, call, now)
        else:
            yield _tool_call(conversation, call, now)


def _event_id(conversation: Conversation, call: Call) -> str:
    name = f"call\x1f{call.identity}".encode("utf-8", "backslashreplace")
    hashed = blake2b(name, key=conversation.key)
    value = int.from_bytes(hashed.digest()[:16], "big")
    value = value & ~(0xF << 76) | 0x8 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(UUID(int=value))


def _tool_call(conversation: Conversation, call: Call, now: int) -> _Event:
    found = classify(call.text, tool=call.tool, rule=call.rule) if call.status == "failed" else None
    ended = call.ended_at if call.ended_at is not None else now
    event: dict[str, object] = {
        "type": "tool_call",
        "event_id": _event_id(conversation, call),
        "occurred_at": format_time(ended),
        "time_source": "import" if conversation.timed else "none",
        "detection": f"soft:{call.soft}" if call.soft else "explicit",
        # What a person recognises the conversation by, and enough hash to be unique.
        "session_id": f"{cut(conversation.label, 120)}:{conversation.key.hex()[:16]}",
        "seq": call.position,
        "tool": call.tool,
        "success": call.status == "ok",
        "args_recorded": call.args_fingerprint is not None,
        "turn": call.turn,
        "call_id": call.call_id,
        "run_id": call.run_id,
        "model": call.model,
        "release": call.release,
        "agent": conversation.agent,
        "provider": conversation.provider,
        "args_fingerprint": call.args_fingerprint,
        "args_diff": list(call.args_diff) if call.args_diff is not None else None,
        "tags": dict(call.tags) or None,
        "derived_by": found.rule if found else None,
        "error": error_of(call.text, found, tool=call.tool) if found else None,
    }
    if call.started_at is not None:
        event["duration_ms"] = (ended - call.started_at) / MILLISECOND_US
    return without_nones({**event, **call.members})


def _unanswered(conversation: Conversation, call: Call, now: int) -> _Event:
    """Count a call whose result the transcript does not hold.

    It was made, so it belongs to the denominator; it neither failed nor succeeded, so it is no
    part of a chain. A counter says just that. It has the id of the call, which may be found with
    its result in another copy of the transcript.
    """
    at = format_time(call.started_at if call.started_at is not None else now)
    return {
        "type": "tool_call_counts",
        "event_id": _event_id(conversation, call),
        "occurred_at": at,
        "minute": at,
        "tool": call.tool,
        "agent": conversation.agent,
        "model": call.model,
        "release": call.release,
        "calls": 1,
    }


def without_nones(members: _Event) -> dict[str, object]:
    """Return the members that say something."""
    return {name: value for name, value in members.items() if value is not None}


def error_of(text: str, found: Classification, *, tool: str) -> _Event:
    """Return the ``error`` of an event, of which nothing is known but its text.

    Args:
        text: What the model was told, or what the sender said.
        found: What that was classified as.
        tool: Name of the tool.
    """
    text = cut(redact(unwrap(text).strip()), MAX_TEXT)
    error = {
        "code": found.code,
        "category": found.category,
        "audience": found.audience,
        "field": found.field,
        "expected": found.expected,
        "renderings": {
            "user": _for_user(tool, found),
            "llm": text,
            "system": _for_system(tool, found, text),
        },
        "issues": [_issue(issue) for issue in found.issues],
    }
    return without_nones(error)


def _issue(issue: ArgumentIssue) -> _Event:
    members = without_nones(asdict(issue))
    return {**members, "message": redact(issue.message)} if issue.message else members


def _for_user(tool: str, found: Classification) -> str:
    """Say what happened without anything of the original text, which may hold values."""
    if found.code == "rejected_by_user":
        return f"{tool}: You did not allow this call"
    if found.audience == "user":
        return f"{tool}: This call needs your permission"
    if found.category == "availability":
        return f"{tool}: This tool is not available"
    if found.category == "internal":
        return f"{tool}: An unexpected error occurred while executing this tool"
    fields = ", ".join(dict.fromkeys(issue.field for issue in found.issues))
    reason = found.code.replace("_", " ").capitalize()
    return cut(f"{tool}: {reason} ({fields})" if fields else f"{tool}: {reason}", 1_000)


def _for_system(tool: str, found: Classification, text: str) -> str:
    line = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return cut(f"tool={tool} code={found.code} category={found.category}: {line}", MAX_TEXT)
