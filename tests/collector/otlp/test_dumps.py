"""The same spans out of every kind of file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfault_collector.otlp.calls.spans import LogRecord, Span, SpanEvent
from toolfault_collector.otlp.encoding.dumps import is_dump, read_dump
from toolfault_collector.otlp.encoding.items import MAX_ATTRIBUTES, MAX_ITEM, MAX_LIST

TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
START, END = 1_760_000_000_123_456, 1_760_000_000_223_456
NAMES: dict[str, Any] = {
    "openinference.span.kind": "TOOL",
    "tool.name": "book",
    "input.value": '{"seats": 1}',
}
WANTED = Span(
    TRACE, SPAN, PARENT, "book", "internal", START, END, "error", "sold out", NAMES,
    (SpanEvent("exception", START, {"exception.type": "SoldOut"}),),
    {"service.name": "travel"}, "s",
)  # fmt: skip


def _listed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": _listed({"service.name": "travel"})},
            "scopeSpans": [
                {
                    "scope": {"name": "s"},
                    "spans": [
                        {
                            "traceId": TRACE.upper(),
                            "spanId": SPAN,
                            "parentSpanId": PARENT,
                            "name": "book",
                            "kind": 1,
                            "startTimeUnixNano": f"{START}789",
                            "endTimeUnixNano": END * 1_000,
                            "status": {"code": 2, "message": "sold out"},
                            "attributes": _listed(NAMES),
                            "events": [
                                {
                                    "name": "exception",
                                    "timeUnixNano": f"{START}000",
                                    "attributes": _listed({"exception.type": "SoldOut"}),
                                }
                            ],
                        }
                    ],
                }
            ],
        }
    ]
}
PYTHON = {
    "name": "book",
    "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{SPAN}", "trace_state": "[]"},
    "kind": "SpanKind.INTERNAL",
    "parent_id": f"0x{PARENT}",
    "start_time": "2025-10-09T08:53:20.123456Z",
    "end_time": "2025-10-09T08:53:20.223456Z",
    "status": {"status_code": "ERROR", "description": "sold out"},
    "attributes": NAMES,
    "events": [
        {
            "name": "exception",
            "timestamp": "2025-10-09T08:53:20.123456Z",
            "attributes": {"exception.type": "SoldOut"},
        }
    ],
    "resource": {"attributes": {"service.name": "travel"}, "schema_url": ""},
    "instrumentation_scope": {"name": "s"},
}
FLAT = {
    "trace_id": TRACE,
    "span_id": SPAN,
    "parent_span_id": PARENT,
    "name": "book",
    "kind": "INTERNAL",
    "start_time": START * 1_000,
    "end_time": END * 1_000,
    "status": {"code": "ERROR", "message": "sold out"},
    "attributes": NAMES,
    "span_events": [
        {
            "event_name": "exception",
            "time": START * 1_000,
            "attributes": {"exception.type": "SoldOut"},
        }
    ],
    "resource": {"service.name": "travel"},
    "scope": {"name": "s"},
}
PHOENIX = {
    "context.trace_id": TRACE,
    "context.span_id": SPAN,
    "parent_id": PARENT,
    "name": "book",
    "span_kind": "TOOL",
    "start_time": "2025-10-09T08:53:20.123456+00:00",
    "end_time": "2025-10-09T08:53:20.223456+00:00",
    "status_code": "ERROR",
    "status_message": "sold out",
    "attributes.tool.name": "book",
    "attributes.input.value": '{"seats": 1}',
    "attributes.llm.input_messages": None,
    "events": FLAT["span_events"],
}


@pytest.mark.parametrize("value", [OTLP, PYTHON, FLAT], ids=["otlp", "python", "flat"])
def test_every_shape_gives_the_same_span(value: dict[str, Any]) -> None:
    """Ids, times to the microsecond, status, attributes, events, resource and scope."""
    assert list(read_dump(value)) == [WANTED]
    assert list(read_dump([value, {"spans": [value]}, 7, "x"])) == [WANTED, WANTED]
    assert is_dump(value)


def test_nothing_of_a_file_is_cut() -> None:
    """A message that is longer than a sender's may be is whole, and its neighbours are there."""
    long = {"gen_ai.input.messages": json.dumps(["x" * 2 * MAX_ITEM])}
    many = {f"llm.input_messages.{n}.message.role": "user" for n in range(MAX_ATTRIBUTES)}
    attributes = {**many, **long, **NAMES}
    (span,) = read_dump({**PYTHON, "attributes": _listed(attributes)})
    assert isinstance(span, Span)
    assert dict(span.attributes) == attributes
    values = {"arrayValue": {"values": [{"intValue": "1"}] * (MAX_LIST + 1)}}
    (span,) = read_dump({**PYTHON, "attributes": [{"key": "list", "value": values}]})
    assert isinstance(span, Span)
    assert span.attributes["list"] == [1] * (MAX_LIST + 1)


def test_plain_values_of_attributes_are_read() -> None:
    """Programs that write spans down list keys and values without the types of OTLP, too."""
    listed = [{"key": key, "value": value} for key, value in {**NAMES, "n": 7, "no": None}.items()]
    (span,) = read_dump({**PYTHON, "attributes": listed})
    assert isinstance(span, Span)
    assert dict(span.attributes) == {**NAMES, "n": 7, "no": None}


def test_phoenix_exports_are_read_by_their_columns() -> None:
    """Columns, and objects within objects, become the flat names of OpenInference."""
    (span,) = read_dump(PHOENIX)
    assert isinstance(span, Span)
    assert (span.span_id, span.parent_id, span.start_us) == (SPAN, PARENT, START)
    assert (span.status, span.status_text, dict(span.attributes)) == ("error", "sold out", NAMES)
    call = {"message.role": "assistant", "message.tool_calls": [{"tool_call.id": "c1"}]}
    nested = {**PHOENIX, "attributes.llm.output_messages": [call]}
    (span,) = read_dump(nested)
    key = "llm.output_messages.0.message.tool_calls.0.tool_call.id"
    assert isinstance(span, Span)
    assert span.attributes[key] == "c1"


@pytest.mark.parametrize("before", ["spans", "list", "node"])
def test_spans_are_found_at_any_depth(before: str) -> None:
    """Wrappers around a span are no calls of Python, of which there are a thousand."""
    value: Any = FLAT
    for _ in range(5_000):
        value = [value] if before == "list" else {before: value}
    assert list(read_dump([value, FLAT])) == [WANTED, WANTED]


def test_log_records_of_a_request_are_read() -> None:
    """Values of every type, in either spelling of the members."""
    values = [
        {"key": "a", "value": {"intValue": "7"}},
        {"key": "b", "value": {"arrayValue": {"values": [{"boolValue": True}]}}},
        {"key": "c", "value": {"kvlistValue": {"values": _listed({"d": "e"})}}},
    ]
    record = {
        "timeUnixNano": f"{START}000",
        "severityNumber": 13,
        "eventName": "tool_result",
        "body": {"stringValue": "hello"},
        "attributes": values,
        "traceId": TRACE,
        "spanId": "",
    }
    request = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "s"}, "logRecords": [record]}]}]}
    attributes = {"a": 7, "b": [True], "c": {"d": "e"}}
    assert list(read_dump(request)) == [
        LogRecord(TRACE, None, "tool_result", START, 13, "hello", attributes, {}, "s")
    ]


@pytest.mark.parametrize(
    "value", [{}, [], None, {"messages": []}, {"trace_id": "", "span_id": "0000"}, {"spans": 3}]
)
def test_what_holds_no_spans_is_no_dump(value: Any) -> None:
    """Other JSON is passed over."""
    assert not is_dump(value)


_KEYS = sorted({*FLAT, *PYTHON, *PHOENIX, "resourceSpans", "scopeSpans", "spans", "value", "key"})
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(_KEYS), _ANY, max_size=8))
def test_no_value_raises(value: dict[str, Any]) -> None:
    """Whatever stands where something else is meant, reading goes on."""
    for each in (value, {**FLAT, **value}, {**PYTHON, **value}, {**PHOENIX, **value}):
        found = list(read_dump(each))
        assert all(json.dumps(item.trace_id) for item in found)
