"""A load generator that costs little: requests are made before the clock starts.

It shares the machine with what it measures, so one thread sends bytes prepared in advance over
all connections and looks at no more of an answer than its status and its end.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

REFUSED = (429, 503, 507)


@dataclass
class Result:
    """What one run saw: seconds, answers by status, latencies in milliseconds, own CPU time.

    ``refused`` are answers of `REFUSED`; those that do not say when to come again are
    ``without_retry_after``.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)
    accepted_ms: list[float] = field(default_factory=list)
    refused: int = 0
    without_retry_after: int = 0

    def note(self, status: int, milliseconds: float, head: bytes) -> None:
        """Take in one answer."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.latencies_ms.append(milliseconds)
        if status == 200:
            self.accepted_ms.append(milliseconds)
        elif status in REFUSED:
            self.refused += 1
            self.without_retry_after += b"\r\nretry-after: " not in head.lower()

    def percentile(self, share: float, *, accepted: bool = False) -> float:
        """Return the latency that *share* of the requests (that were accepted) stayed under."""
        ordered = sorted(self.accepted_ms if accepted else self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def request(
    body: bytes,
    *,
    path: str = "/v1/events",
    content_type: str = "application/json",
    gzipped: bool = True,
    headers: dict[str, str] | None = None,
) -> bytes:
    """Return the bytes of one POST."""
    shown = {
        "Host": "127.0.0.1",
        "Content-Type": content_type,
        "Content-Length": str(len(body)),
        **({"Content-Encoding": "gzip"} if gzipped else {}),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def run(
    ports: Sequence[int],
    requests: Sequence[bytes],
    *,
    connections: int,
    at_most_seconds: float = 3_600.0,
    again: bool = False,
) -> Result:
    """Send *requests* over so many *connections*, as fast as they are answered.

    Args:
        ports: Where to; connections are dealt out evenly.
        requests: The bytes of each request.
        connections: How many.
        at_most_seconds: After this no further request is sent.
        again: Whether what is refused comes again, after all others. Else each is sent once.
    """
    result = Result()
    pending = deque(requests)
    selector = selectors.DefaultSelector()
    for number in range(connections):
        connection = _Connection(ports[number % len(ports)])
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    began, cpu = time.perf_counter(), time.process_time()
    open_connections = 0
    for key in list(selector.get_map().values()):
        open_connections += key.data.send(pending.popleft() if pending else None)
    while open_connections:
        for key, _ in selector.select():
            status = key.data.receive()
            if status is None:
                continue
            result.note(status, key.data.milliseconds, key.data.head)
            if again and status in REFUSED:
                pending.append(key.data.sent)
            late = not pending or time.perf_counter() - began > at_most_seconds
            if not key.data.send(None if late else pending.popleft()):
                selector.unregister(key.fileobj)
                open_connections -= 1
            elif key.data.socket is not key.fileobj:  # the server had closed the connection
                selector.unregister(key.fileobj)
                selector.register(key.data.socket, selectors.EVENT_READ, key.data)
    result.seconds = time.perf_counter() - began
    result.cpu_seconds = time.process_time() - cpu
    return result


class _Connection:
    """One connection that has at most one request under way."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._data = b""
        self._began = 0.0
        self._closing = False
        self.milliseconds = 0.0
        self.head = self.sent = b""
        self.socket = self._connect()

    def send(self, data: bytes | None) -> bool:
        """Send a request; without *data* there is none left, and the connection is closed."""
        if data is None:
            self.socket.close()
            return False
        if self._closing:
            self.socket = self._connect()
            self._closing = False
        self.sent = data
        self._began = time.perf_counter()
        self.socket.sendall(data)
        return True

    def receive(self) -> int | None:
        """Read on; return the status once the answer is complete."""
        chunk = self.socket.recv(65_536)
        self._data += chunk
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not chunk and not found:
            message = "the server closed the connection without an answer"
            raise ConnectionError(message)
        if not found or not (_is_complete(head, body) or not chunk):
            return None
        self.milliseconds = (time.perf_counter() - self._began) * 1_000
        self._closing = not chunk or b"connection: close" in head.lower()
        self._data = b""
        self.head = head
        return int(head[9:12])

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=600)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def _is_complete(head: bytes, body: bytes) -> bool:
    length = _LENGTH.search(head)
    if length is not None:
        return len(body) >= int(length[1])
    return b"chunked" in head.lower() and body.endswith(b"0\r\n\r\n")
