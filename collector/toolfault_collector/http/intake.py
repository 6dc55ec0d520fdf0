"""The way of a batch: authenticate, bound, decode, store, answer; in this order.

A plain ASGI application: the framework's own body handling reads everything before it looks, and
its validation errors repeat the input. What differs between protocols, a subclass says.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from toolfault_collector import failpoints
from toolfault_collector.admin.keys import ApiKey
from toolfault_collector.errors import OverQuota, StoreUnavailable, WriterBusy
from toolfault_collector.http.auth import admit
from toolfault_collector.http.body import JSON, ClientGone, Incoming, content_type_of, read_body
from toolfault_collector.http.mail import REFUSAL_SECONDS, Mail, disk_full, unavailable
from toolfault_collector.http.problems import Problem, send_problem
from toolfault_collector.protocol.decode import BadBatch
from toolfault_collector.protocol.receipt import Receipt
from toolfault_collector.protocol.steps import Steps, in_slices
from toolfault_collector.protocol.submission import Submission
from toolfault_collector.storage.database.errors import let_frames_go

if TYPE_CHECKING:
    from toolfault_collector.runtime import Collector

__all__ = ["Intake"]

Batch = TypeVar("Batch", bound=Submission)


class Intake(ABC, Generic[Batch]):
    """The ASGI application behind the paths of one protocol.

    Attributes:
        types: Content types that are taken.
        over_quota: Status of what exceeds the quota of its project.
        tells_full: Whether a full disk is told from a busy one, by 507.
    """

    types: ClassVar[Collection[str]] = (JSON,)
    over_quota: ClassVar[int] = 429
    tells_full: ClassVar[bool] = True

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._mail: Mail | None = None

    @abstractmethod
    def read(
        self, body: bytes, content_type: str, key: ApiKey, scope: Scope, headers: Headers
    ) -> Steps[Batch]:
        """Return what *body* says, ready to be stored."""

    @abstractmethod
    def estimate(self, body: bytes) -> int:
        """Return about how many events a body has that is not decoded yet, to bound a queue."""

    @abstractmethod
    async def answer(self, send: Send, scope: Scope, batch: Batch, receipt: Receipt) -> None:
        """Say that *batch* is committed, and what became of it."""

    async def refuse(self, send: Send, scope: Scope, problem: Problem) -> None:
        """Say why a batch is not stored."""
        await send_problem(scope, send, problem)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; 2xx only after what was accepted is committed."""
        incoming, headers = Incoming(receive), Headers(scope=scope)
        try:
            batch, receipt = await self._take_in(scope, headers, incoming)
        except ClientGone:
            self._collector.metrics.requests.labels("gone").inc()
            return
        except Problem as problem:
            # It holds the frames that it came through, and in them the batch, which may be large
            # and of a sender that is slow to read the answer.
            let_frames_go(problem)
            if problem.status != 408 and "expect" not in headers:
                await incoming.drain()
            await self.refuse(send, scope, problem)
            return
        failpoints.reach("respond")
        await self.answer(send, scope, batch, receipt)

    async def _take_in(
        self, scope: Scope, headers: Headers, receive: Receive
    ) -> tuple[Batch, Receipt]:
        if scope["method"] != "POST":
            raise Problem(405, "method_not_allowed", "send with POST", {"Allow": "POST"})
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
        content_type = content_type_of(headers, self.types)
        body = await read_body(receive, headers, self._collector.settings)
        batch, receipt = await self._store(
            self.read(body, content_type, key, scope, headers), body, key
        )
        self._collector.metrics.count_receipt(receipt)
        return batch, receipt

    async def _store(self, steps: Steps[Batch], body: bytes, key: ApiKey) -> tuple[Batch, Receipt]:
        loop = asyncio.get_running_loop()
        if self._mail is None or self._mail.loop is not loop:
            self._mail = Mail(loop, self._collector.writer)
        charged: list[Batch] = []
        events = min(self.estimate(body), self._collector.settings.max_events)
        try:
            result = await self._mail.send(
                in_slices(self._charged(steps, key, charged)),
                project_id=key.project_id,
                events=events,
                size=len(body),
            )
        except WriterBusy as error:
            raise unavailable() from error
        partly = isinstance(result, StoreUnavailable) and result.partly
        # What was stored was charged in its transaction.
        if isinstance(result, Exception) and not partly:
            spent = sum(each.size for each in charged)
            self._collector.quota.give_back(key.project_id, spent)
        if isinstance(result, Exception):
            charged.clear()  # an error holds the frames that it came through
        if isinstance(result, StoreUnavailable):
            is_full = result.kind == "full" and self.tells_full
            raise disk_full() if is_full else unavailable() from result
        if isinstance(result, Exception):
            raise result
        return charged[0], result

    def _charged(self, steps: Steps[Batch], key: ApiKey, charged: list[Batch]) -> Steps[Batch]:
        """Return what *steps* read; runs in the writer's thread.

        The quota is charged here, before much is spent on the batch; *charged* is given it too.
        """
        try:
            batch = yield from steps
        except BadBatch as bad:
            members = {"pointer": bad.pointer} if bad.pointer else {}
            raise Problem(bad.status, bad.code, bad.detail, members=members) from bad
        failpoints.reach("parsed")
        try:
            self._collector.quota.spend(key.project_id, batch.size)
        except OverQuota as over:
            wait = {"Retry-After": str(max(1, min(over.wait, 300)))}
            limit = {"limit": over.limit}
            raise Problem(self.over_quota, "over_quota", str(over), wait, limit) from over
        charged.append(batch)
        failpoints.reach("prepared")
        return batch
