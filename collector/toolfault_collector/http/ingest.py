"""``POST /v1/events``: authenticate, bound, decode, store, answer; in this order.

A plain ASGI application: the framework's own body handling reads everything before it looks, and
its validation errors repeat the input.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolfault_collector import failpoints
from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.clock import now_us
from toolfault_collector.errors import OverQuota, StoreUnavailable, WriterBusy
from toolfault_collector.http.auth import admit
from toolfault_collector.http.body import ClientGone, Incoming, read_body
from toolfault_collector.http.mail import REFUSAL_SECONDS, Mail, disk_full, unavailable
from toolfault_collector.http.problems import Problem, send_json, send_problem
from toolfault_collector.protocol.decode import BadBatch
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import Steps, in_slices
from toolfault_collector.protocol.submission import Submission, read_batch
from toolfault_collector.storage.database.errors import let_frames_go

if TYPE_CHECKING:
    from toolfault_collector.runtime import Collector

__all__ = ["IngestEndpoint"]

_log = structlog.get_logger(__name__)


class IngestEndpoint:
    """The ASGI application behind ``/v1/events``."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._mail: Mail | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; 2xx only after what was accepted is committed."""
        incoming = Incoming(receive)
        try:
            receipt = await self._take_in(scope, incoming)
        except ClientGone:
            self._collector.metrics.requests.labels("gone").inc()
            return
        except Problem as problem:
            if problem.status != 408 and "expect" not in Headers(scope=scope):
                await incoming.drain()
            await send_problem(scope, send, problem)
            return
        failpoints.reach("respond")
        await send_json(send, 200, body=_answer(receipt))

    async def _take_in(self, scope: Scope, receive: Receive) -> Receipt:
        if scope["method"] != "POST":
            raise Problem(405, "method_not_allowed", "send batches with POST", {"Allow": "POST"})
        headers = Headers(scope=scope)
        try:
            key = await admit(self._collector.keys, scope, headers, kind="ingest")
        except SQLAlchemyError as error:
            let_frames_go(error)
            raise unavailable() from error
        if self._collector.writer.is_full(key.project_id):
            # Before its body is unpacked, which is most of what it costs; and not at once: who does
            # not wait as long as is said would be back before anything was stored.
            await asyncio.sleep(REFUSAL_SECONDS)
            raise unavailable()
        body = await read_body(receive, headers, self._collector.settings)
        receipt = await self._store(body, key)
        self._count(receipt)
        return receipt

    async def _store(self, body: bytes, key: ApiKey) -> Receipt:
        loop = asyncio.get_running_loop()
        if self._mail is None or self._mail.loop is not loop:
            self._mail = Mail(loop, self._collector.writer)
        charged: list[int] = []
        read = in_slices(self._read(body, key, now_us(), charged))
        try:
            events = _events_in(body, most=self._collector.settings.max_events)
            result = await self._mail.send(
                read, project_id=key.project_id, events=events, size=len(body)
            )
        except WriterBusy as error:
            raise unavailable() from error
        partly = isinstance(result, StoreUnavailable) and result.partly
        # What was stored was charged in its transaction.
        if isinstance(result, Exception) and not partly:
            for events in charged:
                self._collector.quota.give_back(key.project_id, events)
        if isinstance(result, StoreUnavailable):
            raise disk_full() if result.kind == "full" else unavailable() from result
        if isinstance(result, Exception):
            raise result
        return result

    def _read(
        self, body: bytes, key: ApiKey, received_at: int, charged: list[int]
    ) -> Steps[Submission]:
        """Return what *body* says, ready to be stored; runs in the writer's thread.

        The quota is charged here, before much is spent on the batch; *charged* says by how much.
        """
        settings = self._collector.settings
        try:
            submission = yield from read_batch(
                body,
                project_id=key.project_id,
                received_at=received_at,
                key_id=key.id,
                max_events=settings.max_events,
                max_event_bytes=settings.max_event_bytes,
            )
        except BadBatch as bad:
            raise _problem(bad) from bad
        failpoints.reach("parsed")
        try:
            self._collector.quota.spend(key.project_id, submission.size)
        except OverQuota as over:
            wait = {"Retry-After": str(max(1, min(over.wait, 300)))}
            raise Problem(429, "over_quota", str(over), wait, {"limit": over.limit}) from over
        charged.append(submission.size)
        failpoints.reach("prepared")
        return submission

    def _count(self, receipt: Receipt) -> None:
        self._collector.metrics.count_receipt(receipt)
        if receipt.accepted or not receipt.duplicate:  # else it was said, and counted, before
            self._collector.metrics.count_dropped(receipt.dropped)
        if receipt.rejected:
            codes = sorted({rejection.code for rejection in receipt.rejected})
            _log.warning("events_rejected", count=len(receipt.rejected), codes=codes[:20])


def _events_in(body: bytes, *, most: int) -> int:
    """Return about how many events a batch has that is not decoded yet.

    A letter of the name may be written as its number, so each of those counts as an event, up to
    what one batch may have.
    """
    named = max(body.count(b'"event_id"'), body.count(b"\\u00"))
    return min(max(named, 1), most)


def _answer(receipt: Receipt) -> bytes:
    rejected = [
        {
            "index": each.index,
            "event_id": each.event_id,
            "code": each.code,
            "pointer": each.pointer,
        }
        for each in receipt.rejected
    ]
    return msgspec.json.encode(
        {"accepted": receipt.accepted, "duplicate": receipt.duplicate, "rejected": rejected}
    )


def _problem(bad: BadBatch) -> Problem:
    details = {
        400: "the body is not one JSON document in UTF-8",
        413: "too many events or values in one batch; split it and send the parts",
        422: 'the body is no batch; send {"schema_version": 1, "events": [...]}',
    }
    members = {"pointer": bad.pointer} if bad.pointer else {}
    return Problem(bad.status, bad.code, details[bad.status], members=members)
