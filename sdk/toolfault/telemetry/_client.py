"""The client: one per process, alive across forks, bounded at exit."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property

from toolfault.telemetry._book import Stats
from toolfault.telemetry._capture import Capture
from toolfault.telemetry._config import Config
from toolfault.telemetry._context import Conversation
from toolfault.telemetry._dsn import Dsn
from toolfault.telemetry._fold import RowKey
from toolfault.telemetry._ids import counter_id, uuid7
from toolfault.telemetry._limits import Limits
from toolfault.telemetry._outbox import Outbox
from toolfault.telemetry._say import debug, say
from toolfault.telemetry._sender import Sender
from toolfault.telemetry._tracker import Tracker
from toolfault.tools import _fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolfault.errors import ToolError
    from toolfault.telemetry._shelf import Shelf
    from toolfault.telemetry._transport import Transport
    from toolfault.tools import CallRecord

__all__ = ["Client"]


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
        self._folds = self.config.successes == "folded" and self.config.spool_dir is None
        self._inside: set[int] = set()  # threads that are in a capture, and the sender's
        self._nested: list[int] = []
        self._shelf = self._open_shelf()
        self._adopt_at = 0.0
        self._outbox = Outbox(self._limits, self._describe, self._shelf)
        self._tracker = Tracker(
            self.config, self._limits, self._outbox, clock=self._clock, new_id=self._new_id
        )
        self._capture = Capture(
            self.config,
            self._outbox,
            self._tracker,
            clock=self._clock,
            new_id=self._new_id,
            secret=self._secret,
        )
        self._capture.tags = self._tags
        self._sender = Sender(
            self._outbox,
            self._limits,
            open_transport=self._open_transport,
            encode=self._encode,
            head=self._head,
            on_tick=self._tick,
            key=self._dsn.key if self._dsn is not None else "",
            inside=self._inside,
        )

    # -- capturing -----------------------------------------------------------------------------

    def on_call(self, record: CallRecord) -> None:
        """Capture one finished tool call; the observer of the tools layer."""
        now = None
        if self._folds and record.error is None and not record.coercions and not record.reported:
            thread = threading.get_ident()
            if self._sender.is_running and thread not in self._inside:
                try:
                    self._inside.add(thread)
                    now = self._clock()
                    if self._tracker.fold_at_once(record, now):
                        return
                except Exception:  # noqa: BLE001 - the host's clock failed; counted below
                    debug("not folded at once")
                except BaseException:
                    self._outbox.mend()
                    raise
                finally:
                    self._inside.discard(thread)
        self._guarded(self._capture.call, record, now)

    def capture_failure(
        self,
        error: ToolError,
        *,
        arguments: Mapping[str, Any] | str | None = None,
        call_id: str | None = None,
    ) -> str | None:
        """Capture an error outside a call and return its event id."""
        capture = self._capture.error
        event_id: str | None = self._guarded(
            lambda: capture(error, arguments=arguments, call_id=call_id)
        )
        return event_id

    def record_change(self, label: str, *, tool: str | None, kind: str) -> str | None:
        """Send a marker and return its event id."""
        capture = self._capture.change
        event_id: str | None = self._guarded(lambda: capture(label, tool=tool, kind=kind))
        return event_id

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Label all further events of the process."""
        self._tags = self._capture.tags = {**self._tags, **tags}

    def end_conversation(self, conversation: Conversation) -> None:
        """Send what is known about a conversation that ended."""
        self._guarded(self._tracker.end, conversation.id)

    def _guarded(self, capture: Callable[..., Any], *arguments: Any) -> Any:
        """Run a capture; captures inside a capture of the same thread are counted, not made.

        A log handler, a finalizer or a signal handler of the host may capture at any line of
        ours; following it could recurse without end.
        """
        thread = threading.get_ident()
        if thread in self._inside:
            # Appending is atomic; the book may be half-way through a line of its own just now.
            self._nested.append(thread)
            return None
        try:
            self._inside.add(thread)
            return capture(*arguments)
        except Exception:  # noqa: BLE001 - the promise to the host
            debug("capture failed")
            self._outbox.discard("sdk_error")
            return None
        except BaseException:  # Ctrl-C, or whatever else a handler of signals raises
            self._outbox.mend()
            raise
        finally:
            self._inside.discard(thread)  # first: a call before it could be interrupted
            if not self._sender.is_running and not self._outbox.closed:
                self._sender.start()
            if self._nested:
                self._count_nested()

    def _count_nested(self) -> None:
        with self._outbox.lock:
            nested, self._nested = self._nested, []
            self._outbox.discard("reentrant", weight=len(nested))

    @property
    def is_capturing(self) -> bool:
        """Whether this thread is in the middle of a capture, as a handler of signals may find it.

        It may hold the lock then that the sender needs: waiting for the sender would be in vain.
        So it does in the middle of a flush.
        """
        return threading.get_ident() in self._inside or self._outbox.is_held

    # -- sending -------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything captured so far is settled.

        Args:
            timeout: Seconds to wait; five by default.

        Returns:
            True if nothing is left and nothing was rejected or dropped meanwhile.
        """
        if self.is_capturing:
            return False
        try:
            return self._flush(self._limits.flush_seconds if timeout is None else timeout)
        except BaseException:
            self._outbox.mend()
            raise

    def _flush(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        outbox = self._outbox
        lost = outbox.book.lost
        outbox.unfold()
        if not (outbox.is_empty and not outbox.book.untold()) and not self._sender.start():
            return False
        with outbox.lock:
            outbox.urgent += 1
            outbox.flushes += 1
            outbox.changed.notify_all()
            try:
                while not outbox.is_empty and not outbox.closed:
                    left = until - time.monotonic()
                    if left <= 0:
                        return False
                    outbox.settled.wait(left)
            finally:
                outbox.urgent -= 1
            return outbox.book.lost == lost

    def close(self, timeout: float | None = None, *, ends: bool = True) -> bool:
        """Send what is left, then stop; what could not be sent is counted as dropped.

        With a spool it stays on disk for the next process instead.

        Args:
            timeout: Seconds to wait; two by default.
            ends: Whether the conversations end, too; another process may go on with them.

        Returns:
            True if nothing was left; False, and nothing is closed, in the middle of a capture.
        """
        if self._outbox.closed:
            return True
        if self.is_capturing:
            return False
        try:
            if ends:
                self._tracker.end_all()
            self._outbox.unfold()
            self._sender.stop(self._limits.exit_seconds if timeout is None else timeout)
        except Exception:  # noqa: BLE001 - also at exit nothing is raised into the host
            debug("close failed")
        if self in _clients:
            _clients.remove(self)
        return self._outbox.close("shutdown") == 0

    def stats(self) -> Stats:
        """Return what became of everything captured so far."""
        with self._outbox.lock:
            if self._nested:
                self._count_nested()
            return self._outbox.stats()

    # -- what the sender needs -----------------------------------------------------------------

    def _open_transport(self) -> Transport:
        if self._own_transport is not None:
            return self._own_transport
        from toolfault.telemetry._http import HttpTransport

        assert self._dsn is not None
        return HttpTransport(self._dsn)

    def _encode(self, event: dict[str, Any]) -> bytes:
        from toolfault.telemetry._encode import encode_event, finish

        wire = finish(event)
        return encode_event(wire, ascii_only=self._shelf is not None)

    def _head(self) -> dict[str, Any]:
        from toolfault.telemetry._encode import sdk_info
        from toolfault.telemetry._time import rfc3339

        config = self.config
        resource = {
            "agent": config.agent,
            "environment": config.environment,
            "release": config.release,
        }
        return {
            "schema_version": 1,
            # Real time, whatever clock events have: the collector judges a skewed clock by it.
            "sent_at": rfc3339(time.time()),
            "sdk": sdk_info(),
            "resource": {name: value for name, value in resource.items() if value},
        }

    def _tick(self) -> None:
        """Do what is due without a capture: idle conversations, counters, dead processes."""
        while self._tracker.end_idle():
            self._sender.breathe()
        now = time.monotonic()
        outbox = self._outbox
        if outbox.folded and now - outbox.folded_at >= self._limits.fold_seconds:
            outbox.unfold()
        if self._shelf is not None and now >= self._adopt_at:
            self._adopt_at = now + self._limits.adopt_seconds
            outbox.adopt()

    def _describe(self, key: RowKey, segment: str) -> dict[str, Any]:
        """Return the common members of a counter's event."""
        minute, tool, agent, model, variant, environment, release = key
        starts_at = minute * 60.0
        return {
            "type": "tool_call_counts",
            "event_id": counter_id(starts_at, segment, key)
            if segment
            else (self._new_id(starts_at)),
            "occurred_at": starts_at,
            "minute": starts_at,
            "tool": tool,
            "agent": agent,
            "model": model,
            "variant": variant,
            "environment": environment,
            "release": release,
        }

    # -- the process ---------------------------------------------------------------------------

    def _secret(self) -> bytes:
        """Key of argument fingerprints: the same in every process of a project, never sent."""
        from hashlib import sha256

        if self._dsn is None:
            return os.urandom(32)
        return sha256(f"arguments {self._dsn.key}".encode()).digest()

    @cached_property
    def sink(self) -> str:
        """Where events go, as 16 hex digits: two processes compare it, nobody can read it.

        The key stands for the project, whose name the SDK does not know.
        """
        from hashlib import sha256

        if self._dsn is None:
            where = f"process {os.getpid()} {id(self)}"
        else:
            where = f"{self._dsn.endpoint} {self._dsn.key}"
        return sha256(f"sink {where}".encode()).hexdigest()[:16]

    def _open_shelf(self) -> Shelf | None:
        root = self.config.spool_dir
        if root is None:
            return None
        try:
            from hashlib import sha256

            from toolfault.telemetry._shelf import Shelf
            from toolfault.telemetry._spool import Spool
            from toolfault.telemetry._spool_dir import SpoolDir

            place = f"{self._dsn.endpoint} {self._dsn.key}" if self._dsn is not None else ""
            name = sha256(place.encode()).hexdigest()[:16]
            return Shelf(
                Spool(SpoolDir(root, name), self._limits),
                describe=self._describe,
                encode=self._encode,
            )
        except ImportError:
            say("spool_dir needs file locks, which this system has not: events wait in memory")
        except OSError as error:
            say(str(error))
        return None

    def before_fork(self) -> bool:
        """Wait until the sender imports nothing; False where that takes too long."""
        return self._sender.importing.acquire(timeout=_FORK_WAIT)

    def after_fork_in_parent(self) -> None:
        """Let the sender go on."""
        self._sender.importing.release()

    def after_fork_in_child(self) -> None:
        """Start afresh: what was captured before is the parent's to send."""
        self._outbox.abandon()
        self._sender.abandon()
        self._make()


_FORK_WAIT = 0.5  # seconds; the sender imports for a tenth of that
_clients: list[Client] = []  # those that are not closed
_held: list[Client] = []  # those whose sender waits for a fork to be over


def _before_fork() -> None:
    _held.extend(client for client in _clients if client.before_fork())


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().after_fork_in_parent()


def _after_fork_in_child() -> None:
    """Give every client of a forked child new locks, since no thread is left to release them."""
    _held.clear()
    for client in _clients:
        try:
            client.after_fork_in_child()
        except Exception:  # noqa: BLE001, PERF203 - the child must live
            debug("fork failed")


if hasattr(os, "register_at_fork"):
    _fork.waits.append(_before_fork)
    os.register_at_fork(
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
