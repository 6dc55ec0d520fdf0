"""Failures as OTLP: JSON lines in, length-prefixed ExportTraceServiceRequests out.

    python otlp.py BATCH < failures.ndjson

Run with the interpreter of a peer's environment, which has ``opentelemetry-proto``. A failed tool
call is one ERROR span with the names of OpenInference and an ``exception`` event.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def add_span(spans: Any, failure: dict[str, Any]) -> None:
    """Add *failure* to *spans*."""
    error, now = failure["error"], time.time_ns()
    span = spans.add(
        trace_id=os.urandom(16),
        span_id=os.urandom(8),
        name=failure["tool"],
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=now - 1_000_000,
        end_time_unix_nano=now,
        status=Status(code=Status.STATUS_CODE_ERROR, message=error["renderings"]["system"]),
    )
    for key, value in {
        "openinference.span.kind": "TOOL",
        "tool.name": failure["tool"],
        "session.id": failure["session_id"],
        "tool_call.id": failure["call_id"],
        "llm.model_name": failure["model"],
        "error.type": error["code"],
        "tool.error.field": error["field"],
        "tool.error.expected": error["expected"],
        "tool.error.received": error["received"],
        "output.value": error["renderings"]["llm"],
        "service.version": failure["release"],
    }.items():
        span.attributes.add(key=key).value.string_value = value
    event = span.events.add(name="exception", time_unix_nano=now)
    for key in ("type", "message"):
        event.attributes.add(key=f"exception.{key}").value.string_value = error["exception"][key]
    stack = event.attributes.add(key="exception.stacktrace")
    stack.value.string_value = error["exception"]["traceback"]


def convert() -> None:
    """Convert everything."""
    size = int(sys.argv[1])
    lines = iter(sys.stdin)
    while batch := list(itertools.islice(lines, size)):
        message = ExportTraceServiceRequest()
        resource = message.resource_spans.add()
        resource.resource.attributes.add(key="service.name").value.string_value = "shop"
        spans = resource.scope_spans.add().spans
        for line in batch:
            add_span(spans, json.loads(line))
        body = message.SerializeToString()
        sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body)


if __name__ == "__main__":
    convert()
