"""Failures as a busy shop sends them: many conversations, tools, fields and wordings."""

from __future__ import annotations

import gzip
import json
import random
import time
from datetime import UTC, datetime
from typing import Any

import uuid_utils

TOOLS = [f"tool_{number}" for number in range(60)]
CODES = ["wrong_type", "missing_field", "invalid_choice", "invalid_format", "not_found", "timeout"]
FIELDS = [f"field_{number}" for number in range(120)]
TRACE = "\n".join(f'  File "app/tools/module_{n}.py", line {n * 7}, in handle' for n in range(6))


def failures(count: int, *, generator: random.Random, conversation: str | None = None) -> list[Any]:
    """Return *count* failed calls: two in a row per conversation and tool, each with one issue."""
    events = []
    for number in range(count):
        if number % 2 == 0:
            tool = generator.choice(TOOLS)
            session = conversation or f"conv-{generator.getrandbits(48):012x}"
        field, code = generator.choice(FIELDS), generator.choice(CODES)
        now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="microseconds")
        value = generator.randint(1, 10**6)
        events.append(
            {
                "event_id": str(uuid_utils.uuid7()),
                "type": "tool_call",
                "occurred_at": now.replace("+00:00", "Z"),
                "seq": number,
                "session_id": session,
                "call_id": f"call_{generator.getrandbits(64):016x}",
                "tool": tool,
                "agent": "shop",
                "model": f"model-{number % 5}",
                "environment": "prod",
                "release": "1.4.0",
                "success": False,
                "duration_ms": 0.001,
                "args_fingerprint": f"{generator.getrandbits(128):032x}",
                "args_recorded": True,
                "error": {
                    "code": code,
                    "category": "parameter",
                    "audience": "llm",
                    "kind": "validation",
                    "phase": "validation",
                    "field": field,
                    "expected": "string",
                    "received": str(value),
                    "received_type": "int",
                    "issues": [
                        {
                            "field": field,
                            "field_pattern": field,
                            "code": code,
                            "type": "string_type",
                            "message": "Input should be a valid string",
                            "expected": "string",
                            "received": str(value),
                            "received_type": "int",
                        }
                    ],
                    "issues_total": 1,
                    "retryable": True,
                    "renderings": {
                        "user": f"{tool} could not be used.",
                        "llm": f"Invalid parameters: {field} - Input should be a valid string"
                        f" (received int: {value})",
                        "system": f"tool={tool} code={code} field={field}: received {value}",
                    },
                    "exception": {
                        "type": "ValidationError",
                        "module": "pydantic_core",
                        "message": f"1 validation error for {tool}",
                        "traceback": TRACE,
                    },
                },
            }
        )
    return events


def body(events: list[Any]) -> bytes:
    """Return the compressed request body of *events*, as the SDK would make it."""
    batch = {"schema_version": 1, "events": events}
    return gzip.compress(json.dumps(batch, separators=(",", ":")).encode(), 1)
