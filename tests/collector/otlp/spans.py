"""Spans as senders write them, in both encodings of OTLP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from tests.running import RunningCollector

from toolfault_collector.clock import SECOND_US, now_us

__all__ = ["BEGAN", "as_json", "as_protobuf", "send", "span"]

BEGAN = now_us() - 600 * SECOND_US
RESOURCE = {
    "service.name": "travel-bot",
    "service.version": "1.4.0",
    "deployment.environment.name": "prod",
}
_STATUS = {"unset": 0, "ok": 1, "error": 2}


def span(
    trace: int,
    number: int,
    name: str,
    *,
    parent: int | None = None,
    at: float = 0.0,
    seconds: float = 1.0,
    status: str = "unset",
    message: str = "",
    **attributes: Any,
) -> dict[str, Any]:
    """A span; the ``__`` of attributes are dots, *at* is in seconds after `BEGAN`."""
    start = BEGAN + round(at * SECOND_US)
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        **({} if parent is None else {"parentSpanId": f"{parent:016x}"}),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start * 1_000),
        "endTimeUnixNano": str((start + round(seconds * SECOND_US)) * 1_000),
        "status": {"code": _STATUS[status], "message": message},
        "attributes": attributes_of({key.replace("__", "."): v for key, v in attributes.items()}),
    }


def attributes_of(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP's JSON has them."""
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def as_json(spans: Iterable[Any], resource: Mapping[str, Any] = RESOURCE) -> bytes:
    """The spans as one request in JSON."""
    scope = {"scope": {"name": "tests"}, "spans": list(spans)}
    of_resource = {"resource": {"attributes": attributes_of(resource)}, "scopeSpans": [scope]}
    return json.dumps({"resourceSpans": [of_resource]}).encode()


def as_protobuf(spans: Iterable[dict[str, Any]], resource: Mapping[str, Any] = RESOURCE) -> bytes:
    """The spans as one request in protobuf."""
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    for pair in attributes_of(resource):
        of_resource.resource.attributes.add(key=pair["key"], value=_any(pair["value"]))
    scope = of_resource.scope_spans.add()
    scope.scope.name = "tests"
    for each in spans:
        made = scope.spans.add(
            trace_id=bytes.fromhex(each["traceId"]),
            span_id=bytes.fromhex(each["spanId"]),
            parent_span_id=bytes.fromhex(each.get("parentSpanId", "")),
            name=each["name"],
            kind=each["kind"],
            start_time_unix_nano=int(each["startTimeUnixNano"]),
            end_time_unix_nano=int(each["endTimeUnixNano"]),
        )
        made.status.code = each["status"]["code"]
        made.status.message = each["status"]["message"]
        for pair in each["attributes"]:
            made.attributes.add(key=pair["key"], value=_any(pair["value"]))
    return request.SerializeToString()


def _any(value: Mapping[str, Any]) -> AnyValue:
    ((kind, given),) = value.items()
    if kind == "intValue":
        return AnyValue(int_value=int(given))
    if kind == "boolValue":
        return AnyValue(bool_value=given)
    return AnyValue(string_value=given) if kind == "stringValue" else AnyValue(double_value=given)


def send(
    server: RunningCollector,
    body: bytes,
    *,
    signal: str = "traces",
    content_type: str = "application/json",
    zipped: bool = False,
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """Send a body to one of the endpoints of OTLP."""
    sent = {"Content-Type": content_type, **(headers or {})}
    if zipped:
        body, sent["Content-Encoding"] = gzip.compress(body), "gzip"
    return server.client.post(f"{server.url}/v1/{signal}", content=body, headers=sent)
