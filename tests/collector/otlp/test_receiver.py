"""The three endpoints of OTLP, as exporters use them: over HTTP, in both encodings."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode
from sqlalchemy import select
from tests.collector.otlp.spans import RESOURCE, as_json, as_protobuf, send, span
from tests.factories import success
from tests.running import RunningCollector, new_key

from toolfault_collector.doctor.recount import recount
from toolfault_collector.otlp.encoding import json_body, protobuf
from toolfault_collector.protocol.steps import finish
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.tables import (
    otlp_request,
    project,
    rejected_event,
    tool_call,
    trace_batch,
)

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
Stored = Callable[[], list[dict[str, Any]]]


def calls_in(server: RunningCollector, name: str = "demo") -> list[dict[str, Any]]:
    """What is stored of a project's calls, oldest first."""
    engine = open_engine(server.database_url)
    query = select(tool_call).join(project, project.c.id == tool_call.c.project_id)
    with engine.connect() as conn:
        rows = conn.execute(query.where(project.c.name == name).order_by(tool_call.c.occurred_at))
        found = [dict(row) for row in rows.mappings()]
    assert recount(engine).right
    engine.dispose()
    return found


@pytest.fixture
def own(
    shared_collector: RunningCollector, request: pytest.FixtureRequest
) -> Iterator[RunningCollector]:
    """The shared collector with a project of one test."""
    seen = shared_collector.of_project(request.node.name)
    yield seen
    seen.client.close()


@pytest.fixture
def stored(own: RunningCollector, request: pytest.FixtureRequest) -> Stored:
    """What is stored of that project's calls."""
    return lambda: calls_in(own, request.node.name)


def tool_span(trace: int, number: int = 2, tool: str = "search", **members: Any) -> dict[str, Any]:
    """A span of a tool call, of OpenTelemetry's GenAI conventions."""
    members = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": tool,
        "gen_ai__tool__call__id": f"call-{trace}-{number}",
        **members,
    }
    return span(trace, number, f"execute_tool {tool}", **members)


@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)
@pytest.mark.parametrize("compression", [Compression.Gzip])
def test_the_official_exporter(server: RunningCollector, compression: Compression) -> None:
    """Spans of the official SDK arrive as calls, with agent, release, conversation and error."""
    exporter = OTLPSpanExporter(
        endpoint=f"{server.url}/v1/traces",
        headers={"Authorization": f"Bearer {server.key}"},
        compression=compression,
    )
    provider = TracerProvider(resource=Resource.create(RESOURCE))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "conv-7"}
    with tracer.start_as_current_span("invoke_agent", attributes=agent):
        for number in (1, 2):
            tool = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.id": f"call_{number}",
            }
            with tracer.start_as_current_span("execute_tool search", attributes=tool) as made:
                if number == 1:
                    made.set_status(Status(StatusCode.ERROR, "limit: Field required"))
                    made.set_attribute("error.type", "ValidationError")
    assert provider.force_flush()
    provider.shutdown()

    failed, worked = calls_in(server)
    assert (failed["success"], worked["success"]) == (False, True)
    for call, call_id in ((failed, "call_1"), (worked, "call_2")):
        assert (call["tool"], call["call_id"]) == ("search", call_id)
        assert (call["agent"], call["release"], call["environment"]) == tuple(
            RESOURCE[key]
            for key in ("service.name", "service.version", "deployment.environment.name")
        )
        assert call["session_id"] == "conv-7"
    assert failed["chain_id"] == worked["chain_id"] == failed["event_id"]
    assert failed["detection"] == "status"
    assert "Field required" in failed["text_llm"]
    assert failed["exception_type"] == "ValidationError"
    assert (failed["derived_by"], worked["derived_by"]) == ("invalid", None)


def test_the_official_exporter_of_logs(own: RunningCollector, stored: Stored) -> None:
    """A log record outside any trace that reports a failed call makes one."""
    exporter = OTLPLogExporter(
        endpoint=f"{own.url}/v1/logs", headers={"Authorization": f"Bearer {own.key}"}
    )
    provider = LoggerProvider(resource=Resource.create(RESOURCE))
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    attributes = {
        "session.id": "s-1",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "success": "false",
        "error": "Exit code 1",
    }
    record = LogRecord(event_name="claude_code.tool_result", attributes=attributes)
    provider.get_logger("com.anthropic.claude_code").emit(record)
    provider.shutdown()

    (call,) = stored()
    assert (call["tool"], call["call_id"], call["session_id"]) == ("Bash", "toolu_1", "s-1")
    assert call["success"] is False


def test_both_encodings_are_the_same(own: RunningCollector, stored: Stored) -> None:
    """The same spans in either encoding, packed or not, are the same calls, and kept once."""
    spans = [tool_span(5, status="error", message="boom", flag=True, n=3, x=0.5), span(5, 1, "x")]
    for content_type in (PROTOBUF, JSON, f"{JSON}; charset=utf-8"):
        body = as_protobuf(spans) if content_type == PROTOBUF else as_json(spans)
        for zipped in (False, True):
            answer = send(own, body, content_type=content_type, zipped=zipped)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == content_type.partition(";")[0]
            assert answer.content == (b"" if content_type == PROTOBUF else b"{}")
    (call,) = stored()
    engine = open_engine(own.database_url)
    mine = trace_batch.c.project_id == call["project_id"]
    with engine.connect() as conn:
        assert len(conn.execute(select(trace_batch.c.id).where(mine)).all()) == 1
    engine.dispose()


def test_json_as_others_write_it(own: RunningCollector, stored: Stored) -> None:
    """Snake case, numbers for 64-bit integers, names of enums and unknown members are read."""
    given = {
        "resource_spans": [
            {
                "scope_spans": [
                    {
                        "spans": [
                            {
                                "trace_id": "AB" * 16,
                                "span_id": "CD" * 8,
                                "name": "execute_tool t",
                                "kind": "SPAN_KIND_INTERNAL",
                                "start_time_unix_nano": 1_750_000_000_000_000_000,
                                "end_time_unix_nano": "1750000001000000000",
                                "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
                                "unknown": {"x": [1]},
                                "attributes": [
                                    {"key": "gen_ai.tool.name", "value": {"string_value": "t"}},
                                    {
                                        "key": "gen_ai.operation.name",
                                        "value": {"stringValue": "execute_tool"},
                                    },
                                    {"key": "odd", "value": {"unknownValue": 1}},
                                ],
                            }
                        ]
                    }
                ]
            }
        ]
    }
    assert send(own, json.dumps(given).encode()).content == b"{}"
    (call,) = stored()
    assert (call["trace_id"], call["span_id"]) == ("ab" * 16, "cd" * 8)
    assert (call["success"], call["duration_ms"]) == (False, 1_000.0)
    assert call["occurred_at"] == 1_750_000_001_000_000


def test_one_bad_span_never_loses_its_neighbours(own: RunningCollector, stored: Stored) -> None:
    """What cannot be read is left out, counted and explained; the rest is stored."""
    bad: list[Any] = [
        {**tool_span(1), "traceId": "not hex"},
        {**tool_span(2), "spanId": "00" * 8},
        "no object",
        {**tool_span(3), "startTimeUnixNano": [], "events": {}, "status": 7, "kind": None},
    ]
    answer = send(own, as_json([*bad, tool_span(4, 9)]))
    assert answer.status_code == 200
    partial = answer.json()["partialSuccess"]
    assert partial["rejectedSpans"] == "3"
    assert "trace id" in partial["errorMessage"]
    assert {call["trace_id"] for call in stored()} == {f"{3:032x}", f"{4:032x}"}


def test_what_stands_around_spans_is_no_less_explained(
    own: RunningCollector, stored: Stored
) -> None:
    """A resource or scope that is no object is counted as left out, and its neighbours stay."""
    request = json.loads(as_json([tool_span(1)]))
    request["resourceSpans"][0]["scopeSpans"].insert(0, "no object")
    request["resourceSpans"].insert(0, None)
    partial = send(own, json.dumps(request).encode()).json()["partialSuccess"]
    assert (partial["rejectedSpans"], "no JSON object" in partial["errorMessage"]) == ("2", True)
    assert len(stored()) == 1


@pytest.mark.parametrize(
    "value",
    [
        {"intValue": "99999999999999999999"},
        {"intValue": -(2**63) - 1},
        {"doubleValue": 10**30},
        {"doubleValue": 10**400},
        {"arrayValue": {"values": [{"intValue": 2**70}, {"kvlistValue": {"values": 5}}]}},
        {"doubleValue": "NaN"},
    ],
)
def test_numbers_that_no_number_holds(own: RunningCollector, stored: Stored, value: Any) -> None:
    """An attribute beyond the numbers of OTLP costs neither its span nor the server."""
    odd = tool_span(1)
    odd["attributes"].append({"key": "odd", "value": value})
    odd["attributes"].append({"key": "gen_ai.tool.call.arguments", "value": value})
    assert send(own, as_json([odd])).json() == {}
    assert len(stored()) == 1


def test_one_unreadable_message_never_loses_its_neighbours(
    own: RunningCollector, stored: Stored
) -> None:
    """A text that is no UTF-8, which no parser of protobuf takes, costs its own span alone."""
    body = as_protobuf([tool_span(1, 1, message="no UTF-8", status="error"), tool_span(1, 2)])
    answer = send(own, body.replace(b"no UTF-8", b"\xff\xfe" * 4), content_type=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_spans == 1
    assert "UTF-8" in partial.error_message
    (call,) = stored()
    assert (call["span_id"], call["agent"]) == (f"{2:016x}", "travel-bot")


def _status(answer: httpx2.Response) -> tuple[int, str]:
    """Code and message of a ``google.rpc.Status``, in whichever encoding."""
    if answer.headers["content-type"] == JSON:
        return answer.json()["code"], answer.json()["message"]
    assert answer.headers["content-type"] == PROTOBUF
    assert (answer.content[0], answer.content[2]) == (0x08, 0x12)
    skipped = 5 if answer.content[3] > 0x7F else 4
    return answer.content[1], answer.content[skipped:].decode()


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_refusals_are_statuses_of_rpc(collector: RunningCollector, content_type: str) -> None:
    """What is refused for good is 4xx with a ``google.rpc.Status`` in the request's encoding."""
    read_key = new_key(collector.database_url, project="demo", kind="read")
    good = as_protobuf([tool_span(6)]) if content_type == PROTOBUF else as_json([tool_span(6)])
    cases: list[tuple[bytes, dict[str, str], int, int]] = [
        (b"\xff junk", {}, 400, 3),
        (good, {"Authorization": "Bearer tf_ingest_abc"}, 401, 16),
        (good, {"Authorization": f"Bearer {read_key}"}, 403, 7),
        (good, {"Content-Encoding": "br"}, 415, 3),
        (b"x", {"Content-Encoding": "gzip"}, 400, 3),
        (b"\0" * (6 * 1_024 * 1_024), {}, 413, 8),
    ]
    for body, headers, status, code in cases:
        for signal in ("traces", "logs", "metrics"):
            answer = send(
                collector, body, content_type=content_type, signal=signal, headers=headers
            )
            assert answer.status_code == status, (headers, answer.text)
            assert _status(answer)[0] == code
            assert "tf_ingest_abc" not in _status(answer)[1]
    wrong = send(collector, good, content_type="text/plain")
    assert wrong.status_code == 415
    asked = collector.get("/v1/traces")
    assert (asked.status_code, asked.headers["allow"]) == (405, "POST")


def test_bombs_are_refused(collector: RunningCollector) -> None:
    """What unpacks to far more than it is, nests without end or has too many items is refused."""
    deep = b'{"resourceSpans":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    packed = gzip.compress(b"\0" * (64 * 1_024 * 1_024))
    many = as_json([{}] * 10_001)
    request = ExportTraceServiceRequest()
    for _ in range(10_001):
        request.resource_spans.add().scope_spans.add().spans.add()
    headers = {"Content-Encoding": "gzip"}
    for content_type in (PROTOBUF, JSON):
        answer = send(collector, packed, content_type=content_type, headers=headers)
        assert answer.status_code == 413
    assert send(collector, deep).status_code == 400
    assert send(collector, many).status_code == 413
    crowded = send(collector, request.SerializeToString(), content_type=PROTOBUF)
    assert crowded.status_code == 413


def test_large_spans_are_cut(own: RunningCollector, stored: Stored) -> None:
    """Deep, long and many attributes are cut to what there is room for; the call is stored."""
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(60):
        value = {"arrayValue": {"values": [value]}}
    large = tool_span(8, status="error", message="\0m" * 400_000)
    large["attributes"] += [{"key": "deep", "value": value}]
    large["attributes"] += [{"key": f"a{n}", "value": {"stringValue": "y"}} for n in range(3_000)]
    large["events"] = [{"name": "exception", "attributes": []}] * 1_000
    assert send(own, as_json([large])).json() == {}
    (call,) = stored()
    assert call["success"] is False
    assert "\0" not in call["text_llm"]


def test_an_empty_request_is_fine(collector: RunningCollector) -> None:
    """No spans at all are a full success, as OTLP wants it."""
    for signal in ("traces", "logs", "metrics"):
        assert send(collector, b"", content_type=PROTOBUF, signal=signal).status_code == 200
        assert send(collector, b"{}", signal=signal).json() == {}


def test_a_quota_is_said_as_exporters_understand_it(sqlite_url: str, tmp_path: Any) -> None:
    """Who exceeds a quota is told to come again: 503 with Retry-After, which no exporter drops."""
    with RunningCollector(
        sqlite_url, folder=tmp_path, TOOLFAULT_QUOTA_EVENTS_PER_MINUTE="2"
    ) as server:
        assert send(server, as_json([tool_span(1, 1), tool_span(1, 2)])).status_code == 200
        answer = send(server, as_json([tool_span(1, 3)]))
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["code"] == 14


def test_the_report_of_the_sdk_stays(own: RunningCollector, stored: Stored) -> None:
    """A call that the SDK reports too is one call, its richer one, whichever came first."""
    sdk: dict[str, Any] = {"call_id": "call-1-2", "trace_id": f"{1:032x}", "span_id": f"{2:016x}"}
    assert send(own, as_json([tool_span(1)])).status_code == 200
    assert own.post(success("search", session_id="mine", **sdk)).json()["accepted"] == 1
    assert own.post(success("search", session_id="mine", call_id="c2")).status_code == 200
    later = tool_span(2, gen_ai__conversation__id="mine", gen_ai__tool__call__id="c2")
    assert send(own, as_json([later])).status_code == 200
    assert [call["session_id"] for call in stored()] == ["mine", "mine"]


def test_received_requests_are_kept(own: RunningCollector, request: pytest.FixtureRequest) -> None:
    """The last requests say what was made of each span; only so many are kept."""
    bad = {**tool_span(1, 3), "traceId": ""}
    spans = [tool_span(1, status="error", message="boom"), span(1, 4, "GET /"), bad]
    for _ in range(205):
        assert send(own, as_json(spans), headers={"User-Agent": "tests"}).status_code == 200
    engine = open_engine(own.database_url)
    query = select(otlp_request).join(project, project.c.id == otlp_request.c.project_id)
    with engine.connect() as conn:
        found = conn.execute(
            query.where(project.c.name == request.node.name).order_by(otlp_request.c.id)
        )
        rows = found.all()
        refused = select(rejected_event.c.id).join(
            project, project.c.id == rejected_event.c.project_id
        )
        assert conn.execute(refused.where(project.c.name == request.node.name)).all() == []
    engine.dispose()
    assert len(rows) == 200
    last = rows[-1]
    assert (last.signal, last.encoding, last.sender) == ("traces", "json", "tests")
    assert (last.items, last.calls, last.rejected) == (3, 0, 1)
    assert [(name, verdict) for name, verdict, _ in last.detail] == [
        ("execute_tool search", "rejected"),
        ("search", "failure"),
        ("GET /", "no call"),
    ]


@pytest.mark.parametrize("raw", [b"", b"\x00", b"\xfb\xef\xff", bytes(range(256))])
def test_bytes_are_the_same_in_both_encodings(raw: bytes) -> None:
    """JSON has them in base64, also in that of addresses and without its end."""
    request = ExportTraceServiceRequest()
    made = request.resource_spans.add().scope_spans.add().spans.add()
    made.trace_id, made.span_id = b"t" * 16, b"s" * 8
    made.attributes.add(key="raw").value.bytes_value = raw
    (expected,) = finish(protobuf.read_spans(request.SerializeToString())).read
    assert expected.attributes == {"raw": raw.hex()}

    for written in (base64.b64encode(raw), base64.urlsafe_b64encode(raw).rstrip(b"=")):
        plain = span(1, 1, "", raw="")
        plain |= {"traceId": made.trace_id.hex(), "spanId": made.span_id.hex()}
        plain["attributes"] = [{"key": "raw", "value": {"bytesValue": written.decode()}}]
        (found,) = finish(json_body.read_spans(as_json([plain]))).read
        assert found.attributes == expected.attributes
