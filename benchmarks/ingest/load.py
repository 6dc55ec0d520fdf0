"""A load generator that costs little: requests are made before the clock starts.

It shares the machine with what it measures, so one thread sends bytes prepared in advance over
all connections and looks at no more of an answer than its status and its end.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Result:
    """What one run saw: seconds, answers by status, latencies in milliseconds, own CPU time."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the latency that *share* of the requests stayed under."""
        ordered = sorted(self.latencies_ms)
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
) -> Result:
    """Send *requests* once each over so many *connections*, as fast as they are answered.

    Args:
        ports: Where to; connections are dealt out evenly.
        requests: The bytes of each request.
        connections: How many.
        at_most_seconds: After this no further request is sent.
    """
    result = Result()
    pending = iter(requests)
    selector = selectors.DefaultSelector()
    for number in range(connections):
        connection = _Connection(ports[number % len(ports)])
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    began, cpu = time.perf_counter(), time.process_time()
    open_connections = 0
    for key in list(selector.get_map().values()):
        open_connections += key.data.send(next(pending, None))
    while open_connections:
        for key, _ in selector.select():
            status = key.data.receive()
            if status is None:
                continue
            result.statuses[status] = result.statuses.get(status, 0) + 1
            result.latencies_ms.append(key.data.milliseconds)
            late = time.perf_counter() - began > at_most_seconds
            if not key.data.send(None if late else next(pending, None)):
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
        self.socket = self._connect()

    def send(self, data: bytes | None) -> bool:
        """Send a request; without *data* there is none left, and the connection is closed."""
        if data is None:
            self.socket.close()
            return False
        if self._closing:
            self.socket = self._connect()
            self._closing = False
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
