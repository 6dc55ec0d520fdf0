"""Spans in the shapes that exports, tables and loggers give them: the same calls in each."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.collector.importers.counting import parsed

from toolfault_collector.clock import now_us
from toolfault_collector.importers import Conversation, Problem, parse_file
from toolfault_collector.otlp.calls.spans import MAX_NESTING

_Span = dict[str, Any]
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
_EXCEPTION: Final = {"exception.type": "ValueError", "exception.message": "city must be a string"}
_ASKED: Final = [{"message.role": "assistant", "message.tool_calls": [
    {"tool_call.id": f"call_{number}", "tool_call.function.name": name,
     "tool_call.function.arguments": '{"city": 5}'}
    for number, name in ((1, "get_weather"), (2, "get_wether"))]}]  # fmt: skip
_TOLD: Final = [
    {"message.role": "tool", "message.tool_call_id": f"call_{number}", "message.content": text}
    for number, text in ((1, "no"), (2, "Error: get_wether is not a valid tool"))
]


def _span(number: int, kind: str, name: str, **attributes: Any) -> _Span:
    return {
        "name": name, "span_kind": kind, "parent_id": _id(1) if number > 1 else None,
        "context": {"trace_id": TRACE, "span_id": _id(number)},
        "start_time": f"2026-03-01T09:00:0{number}.000001+00:00",
        "end_time": f"2026-03-01T09:00:0{number}.500001+00:00",
        "status_code": "UNSET", "status_message": "", "events": [],
        "attributes": {name.replace("__", "."): value for name, value in attributes.items()},
    }  # fmt: skip


def _id(number: int) -> str:
    return f"00f067aa0ba902c{number}"


# A model asks for two tools, of which one does not exist; the other fails by its event alone.
SPANS: Final[list[_Span]] = [
    _span(1, "AGENT", "agent", session__id="c-1"),
    _span(2, "LLM", "chat", llm__output_messages=_ASKED),
    {**_span(3, "TOOL", "tools", tool__name="get_weather", input__value='{"city": 5}'),
     "events": [{"name": "exception", "timestamp": "2026-03-01T09:00:03.4+00:00",
                 "attributes": _EXCEPTION}]},
    _span(4, "LLM", "chat", llm__input_messages=_TOLD),
    _span(5, "TOOL", "get_time", output__value="12:00"),
]  # fmt: skip
CALLS: Final = [("get_wether", "failed"), ("get_weather", "failed"), ("get_time", "ok")]


def _nested(value: Any) -> Any:
    """Write dots in names as objects in objects, as Phoenix stores attributes."""
    if isinstance(value, list):
        return [_nested(each) for each in value]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for name, each in value.items():
        *above, last = name.split(".")
        node = found
        for part in above:
            node = node.setdefault(part, {})
        node[last] = _nested(each)
    return found


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    members: Any = []
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    else:
        return {name: value}
    return {
        key: leaf
        for part, each in members
        for key, leaf in _flat(each, f"{name}.{part}" if name else str(part)).items()
    }


def _each(change: Callable[[_Span], _Span]) -> str:
    return json.dumps([{**span, **change(span)} for span in SPANS])


def _rows(nothing: Any = None) -> list[_Span]:
    """Write the spans as rows of a data frame of Phoenix."""
    rows = [
        {**{f"context.{name}": value for name, value in span["context"].items()},
         **{f"attributes.{name}": value for name, value in span["attributes"].items()},
         **{name: value for name, value in span.items() if name not in ("context", "attributes")}}
        for span in SPANS
    ]  # fmt: skip
    columns = sorted({name for row in rows for name in row})
    return [
        {name: nothing if row.get(name) is None else row[name] for name in columns} for row in rows
    ]


def _by_column() -> str:
    rows = _rows()
    return json.dumps(
        {name: {str(at): row[name] for at, row in enumerate(rows)} for name in rows[0]}
    )


def _split() -> str:
    rows = _rows()
    data = [list(row.values()) for row in rows]
    return json.dumps({"columns": list(rows[0]), "index": [*range(len(rows))], "data": data})


def _graphql(span: _Span) -> _Span:
    """Write a span as Phoenix's GraphQL answers do."""
    events = [
        {"name": each["name"], "message": each["attributes"]["exception.message"]}
        for each in span["events"]
    ]
    return {"node": {
        "name": span["name"], "spanKind": span["span_kind"].lower(), "parentId": span["parent_id"],
        "statusCode": span["status_code"], "statusMessage": "", "events": events,
        "context": {"traceId": TRACE, "spanId": span["context"]["span_id"]},
        "startTime": span["start_time"], "endTime": span["end_time"],
        "attributes": json.dumps(_nested(span["attributes"])),
    }}  # fmt: skip


def _otlp(ids: Callable[[str], str]) -> list[_Span]:
    return [
        {"traceId": ids(TRACE), "spanId": ids(span["context"]["span_id"]), "name": span["name"],
         "parentSpanId": ids(span["parent_id"]) if span["parent_id"] else "",
         "startTimeUnixNano": f"177235560{number}000001000",
         "endTimeUnixNano": f"177235560{number}500001000",
         "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": kind}},
                        *({"key": key, "value": {"stringValue": value}}
                          for key, value in _flat(span["attributes"]).items())],
         "events": [{"name": "exception", "attributes": [
             {"key": key, "value": {"stringValue": value}} for key, value in _EXCEPTION.items()]}
             for _ in span["events"]]}
        for number, span in enumerate(SPANS, 1) for kind in [span["span_kind"]]
    ]  # fmt: skip


def _tempo(ids: Callable[[str], str]) -> str:
    return json.dumps({"batches": [{"scopeSpans": [{"spans": _otlp(ids)}]}]})


def _tags(values: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return [
        {"key": key, "type": kinds.get(type(value), "string"), "value": value}
        for key, value in values.items()
    ]


def _jaeger(spans: list[_Span] = SPANS) -> dict[str, Any]:
    """Write the spans as Jaeger's query API answers."""
    processes = {
        "p1": {"serviceName": "weather", "tags": _tags({"host.name": "h1", "process.pid": 7})}
    }
    return {"data": [{"traceID": TRACE, "processes": processes, "warnings": None, "spans": [
        {"traceID": TRACE, "spanID": span["context"]["span_id"].lstrip("0"), "flags": 1,
         "operationName": span["name"], "processID": "p1", "warnings": None,
         "references": [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": span["parent_id"]}]
         if span["parent_id"] else [],
         "startTime": 1772355600000001 + number * 10**6, "duration": 500_000,
         "tags": _tags({
             "openinference.span.kind": span["span_kind"], "otel.scope.name": "oi",
             **{key: value if isinstance(value, str) else json.dumps(value)
                for key, value in span["attributes"].items()},
             "internal.span.format": "otlp"}),
         "logs": [{"timestamp": 1772355600400001 + number * 10**6,
                   "fields": _tags({"event": "exception", **each["attributes"]})}
                  for each in span["events"]]}
        for number, span in enumerate(spans, 1)]}],
        "total": 0, "limit": 0, "offset": 0, "errors": None}  # fmt: skip


def _base64(hexadecimal: str) -> str:
    return b64encode(bytes.fromhex(hexadecimal)).decode()


SHAPES: Final[dict[str, str]] = {
    "nested attributes": _each(lambda span: {"attributes": _nested(span["attributes"])}),
    "flat attributes": _each(lambda span: {"attributes": _flat(span["attributes"])}),
    "texts of JSON": _each(
        lambda span: {name: json.dumps(span[name]) for name in ("attributes", "events")}
    ),
    "nested events": _each(lambda span: {"events": _nested(span["events"])}),
    "events of texts": _each(
        lambda span: {"events": [
            {**each, "attributes": json.dumps(each["attributes"])} for each in span["events"]]}
    ),
    "status in columns": _each(
        lambda span: {"events": [], "status_code": None, "status_message": None,
                      "status.status_code": "StatusCode.ERROR" if span["events"] else "UNSET",
                      "status.description": "city must be a string" if span["events"] else None}
    ),
    "rows": json.dumps(_rows()),
    "rows with NaN": json.dumps(_rows(float("nan"))),
    "rows of texts": json.dumps([
        {name: json.dumps(value) if isinstance(value, list) else value
         for name, value in row.items()}
        for row in _rows()
    ]),
    "columns": _by_column(),
    "rows by id": json.dumps({row["context.span_id"]: row for row in _rows()}),
    "rows by trace": json.dumps({TRACE: SPANS}),
    "split": _split(),
    "GraphQL": json.dumps(
        {"data": {"project": {"spans": {"edges": [_graphql(span) for span in SPANS]}}}}
    ),
    "Tempo": _tempo(_base64),
    "Tempo, wrapped": json.dumps(
        {"trace": {"resourceSpans": [{"scopeSpans": [{"spans": _otlp(_base64)}]}]}}
    ),
    "old OTLP": json.dumps(
        {"resourceSpans": [{"instrumentationLibrarySpans": [{"spans": _otlp(str)}]}]}
    ),
    "Jaeger": json.dumps(_jaeger()),
    "Jaeger, one trace": json.dumps(_jaeger()["data"][0]),
    "printed": "\n".join(json.dumps(span, indent=4) for span in SPANS),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_calls_are_read_from_every_shape(shape: str, tmp_path: Path) -> None:
    """Whoever exported the spans: tools, failures, the call without a span, one conversation."""
    path = tmp_path / "spans.json"
    path.write_text(SHAPES[shape])
    (found,) = parsed(path)
    assert sorted((call.tool, call.status) for call in found.calls) == sorted(CALLS)
    assert found.label == "c-1"
    texts = [call.text for call in found.calls if call.tool == "get_weather"]
    assert texts == ["city must be a string"]


def test_ids_in_base64_are_the_ids_that_were_sent(tmp_path: Path) -> None:
    """A trace that arrived and is imported from Tempo counts once."""
    ids = []
    for name, written in (("hex", _tempo(str)), ("base64", _tempo(_base64))):
        path = tmp_path / f"{name}.json"
        path.write_text(written)
        (found,) = parsed(path)
        ids.append([call.members["event_id"] for call in found.calls])
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("layout", "where"),
    [
        pytest.param(layout, where, marks=[] if row == place else pytest.mark.long)
        for row, layout in enumerate(("lines", "array", "printed"))
        for place, where in enumerate(("around", "within", "text"))
    ],
)
def test_a_span_that_is_nested_too_deeply_costs_only_itself(
    layout: str, where: str, tmp_path: Path
) -> None:
    """Up to and beyond the depth that Python can read, it is named and its neighbours are read."""
    limit = sys.getrecursionlimit()
    path = tmp_path / "spans.json"
    context = {"trace_id": TRACE, "span_id": _id(9)}
    for depth in (MAX_NESTING, *range(limit - 70, limit + 10, 4), limit * 10):
        deep = "[" * depth + "1" + "]" * depth
        span = json.dumps({**SPANS[2], "context": context})
        span = {
            "around": '{"spans":' * depth + span + "}" * depth,
            "within": span.replace('"{\\"city\\": 5}"', deep),
            "text": span.replace('input.value": "{\\"city\\": 5}"', f'output.value": "{deep}"'),
        }[where]
        values = [span, *map(json.dumps, SPANS)]
        if layout == "printed":
            values = [f"{{\n{value[1:]}" for value in values]
        path.write_text(f"[{','.join(values)}]" if layout == "array" else "\n".join(values))
        items = list(parse_file(path, now=now_us()))
        calls = [call for item in items if isinstance(item, Conversation) for call in item.calls]
        problems = [item for item in items if isinstance(item, Problem)]
        assert {call.tool for call in calls} == {name for name, _ in CALLS}
        told = any("nested too deeply" in problem.message for problem in problems)
        found = _id(9) in {call.members["span_id"] for call in calls}
        assert told is not found


@pytest.mark.parametrize("by_line", [True, False])
def test_a_chat_that_names_its_span_is_no_span(tmp_path: Path, by_line: bool) -> None:
    """Ids alone make none; it was read as spans, with nothing in them."""
    ids = {"trace_id": TRACE, "span_id": _id(1)}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat: list[_Span] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Error: no"},
        {"role": "assistant", "content": "Bye"},
    ]
    path = tmp_path / "chat.jsonl"
    lines = [{**ids, **message} for message in chat] if by_line else [{**ids, "messages": chat}]
    path.write_text("\n".join(map(json.dumps, lines)))
    (found,) = parsed(path)
    assert [(call.tool, call.status) for call in found.calls] == [("f", "failed")]
