"""``POST /v1/traces``, ``/v1/logs`` and ``/v1/metrics``: OTLP over HTTP, protobuf or JSON.

The way of a request is that of ``/v1/events`` (`ingest`), with the same keys, limits and promise:
2xx means committed. The answers are those of OTLP 1.x: in the encoding of the request, 200 with
``partial_success`` where some of it was left out, and else a ``google.rpc.Status``. What will never
be taken is 400 (or 401, 403, 413, 415), what may be sent again later is 503 with ``Retry-After``:
also what exceeds a quota, since exporters of 2025 and before take 429 for final and lose the batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import structlog
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolfault_collector import failpoints
from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.clock import now_us
from toolfault_collector.errors import OverQuota, StoreUnavailable, WriterBusy
from toolfault_collector.http.auth import admit
from toolfault_collector.http.body import ClientGone, Incoming, content_type_of, read_body
from toolfault_collector.http.mail import REFUSAL_SECONDS, Mail, unavailable
from toolfault_collector.http.problems import Problem, send_json
from toolfault_collector.otlp.encoding.decode import BadBody, Encoding
from toolfault_collector.otlp.reading import read_request
from toolfault_collector.otlp.submission import Signal, TraceSubmission
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.repair import clean_text
from toolfault_collector.protocol.steps import Steps, in_slices
from toolfault_collector.storage.database.errors import let_frames_go

if TYPE_CHECKING:
    from toolfault_collector.runtime import Collector

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


class OtlpEndpoint:
    """The ASGI application behind the three paths of OTLP."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._mail: Mail | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; 2xx only after what was accepted is committed."""
        incoming, headers = Incoming(receive), Headers(scope=scope)
        try:
            submission, receipt = await self._take_in(scope, headers, incoming)
        except ClientGone:
            self._collector.metrics.requests.labels("gone").inc()
            return
        except Problem as problem:
            if problem.status != 408 and "expect" not in headers:
                await incoming.drain()
            await _send_status(send, headers, problem)
            return
        failpoints.reach("respond")
        signal = OTLP_PATHS[scope["path"]]
        body, content_type = _success(signal, headers, submission, receipt)
        await send_json(send, 200, body=body, content_type=content_type)

    async def _take_in(
        self, scope: Scope, headers: Headers, receive: Receive
    ) -> tuple[TraceSubmission, Receipt]:
        if scope["method"] != "POST":
            raise Problem(405, "method_not_allowed", "send with POST", {"Allow": "POST"})
        try:
            key = await admit(self._collector.keys, scope, headers, kind="ingest")
        except SQLAlchemyError as error:
            let_frames_go(error)
            raise unavailable() from error
        if self._collector.writer.is_full(key.project_id):
            await asyncio.sleep(REFUSAL_SECONDS)  # as in `ingest`
            raise unavailable()
        encoding = _TYPES[content_type_of(headers, _TYPES)]
        body = await read_body(receive, headers, self._collector.settings, types=_TYPES)
        sender = clean_text(headers.get("user-agent", "")[:_SENDER]) or None
        signal = OTLP_PATHS[scope["path"]]
        read = partial(
            read_request,
            *(body, signal, encoding),
            project_id=key.project_id,
            received_at=now_us(),
            key_id=key.id,
            sender=sender,
        )
        submission, receipt = await self._store(read, body, key)
        self._collector.metrics.count_receipt(receipt)
        left_out = [each.reason for each in submission.refused]
        if left_out:
            _log.warning("otlp_left_out", signal=signal, count=len(left_out), why=left_out[:3])
        return submission, receipt

    async def _store(
        self, read: Callable[[], Steps[TraceSubmission]], body: bytes, key: ApiKey
    ) -> tuple[TraceSubmission, Receipt]:
        loop = asyncio.get_running_loop()
        if self._mail is None or self._mail.loop is not loop:
            self._mail = Mail(loop, self._collector.writer)
        kept: list[TraceSubmission] = []
        most = self._collector.settings.max_events
        try:
            result = await self._mail.send(
                in_slices(self._read(read, key, kept)),
                project_id=key.project_id,
                events=min(1 + len(body) // _BYTES_PER_ITEM, most),
                size=len(body),
            )
        except WriterBusy as error:
            raise unavailable() from error
        if isinstance(result, Exception):
            partly = isinstance(result, StoreUnavailable) and result.partly
            if kept and not partly:
                self._collector.quota.give_back(key.project_id, kept[0].size)
            if isinstance(result, StoreUnavailable):
                # Also where the disk is full: no exporter sends again after 507.
                raise unavailable() from result
            raise result
        return kept[0], result

    def _read(
        self, read: Callable[[], Steps[TraceSubmission]], key: ApiKey, kept: list[TraceSubmission]
    ) -> Steps[TraceSubmission]:
        """Return what the body says; runs in the writer's thread. *kept* is given it too."""
        try:
            submission = yield from read()
        except BadBody as bad:
            code = "too_many_items" if bad.status == 413 else "bad_body"
            raise Problem(bad.status, code, str(bad)) from bad
        failpoints.reach("parsed")
        try:
            self._collector.quota.spend(key.project_id, submission.size)
        except OverQuota as over:
            wait = {"Retry-After": str(max(1, min(over.wait, 300)))}
            raise Problem(503, "over_quota", str(over), wait) from over
        kept.append(submission)
        failpoints.reach("prepared")
        return submission


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


async def _send_status(send: Send, headers: Headers, problem: Problem) -> None:
    """Send *problem* as a ``google.rpc.Status`` in the encoding of the request."""
    code, message = _CODES.get(problem.status, 2), f"{problem.code}: {problem.detail}"
    if _is_json(headers):
        body = msgspec.json.encode({"code": code, "message": message})
        content_type = b"application/json"
    else:
        body, content_type = _status(code, message), b"application/x-protobuf"
    await send_json(
        send, problem.status, body=body, content_type=content_type, headers=problem.headers
    )


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
