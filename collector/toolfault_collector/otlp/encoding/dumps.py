"""Spans out of JSON values as files hold them, whoever wrote the file.

Understood are requests of OTLP/JSON (``resourceSpans``, ``resourceLogs``), what the Python SDK
writes (``ReadableSpan.to_json``), flat spans (``trace_id``, ``span_id``, ``attributes``, times as
numbers), and exports of Phoenix (columns ``context.trace_id``, ``attributes.llm...``). A file may
hold them as an array, as lines, one by one, or wrapped (``{"spans": [...]}``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from toolfault_collector.importers.members import read_time
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span, SpanEvent, SpanStatus

__all__ = ["is_dump", "read_dump"]

MAX_DEPTH: Final = 24
_Json = Mapping[str, JSON]
_RESOURCES: Final = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")
_WRAPPERS: Final = ("spans", "data", "traces", "items")
_KINDS: Final = ("", "internal", "server", "client", "producer", "consumer")
_STATUS: Final[Mapping[str, SpanStatus]] = {
    "0": "unset",
    "1": "ok",
    "2": "error",
    "unset": "unset",
    "ok": "ok",
    "error": "error",
}


def is_dump(value: JSON) -> bool:
    """Say whether a JSON value holds spans or log records in one of these shapes."""
    return next(read_dump(value), None) is not None


def read_dump(value: JSON) -> Iterator[Span | LogRecord]:
    """Yield the spans and log records of a JSON value; what is none of these is passed over.

    Args:
        value: A whole document, one line of a file, or one element of its array.
    """
    if isinstance(value, list):
        for each in value:
            yield from read_dump(each)
    elif isinstance(value, Mapping):
        if any(isinstance(value.get(key), list) for key in _RESOURCES):
            yield from _request(value)
        elif _has_ids(value):
            if (span := _flat_span(value)) is not None:
                yield span
        else:
            for key in _WRAPPERS:
                if isinstance(value.get(key), list | dict):
                    yield from read_dump(value[key])


def _has_ids(value: _Json) -> bool:
    return _id_of(value, "span") is not None and _id_of(value, "trace") is not None


def _id_of(value: _Json, what: str) -> str | None:
    context = value.get("context")
    places = [value.get(f"{what}_id"), value.get(f"{what}Id"), value.get(f"context.{what}_id")]
    if isinstance(context, Mapping):
        places += [context.get(f"{what}_id"), context.get(f"{what}Id")]
    return next((found for place in places if (found := _hex(place))), None)


def _hex(value: JSON) -> str | None:
    """Return an id as lower-case digits, without the ``0x`` of the Python SDK."""
    if not isinstance(value, str) or not value:
        return None
    text = value.lower().removeprefix("0x")
    return text if text.strip("0") else None


def _flat_span(value: _Json) -> Span | None:
    trace_id, span_id = _id_of(value, "trace"), _id_of(value, "span")
    if trace_id is None or span_id is None:
        return None
    status, text = _status(value)
    resource = value.get("resource")
    inner = resource.get("attributes", resource) if isinstance(resource, Mapping) else {}
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=next(
            (
                found
                for key in ("parent_span_id", "parentSpanId", "parent_id", "parentId")
                if (found := _hex(value.get(key)))
            ),
            None,
        ),
        name=str(value.get("name") or ""),
        kind=_kind(value.get("kind", value.get("span_kind"))),
        start_us=_time(value, "start_time", "startTime", "startTimeUnixNano", "start"),
        end_us=_time(value, "end_time", "endTime", "endTimeUnixNano", "end"),
        status=status,
        status_text=text,
        attributes=_attributes_of(value),
        events=tuple(_events(value)),
        resource=_attributes(inner),
        scope=_scope(value),
    )


def _attributes_of(value: _Json) -> dict[str, JSON]:
    found = _attributes(value.get("attributes"))
    for key, each in value.items():  # Phoenix's columns
        if key.startswith("attributes.") and each is not None:
            _spread(key.removeprefix("attributes."), each, found)
    nested = [key for key, each in found.items() if key in _NESTED and _is_nested(each)]
    for key in nested:
        _spread(key, found.pop(key), found)
    kind = value.get("span_kind")
    if isinstance(kind, str) and kind.upper() in _OPENINFERENCE_KINDS:
        found.setdefault("openinference.span.kind", kind.upper())
    return found


# First parts of OpenInference's names, which Phoenix exports as objects within objects.
_NESTED: Final = frozenset(
    {"llm", "input", "output", "tool", "openinference", "session", "user", "agent", "tool_call"}
)
_OPENINFERENCE_KINDS: Final = frozenset(
    {"TOOL", "LLM", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL"}
)


def _is_nested(value: JSON) -> bool:
    return isinstance(value, Mapping | list)


def _spread(key: str, value: JSON, into: dict[str, JSON], depth: int = 0) -> None:
    """Write nested objects as the flat names that OpenInference gives them."""
    if depth < MAX_DEPTH and isinstance(value, Mapping) and key not in ("metadata",):
        for name, inner in value.items():
            _spread(f"{key}.{name}", inner, into, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list) and any(map(_is_nested, value)):
        for at, inner in enumerate(value):
            _spread(f"{key}.{at}", inner, into, depth + 1)
    elif value is not None:
        into[key] = value


def _attributes(value: JSON) -> dict[str, JSON]:
    """Read attributes: an object, or OTLP's list of keys and typed values."""
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items() if each is not None}
    found: dict[str, JSON] = {}
    for each in value if isinstance(value, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("key"), str):
            found[each["key"]] = _any_value(each.get("value"))
    return found


def _any_value(value: JSON, depth: int = 0) -> JSON:
    """Read OTLP's ``AnyValue``."""
    if not isinstance(value, Mapping) or depth > MAX_DEPTH:
        return value
    for key, inner in value.items():
        name = key.replace("_value", "Value")
        if name == "intValue":
            return _whole(inner)
        if name == "arrayValue" and isinstance(inner, Mapping):
            values = inner.get("values")
            members = values if isinstance(values, list) else ()
            return [_any_value(each, depth + 1) for each in members]
        if name == "kvlistValue" and isinstance(inner, Mapping):
            return {
                str(each.get("key")): _any_value(each.get("value"), depth + 1)
                for each in _objects(inner.get("values"))
            }
        if name in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
    return None


def _whole(value: JSON) -> JSON:
    """Read an integer that was written as a text; anything else is what it was."""
    try:
        # Python refuses more than 4,300 digits.
        is_text = isinstance(value, str) and value.removeprefix("-").isdecimal()
        return int(value) if is_text else value
    except ValueError:
        return value


def _time(value: _Json, *keys: str) -> int:
    for key in keys:
        each = value.get(key)
        each = _whole(each)
        if isinstance(each, int) and not isinstance(each, bool) and each > 10**17:
            return each // 1_000  # nanoseconds, exactly
        if (found := read_time(each)) is not None:
            return found
    return 0


def _kind(value: JSON) -> str:
    if isinstance(value, int) and 0 <= value < len(_KINDS):
        return _KINDS[value]
    text = str(value or "").lower().removeprefix("spankind.").removeprefix("span_kind_")
    return text if text in _KINDS else ""


def _status(value: _Json) -> tuple[SpanStatus, str]:
    status = value.get("status", value.get("status_code"))
    text = value.get("status_message")
    if isinstance(status, Mapping):
        text = status.get("message", status.get("description", text))
        status = status.get("code", status.get("status_code"))
    name = str(status if status is not None else "").lower()
    name = name.removeprefix("statuscode.").removeprefix("status_code_")
    return _STATUS.get(name, "unset"), text if isinstance(text, str) else ""


def _scope(value: _Json) -> str:
    for key in ("scope", "instrumentation_scope", "instrumentation_info"):
        scope = value.get(key)
        if isinstance(scope, Mapping):
            return str(scope.get("name") or "")
        if isinstance(scope, str):
            return scope
    return str(value.get("scope_name") or "")


def _events(value: _Json) -> Iterator[SpanEvent]:
    events = value.get("events", value.get("span_events"))
    for each in events if isinstance(events, list) else ():
        if isinstance(each, Mapping):
            at = _time(each, "timestamp", "time", "timeUnixNano", "time_unix_nano")
            name = each.get("name", each.get("event_name"))
            yield SpanEvent(str(name or ""), at, _attributes(each.get("attributes")))


def _request(value: _Json) -> Iterator[Span | LogRecord]:
    """Read a request of OTLP/JSON, in protobuf's or in JSON's spelling of its members."""
    for key in _RESOURCES:
        for group in _objects(value.get(key)):
            resource_of = group.get("resource")
            listed = resource_of.get("attributes") if isinstance(resource_of, Mapping) else None
            resource = _attributes(listed)
            for name in ("scopeSpans", "scope_spans", "scopeLogs", "scope_logs"):
                for scoped in _objects(group.get(name)):
                    scope = _scope(scoped)
                    for each in _objects(scoped.get("spans")):
                        span = _flat_span({**each, "resource": resource, "scope": scope})
                        if span is not None:
                            yield span
                    for each in _objects(scoped.get("logRecords", scoped.get("log_records"))):
                        yield _log_record(each, resource, scope)


def _objects(value: JSON) -> Iterator[_Json]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, Mapping):
            yield each


def _log_record(value: _Json, resource: _Json, scope: str) -> LogRecord:
    severity = value.get("severityNumber", value.get("severity_number"))
    return LogRecord(
        trace_id=_hex(value.get("traceId", value.get("trace_id"))),
        span_id=_hex(value.get("spanId", value.get("span_id"))),
        event_name=str(value.get("eventName", value.get("event_name")) or ""),
        time_us=_time(value, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano"),
        severity=severity if isinstance(severity, int) else 0,
        body=_any_value(value.get("body")),
        attributes=_attributes(value.get("attributes")),
        resource=resource,
        scope=scope,
    )
