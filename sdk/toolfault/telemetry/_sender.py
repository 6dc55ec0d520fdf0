"""The background thread that carries batches to the collector."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from toolfault.telemetry._limits import Limits
from toolfault.telemetry._outbox import Item, Outbox
from toolfault.telemetry._say import debug, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolfault.telemetry._retry import Backoff
    from toolfault.telemetry._transport import Response, Transport

__all__ = ["Sender"]

# After so much work the sender lets go of the interpreter for a moment. It would otherwise hold it
# until a caller has waited for the switch interval (5 ms), which is what captures of other clients
# wait for while a batch is encoded.
_BREATH_EVERY = 0.0003
_BREATH = 0.00005
_LOADED_AGAIN = 0.05

# Something on the way (a firewall, a proxy) may cut off, or answer itself, whatever holds a certain
# text; the events behind it would wait for ever. After so many attempts without an answer of the
# collector an empty batch is tried. Where that gets through, the batch is tried again at once; if
# only this fails, it is sent in halves, and a single event is given up after some more attempts.
_UNHEARD = frozenset({"network_error", "not_an_ack"})
_UNHEARD_AT_ONCE = 3
_UNHEARD_ALONE = 9


class Sender:
    """Takes batches from the outbox and sends them until they are settled.

    Everything but ``start`` and ``stop`` runs on the thread it starts.

    Args:
        outbox: Where events wait.
        limits: Bounds of batches and times.
        open_transport: Makes the transport, with the first batch.
        encode: Makes the body of an event.
        head: Makes the envelope without its events and drops.
        on_tick: Called now and then, for work that is due without a capture.
        key: Ingest key.
        inside: Threads whose captures are counted, not made; the sender's is one while it runs.
    """

    def __init__(
        self,
        outbox: Outbox,
        limits: Limits,
        *,
        open_transport: Callable[[], Transport],
        encode: Callable[[dict[str, Any]], bytes],
        head: Callable[[], dict[str, Any]],
        on_tick: Callable[[], None],
        key: str,
        inside: set[int],
    ) -> None:
        self._outbox = outbox
        self._limits = limits
        self._open_transport = open_transport
        self._encode = encode
        self._head = head
        self._on_tick = on_tick
        self._key = key
        self._inside = inside
        self._transport: Transport | None = None
        self._thread: threading.Thread | None = None
        self.is_running = False  # what captures look at; asking the thread costs more
        self._batch: list[Item] = []
        self._is_done = False
        self._deadline: float | None = None
        self._warned: dict[str, float] = {}
        self._breathed_at = 0.0
        # Held while the thread may import a module. A child forked in the middle of that would
        # find the module half made, and its lock held by a thread that it does not have.
        self.importing = threading.Lock()
        self._reported_at = time.monotonic()
        self.is_ready = False  # whether what the first failure needs is loaded
        self._loaded = 0

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs, as the interpreter says."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Start the thread unless it runs; False where the interpreter no longer allows it."""
        with self._outbox.lock:
            if self.is_alive:
                return True
            thread = threading.Thread(target=self._run, name="toolfault-sender", daemon=True)
            try:
                self.is_running = True
                thread.start()
            except Exception:  # noqa: BLE001 - no thread at exit, or the host's patched threads
                self.is_running = False
                return False
            self._thread = thread
            return True

    def stop(self, timeout: float) -> None:
        """Send what is left within ``timeout`` seconds and end the thread.

        Where no thread can be started any more (late in the exit of the interpreter) the batches
        are sent by the caller.
        """
        outbox = self._outbox
        until = time.monotonic() + timeout
        with outbox.lock:
            self._deadline = until
            outbox.urgent += 1
            outbox.flushes += 1
            outbox.changed.notify_all()
        while (
            not self._is_done
            and time.monotonic() < until
            and (self.is_alive or not outbox.is_empty or self._must_report())
        ):
            if not self.start():
                self._run()
                return
            assert self._thread is not None
            if self._thread is threading.current_thread():
                return
            # A thread that dies on the way is replaced while there is time.
            self._thread.join(until - time.monotonic())

    def abandon(self) -> None:
        """Let go of the connection in a forked child; a transport of the host is the host's."""
        let_go = getattr(self._transport, "abandon", None)
        if let_go is not None:
            let_go()

    # -- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        thread = threading.get_ident()
        self._inside.add(thread)
        try:
            backoff = self._loaded_backoff()
            while backoff is not None and self._run_once(backoff):
                pass
            self._is_done = True
        finally:
            self.is_running = False
            self._inside.discard(thread)
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _loaded_backoff(self) -> Backoff | None:
        """Load what every batch needs, with the waits between attempts; None once all is closed.

        Threads that import at once may find a module of each other's half made (the interpreter
        prefers that to a deadlock); it is whole a moment later.
        """
        while not self._outbox.closed:
            try:
                with self.importing:
                    from toolfault.telemetry._encode import encode_event  # noqa: F401 - loads it
                    from toolfault.telemetry._retry import Backoff
                return Backoff(self._limits.backoff_base, self._limits.backoff_cap)
            except Exception:  # noqa: BLE001, PERF203 - the thread must not die of it
                debug("sender not loaded")
                self._pause(_LOADED_AGAIN)
        return None

    def _load_ahead(self) -> None:
        """Load what the first failure needs, unless somebody waits for a batch."""
        try:
            while not self.is_ready and not self._is_closing and not self._outbox.urgent:
                with self.importing:
                    from toolfault.telemetry._ahead import STEPS

                    STEPS[self._loaded]()
                self._loaded += 1
                self.is_ready = self._loaded == len(STEPS)
                self.breathe()
        except Exception:  # noqa: BLE001 - it is loaded on demand then
            self.is_ready = True
            debug("not loaded ahead")

    def _run_once(self, backoff: Backoff) -> bool:
        """Send one batch; False when the thread is to end."""
        try:
            self._load_ahead()
            # A thread that was killed leaves its batch to the next one.
            batch = [item for item in self._batch if not item.landed] or self._next_batch()
            if batch is None:
                return False
            self._batch = batch
            self._deliver(batch, backoff)
            self._batch = []
        except Exception:  # noqa: BLE001 - a defect of ours must not end the sending
            debug("sender failed")
            self._outbox.give_up(self._batch, "sdk_error")
            self._pause(backoff.wait(None))
        return True

    def _next_batch(self) -> list[Item] | None:
        """Wait for a batch worth sending; None when the client is closing and nothing is left."""
        outbox = self._outbox
        while self._wait_for_batch():
            batch = outbox.take(self._limits.batch_events)
            if batch or outbox.book.untold():
                return batch
        return None

    def _wait_for_batch(self) -> bool:
        """Wait until there are events or drops to tell; False when nothing more will come."""
        outbox, limits = self._outbox, self._limits
        while True:
            self._on_tick()
            with outbox.lock:
                waiting = outbox.waiting
                if outbox.closed:
                    return False
                left = outbox.oldest_at + limits.batch_seconds - time.monotonic()
                if waiting >= limits.batch_events or (waiting and (outbox.urgent or left <= 0)):
                    self._reported_at = time.monotonic()
                    return True
                if not waiting and self._must_report():
                    self._reported_at = float("inf") if self._is_closing else time.monotonic()
                    return True
                if self._is_closing and not waiting:
                    return False
                outbox.changed.wait(left if waiting else self._idle_wait())

    def _must_report(self) -> bool:
        """Whether drops are told in a batch of their own: now and then, and once at the end."""
        if not self._outbox.book.untold():
            return False
        quiet = time.monotonic() - self._reported_at
        return quiet >= (0.0 if self._is_closing else self._limits.fold_seconds)

    def _idle_wait(self) -> float:
        """Return how long there is nothing to do: until counters are due to become events."""
        limits = self._limits
        if not self._outbox.folded:
            return limits.fold_seconds
        left = self._outbox.folded_at + limits.fold_seconds - time.monotonic()
        return max(left, 0.001)

    @property
    def _is_closing(self) -> bool:
        return self._deadline is not None

    def _deliver(self, items: list[Item], backoff: Backoff) -> None:
        """Send ``items`` in requests of bounded size, each until it is settled or given up."""
        kept: list[Item] = []
        size = 0
        for item in items:
            if not self._make_body(item):
                continue
            length = len(item.body or b"")
            if kept and size + length > self._limits.batch_bytes:
                self._send(kept, backoff)
                kept, size = [], 0
            kept.append(item)
            size += length
            self.breathe()
        if kept or not items:
            self._send(kept, backoff)

    def _make_body(self, item: Item) -> bool:
        """Encode an event; one that cannot be encoded is dropped and does not hold the others."""
        try:
            with self.importing:
                body: bytes | None = item.body or self._encode(item.event)
                if body is not None and len(body) > self._limits.event_bytes:
                    body = _shortened(body, self._limits.event_bytes)
        except Exception:  # noqa: BLE001 - whatever the event holds
            debug("event cannot be encoded")
            self._outbox.give_up([item], "encode_error")
            return False
        item.event = {}
        item.body = body
        if body is None:
            self._outbox.give_up([item], "too_large")
        return body is not None

    def breathe(self) -> None:
        """Let other threads run, where this one has worked for a while."""
        if time.perf_counter() - self._breathed_at >= _BREATH_EVERY:
            time.sleep(_BREATH)
            self._breathed_at = time.perf_counter()

    def _send(self, items: list[Item], backoff: Backoff, *, shortened: bool = False) -> None:
        """Send one batch until the collector has answered for it or it is given up.

        Args:
            items: Events with their bodies.
            backoff: Waits between attempts.
            shortened: Whether this is a single event that was too large as it was.
        """
        from toolfault.telemetry._retry import judge

        outbox = self._outbox
        attempts: dict[str, int] = {}
        reachable = False  # whether an empty batch got through just before the attempt
        while not outbox.closed:
            with outbox.lock:
                told = outbox.book.untold()
                flushes = outbox.flushes
            verdict = judge(self._attempt(items, told), sent=len(items))
            attempts[verdict.reason] = tries = attempts.get(verdict.reason, 0) + 1
            if verdict.action == "settle":
                backoff.reset()
                with outbox.lock:
                    outbox.book.told(told)
                    outbox.settle(items, verdict.rejected)
                return
            self._warn(verdict.reason)
            if verdict.action == "split" and not shortened:
                self._split(items, verdict.reason, backoff)
                return
            exhausted = verdict.attempts is not None and tries >= verdict.attempts
            unheard = verdict.reason in _UNHEARD
            # Not the way is at fault but what was sent on it.
            at_fault = reachable and unheard and (len(items) > 1 or tries >= _UNHEARD_ALONE)
            if verdict.action in ("drop", "split") or exhausted or at_fault or not items:
                if len(items) > 1 and (at_fault or self._gets_through(backoff)):
                    self._halve(items, backoff)
                else:
                    outbox.give_up(items, verdict.reason)
                return
            reachable = False
            if unheard and tries % _UNHEARD_AT_ONCE == 0:
                self._pause(backoff.wait(verdict.wait), flushes)
                reachable = self._gets_through(backoff)
            if not reachable:
                self._pause(backoff.wait(verdict.wait), flushes if verdict.wait is None else None)

    def _gets_through(self, backoff: Backoff) -> bool:
        """Whether the collector acknowledges a batch without events, on the same way."""
        from toolfault.telemetry._retry import judge

        outbox = self._outbox
        with outbox.lock:
            told = outbox.book.untold()
        if judge(self._attempt([], told), sent=0).action != "settle":
            return False
        backoff.reset()
        with outbox.lock:
            outbox.book.told(told)
        return True

    def _halve(self, items: list[Item], backoff: Backoff) -> None:
        """Send the halves of a batch one after the other."""
        half = len(items) // 2
        self._send(items[:half], backoff)
        self._send(items[half:], backoff)

    def _split(self, items: list[Item], reason: str, backoff: Backoff) -> None:
        """Send a batch that is too large in halves, a single event shortened once."""
        if len(items) > 1:
            self._halve(items, backoff)
            return
        for item in items:
            try:
                item.body = _shortened(item.body or b"", len(item.body or b"") // 4)
            except Exception:  # noqa: BLE001 - whatever the event holds
                item.body = None
            if item.body is None:
                self._outbox.give_up([item], reason)
            else:
                self._send([item], backoff, shortened=True)

    def _attempt(self, items: Sequence[Item], told: dict[str, int]) -> Response | None:
        """Make one request; None when it got no answer."""
        from toolfault.telemetry._encode import envelope

        head = self._head()
        if told:
            head["dropped"] = told
        body = envelope(head, [item.body or b"{}" for item in items], self.breathe)
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "User-Agent": f"{head['sdk']['name']}/{head['sdk']['version']}",
        }
        timeout = self._limits.request_seconds
        if self._deadline is not None:
            timeout = max(min(timeout, self._deadline - time.monotonic()), 0.05)
        try:
            if self._transport is None:
                with self.importing:
                    self._transport = self._open_transport()
            return self._transport.send(body, headers=headers, timeout=timeout)
        except Exception:  # noqa: BLE001 - a host's transport may raise anything
            debug("batch not sent")
            return None

    def _pause(self, seconds: float, flushes: int | None = None) -> None:
        """Wait before the next attempt.

        Args:
            seconds: How long.
            flushes: Flushes before the last attempt: one more, or the end of the process, ends
                the wait. None where the collector asked for the wait, or a defect needs it.
        """
        outbox = self._outbox
        until = time.monotonic() + seconds
        with outbox.lock:
            while not outbox.closed:
                left = until - time.monotonic()
                if self._deadline is not None:
                    left = min(left, self._deadline - time.monotonic())
                if left <= 0 or (flushes is not None and outbox.flushes != flushes):
                    return
                outbox.changed.wait(left)

    def _warn(self, reason: str) -> None:
        """Say once per hour and reason that events are not getting through."""
        now = time.monotonic()
        if now - self._warned.get(reason, -3600.0) >= 3600.0:
            self._warned[reason] = now
            say(
                f"events are not reaching the collector ({reason}); "
                "`python -m toolfault doctor` says why"
            )


def _shortened(body: bytes, limit: int) -> bytes | None:
    from toolfault.telemetry._shorten import shortened

    return shortened(body, limit)
