"""Failures as a busy shop sends them: many conversations, tools, fields and wordings.

An event is a template with places for what differs, so that millions can be made in minutes.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import uuid_utils

TOOLS = [f"tool_{number}" for number in range(60)]
CODES = ["wrong_type", "missing_field", "invalid_choice", "invalid_format", "not_found", "timeout"]
FIELDS = [f"field_{number}" for number in range(120)]
TRACE = "\n".join(f'  File "app/tools/module_{n}.py", line {n * 7}, in handle' for n in range(6))

_ISSUE = {
    "field": "%(field)s",
    "field_pattern": "%(field)s",
    "code": "%(code)s",
    "type": "string_type",
    "message": "Input should be a valid string",
    "expected": "string",
    "received": "%(value)d",
    "received_type": "int",
}
_FAILURE = {
    "event_id": "%(event_id)s",
    "type": "tool_call",
    "occurred_at": "%(occurred_at)s",
    "seq": "%(seq)d",
    "session_id": "%(session)s",
    "call_id": "call_%(number)016x",
    "tool": "%(tool)s",
    "agent": "shop",
    "model": "model-%(model)d",
    "environment": "prod",
    "release": "1.4.0",
    "success": False,
    "duration_ms": 0.001,
    "args_fingerprint": "%(arguments)032x",
    "args_recorded": True,
    "error": {
        "code": "%(code)s",
        "category": "parameter",
        "audience": "llm",
        "kind": "validation",
        "phase": "validation",
        "field": "%(field)s",
        "expected": "string",
        "received": "%(value)d",
        "received_type": "int",
        "issues": [_ISSUE],
        "issues_total": 1,
        "retryable": True,
        "renderings": {
            "user": "%(tool)s could not be used.",
            "llm": "Invalid parameters: %(field)s - Input should be a valid string"
            " (received int: %(value)d)",
            "system": "tool=%(tool)s code=%(code)s field=%(field)s: received %(value)d",
        },
        "exception": {
            "type": "ValidationError",
            "module": "pydantic_core",
            "message": "1 validation error for %(tool)s",
            "traceback": TRACE,
        },
    },
}
# ``seq`` is a number on the wire: its place loses the quotes.
_TEMPLATE = json.dumps(_FAILURE, separators=(",", ":")).replace('"%(seq)d"', "%(seq)d")


def failures(
    count: int, *, generator: random.Random, conversation: str | None = None
) -> Iterator[str]:
    """Yield *count* failed calls as JSON: two in a row per conversation and tool, one issue each.

    Tools, fields and codes are drawn evenly, which is harder than life: 43,200 signatures, and
    hardly two failures of a batch that share a row.
    """
    tool = session = ""
    for number in range(count):
        if number % 2 == 0:
            tool = generator.choice(TOOLS)
            session = conversation or f"conv-{generator.getrandbits(48):012x}"
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="microseconds")
        yield _TEMPLATE % {
            "event_id": uuid_utils.uuid7(),
            "occurred_at": now.replace("+00:00", "Z"),
            "seq": number,
            "session": session,
            "number": generator.getrandbits(64),
            "tool": tool,
            "model": number % 5,
            "arguments": generator.getrandbits(128),
            "code": generator.choice(CODES),
            "field": generator.choice(FIELDS),
            "value": generator.randint(1, 10**6),
        }


def bodies(events: Iterator[str], *, batch: int) -> Iterator[bytes]:
    """Yield the compressed request bodies of *events*, *batch* in each, as the SDK makes them."""
    pending: list[str] = []
    for event in events:
        pending.append(event)
        if len(pending) == batch:
            yield _body(pending)
            pending = []
    if pending:
        yield _body(pending)


def _body(events: list[str]) -> bytes:
    text = '{"schema_version":1,"events":[' + ",".join(events) + "]}"
    return gzip.compress(text.encode(), 1)
