"""OTLP as protobuf: the official messages, walked by hand into the records of `spans`.

A message that cannot be parsed as a whole is taken apart along its nesting (resource, scope, item),
so that one item with, say, a text that is no UTF-8 does not cost its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from toolfault_collector.otlp.calls.spans import LogRecord, Span, SpanEvent, SpanStatus
from toolfault_collector.otlp.encoding.items import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_EVENTS,
    MAX_LIST,
    BadBody,
    BadItem,
    Items,
    Room,
    microseconds,
)
from toolfault_collector.otlp.points import Point, points_of
from toolfault_collector.protocol.steps import Steps

__all__ = ["read_logs", "read_metrics", "read_spans"]

_STATUS: Final[dict[int, SpanStatus]] = {0: "unset", 1: "ok", 2: "error"}
_KINDS: Final = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
_NO_ID: Final = (b"\0" * 16, b"\0" * 8)

Item = TypeVar("Item")
Make = Callable[[Any, Mapping[str, Any], str], Item]


class _Signal(NamedTuple):
    """The messages of one signal, and the names of its nesting."""

    request: type[Message]
    item: type[Message]
    of_request: str
    of_resource: str
    of_scope: str


_TRACES: Final = _Signal(
    ExportTraceServiceRequest, trace_pb2.Span, "resource_spans", "scope_spans", "spans"
)
_LOGS: Final = _Signal(
    ExportLogsServiceRequest, logs_pb2.LogRecord, "resource_logs", "scope_logs", "log_records"
)
_METRICS: Final = _Signal(
    ExportMetricsServiceRequest,
    metrics_pb2.Metric,
    "resource_metrics",
    "scope_metrics",
    "metrics",
)


def read_spans(body: bytes) -> Steps[Items[Span]]:
    """Read the body of ``/v1/traces``.

    Raises:
        BadBody: It is no such request, or too long.
    """
    return _read(body, _TRACES, _span)


def read_logs(body: bytes) -> Steps[Items[LogRecord]]:
    """Read the body of ``/v1/logs``; for the rest see `read_spans`."""
    return _read(body, _LOGS, _log)


def read_metrics(body: bytes) -> Steps[Items[Sequence[Point]]]:
    """Read the body of ``/v1/metrics``, metric by metric; for the rest see `read_spans`."""
    return _read(body, _METRICS, _metric)


def _read(body: bytes, signal: _Signal, make: Make[Item]) -> Steps[Items[Item]]:
    items: Items[Item] = Items()
    try:
        message = signal.request.FromString(body)
    except DecodeError:
        found = _taken_apart(body, signal)
    else:
        found = _walk(message, signal)
    for item, resource, scope in found:
        if item is None:
            items.refuse("", "its bytes are no message of OTLP, or hold a text that is not UTF-8")
        else:
            try:
                items.read.append(make(item, resource, scope))
            except BadItem as bad:
                items.refuse(getattr(item, "name", ""), str(bad))
        items.check()
        yield
    return items


_Found = Iterator[tuple[Any, Mapping[str, Any], str]]


def _walk(message: Any, signal: _Signal) -> _Found:
    for of_resource in getattr(message, signal.of_request):
        resource = _attributes(of_resource.resource.attributes, Room())
        for of_scope in getattr(of_resource, signal.of_resource):
            scope = of_scope.scope.name
            for item in getattr(of_scope, signal.of_scope):
                yield item, resource, scope


def _taken_apart(body: bytes, signal: _Signal) -> _Found:
    """Yield what `_walk` does of a body that has a fault somewhere; None for an item that has it.

    All signals nest alike: field 1 has resource (1) and scopes (2), these scope (1) and items (2).
    """
    try:
        for outer in list(_fields(body, 1)):
            parsed = _parsed(Resource, next(_fields(outer, 1), b""))
            resource = _attributes(parsed.attributes, Room()) if parsed is not None else {}
            for middle in _fields(outer, 2):
                scope = _parsed(InstrumentationScope, next(_fields(middle, 1), b""))
                for inner in _fields(middle, 2):
                    yield _parsed(signal.item, inner), resource, scope.name if scope else ""
    except ValueError as error:
        raise BadBody(400, "the body is no request of OTLP in protobuf") from error


def _parsed(kind: type[Message], body: bytes) -> Any:
    try:
        return kind.FromString(body)
    except DecodeError:
        return None


def _fields(body: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the bytes of each field *wanted* that has a length (protobuf, "Encoding").

    Raises:
        ValueError: The bytes are no message.
    """
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, kind = tag >> 3, tag & 7
        if kind == 2:
            length, at = _varint(body, at)
            if at + length > len(body):
                raise ValueError("cut off")
            if number == wanted:
                yield body[at : at + length]
            at += length
        elif kind == 0:
            _, at = _varint(body, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("no such kind of field")
        if at > len(body) or not number:
            raise ValueError("cut off")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body) or shift > 63:
            raise ValueError("no number")
        byte = body[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _id(raw: bytes, length: int, what: str) -> str:
    if len(raw) != length or raw in _NO_ID:
        raise BadItem(f"its {what} is not {length} bytes, or all zero")
    return raw.hex()


def _span(span: Any, resource: Mapping[str, Any], scope: str) -> Span:
    room = Room()
    parent = span.parent_span_id
    return Span(
        trace_id=_id(span.trace_id, 16, "trace id"),
        span_id=_id(span.span_id, 8, "span id"),
        parent_id=parent.hex() if len(parent) == 8 and parent not in _NO_ID else None,
        name=room.text(span.name),
        kind=_KINDS.get(span.kind, ""),
        start_us=microseconds(span.start_time_unix_nano),
        end_us=microseconds(span.end_time_unix_nano),
        status=_STATUS.get(span.status.code, "unset"),
        status_text=room.text(span.status.message),
        attributes=_attributes(span.attributes, room),
        events=tuple([_event(each, room) for each in span.events[:MAX_EVENTS]]),
        resource=resource,
        scope=scope,
    )


def _event(event: Any, room: Room) -> SpanEvent:
    at = microseconds(event.time_unix_nano)
    return SpanEvent(room.text(event.name), at, _attributes(event.attributes, room))


def _log(record: Any, resource: Mapping[str, Any], scope: str) -> LogRecord:
    room = Room()
    return LogRecord(
        trace_id=_id(record.trace_id, 16, "trace id") if record.trace_id else None,
        span_id=_id(record.span_id, 8, "span id") if record.span_id else None,
        event_name=room.text(record.event_name),
        time_us=microseconds(record.time_unix_nano or record.observed_time_unix_nano),
        severity=record.severity_number,
        body=_value(record.body, room, 0),
        attributes=_attributes(record.attributes, room),
        resource=resource,
        scope=scope,
    )


def _metric(metric: Any, resource: Mapping[str, Any], _scope: str) -> Sequence[Point]:
    kind = metric.WhichOneof("data")
    if kind not in ("histogram", "exponential_histogram"):
        return ()
    data = getattr(metric, kind)
    counted = [
        (
            each.count,
            microseconds(each.start_time_unix_nano),
            microseconds(each.time_unix_nano),
            _attributes(each.attributes, Room()),
        )
        for each in data.data_points
    ]
    return points_of(
        metric.name, counted, cumulative=data.aggregation_temporality == 2, resource=resource
    )


def _attributes(pairs: Any, room: Room) -> dict[str, Any]:
    """Return attributes; those beyond the limit are left out, the first of one name wins."""
    found: dict[str, Any] = {}
    for pair in pairs:
        if len(found) >= MAX_ATTRIBUTES:
            break
        value = pair.value
        kind = value.WhichOneof("value")
        found[pair.key] = (
            room.text(value.string_value) if kind == "string_value" else _value(value, room, 0)
        )
    return found


def _value(value: Any, room: Room, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > MAX_DEPTH:
        return None
    if kind == "string_value":
        return room.text(value.string_value)
    if kind == "array_value":
        return [_value(each, room, depth + 1) for each in value.array_value.values[:MAX_LIST]]
    if kind == "kvlist_value":
        pairs = value.kvlist_value.values[:MAX_LIST]
        return {room.text(each.key): _value(each.value, room, depth + 1) for each in pairs}
    if kind == "bytes_value":
        return room.text(value.bytes_value.hex())
    return getattr(value, kind)
