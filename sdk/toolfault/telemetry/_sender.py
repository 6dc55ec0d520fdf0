"""The background thread: when there is something to send, and until when.

How a batch is sent is the subject of ``_delivery``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from toolfault.telemetry._config import Config, Dsn, Limits
from toolfault.telemetry._delivery import Delivery
from toolfault.telemetry._guard import FAILED, guard
from toolfault.telemetry._queue import Item, Queue
from toolfault.telemetry._transport import Transport

_STARTED_AGAIN = 0.001


class Sender:
    """Takes batches from the queue and has them delivered.

    Everything but ``start`` and ``stop`` runs on the thread it starts.

    Args:
        queue: Where events wait.
        limits: Bounds of batches and times.
        config: Settings.
        dsn: Where batches go; None with a transport of the host's own.
        transport: Carries batches instead of HTTP.
        on_tick: Called now and then, for work that is due without a capture.
        inside: Threads whose captures are counted, not made; the sender's is one while it runs.

    Attributes:
        deadline: By the monotonic clock, when all must have been sent; None while it goes on.
    """

    def __init__(
        self,
        queue: Queue,
        limits: Limits,
        *,
        config: Config,
        dsn: Dsn | None,
        transport: Transport | None,
        on_tick: Callable[[], None],
        inside: set[int],
    ) -> None:
        self._queue = queue
        self._limits = limits
        self._on_tick = on_tick
        self._inside = inside
        self._delivery = Delivery(
            queue,
            config,
            limits,
            dsn=dsn,
            transport=transport,
            pause=self.pause,
            deadline=lambda: self.deadline,
        )
        self._thread: threading.Thread | None = None
        self._is_starting = False
        self._batch: list[Item] = []
        self._is_done = False
        self._reported_at = time.monotonic()
        self.deadline: float | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs, as the interpreter says."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> bool:
        """Start the thread unless it runs; False where the interpreter no longer allows it."""
        queue = self._queue
        with queue.lock:
            if self.is_alive or self._is_starting:
                return True
            thread = threading.Thread(target=self._run, name="toolfault-sender", daemon=True)
            self._thread = None
            self._is_starting = queue.is_read = True
        is_started = False
        try:
            # Not within the lock. Where threads became greenlets after a fork had made the lock (a
            # worker of gunicorn that was preloaded), the sender would be let in, and by waiting
            # let go of the lock for both; it was never free again, and the end sent nothing.
            # No thread starts at the end of the interpreter, or with the host's patched threads.
            is_started = guard("sender not started", thread.start) is not FAILED
        finally:
            with queue.lock:
                self._is_starting = False
                if is_started:
                    self._thread = thread
                else:
                    queue.is_read = False
        return is_started

    def stop(self, timeout: float) -> None:
        """Send what is left within ``timeout`` seconds and end the thread.

        Where no thread can be started any more (late in the exit of the interpreter) the batches
        are sent by the caller.
        """
        queue = self._queue
        until = time.monotonic() + timeout
        with queue.lock:
            self.deadline = until
            queue.urgent += 1
            queue.flushes += 1
            queue.changed.notify_all()
        while (
            not self._is_done
            and time.monotonic() < until
            and (self.is_alive or not queue.is_empty or self._must_report())
        ):
            if not self.start():
                self._run()
                return
            thread = self._thread
            if thread is None:  # another thread is just starting it
                self.pause(_STARTED_AGAIN)
                continue
            if thread is threading.current_thread():
                return
            # A thread that dies on the way is replaced while there is time.
            thread.join(until - time.monotonic())

    def abandon(self) -> None:
        """Let go of the connection in a forked child."""
        self._delivery.abandon()

    def pause(self, seconds: float, flushes: int | None = None) -> None:
        """Wait before the next attempt.

        Args:
            seconds: How long.
            flushes: Flushes before the last attempt: one more, or the end of the process, ends
                the wait. None where the collector asked for the wait, or a defect needs it.
        """
        queue = self._queue
        until = time.monotonic() + seconds
        with queue.lock:
            while not queue.closed:
                left = until - time.monotonic()
                if self.deadline is not None:
                    left = min(left, self.deadline - time.monotonic())
                if left <= 0 or (flushes is not None and queue.flushes != flushes):
                    return
                queue.changed.wait(left)

    # -- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        thread = threading.get_ident()
        self._inside.add(thread)
        try:
            while self._run_once():
                pass
            self._is_done = True
        finally:
            self._queue.is_read = False
            self._inside.discard(thread)
        self._delivery.close()

    def _run_once(self) -> bool:
        """Send one batch; False when the thread is to end."""
        answer = guard("sender failed", self._send_batch)
        if answer is FAILED:  # a defect of ours must not end the sending
            self._queue.give_up(self._batch, "sdk_error")
            self.pause(self._delivery.backoff.wait(None))
        return answer is not False

    def _send_batch(self) -> bool:
        # A thread that was killed leaves its batch to the next one.
        batch = [item for item in self._batch if not item.is_settled] or self._next_batch()
        if batch is None:
            return False
        self._batch = batch
        self._delivery.deliver(batch)
        self._batch = []
        return True

    def _next_batch(self) -> list[Item] | None:
        """Wait for a batch worth sending; None when the client is closing and nothing is left."""
        while self._wait_for_batch():
            batch = self._queue.take(self._limits.batch_events)
            if batch or self._queue.unreported():
                return batch
        return None

    def _wait_for_batch(self) -> bool:
        """Wait until there are events or drops to tell; False when nothing more will come."""
        queue, limits = self._queue, self._limits
        while True:
            self._on_tick()
            with queue.lock:
                waiting = queue.waiting
                if queue.closed:
                    return False
                left = queue.oldest_at + limits.batch_seconds - time.monotonic()
                if waiting >= limits.batch_events or (waiting and (queue.urgent or left <= 0)):
                    self._reported_at = time.monotonic()
                    return True
                if not waiting and self._must_report():
                    self._reported_at = float("inf") if self._is_closing else time.monotonic()
                    return True
                if self._is_closing and not waiting:
                    return False
                queue.changed.wait(left if waiting else self._idle_wait())

    def _must_report(self) -> bool:
        """Whether drops are told in a batch of their own: now and then, and once at the end."""
        if not self._queue.unreported():
            return False
        quiet = time.monotonic() - self._reported_at
        return quiet >= (0.0 if self._is_closing else self._limits.fold_seconds)

    def _idle_wait(self) -> float:
        """Return how long there is nothing to do: until counters are due to become events."""
        limits = self._limits
        if not self._queue.folded:
            return limits.fold_seconds
        left = self._queue.folded_at + limits.fold_seconds - time.monotonic()
        return max(left, 0.001)

    @property
    def _is_closing(self) -> bool:
        return self.deadline is not None
