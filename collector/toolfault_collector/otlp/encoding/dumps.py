"""Spans out of JSON values as files hold them, whoever wrote the file.

Understood are requests of OTLP/JSON (``resourceSpans``, ``resourceLogs``; also as Tempo answers and
older senders write them), what the Python SDK writes (``ReadableSpan.to_json``), flat spans
(``trace_id``, ``span_id``, ``attributes``, times as numbers), and exports of Phoenix: answers of
its APIs, and data frames (columns ``context.trace_id``, ``attributes.llm...``) in any of the
orientations of pandas, and traces of Jaeger (`jaeger`). Lists and objects may stand as JSON in a
text, as tables keep them. A file may hold spans as an array, as lines, one by one, or wrapped
(``{"spans": [...]}``).
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from math import isnan
from typing import Final

from toolfault_collector.importers.members import objects_of, read_time
from toolfault_collector.otlp.calls.dialects import decoded
from toolfault_collector.otlp.calls.spans import JSON, LogRecord, Span, SpanEvent, SpanStatus
from toolfault_collector.otlp.encoding import jaeger, json_body
from toolfault_collector.otlp.encoding.items import Room

__all__ = ["is_dump", "read_dump"]

MAX_DEPTH: Final = 24
_Json = Mapping[str, JSON]
_RESOURCES: Final = (
    *("resourceSpans", "resource_spans", "resourceLogs", "resource_logs"),
    "batches",  # Tempo
)
_SCOPES: Final = (
    *("scopeSpans", "scope_spans", "scopeLogs", "scope_logs"),
    *("instrumentationLibrarySpans", "instrumentation_library_spans"),  # OTLP before 0.19
)
_WRAPPERS: Final = (
    *("spans", "data", "traces", "trace", "items"),
    *("project", "projects", "edges", "node", "span"),  # Phoenix's answers to GraphQL
)
_ID_COLUMNS: Final = ("context.span_id", "span_id", "spanId")
_WITHOUT_IDS: Final = "a span has no id of its own or of its trace; it was left out"
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


def read_dump(
    value: JSON, on_refused: Callable[[str], object] = lambda why: None
) -> Iterator[Span | LogRecord]:
    """Yield the spans and log records of a JSON value; what is none of these is passed over.

    Args:
        value: A whole document, one line of a file, or one element of its array.
        on_refused: Called with a sentence for every span that cannot be one.
    """
    # A loop: values may be nested more deeply than calls of Python can be.
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif not isinstance(each, Mapping):
            continue
        elif any(isinstance(each.get(key), list) for key in _RESOURCES):
            yield from _request(each, on_refused)
        elif jaeger.is_trace(each):
            waiting += reversed([*jaeger.spans_of(each)])
        elif jaeger.is_span(each):
            yield from _known(_flat_span(jaeger.flat_span(each)), on_refused)
        elif _is_span(each):
            yield from _known(_flat_span(each), on_refused)
        elif (rows := _rows(each)) is not None:
            waiting += reversed(rows)
        else:
            waiting += (each[key] for key in reversed(_WRAPPERS) if key in each)


def _known(span: Span | None, on_refused: Callable[[str], object]) -> Iterator[Span]:
    if span is None:
        on_refused(_WITHOUT_IDS)
    else:
        yield span


def _rows(value: _Json) -> list[JSON] | None:
    """Return the rows of a data frame as ``DataFrame.to_json`` writes it; None for no such frame.

    Its orientations are ``columns``, ``index`` and ``split``; with ``records`` and ``table`` the
    rows are there as they are.
    """
    columns, data = value.get("columns"), value.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        names = [_word(name) for name in columns]
        return [dict(zip(names, row, strict=False)) for row in data if isinstance(row, list)]
    ids = next((value[name] for name in _ID_COLUMNS if isinstance(value.get(name), dict)), None)
    if ids is not None:
        members = {name: column for name, column in value.items() if isinstance(column, dict)}
        return [{name: column.get(at) for name, column in members.items()} for at in ids]
    rows = list(value.values())
    return rows if rows and all(map(_is_row, rows)) else None


def _is_row(value: JSON) -> bool:
    """Tell what stands under the id of a span or, in a list, of a trace."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, dict) and _is_span(value)


def _is_span(value: _Json) -> bool:
    """Tell a span from other things that bear ids of one, such as a chat that names its trace."""
    if _id_of(value, "span") is None or _id_of(value, "trace") is None:
        return False
    return any(key in value for key in _OF_SPANS) or any(
        key.startswith("attributes.") for key in value
    )


def _id_of(value: _Json, what: str) -> str | None:
    context = value.get("context")
    places = [value.get(f"{what}_id"), value.get(f"{what}Id"), value.get(f"context.{what}_id")]
    if isinstance(context, Mapping):
        places += [context.get(f"{what}_id"), context.get(f"{what}Id")]
    return next((found for place in places if (found := _hex(place))), None)


def _hex(value: JSON) -> str | None:
    """Return an id as lower-case digits, without the ``0x`` of the Python SDK.

    Protobuf's own JSON, which is not OTLP's, writes the bytes of an id in base64.
    """
    if not isinstance(value, str) or not value:
        return None
    text = value.lower().removeprefix("0x")
    if value.endswith("=") and len(value) in (12, 24):
        try:
            text = b64decode(value, validate=True).hex()
        except ValueError:
            return None
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
        parent_id=next(filter(None, (_hex(value.get(key)) for key in _PARENTS)), None),
        name=_word(value.get("name")),
        kind=_kind(_first(value, "kind", "span_kind", "spanKind")),
        start_us=_time(value, *_STARTS),
        end_us=_time(value, *_ENDS),
        status=status,
        status_text=text,
        attributes=_attributes_of(value),
        events=tuple(_events(value)),
        resource=_attributes(inner),
        scope=_scope(value),
    )


_STARTS: Final = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano", "start")
_ENDS: Final = ("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano", "end")
_OF_SPANS: Final = ("attributes", *_STARTS)
_PARENTS: Final = ("parent_span_id", "parentSpanId", "parent_id", "parentId")


def _first(value: _Json, *keys: str) -> JSON:
    """Return the first of these members that says something."""
    return next((found for key in keys if not _is_nothing(found := value.get(key))), None)


def _word(value: JSON) -> str:
    """Return a text, or what a number is written as; empty for anything else."""
    return str(value) if value and isinstance(value, str | int | float) else ""


def _is_nothing(value: JSON) -> bool:
    """Tell a null, and the NaN that data frames have in its place."""
    return value is None or (isinstance(value, float) and isnan(value))


def _attributes_of(value: _Json) -> dict[str, JSON]:
    found = _attributes(value.get("attributes"))
    for key, each in value.items():  # Phoenix's columns
        if key.startswith("attributes."):
            _spread(key.removeprefix("attributes."), each, found)
    _spread_all(found)
    kind = _first(value, "span_kind", "spanKind")
    if isinstance(kind, str) and kind.upper() in _OPENINFERENCE_KINDS:
        found.setdefault("openinference.span.kind", kind.upper())
    return found


# First parts of names that Phoenix exports as objects within objects.
_NESTED: Final = frozenset(
    {"llm", "input", "output", "tool", "openinference", "session", "user", "agent", "tool_call"}
    | {"gen_ai", "mcp", "exception"}
)
# Values that are data: they stay what they are.
_WHOLE: Final = frozenset(
    {"metadata", "input.value", "output.value", "tool.parameters", "llm.invocation_parameters"}
    | {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions"}
    | {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
)
# Lists of OpenInference's, which tables keep as JSON in a text.
_LISTS: Final = frozenset({"llm.input_messages", "llm.output_messages", "llm.tools"})
_OPENINFERENCE_KINDS: Final = frozenset(
    {"TOOL", "LLM", "AGENT", "CHAIN", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL"}
)


def _is_nested(value: JSON) -> bool:
    return isinstance(value, Mapping | list)


def _spread_all(attributes: dict[str, JSON]) -> None:
    """Write what is nested, or JSON in a text, as the flat names that its convention gives it."""
    for key in list(attributes):
        value = attributes[key]
        if key in _LISTS or (key.partition(".")[0] in _NESTED and _is_nested(value)):
            del attributes[key]
            _spread(key, value, attributes)


def _spread(key: str, value: JSON, into: dict[str, JSON], depth: int = 0) -> None:
    """Write nested objects as flat names, dots between their parts."""
    value = decoded(value) if key in _LISTS else value
    if _is_nothing(value):
        return
    if depth >= MAX_DEPTH or key in _WHOLE:
        into[key] = value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            _spread(f"{key}.{name}", inner, into, depth + 1)
    elif isinstance(value, list) and any(map(_is_nested, value)):
        for at, inner in enumerate(value):
            _spread(f"{key}.{at}", inner, into, depth + 1)
    else:
        into[key] = value


def _attributes(value: JSON) -> dict[str, JSON]:
    """Read attributes: an object, or a list of keys with values, typed as OTLP's or plain.

    Nothing is cut, as a sender's are: an argument, a message without its end is no JSON any more.
    """
    value = decoded(value)
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items() if not _is_nothing(each)}
    found = json_body.attributes_of({"attributes": value}, Room(bounded=False))
    for each in objects_of(value):
        key, plain = each.get("key"), each.get("value")
        if isinstance(key, str) and not isinstance(plain, Mapping):
            found[key] = plain
    return found


def _time(value: _Json, *keys: str) -> int:
    for key in keys:
        each = value.get(key)
        each = json_body.whole(each) if isinstance(each, str) and each.isdecimal() else each
        if isinstance(each, int) and not isinstance(each, bool) and each > 10**17:
            return each // 1_000  # nanoseconds, exactly
        if (found := read_time(each)) is not None:
            return found
    return 0


def _kind(value: JSON) -> str:
    if isinstance(value, int) and 0 <= value < len(_KINDS):
        return _KINDS[value]
    text = _word(value).lower().removeprefix("spankind.").removeprefix("span_kind_")
    return text if text in _KINDS else ""


def _status(value: _Json) -> tuple[SpanStatus, str]:
    status = value.get("status")
    inner = status if isinstance(status, Mapping) else {"code": status}
    text = _first(inner, "message", "description")
    if text is None:
        text = _first(value, *_STATUS_TEXTS)
    code = _first(inner, "code", "status_code")
    if code is None:
        code = _first(value, *_STATUS_CODES)
    name = _word(code).lower().removeprefix("statuscode.").removeprefix("status_code_")
    return _STATUS.get(name, "unset"), text if isinstance(text, str) else ""


_STATUS_CODES: Final = ("status_code", "statusCode", "status.code", "status.status_code")
_STATUS_TEXTS: Final = (
    *("status_message", "statusMessage", "status.message", "status.description"),
    "status_description",
)


def _scope(value: _Json) -> str:
    for key in _SCOPE_NAMES:
        scope = value.get(key)
        if isinstance(scope, Mapping):
            return _word(scope.get("name"))
        if isinstance(scope, str):
            return scope
    return _word(value.get("scope_name"))


_SCOPE_NAMES: Final = (
    *("scope", "instrumentation_scope", "instrumentation_info", "instrumentationScope"),
    *("instrumentationLibrary", "instrumentation_library"),
)


def _events(value: _Json) -> Iterator[SpanEvent]:
    for each in objects_of(decoded(_first(value, "events", "span_events"))):
        at = _time(each, "timestamp", "time", "timeUnixNano", "time_unix_nano")
        name = _word(_first(each, "name", "event_name"))
        attributes = _attributes(each.get("attributes"))
        _spread_all(attributes)
        message = each.get("message")
        if name == "exception" and isinstance(message, str):  # all that Phoenix's GraphQL tells
            attributes.setdefault("exception.message", message)
        yield SpanEvent(name, at, attributes)


def _request(value: _Json, on_refused: Callable[[str], object]) -> Iterator[Span | LogRecord]:
    """Read a request of OTLP/JSON, in protobuf's or in JSON's spelling of its members."""
    for key in _RESOURCES:
        for group in objects_of(value.get(key)):
            resource_of = group.get("resource")
            listed = resource_of.get("attributes") if isinstance(resource_of, Mapping) else None
            resource = _attributes(listed)
            for name in _SCOPES:
                for scoped in objects_of(group.get(name)):
                    scope = _scope(scoped)
                    for each in objects_of(scoped.get("spans")):
                        span = _flat_span({**each, "resource": resource, "scope": scope})
                        yield from _known(span, on_refused)
                    for each in objects_of(scoped.get("logRecords", scoped.get("log_records"))):
                        yield _log_record(each, resource, scope)


def _log_record(value: _Json, resource: _Json, scope: str) -> LogRecord:
    severity = value.get("severityNumber", value.get("severity_number"))
    return LogRecord(
        trace_id=_hex(value.get("traceId", value.get("trace_id"))),
        span_id=_hex(value.get("spanId", value.get("span_id"))),
        event_name=_word(value.get("eventName", value.get("event_name"))),
        time_us=_time(value, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano"),
        severity=severity if isinstance(severity, int) else 0,
        body=json_body.any_value(value.get("body"), Room(bounded=False)),
        attributes=_attributes(value.get("attributes")),
        resource=resource,
        scope=scope,
    )
