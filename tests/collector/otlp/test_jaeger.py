"""Spans out of what Jaeger answers and saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolfault_collector.clock import now_us
from toolfault_collector.importers import Conversation, Problem, parse_file
from toolfault_collector.otlp.calls.spans import Span, SpanEvent
from toolfault_collector.otlp.encoding.dumps import read_dump

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_760_000_000_123_456


def _tag(key: str, value: Any, kind: str = "string") -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


def _span(number: int, *tags: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a call of the tool ``book`` with the id ``c<number>``."""
    named = [
        _tag("gen_ai.operation.name", "execute_tool"),
        _tag("gen_ai.tool.name", "book"),
        _tag("gen_ai.tool.call.id", f"c{number}"),
    ]
    return {
        "traceID": TRACE, "spanID": f"b7ad6b716920333{number}", "flags": 1,
        "operationName": "execute_tool book",
        "references": [
            {"refType": "FOLLOWS_FROM", "traceID": TRACE, "spanID": "1111111111111111"},
            {"refType": "CHILD_OF", "traceID": "f" * 32, "spanID": "2222222222222222"},
            {"refType": "CHILD_OF", "traceID": TRACE, "spanID": "f067aa0ba902b7"},
        ],
        "startTime": START + number, "duration": 100_000, "tags": [*named, *tags], "logs": [],
        "processID": "p1", "warnings": None, **members,
    }  # fmt: skip


def _answer(*spans: Any) -> dict[str, Any]:
    process = {"serviceName": "travel", "tags": [_tag("process.pid", 7, "int64")]}
    trace = {"traceID": TRACE, "spans": [*spans], "processes": {"p1": process}, "warnings": None}
    return {"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}


def test_a_span_of_jaeger_has_all_that_was_sent() -> None:
    """Tags are attributes, logs events, the process the resource; what Jaeger added is gone."""
    fields = [_tag("event", "exception"), _tag("exception.type", "SoldOut")]
    tags = [
        _tag("seats", "2", "int64"), _tag("price", "9.5", "float64"), _tag("ok", "true", "bool"),
        _tag("span.kind", "client"), _tag("error", True, "bool"), _tag("otel.scope.name", "s"),
        _tag("otel.status_code", "ERROR"), _tag("otel.status_description", "sold out"),
        _tag("internal.span.format", "otlp"),
    ]  # fmt: skip
    written = _span(1, *tags, logs=[{"timestamp": START + 5, "fields": fields}])
    attributes = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1", "seats": 2, "price": 9.5, "ok": True,
    }  # fmt: skip
    wanted = Span(
        TRACE, "b7ad6b7169203331", "00f067aa0ba902b7", "execute_tool book", "client",
        START + 1, START + 100_001, "error", "sold out", attributes,
        (SpanEvent("exception", START + 5, {"exception.type": "SoldOut"}),),
        {"service.name": "travel", "process.pid": 7}, "s",
    )  # fmt: skip
    assert list(read_dump(_answer(written))) == [wanted]
    own_process = {"serviceName": "travel", "tags": [_tag("process.pid", "7", "int64")]}
    assert list(read_dump({**written, "process": own_process})) == [wanted]


@pytest.mark.parametrize(
    ("tags", "status", "text"),
    [
        ([], "unset", ""),
        ([_tag("error", True, "bool")], "error", ""),
        ([_tag("error", "true")], "error", ""),
        ([_tag("error", "no seats left")], "error", "no seats left"),
        ([_tag("error", False, "bool")], "unset", ""),
        ([_tag("error", False, "bool"), _tag("otel.status_code", "ERROR")], "error", ""),
        ([_tag("otel.status_code", "OK")], "ok", ""),
        ([_tag("status.code", 2, "int64"), _tag("status.message", "no")], "error", "no"),
    ],
)
def test_the_status_is_what_the_tags_say(
    tags: list[dict[str, Any]], status: str, text: str
) -> None:
    """Those of OpenTelemetry, of its older exporters, of OpenTracing and of Zipkin."""
    (span,) = read_dump(_answer(_span(1, *tags)))
    assert isinstance(span, Span)
    assert (span.status, span.status_text) == (status, text)


def test_ids_are_those_that_were_sent() -> None:
    """Jaeger leaves out zeros at the beginning, also those of a whole half of a trace's id."""
    short = _span(1, traceID="8448eb211c80319c", spanID="7ad6b7169203331", references=[])
    (span,) = read_dump(short)
    assert isinstance(span, Span)
    assert (span.trace_id, span.span_id) == (f"{0:016}8448eb211c80319c", "07ad6b7169203331")


@pytest.mark.parametrize(
    "damaged",
    [
        {"spanID": ""}, {"spanID": None}, {"spanID": [1]}, {"traceID": 5},
        {"tags": {"key": 5}}, {"tags": [None, {"key": 5}, {"key": "a"}]}, {"logs": [None, 7]},
        {"references": "x"}, {"references": [None]}, {"startTime": "x", "duration": None},
        {"processID": ["p1"]}, {"processID": "p9"}, None, 7,
    ],
    ids=str,
)  # fmt: skip
def test_a_damaged_span_costs_only_itself(damaged: Any, tmp_path: Path) -> None:
    """Three calls stand around it, one of them failed; one without an id is said to be missing."""
    odd = {**_span(4), **damaged} if isinstance(damaged, dict) else damaged
    failed = _span(2, _tag("error", True, "bool"), _tag("otel.status_description", "sold out"))
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(_answer(_span(1), odd, failed, _span(3))))
    items = list(parse_file(path, now=now_us()))
    calls = [call for item in items if isinstance(item, Conversation) for call in item.calls]
    problems = [item.message for item in items if isinstance(item, Problem)]
    good = [call for call in calls if call.members["span_id"] != "b7ad6b7169203334"]
    assert [(call.tool, call.status, call.text) for call in good] == [
        ("book", "ok", ""), ("book", "failed", "sold out"), ("book", "ok", "")
    ]  # fmt: skip
    assert len(calls) + len(problems) == 4
    assert all("no id of its own or of its trace" in each for each in problems)
