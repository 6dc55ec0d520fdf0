"""Traces as Jaeger's query API answers with them, and as its UI saves them.

Each span becomes one of the flat spans that ``dumps`` reads. Sources: ``model/json/model.go`` of
Jaeger 1.x (names and types of members, times in microseconds), and OpenTelemetry's "OpenTelemetry
to Jaeger Transformation" for what became a tag: kind, status, scope and the names of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolfault_collector.importers.members import objects_of
from toolfault_collector.otlp.calls.spans import JSON

__all__ = ["flat_span", "is_span", "is_trace", "spans_of"]

_Json = Mapping[str, JSON]
_SCOPES: Final = ("otel.scope.name", "otel.library.name")
_CODES: Final = ("otel.status_code", "status.code")
_TEXTS: Final = ("otel.status_description", "status.message")
# What Jaeger, or the way to it, added to the attributes of a span.
_ADDED: Final = frozenset(
    {"error", "span.kind", "internal.span.format", *_SCOPES, *_CODES, *_TEXTS}
    | {"otel.scope.version", "otel.library.version"}
)


def is_trace(value: _Json) -> bool:
    """Tell a trace by the processes beside its spans."""
    return isinstance(value.get("spans"), list) and isinstance(value.get("processes"), Mapping)


def is_span(value: _Json) -> bool:
    """Tell a span by the spelling of its id and by its name."""
    return "spanID" in value and "operationName" in value


def spans_of(trace: _Json) -> Iterator[JSON]:
    """Yield the spans of a trace, each with its trace's id and its own process."""
    processes = trace["processes"]
    for span in trace["spans"]:
        known = isinstance(span, Mapping) and isinstance(span.get("processID"), str)
        process = processes.get(span["processID"]) if known else None
        of_trace = {"spanID": None, "operationName": "", "traceID": trace.get("traceID")}
        yield {"process": process, **of_trace, **(span if isinstance(span, Mapping) else {})}


def flat_span(value: _Json) -> dict[str, JSON]:
    """Return a span of Jaeger with the members of a flat span."""
    tags = _tags(value.get("tags"))
    start, duration = _number(value.get("startTime")), _number(value.get("duration"))
    process = value.get("process")
    process = process if isinstance(process, Mapping) else {}
    resource = _tags(process.get("tags"))
    if isinstance(process.get("serviceName"), str):
        resource["service.name"] = process["serviceName"]
    return {
        "trace_id": _id(value.get("traceID"), 32),
        "span_id": _id(value.get("spanID"), 16),
        "parent_span_id": _parent(value),
        "name": value.get("operationName"),
        "kind": tags.get("span.kind"),
        "start_time": start * 1_000,
        "end_time": (start + duration) * 1_000 if start else 0,
        "status": _status(tags),
        "attributes": {key: each for key, each in tags.items() if key not in _ADDED},
        "events": [_event(each) for each in objects_of(value.get("logs"))],
        "resource": resource,
        "scope": _first(tags, _SCOPES),
    }


def _id(value: JSON, digits: int) -> JSON:
    """Return an id with the zeros that Jaeger leaves out at its beginning."""
    return value.rjust(digits, "0") if isinstance(value, str) and value else value


def _parent(value: _Json) -> JSON:
    for each in objects_of(value.get("references")):
        same = each.get("traceID") in (None, value.get("traceID"))
        if same and each.get("refType") == "CHILD_OF":
            return _id(each.get("spanID"), 16)
    return _id(value.get("parentSpanID"), 16)


def _status(tags: _Json) -> _Json:
    """Return the status that OpenTelemetry wrote as tags, or OpenTracing's tag ``error``."""
    code, text, error = _first(tags, _CODES), _first(tags, _TEXTS), tags.get("error")
    failed = error is True or (isinstance(error, str) and error.lower() not in ("", "false"))
    if failed:
        code = "ERROR"
        if text is None and isinstance(error, str) and error.lower() != "true":
            text = error  # as Zipkin has it
    return {"code": code, "message": text}


def _event(log: _Json) -> dict[str, JSON]:
    fields = _tags(log.get("fields"))
    name = fields.pop("event", None)
    return {"name": name, "time": _number(log.get("timestamp")) * 1_000, "attributes": fields}


def _tags(value: JSON) -> dict[str, JSON]:
    return {
        key: _typed(each.get("value"), each.get("type"))
        for each in objects_of(value)
        if isinstance(key := each.get("key"), str)
    }


def _typed(value: JSON, kind: JSON) -> JSON:
    """Return a value as its type says; Elasticsearch keeps them all as texts."""
    if not isinstance(value, str):
        return value
    try:
        if kind == "int64":
            return int(value)
        if kind == "float64":
            return float(value)
    except ValueError:
        return value
    return value == "true" if kind == "bool" else value


def _number(value: JSON) -> int:
    value = _typed(value, "int64")
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _first(tags: _Json, names: tuple[str, ...]) -> JSON:
    return next((tags[name] for name in names if tags.get(name) is not None), None)
