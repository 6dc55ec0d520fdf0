"""Requests of OTLP as each instrumentation sends them, damaged as a whole or in one item.

What is drawn hangs on the number of the request alone, so that a fault can be seen again.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.collector.mutations import VALUES, damaged, mutated, places
from tests.collector.otlp.spans import BEGAN
from tests.collector.otlp.traces import FIXTURES

from toolfault_collector.otlp.calls.spans import LogRecord, Span
from toolfault_collector.otlp.submission import Signal

__all__ = ["Request", "request"]

JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"
_NAMES: Final[Mapping[Signal, tuple[str, str, str, type[Message]]]] = {
    "traces": ("resourceSpans", "scopeSpans", "spans", ExportTraceServiceRequest),
    "logs": ("resourceLogs", "scopeLogs", "logRecords", ExportLogsServiceRequest),
    "metrics": ("resourceMetrics", "scopeMetrics", "metrics", ExportMetricsServiceRequest),
}
_TYPES: Final = ("text/plain", "", "application/grpc", "application/json; charset=latin-1", "x/y")
_KINDS: Final = ("", "internal", "server", "client", "producer", "consumer")
_STATUS: Final = ("unset", "ok", "error")


@dataclass(frozen=True)
class Request:
    """A request to send.

    Attributes:
        whole: Whether only one item of it is damaged, so that it must be taken.
        healthy: Call ids of its spans that are whole.
    """

    signal: Signal
    body: bytes
    headers: dict[str, str]
    whole: bool = False
    healthy: tuple[str, ...] = field(default=())


def request(number: int) -> Request:
    """Draw the request of this number."""
    draw = random.Random(f"otlp/{number}")
    if draw.random() < 0.003:
        # A bomb: 24 MiB of nothing, or many streams of it.
        body, headers = (
            _bomb() * draw.randint(1, 40),
            {"Content-Type": draw.choice([JSON, PROTOBUF])},
        )
        return Request("traces", body, {**headers, "Content-Encoding": "gzip"})
    if draw.random() < 0.5:
        return _with_one_damaged(draw, number)
    signal, document = draw.choice(_documents())
    content_type = draw.choice([JSON, PROTOBUF])
    body = json.dumps(document).encode() if content_type == JSON else _packed(signal, document)
    change = draw.choice(["any", "any", "any", "wire", "deep"])
    if change == "any":
        body = mutated(draw, body, is_json=content_type == JSON)
    elif change == "wire":
        body = _wire(draw, body)
    else:
        body = _deep(content_type, draw.choice([20, 300, 5_000]))
    headers = {"Content-Type": content_type}
    if draw.random() < 0.15:
        body, headers["Content-Encoding"] = gzip.compress(body, 1, mtime=0), "gzip"
        if draw.random() < 0.5:
            body = damaged(draw, body)
    if draw.random() < 0.05:
        headers["Content-Type"] = draw.choice([*_TYPES, JSON, PROTOBUF])
    return Request(signal, body, headers)


def _with_one_damaged(draw: random.Random, number: int) -> Request:
    """Return a request of traces in which a damaged span stands between two whole ones."""
    trace, ids = f"{number + 1:032x}", (f"first {number}", f"last {number}")
    fixture = draw.choice(list(FIXTURES.values()))
    bad = {**_span(draw.choice(list(fixture.spans) or [_EMPTY])), "traceId": trace}
    first, last = (_healthy(trace, at, name) for at, name in enumerate(ids, 1))
    if draw.random() < 0.5:
        found = list(places(bad))
        for holder, key in (draw.choice(found) for _ in range(draw.randint(1, 4))):
            holder[key] = draw.choice([*VALUES, _nested(draw.choice([17, 200]))])
        sent = json.dumps(_document("traces", [first, draw.choice([bad, bad, *VALUES]), last]))
        return Request("traces", sent.encode(), {"Content-Type": JSON}, True, ids)
    request_of = ParseDict(_in_base64(_document("traces", [bad])), ExportTraceServiceRequest())
    packed = request_of.resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    packed = draw.choice([_wire, damaged, damaged])(draw, packed)
    parts = [_packed_span(first), packed, _packed_span(last)]
    scope = b"".join(_field(2, each) for each in parts)
    body = _field(1, _field(2, scope))
    return Request("traces", body, {"Content-Type": PROTOBUF}, True, ids)


_EMPTY: Final = Span(trace_id="1" * 32, span_id="1" * 16, parent_id=None, name="")


def _healthy(trace: str, at: int, call_id: str) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": f"whole {at}",
        "gen_ai.tool.call.id": call_id,
    }
    start = BEGAN + at * 1_000_000
    made = Span(
        trace, f"{0xFFFF_0000 + at:016x}", None, "execute_tool", "internal", start, start + 9
    )
    return {**_span(made), "attributes": _attributes(attributes)}


@cache
def _documents() -> list[tuple[Signal, dict[str, Any]]]:
    """One request of each fixture and signal."""
    found: list[tuple[Signal, dict[str, Any]]] = []
    for fixture in FIXTURES.values():
        if fixture.spans:
            found.append(("traces", _document("traces", map(_span, fixture.spans))))
        if fixture.logs:
            found.append(("logs", _document("logs", map(_log, fixture.logs))))
    points = [
        {"count": "3", "timeUnixNano": "9999", "attributes": _attributes({"gen_ai.tool.name": "t"})}
    ]
    histogram = {"aggregationTemporality": 2, "dataPoints": points}
    metric = {"name": "gen_ai.execute_tool.duration", "histogram": histogram}
    return [*found, ("metrics", _document("metrics", [metric]))]


def _document(signal: Signal, items: Iterable[Any]) -> dict[str, Any]:
    of_request, of_resource, of_scope, _ = _NAMES[signal]
    scope = {"scope": {"name": "tests"}, of_scope: list(items)}
    resource = {"attributes": _attributes({"service.name": "bot"})}
    return {of_request: [{"resource": resource, of_resource: [scope]}]}


def _span(made: Span) -> dict[str, Any]:
    events = [
        {
            "name": each.name,
            "timeUnixNano": str(each.time_us * 1_000),
            "attributes": _attributes(each.attributes),
        }
        for each in made.events
    ]
    return {
        "traceId": made.trace_id,
        "spanId": made.span_id,
        **({} if made.parent_id is None else {"parentSpanId": made.parent_id}),
        "name": made.name,
        "kind": _KINDS.index(made.kind),
        "startTimeUnixNano": str(made.start_us * 1_000),
        "endTimeUnixNano": str(made.end_us * 1_000),
        "status": {"code": _STATUS.index(made.status), "message": made.status_text},
        "attributes": _attributes(made.attributes),
        "events": events,
    }


def _log(made: LogRecord) -> dict[str, Any]:
    ids = {"traceId": made.trace_id, "spanId": made.span_id}
    return {
        **{name: value for name, value in ids.items() if value is not None},
        "eventName": made.event_name,
        "timeUnixNano": str(made.time_us * 1_000),
        "severityNumber": made.severity,
        "body": _value(made.body),
        "attributes": _attributes(made.attributes),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _attributes(value)}}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    if value is None:
        return {}
    names = {bool: "boolValue", int: "intValue", float: "doubleValue"}
    name = names.get(type(value), "stringValue")
    return {name: str(value) if name == "intValue" else value}


def _packed(signal: Signal, document: Any) -> bytes:
    return ParseDict(_in_base64(document), _NAMES[signal][3]()).SerializeToString()


def _packed_span(span: dict[str, Any]) -> bytes:
    document = _in_base64(_document("traces", [span]))
    made = ParseDict(document, ExportTraceServiceRequest())
    return made.resource_spans[0].scope_spans[0].spans[0].SerializeToString()


def _in_base64(value: Any) -> Any:
    """Return a document with its ids as protobuf's own JSON has them."""
    if isinstance(value, list):
        return [_in_base64(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(each)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else _in_base64(each)
        for key, each in value.items()
    }


def _field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf that holds *content*."""
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def _wire(draw: random.Random, body: bytes) -> bytes:
    """Change wire types and field numbers, or put in numbers that are too long or too large."""
    changed = bytearray(body or b"\0")
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(changed))
        if draw.random() < 0.5:
            changed[at] = changed[at] & 0xF8 | draw.randrange(8)
        else:
            changed[at:at] = draw.choice(
                [b"\xff" * 9 + b"\x01", b"\xff" * 20, b"\x80" * 9, b"\x0a\xff\xff\xff\xff\x0f"]
            )
    return bytes(changed)


def _nested(depth: int) -> Any:
    value: Any = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def _deep(content_type: str, depth: int) -> bytes:
    """Return a request with a span whose attribute is nested so deep."""
    if content_type == JSON:
        opening = '{"arrayValue":{"values":[' * depth + '{"intValue":1}' + "]}}" * depth
        ids = f'"traceId":"{1:032x}","spanId":"{1:016x}"'
        span = "{" + ids + ',"name":"t","attributes":['
        span += '{"key":"deep","value":' + opening + "}]}"
        return ('{"resourceSpans":[{"scopeSpans":[{"spans":[' + span + "]}]}]}").encode()
    value = _field(1, b"x")
    for _ in range(depth):
        value = _field(5, _field(1, value))
    attribute = _field(1, b"deep") + _field(2, value)
    span_bytes = (
        _field(1, b"\1" * 16) + _field(2, b"\1" * 8) + _field(5, b"t") + _field(9, attribute)
    )
    return _field(1, _field(2, _field(2, span_bytes)))


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(24 << 20), 9, mtime=0)
