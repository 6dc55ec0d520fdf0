"""One batch on its way to the collector: encoded, sent, retried, halved, settled or given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolfault.telemetry._config import Config, Dsn, Limits
from toolfault.telemetry._event import encode, envelope, rfc3339, sdk_info, shortened
from toolfault.telemetry._guard import FAILED, guard, warn
from toolfault.telemetry._http import HttpTransport
from toolfault.telemetry._queue import Item, Queue
from toolfault.telemetry._retry import Backoff, RetryDecision, classify_response
from toolfault.telemetry._transport import Response, Transport

# After so much work the sender yields the interpreter for a moment. It would otherwise hold it
# until a caller has waited for the switch interval (5 ms), which is what captures of other clients
# wait for while a batch is encoded.
_YIELD_EVERY = 0.0003
_YIELD = 0.00005

# Something on the way (a firewall, a proxy) may cut off, or answer itself, whatever holds a certain
# text; the events behind it would wait for ever. After so many attempts without an answer of the
# collector an empty batch is tried. Where that gets through, the batch is tried again at once; if
# only this fails, it is sent in halves, and a single event is given up after some more attempts.
_UNHEARD = frozenset({"network_error", "not_an_ack"})
_UNHEARD_AT_ONCE = 3
_UNHEARD_ALONE = 9
_WARN_EVERY = 3_600.0


class Delivery:
    """Delivers batches, one after the other, on the sender's thread.

    Args:
        queue: Where batches come from and are settled.
        config: Settings.
        limits: Bounds of batches and times.
        dsn: Where batches go; None with a transport of the host's own.
        transport: Carries batches instead of HTTP.
        pause: Waits before the next attempt, see ``Sender.pause``.
        deadline: Says when all must have been sent, by the monotonic clock; None for no end.
    """

    def __init__(
        self,
        queue: Queue,
        config: Config,
        limits: Limits,
        *,
        dsn: Dsn | None,
        transport: Transport | None,
        pause: Callable[[float, int | None], None],
        deadline: Callable[[], float | None],
    ) -> None:
        self._queue = queue
        self._config = config
        self._limits = limits
        self._key = dsn.key if dsn is not None else ""
        self._pause = pause
        self._deadline = deadline
        if transport is None:
            assert dsn is not None, "a client has one of them"
            transport = HttpTransport(dsn)
        self._transport = transport
        self._warned: dict[str, float] = {}
        self._yielded_at = 0.0
        self.backoff = Backoff(limits.backoff_base, limits.backoff_cap)

    def close(self) -> None:
        """Close the transport."""
        guard("transport not closed", self._transport.close)

    def abandon(self) -> None:
        """Let go of the connection in a forked child; a transport of the host is the host's."""
        let_go = getattr(self._transport, "abandon", None)
        if let_go is not None:
            let_go()

    def deliver(self, items: list[Item]) -> None:
        """Send ``items`` in requests of bounded size, each until it is settled or given up."""
        kept: list[Item] = []
        size = 0
        for item in items:
            body = self._body_of(item)
            if body is None:
                continue
            if kept and size + len(body) > self._limits.batch_bytes:
                self._send(kept)
                kept, size = [], 0
            kept.append(item)
            size += len(body)
            self._yield_gil()
        if kept or not items:
            self._send(kept)

    def _body_of(self, item: Item) -> bytes | None:
        """Encode an event; one that cannot be encoded is dropped and does not hold the others."""

        def bounded() -> bytes | None:
            body = item.body or encode(item.event)
            limit = self._limits.event_bytes
            return body if len(body) <= limit else shortened(body, limit)

        body = guard("event cannot be encoded", bounded)
        item.event = {}
        item.body = None if body is FAILED else body
        if item.body is None:
            self._queue.give_up([item], "encode_error" if body is FAILED else "too_large")
        return item.body

    def _send(self, items: list[Item], *, is_shortened: bool = False) -> None:
        """Send one batch until the collector has answered for it or it is given up.

        Args:
            items: Events with their bodies.
            is_shortened: Whether this is a single event that was too large as it was.
        """
        queue, backoff = self._queue, self.backoff
        attempts: dict[str, int] = {}
        reachable = False  # whether an empty batch got through just before the attempt
        while not queue.closed:
            flushes = queue.flushes
            decision = self._attempt(items)
            attempts[decision.reason] = tries = attempts.get(decision.reason, 0) + 1
            if decision.action == "settle":
                return
            self._warn(decision.reason)
            if decision.action == "split" and not is_shortened:
                self._split(items, decision.reason)
                return
            exhausted = decision.attempts is not None and tries >= decision.attempts
            unheard = decision.reason in _UNHEARD
            # Not the way is at fault but what was sent on it.
            at_fault = reachable and unheard and (len(items) > 1 or tries >= _UNHEARD_ALONE)
            if decision.action in ("drop", "split") or exhausted or at_fault or not items:
                if len(items) > 1 and (at_fault or self._gets_through()):
                    self._halve(items)
                else:
                    queue.give_up(items, decision.reason)
                return
            reachable = False
            if unheard and tries % _UNHEARD_AT_ONCE == 0:
                self._pause(backoff.wait(decision.wait), flushes)
                reachable = self._gets_through()
            if not reachable:
                asked = decision.wait is not None
                self._pause(backoff.wait(decision.wait), None if asked else flushes)

    def _gets_through(self) -> bool:
        """Whether the collector acknowledges a batch without events, on the same way."""
        return self._attempt([]).action == "settle"

    def _halve(self, items: list[Item]) -> None:
        """Send the halves of a batch one after the other."""
        half = len(items) // 2
        self._send(items[:half])
        self._send(items[half:])

    def _split(self, items: list[Item], reason: str) -> None:
        """Send a batch that is too large in halves, a single event shortened once."""
        if len(items) > 1:
            self._halve(items)
            return
        for item in items:
            body = item.body or b""
            cut = guard("event not shortened", shortened, body, len(body) // 4, otherwise=None)
            if cut is None:
                self._queue.give_up([item], reason)
            else:
                item.body = cut
                self._send([item], is_shortened=True)

    def _attempt(self, items: Sequence[Item]) -> RetryDecision:
        """Make one request and settle what it says is settled."""
        queue = self._queue
        drops = queue.unreported()
        head = self._head(drops)
        body = envelope(head, [item.body or b"{}" for item in items], self._yield_gil)
        response = guard("batch not sent", self._request, head, body, otherwise=None)
        decision = classify_response(response, sent=len(items))
        if decision.action == "settle":
            self.backoff.reset()
            with queue.lock:
                queue.reported(drops)
                queue.ack(items, decision.rejected)
        return decision

    def _request(self, head: Mapping[str, Any], body: bytes) -> Response:
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"{head['sdk']['name']}/{head['sdk']['version']}",
        }
        timeout, deadline = self._limits.request_seconds, self._deadline()
        if deadline is not None:
            timeout = max(min(timeout, deadline - time.monotonic()), 0.05)
        return self._transport.send(body, headers=headers, timeout=timeout)

    def _head(self, drops: dict[str, int]) -> dict[str, Any]:
        """Return the envelope without its events."""
        config = self._config
        resource = {
            "agent": config.agent,
            "environment": config.environment,
            "release": config.release,
        }
        head = {
            "schema_version": 1,
            # Real time, whatever clock events have: the collector judges a skewed clock by it.
            "sent_at": rfc3339(time.time()),
            "sdk": sdk_info(),
            "resource": {name: value for name, value in resource.items() if value},
        }
        return {**head, "dropped": drops} if drops else head

    def _yield_gil(self) -> None:
        """Let other threads run, where this one has worked for a while."""
        if time.perf_counter() - self._yielded_at >= _YIELD_EVERY:
            time.sleep(_YIELD)
            self._yielded_at = time.perf_counter()

    def _warn(self, reason: str) -> None:
        """Say once per hour and reason that events are not getting through."""
        now = time.monotonic()
        if now - self._warned.get(reason, -_WARN_EVERY) >= _WARN_EVERY:
            self._warned[reason] = now
            warn(
                f"events are not reaching the collector ({reason}); "
                "`python -m toolfault doctor` says why"
            )
