"""OTLP as JSON, read by hand into the records of `spans`.

Ids are hexadecimal, 64-bit integers may be texts, enums may be names, members may be written in
camelCase or snake_case, and unknown ones are ignored (OTLP 1.x, "JSON Protobuf Encoding"). What
protobuf's own `json_format` makes of it is wrong for ids, which it takes for base64.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from toolfault_collector.otlp.calls.spans import LogRecord, Span, SpanEvent, SpanStatus
from toolfault_collector.otlp.encoding.items import (
    MAX_DEPTH,
    MAX_EVENTS,
    BadBody,
    BadItem,
    Items,
    Room,
    microseconds,
)
from toolfault_collector.otlp.points import Point, points_of
from toolfault_collector.protocol.steps import Steps

__all__ = ["any_value", "attributes_of", "read_logs", "read_metrics", "read_spans", "whole"]

_STATUS: Final[dict[Any, SpanStatus]] = {
    1: "ok",
    2: "error",
    "STATUS_CODE_OK": "ok",
    "STATUS_CODE_ERROR": "error",
}
_KINDS: Final[dict[Any, str]] = {
    key: name
    for number, name in enumerate(("internal", "server", "client", "producer", "consumer"), 1)
    for key in (number, f"SPAN_KIND_{name.upper()}")
}
_CUMULATIVE: Final = (2, "AGGREGATION_TEMPORALITY_CUMULATIVE")
_HEX: Final = re.compile(r"[0-9a-f]+", re.ASCII)
_DIGITS: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_ALPHABET: Final = str.maketrans("-_", "+/")
_LARGEST: Final = 2**1_000  # what a double surely holds
_UPPER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBERS: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

Item = TypeVar("Item")
Make = Callable[[Mapping[str, Any], Mapping[str, Any], str], Item]


def read_spans(body: bytes) -> Steps[Items[Span]]:
    """Read the body of ``/v1/traces``.

    Raises:
        BadBody: It is no such request, or too long.
    """
    return _read(body, ("resourceSpans", "scopeSpans", "spans"), _span)


def read_logs(body: bytes) -> Steps[Items[LogRecord]]:
    """Read the body of ``/v1/logs``; for the rest see `read_spans`."""
    return _read(body, ("resourceLogs", "scopeLogs", "logRecords"), _log)


def read_metrics(body: bytes) -> Steps[Items[Sequence[Point]]]:
    """Read the body of ``/v1/metrics``, metric by metric; for the rest see `read_spans`."""
    return _read(body, ("resourceMetrics", "scopeMetrics", "metrics"), _metric)


def _read(body: bytes, names: tuple[str, str, str], make: Make[Item]) -> Steps[Items[Item]]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadBody(400, "the body is not one JSON document in UTF-8") from error
    if not isinstance(document, dict):
        raise BadBody(400, f'the body is no request of OTLP; send {{"{names[0]}": [...]}}')
    items: Items[Item] = Items()
    for item, resource, scope in _walk(document, names):
        if isinstance(item, dict):
            try:
                items.read.append(make(item, resource, scope))
            except BadItem as bad:
                items.refuse(_text(item, "name", Room()), str(bad))
        else:
            items.refuse("", "it is no JSON object")
        items.check()
        yield
    return items


def _walk(
    document: Mapping[str, Any], names: tuple[str, str, str]
) -> Iterator[tuple[Any, Mapping[str, Any], str]]:
    for of_resource in _list(document, names[0]):
        if not isinstance(of_resource, dict):
            yield of_resource, {}, ""  # refused as the items are, not passed over in silence
            continue
        resource = attributes_of(_object(of_resource, "resource"), Room())
        for of_scope in _list(of_resource, names[1]):
            if not isinstance(of_scope, dict):
                yield of_scope, {}, ""
                continue
            scope = _object(of_scope, "scope").get("name")
            for item in _list(of_scope, names[2]):
                yield item, resource, Room().text(scope) if isinstance(scope, str) else ""


def _snake(name: str) -> str:
    return _UPPER.sub("_", name).lower()


def _get(item: Mapping[str, Any], name: str) -> Any:
    value = item.get(name)
    return item.get(_snake(name)) if value is None else value


def _object(item: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = _get(item, name)
    return value if isinstance(value, dict) else {}


def _list(item: Mapping[str, Any], name: str) -> list[Any]:
    value = _get(item, name)
    return value if isinstance(value, list) else []


def _objects(item: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return [each for each in _list(item, name) if isinstance(each, dict)]


def _text(item: Mapping[str, Any], name: str, room: Room) -> str:
    value = _get(item, name)
    return room.text(value) if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """Return a signed 64-bit integer, which may be written as a text; None for anything else."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        return None
    return value


def _id(value: Any, length: int, what: str) -> str:
    text = value.lower() if isinstance(value, str) else ""
    if len(text) != 2 * length or not _HEX.fullmatch(text) or not text.strip("0"):
        raise BadItem(f"its {what} is not {2 * length} hexadecimal digits, or all zero")
    return text


def _parent(value: Any) -> str | None:
    try:
        return _id(value, 8, "parent span id")
    except BadItem:
        return None


def _span(span: Mapping[str, Any], resource: Mapping[str, Any], scope: str) -> Span:
    room = Room()
    status = _object(span, "status")
    return Span(
        trace_id=_id(_get(span, "traceId"), 16, "trace id"),
        span_id=_id(_get(span, "spanId"), 8, "span id"),
        parent_id=_parent(_get(span, "parentSpanId")),
        name=_text(span, "name", room),
        kind=_named(_KINDS, _get(span, "kind")),
        start_us=microseconds(_get(span, "startTimeUnixNano")),
        end_us=microseconds(_get(span, "endTimeUnixNano")),
        status=_status(_get(status, "code")),
        status_text=_text(status, "message", room),
        attributes=attributes_of(span, room),
        events=tuple([_event(each, room) for each in _objects(span, "events")[:MAX_EVENTS]]),
        resource=resource,
        scope=scope,
    )


def _status(value: Any) -> SpanStatus:
    return _STATUS.get(value, "unset") if isinstance(value, int | str) else "unset"


def _named(names: Mapping[Any, str], value: Any) -> str:
    return names.get(value, "") if isinstance(value, int | str) else ""


def _event(event: Mapping[str, Any], room: Room) -> SpanEvent:
    at = microseconds(_get(event, "timeUnixNano"))
    return SpanEvent(_text(event, "name", room), at, attributes_of(event, room))


def _log(record: Mapping[str, Any], resource: Mapping[str, Any], scope: str) -> LogRecord:
    room = Room()
    trace_id, span_id = _get(record, "traceId"), _get(record, "spanId")
    at = microseconds(_get(record, "timeUnixNano"))
    return LogRecord(
        trace_id=_id(trace_id, 16, "trace id") if trace_id else None,
        span_id=_id(span_id, 8, "span id") if span_id else None,
        event_name=_text(record, "eventName", room),
        time_us=at or microseconds(_get(record, "observedTimeUnixNano")),
        severity=whole(_get(record, "severityNumber")) or 0,
        body=any_value(_get(record, "body"), room),
        attributes=attributes_of(record, room),
        resource=resource,
        scope=scope,
    )


def _metric(metric: Mapping[str, Any], resource: Mapping[str, Any], _scope: str) -> Sequence[Point]:
    data = _object(metric, "histogram") or _object(metric, "exponentialHistogram")
    counted = [
        (
            whole(_get(each, "count")) or 0,
            microseconds(_get(each, "startTimeUnixNano")),
            microseconds(_get(each, "timeUnixNano")),
            attributes_of(each, Room()),
        )
        for each in _objects(data, "dataPoints")
    ]
    cumulative = _get(data, "aggregationTemporality") in _CUMULATIVE
    return points_of(
        _text(metric, "name", Room()), counted, cumulative=cumulative, resource=resource
    )


def attributes_of(item: Mapping[str, Any], room: Room) -> dict[str, Any]:
    """Return the attributes of *item*; those that there is no *room* for are left out."""
    found: dict[str, Any] = {}
    for pair in _objects(item, "attributes"):
        key = pair.get("key")
        if isinstance(key, str) and len(found) < room.attributes:
            found[room.text(key)] = any_value(pair.get("value"), room)
    return found


def any_value(value: Any, room: Room, depth: int = 0) -> Any:
    """Return what an AnyValue holds."""
    if not isinstance(value, dict) or depth > MAX_DEPTH:
        return None
    for name, given in value.items():
        read = _VALUES.get(name) if given is not None else None
        if read is not None:
            return read(given, room, depth)
    return None


def _array(given: Any, room: Room, depth: int) -> Any:
    values = _list(given, "values") if isinstance(given, dict) else []
    return [any_value(each, room, depth + 1) for each in values[: room.members]]


def _pairs(given: Any, room: Room, depth: int) -> Any:
    pairs = _objects(given, "values") if isinstance(given, dict) else []
    return {
        room.text(key): any_value(each.get("value"), room, depth + 1)
        for each in pairs[: room.members]
        if isinstance(key := each.get("key"), str)
    }


def _number(given: Any, _room: Room, _depth: int) -> Any:
    if isinstance(given, str):
        return _NUMBERS.get(given)
    if isinstance(given, int) and abs(given) > _LARGEST:
        return None
    return float(given) if isinstance(given, int | float) else None


def _bytes(given: str, room: Room) -> str:
    """Return bytes, which JSON has in base64 of either alphabet, as `protobuf` does."""
    try:
        padded = given.translate(_ALPHABET) + "=" * (-len(given) % 4)
        given = b64decode(padded, validate=True).hex()
    except ValueError:
        pass  # a sender that writes something else
    return room.text(given)


_VALUES: Final[Mapping[str, Callable[[Any, Room, int], Any]]] = {
    camel: read
    for name, read in {
        "stringValue": lambda given, room, _: room.text(given) if isinstance(given, str) else None,
        "boolValue": lambda given, _room, _depth: given if isinstance(given, bool) else None,
        "intValue": lambda given, _room, _depth: whole(given),
        "doubleValue": _number,
        "arrayValue": _array,
        "kvlistValue": _pairs,
        "bytesValue": lambda given, room, _: (
            _bytes(given, room) if isinstance(given, str) else None
        ),
    }.items()
    for camel in (name, _snake(name))
}
