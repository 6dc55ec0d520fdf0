"""``POST /v1/traces``, ``/v1/logs`` and ``/v1/metrics``: OTLP over HTTP, protobuf or JSON.

The way of a request is that of ``/v1/events`` (`intake`), with the same keys, limits and promise:
2xx means committed. The answers are those of OTLP 1.x: in the encoding of the request, 200 with
``partial_success`` where some of it was left out, and else a ``google.rpc.Status``. What will never
be taken is 400 (or 401, 403, 413, 415), what may be sent again later is 503 with ``Retry-After``:
also what exceeds a quota, since exporters of 2025 and before take 429 for final and lose the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.datastructures import Headers
from starlette.types import Scope, Send

from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.clock import now_us
from toolfault_collector.http.intake import Intake
from toolfault_collector.http.problems import Problem, send_json
from toolfault_collector.otlp.encoding.items import Encoding
from toolfault_collector.otlp.request import read_request
from toolfault_collector.otlp.submission import Signal, TraceSubmission
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.repair import clean_text
from toolfault_collector.protocol.steps import Steps

__all__ = ["OTLP_PATHS", "OtlpEndpoint"]

OTLP_PATHS: Final[Mapping[str, Signal]] = {
    "/v1/traces": "traces",
    "/v1/logs": "logs",
    "/v1/metrics": "metrics",
}
_TYPES: Final[Mapping[str, Encoding]] = {
    "application/x-protobuf": "protobuf",
    "application/json": "json",
}
# About how long a span is: bounds the queue before a body is read.
_BYTES_PER_ITEM: Final = 512
# Characters of a User-Agent that are kept.
_SENDER: Final = 128
# What a sender is told of what was left out.
_REASONS: Final = 3

_log = structlog.get_logger(__name__)


class _Answer(NamedTuple):
    """How a signal is answered: its message, and what it calls the number that was left out."""

    message: Callable[[], Message]
    rejected: str
    camel: str


_ANSWERS: Final[Mapping[Signal, _Answer]] = {
    "traces": _Answer(ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "logs": _Answer(ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    "metrics": _Answer(ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
}
# HTTP status to the status that OTLP's clients of gRPC know (google.rpc.Code).
_CODES: Final = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 413: 8, 415: 3, 503: 14}


class OtlpEndpoint(Intake[TraceSubmission]):
    """The ASGI application behind the three paths of OTLP."""

    types = _TYPES.keys()
    over_quota = 503
    tells_full = False  # no exporter sends again after 507

    def read(
        self, body: bytes, content_type: str, key: ApiKey, scope: Scope, headers: Headers
    ) -> Steps[TraceSubmission]:
        """Return the spans, log records or points in *body*."""
        return read_request(
            body,
            OTLP_PATHS[scope["path"]],
            _TYPES[content_type],
            project_id=key.project_id,
            received_at=now_us(),
            key_id=key.id,
            sender=clean_text(headers.get("user-agent", "")[:_SENDER]) or None,
        )

    def estimate(self, body: bytes) -> int:
        """Return how many spans are about as long."""
        return 1 + len(body) // _BYTES_PER_ITEM

    async def answer(
        self, send: Send, scope: Scope, batch: TraceSubmission, receipt: Receipt
    ) -> None:
        """Send OTLP's own answer, and log what was left out."""
        signal, headers = OTLP_PATHS[scope["path"]], Headers(scope=scope)
        if left_out := [each.reason for each in batch.refused]:
            _log.warning("otlp_left_out", signal=signal, count=len(left_out), why=left_out[:3])
        body, content_type = _success(signal, headers, batch, receipt)
        await send_json(send, 200, body=body, content_type=content_type)

    async def refuse(self, send: Send, scope: Scope, problem: Problem) -> None:
        """Send *problem* as a ``google.rpc.Status`` in the encoding of the request."""
        code, message = _CODES.get(problem.status, 2), f"{problem.code}: {problem.detail}"
        if _is_json(Headers(scope=scope)):
            body = msgspec.json.encode({"code": code, "message": message})
            content_type = b"application/json"
        else:
            body, content_type = _status(code, message), b"application/x-protobuf"
        await send_json(
            send, problem.status, body=body, content_type=content_type, headers=problem.headers
        )


def _is_json(headers: Headers) -> bool:
    return headers.get("content-type", "").startswith("application/json")


def _success(
    signal: Signal, headers: Headers, submission: TraceSubmission, receipt: Receipt
) -> tuple[bytes, bytes]:
    """Return the answer to a request that was stored, and its content type."""
    answer, left_out = _ANSWERS[signal], len(submission.refused) + len(receipt.rejected)
    message = ""
    if left_out:
        reasons = [
            *(each.reason for each in submission.refused),
            *(f"{each.code} at {each.pointer}" for each in receipt.rejected),
        ]
        message = "left out: " + "; ".join(list(dict.fromkeys(reasons))[:_REASONS])
    if _is_json(headers):
        # 64-bit integers are texts in OTLP's JSON.
        partial_success = {answer.camel: str(left_out), "errorMessage": message}
        document = {"partialSuccess": partial_success} if left_out else {}
        return msgspec.json.encode(document), b"application/json"
    response: Any = answer.message()
    if left_out:
        setattr(response.partial_success, answer.rejected, left_out)
        response.partial_success.error_message = message
    return response.SerializeToString(), b"application/x-protobuf"


def _status(code: int, message: str) -> bytes:
    """Return a ``google.rpc.Status``: a number in field 1, a text in field 2.

    Written by hand, since the package that has the type would be there for nothing else.
    """
    text = message.encode()[:16_000]
    return bytes((0x08, code, 0x12)) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
