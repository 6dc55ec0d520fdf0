"""A load generator that costs little: requests are made before the clock starts.

It shares the machine with what it measures, so each connection is a blocking socket that sends
bytes prepared in advance and reads an answer of known shape.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Result:
    """What one run saw: seconds, requests and events by answer, latencies in milliseconds."""

    seconds: float = 0.0
    accepted: int = 0
    statuses: dict[int, int] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)

    def percentile(self, share: float) -> float:
        """Return the latency that *share* of the requests stayed under."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def request(body: bytes, *, key: str, path: str = "/v1/events", gzipped: bool = True) -> bytes:
    """Return the bytes of one POST."""
    coding = "Content-Encoding: gzip\r\n" if gzipped else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\n{coding}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def run(port: int, requests: Sequence[bytes], *, connections: int) -> Result:
    """Send *requests* once each over so many *connections*, as fast as they are answered."""
    result, lock = Result(), threading.Lock()
    shares = [requests[number::connections] for number in range(connections)]
    ready = threading.Barrier(connections + 1)

    def send(share: Sequence[bytes]) -> None:
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seen: list[tuple[int, int, float]] = []
        ready.wait()
        for each in share:
            began = time.perf_counter()
            sock.sendall(each)
            status, accepted = _answer(sock)
            seen.append((status, accepted, (time.perf_counter() - began) * 1_000))
        sock.close()
        with lock:
            for status, accepted, latency in seen:
                result.statuses[status] = result.statuses.get(status, 0) + 1
                result.accepted += accepted
                result.latencies_ms.append(latency)

    threads = [threading.Thread(target=send, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    result.seconds = time.perf_counter() - began
    return result


def _answer(sock: socket.socket) -> tuple[int, int]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(sock)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    while len(body) < length:
        body += _receive(sock)
    status = int(head[9:12])
    return status, json.loads(body)["accepted"] if status == 200 else 0


def _receive(sock: socket.socket) -> bytes:
    chunk = sock.recv(65_536)
    if not chunk:
        message = "the server closed the connection"
        raise ConnectionError(message)
    return chunk
