"""Large batches are read by a process beside this one, so that the writer has this one to itself.

Reading a batch takes a third of the work on it and needs no database. What has not been begun when
the writer wants it, the writer reads itself; so it does with all small batches, with everything on
a machine with one core, and whenever the other process fails. Nothing depends on it but speed.
"""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from typing import Final

import msgspec
import structlog

from toolfault_collector.reading import Request, read_batch, receive, send, understand
from toolfault_collector.submission import Submission

__all__ = ["Reader", "Reading"]

# Smaller batches cost more to hand over and back than to read.
LEAST_BYTES: Final = 16_384
# Of batches that are read or wait for the writer; the replies are some three times as large.
MOST_BYTES: Final = 8 * 1_024 * 1_024
# A batch takes at most a second.
PATIENCE_SECONDS: Final = 5.0
# A process that cannot be started is not tried for every batch.
REST_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)

Reading = Future[bytearray]


class Reader:
    """Hands batches to another process, which is started with the first of them.

    Args:
        enabled: Whether there is to be one at all.
        patience_seconds: How long a batch may take; a process that takes longer has stopped.
        rest_seconds: Between a failure and the next attempt.
    """

    def __init__(
        self,
        *,
        enabled: bool,
        patience_seconds: float = PATIENCE_SECONDS,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._enabled = enabled
        self._patience = patience_seconds
        self._rest = rest_seconds
        self._jobs: queue.SimpleQueue[tuple[Request, Reading] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._bytes = 0
        self._rest_until = 0.0
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None

    def begin(self, request: Request) -> Reading | None:
        """Have *request* read, unless that is better done here: then None."""
        size = len(request.body)
        if not self._enabled or size < LEAST_BYTES or time.monotonic() < self._rest_until:
            return None
        with self._lock:
            if self._bytes + size > MOST_BYTES:
                return None
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="toolfault-reader")
                self._thread.daemon = True
                self._thread.start()
        reading = Reading()
        self._jobs.put((request, reading))
        return reading

    def finish(self, request: Request, reading: Reading | None) -> Submission:
        """Return what *request* says, from *reading* if it was begun there.

        Raises:
            BadBatch: It is no batch.
        """
        if reading is None or self.give_up(request, reading):
            return read_batch(request)
        try:
            return understand(reading.result(self._patience))
        except msgspec.MsgspecError:
            # A text that grew beyond its limit as secrets were taken out of it.
            return read_batch(request)
        except (EOFError, OSError, subprocess.SubprocessError):
            self._kill()  # where it has not died but stopped
            return read_batch(request)

    def give_up(self, request: Request, reading: Reading) -> bool:
        """Let others be begun in place of *reading*; return whether it had not been begun yet."""
        with self._lock:
            self._bytes -= len(request.body)
        return reading.cancel()

    @property
    def pid(self) -> int | None:
        """The other process, if there is one."""
        process = self._process
        return None if process is None else process.pid

    def stop(self) -> None:
        """End the other process; nobody waits for it any more."""
        self._enabled = False
        if self._thread is not None:
            self._jobs.put(None)
            self._kill()
            self._thread.join(self._patience)

    def _run(self) -> None:
        try:
            while job := self._jobs.get():
                self._read(*job)
        finally:
            self._disconnect()

    def _read(self, request: Request, reading: Reading) -> None:
        try:
            link = self._connected()
            if reading.set_running_or_notify_cancel():
                send(link, msgspec.msgpack.encode(request))
                reading.set_result(receive(link))
        except (EOFError, OSError, subprocess.SubprocessError) as error:
            if self._enabled:
                _log.warning("reader_failed", error=type(error).__name__)
            self._rest_until = time.monotonic() + self._rest
            self._kill()
            self._disconnect()
            if not reading.cancel():
                reading.set_exception(error)

    def _connected(self) -> socket.socket:
        if self._link is None:
            ours, theirs = socket.socketpair()
            self._link = ours
            with theirs:
                self._process = subprocess.Popen(
                    # Not from the folder it is started in, whatever lies there (-P).
                    [sys.executable, "-P", "-m", "toolfault_collector.reading"],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                )
            receive(ours)  # it is ready
        return self._link

    def _disconnect(self) -> None:
        link, self._link = self._link, None
        process, self._process = self._process, None
        if link is not None:
            link.close()
        if process is not None:
            process.kill()
            process.wait()

    def _kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
