"""``POST /v1/events``: batches of protocol v1."""

from __future__ import annotations

import msgspec
import structlog
from starlette.datastructures import Headers
from starlette.types import Scope, Send

from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.clock import now_us
from toolfault_collector.http.intake import Intake
from toolfault_collector.http.problems import send_json
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import Steps
from toolfault_collector.protocol.submission import Submission, read_batch

__all__ = ["IngestEndpoint"]

_log = structlog.get_logger(__name__)


class IngestEndpoint(Intake[Submission]):
    """The ASGI application behind ``/v1/events``."""

    def read(
        self, body: bytes, content_type: str, key: ApiKey, scope: Scope, headers: Headers
    ) -> Steps[Submission]:
        """Return the batch in *body*."""
        settings = self._collector.settings
        return read_batch(
            body,
            project_id=key.project_id,
            received_at=now_us(),
            key_id=key.id,
            max_events=settings.max_events,
            max_event_bytes=settings.max_event_bytes,
        )

    def estimate(self, body: bytes) -> int:
        """Return how often an event seems to be named.

        A letter of the name may be written as its number, so each of those counts as an event.
        """
        named = max(body.count(b'"event_id"'), body.count(b"\\u00"))
        return max(named, 1)

    async def answer(self, send: Send, scope: Scope, batch: Submission, receipt: Receipt) -> None:
        """Send the receipt, count what the sender dropped, and log what was rejected."""
        if receipt.accepted or not receipt.duplicate:  # else it was said, and counted, before
            self._collector.metrics.count_dropped(receipt.dropped)
        if receipt.rejected:
            codes = sorted({rejection.code for rejection in receipt.rejected})
            _log.warning("events_rejected", count=len(receipt.rejected), codes=codes[:20])
        await send_json(send, 200, body=_answer(receipt))


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
