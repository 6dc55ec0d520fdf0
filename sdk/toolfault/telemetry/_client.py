"""The client: one per process, alive across forks, bounded at exit."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolfault._uuid7 import uuid7
from toolfault.errors import ToolError
from toolfault.telemetry._aggregator import CounterKey
from toolfault.telemetry._capture import Capture
from toolfault.telemetry._config import Config, Dsn, Limits
from toolfault.telemetry._conversations import Conversation, Tracker
from toolfault.telemetry._event import encode, finish
from toolfault.telemetry._guard import guard, warn
from toolfault.telemetry._queue import Gate, Queue, Stats
from toolfault.telemetry._sender import Sender
from toolfault.telemetry._transport import Transport
from toolfault.tools import CallRecord
from toolfault.tools._call import replace_observer

if TYPE_CHECKING:
    from toolfault.telemetry._spool import Spool


class Client:
    """Captures, queues and sends.

    Nothing here raises into the host: what goes wrong is counted under ``sdk_error`` and logged at
    debug level.

    Args:
        config: Settings.
        dsn: Where events go; None with a transport of the host's own.
        transport: Carries batches instead of HTTP.
        clock: Present time, seconds since the epoch; events get their time and calls their length
            from it.
        limits: Bounds, for tests.
        new_id: Makes event ids, for tests.

    Attributes:
        observer: What the tools layer calls with every finished call.
        sink: Where events go, as 16 hex digits: two processes compare it, nobody can read it. The
            key stands for the project, whose name the SDK does not know. The collector keeps the
            digest of a key alone, and finds by that which of its projects is meant (protocol.md).
    """

    def __init__(
        self,
        config: Config,
        *,
        dsn: Dsn | None,
        transport: Transport | None = None,
        clock: Callable[[], float] | None = None,
        limits: Limits | None = None,
        new_id: Callable[[float], str] = uuid7,
    ) -> None:
        self.config = config
        self._dsn = dsn
        self._own_transport = transport
        self.host_clock = clock
        self._clock = clock or time.time
        self._limits = limits or Limits()
        self._new_id = new_id
        self._tags: dict[str, str] = {}
        self._make()
        _clients.append(self)

    def _make(self) -> None:
        """Make everything that belongs to one process: locks, queue, book, spool, thread."""
        self._recover_at = 0.0
        self.sink = self._sink()
        self._queue = Queue(self._limits, self._describe, encode, self._open_spool())
        self._gate = Gate(self._queue, lambda: self._sender.start())  # noqa: PLW0108 - made below
        self._tracker = Tracker(
            self.config,
            self._limits,
            self._queue,
            gate=self._gate,
            clock=self._clock,
            new_id=self._new_id,
        )
        self._capture = Capture(
            self.config,
            self._queue,
            self._tracker,
            clock=self._clock,
            new_id=self._new_id,
            secret=self._secret(),
            finish=finish,
        )
        self._capture.tags = self._tags
        self._tracker.capture = self._capture.call
        self._sender = Sender(
            self._queue,
            self._limits,
            config=self.config,
            dsn=self._dsn,
            transport=self._own_transport,
            on_tick=self._tick,
            inside=self._gate.inside,
        )
        self.observer = self._tracker.on_call

    # -- capturing -----------------------------------------------------------------------------

    def on_call(self, record: CallRecord) -> None:
        """Capture one finished tool call."""
        self._tracker.on_call(record)

    def capture_failure(
        self,
        error: ToolError,
        *,
        arguments: Mapping[str, Any] | str | None = None,
        call_id: str | None = None,
    ) -> str | None:
        """Capture an error outside a call and return its event id."""
        event_id: str | None = self._gate.run(
            lambda: self._capture.error(error, arguments=arguments, call_id=call_id)
        )
        return event_id

    def record_change(self, label: str, *, tool: str | None, kind: str) -> str | None:
        """Send a marker and return its event id."""
        event_id: str | None = self._gate.run(
            lambda: self._capture.change(label, tool=tool, kind=kind)
        )
        return event_id

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Label all further events of the process."""
        self._capture.tags = self._tags = {**self._tags, **tags}

    def end_conversation(self, conversation: Conversation) -> None:
        """Send what is known about a conversation that ended."""
        self._gate.run(self._tracker.end, conversation.id)

    @property
    def is_capturing(self) -> bool:
        """Whether this thread is in the middle of a capture; see ``Gate.is_held``."""
        return self._gate.is_held

    # -- sending -------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything captured so far is settled, whatever is captured meanwhile.

        Args:
            timeout: Seconds to wait; five by default.

        Returns:
            True if nothing of that is left and nothing was rejected or dropped meanwhile.
        """
        if self.is_capturing:
            return False
        try:
            return self._flush(self._limits.flush_seconds if timeout is None else timeout)
        except BaseException:
            self._queue.mend()
            raise

    def _flush(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        queue = self._queue
        lost = queue.lost
        queue.unfold()
        if not (queue.is_empty and not queue.unreported()) and not self._sender.start():
            return False
        with queue.lock:
            queue.urgent += 1
            queue.flushes += 1
            queue.changed.notify_all()
            mark = queue.mark()
            try:
                while not queue.is_settled(mark) and not queue.closed:
                    left = until - time.monotonic()
                    if left <= 0:
                        return False
                    queue.settled.wait(left)
            finally:
                queue.urgent -= 1
            return queue.lost == lost

    def close(self, timeout: float | None = None, *, ends: bool = True) -> bool:
        """Send what is left, then stop; what could not be sent is counted as dropped.

        With a spool it stays on disk for the next process instead.

        Args:
            timeout: Seconds to wait; two by default.
            ends: Whether the conversations end, too; another process may go on with them.

        Returns:
            True if nothing was left; False, and nothing is closed, in the middle of a capture.
        """
        if self._queue.closed:
            return True
        if self.is_capturing:
            return False
        seconds = self._limits.exit_seconds if timeout is None else timeout
        guard("close failed", self._send_rest, seconds, ends)
        if self in _clients:
            _clients.remove(self)
        return self._queue.close("shutdown") == 0

    def _send_rest(self, timeout: float, ends: bool) -> None:
        if ends:
            self._tracker.end_all()
        self._queue.unfold()
        self._sender.stop(timeout)

    def stats(self) -> Stats:
        """Return what became of everything captured so far."""
        with self._queue.lock:
            self._gate.count_nested()
            return self._queue.stats()

    # -- what the sender needs -----------------------------------------------------------------

    def _tick(self) -> None:
        """Do what is due without a capture: idle conversations, counters, dead processes."""
        while self._tracker.end_idle():
            time.sleep(_YIELD)
        now = time.monotonic()
        queue = self._queue
        if queue.folded and now - queue.folded_at >= self._limits.fold_seconds:
            queue.unfold()
        if self.config.spool_dir is not None and now >= self._recover_at:
            self._recover_at = now + self._limits.adopt_seconds
            queue.recover()

    def _describe(self, key: CounterKey) -> dict[str, Any]:
        """Return the common members of a counter's event."""
        minute, tool, agent, model, variant, environment, release, counted_by = key
        starts_at = minute * 60.0
        return {
            "type": "tool_call_counts",
            "event_id": self._new_id(starts_at),
            "occurred_at": starts_at,
            "minute": starts_at,
            "tool": tool,
            "agent": agent,
            "model": model,
            "variant": variant,
            "environment": environment,
            "release": release,
            "counted_by": counted_by,
        }

    # -- the process ---------------------------------------------------------------------------

    def _secret(self) -> bytes:
        """Key of argument fingerprints: the same in every process of a project, never sent."""
        if self._dsn is None:
            return os.urandom(32)
        return _digest(f"arguments {self._dsn.key}")

    def _sink(self) -> str:
        if self._dsn is None:
            where = f"process {os.getpid()} {id(self)}"
        else:
            where = _digest(self._dsn.key).hex()
        return _digest(f"sink {where}").hex()[:16]

    def _open_spool(self) -> Spool | None:
        root = self.config.spool_dir
        if root is None:
            return None
        try:
            from toolfault.telemetry._spool import Spool  # noqa: PLC0415 - needs file locks

            place = f"{self._dsn.endpoint} {self._dsn.key}" if self._dsn is not None else ""
            return Spool(root, _digest(place).hex()[:16], self._limits)
        except ImportError:
            warn("spool_dir needs file locks, which this system has not: events wait in memory")
        except OSError as error:
            warn(str(error))
        return None

    def after_fork_in_child(self) -> None:
        """Start afresh: what was captured before is the parent's to send."""
        self._queue.abandon()
        self._sender.abandon()
        before = self.observer
        self._make()
        replace_observer(before, self.observer)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


_YIELD = 0.00005  # seconds for which captures get the lock while many conversations end
_clients: list[Client] = []  # those that are not closed


def _after_fork_in_child() -> None:
    """Give every client of a forked child new locks, since no thread is left to release them."""
    for client in _clients:
        guard("fork failed", client.after_fork_in_child)  # the child must live


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
