"""What uvicorn leaves open about a connection: the head of a request, and a reader that stalls.

A client that sends a byte now and then would hold a connection for ever, and one that sends
headers without end would fill the memory: uvicorn's faster parser collects them all. (The body has
its own limits, in `body`.) That parser also takes a method it does not know for no HTTP at all,
where 405 is the answer.

Who asks for an export and does not read it would hold a snapshot of the database for as long as the
connection stands, and SQLite's log grows as long as a snapshot is held. So who takes nothing of an
answer for a while is cut off.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["protocol_with_deadline"]

_CLOSE: Final = b"connection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\n" + _CLOSE
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
# Of a head that is not complete. One that is complete has its limit in `headers`, with an answer
# that says more; this only has to be larger, and to bound what one connection may hold.
MAX_INCOMPLETE_BYTES: Final = 65_536
_METHODS: Final = frozenset(
    {b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"}
)
_UNKNOWN_METHOD: Final = re.compile(rb"([A-Za-z]{1,32}) (/[^ ]*) HTTP/1\.[01]\r\n")


class _Deadline(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    seconds = 10.0
    stalled_seconds = 60.0
    _stalled: asyncio.TimerHandle | None = None
    _deadline: asyncio.TimerHandle | None = None
    _in_head = False
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        if not self._answering():
            if self._deadline is None:
                self._start_deadline()
            if self._refuse_method(data):
                return
        super().data_received(data)
        if self._answering():
            self._stop_deadline()
        if self._in_head:
            self._bound_head(len(data))

    def on_message_begin(self) -> None:
        """Called by the faster parser; the other one has a limit of its own."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Called by the faster parser."""
        self._in_head = False
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_deadline()
        self._go_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Called when more is waiting to be read than the connection holds."""
        self._go_on()
        self._stalled = self.loop.call_later(self.stalled_seconds, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Called when the reader has taken what was waiting."""
        self._go_on()
        super().resume_writing()

    def _go_on(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.seconds, self._expire)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        self._deadline = None
        if not self._answering() and not self.transport.is_closing():
            self.transport.write(_TOO_SLOW)
            self.transport.close()

    def _bound_head(self, more: int) -> None:
        self._head_bytes += more
        if self._head_bytes > MAX_INCOMPLETE_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _refuse_method(self, data: bytes) -> bool:
        """Answer 405 if *data* begins a request with a method that nobody has."""
        line = _UNKNOWN_METHOD.match(data)
        if line is None or line[1] in _METHODS:
            return False
        allowed = b"POST" if line[2].startswith(b"/v1/") else b"GET, HEAD, POST"
        head = b"HTTP/1.1 405 Method Not Allowed\r\nallow: " + allowed + b"\r\n"
        self.transport.write(head + _CLOSE)
        self.transport.close()
        return True


def protocol_with_deadline(
    seconds: float, *, stalled_seconds: float = 60.0
) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with bounds on what a client may take its time for.

    Args:
        seconds: For the head of each request.
        stalled_seconds: For taking what is waiting of an answer.
    """
    bounds = {"seconds": seconds, "stalled_seconds": stalled_seconds}
    return type("Deadline", (_Deadline,), bounds)
