"""A collector for tests of the sender: real HTTP on a real socket, honest unless told otherwise."""

from __future__ import annotations

import gzip
import http.server
import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Behaviour = Callable[["Handler", dict[str, Any]], None]


class Handler(http.server.BaseHTTPRequestHandler):
    """One request; what it does is decided by the server's script."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        """Read the batch and behave."""
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        batch = json.loads(gzip.decompress(raw))
        with self.server.changed:
            self.server.requests.append((dict(self.headers), batch))
            self.server.paths.append(self.path)
            behave = self.server.script.popleft() if self.server.script else self.server.default
            self.server.changed.notify_all()
        try:
            behave(self, batch)
        except OSError:
            self.close_connection = True

    def store(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Keep the events that are new, and return an honest answer."""
        accepted = duplicate = 0
        rejected = []
        with self.server.changed:
            for index, event in enumerate(batch["events"]):
                if self.server.refuses(event):
                    rejected.append(
                        {"index": index, "event_id": event["event_id"], "code": "no", "pointer": ""}
                    )
                elif event["event_id"] in self.server.events:
                    duplicate += 1
                else:
                    accepted += 1
                    self.server.events[event["event_id"]] = event
            self.server.changed.notify_all()
        return {"accepted": accepted, "duplicate": duplicate, "rejected": rejected}

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Send an answer; header names are written with underscores."""
        self.send_response(status)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if "Content-Length" not in fields:
            self.send_header("Content-Length", str(len(body)))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


class GoneSocket(ssl.SSLSocket):
    """Fails in the handshake, and is closed then, where the peer is gone before it begins."""

    def getpeername(self) -> Any:
        """The peer's address, if it is there still."""
        try:
            return super().getpeername()
        except OSError:
            return None


class Server(http.server.ThreadingHTTPServer):
    """Keeps what it got, by event id.

    Attributes:
        script: What the next requests meet, before ``default``.
        default: What every further request meets.
        refuses: Which events are rejected one by one.
        released: Set when the test is over; hanging behaviours end with it.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.changed = threading.Condition()
        self.events: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.paths: list[str] = []
        self.script: deque[Behaviour] = deque()
        self.default: Behaviour = honest
        self.refuses: Callable[[dict[str, Any]], bool] = lambda event: False
        self.released = threading.Event()
        self.context: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the handshake is left to the thread that reads from it."""
        accepted, address = super().get_request()
        if self.context is None:
            return accepted, address
        try:
            secured = self.context.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            accepted.close()
            raise
        return secured, address

    @property
    def dsn(self) -> str:
        """Where a client finds it."""
        return f"http://KEY@127.0.0.1:{self.server_port}"

    def wait_for(self, condition: Callable[[Server], bool]) -> None:
        """Wait until ``condition`` holds."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), 60.0), "never happened"

    def sent_once(self) -> bool:
        """Whether no event came twice."""
        sent = [event["event_id"] for _, batch in self.requests for event in batch["events"]]
        return len(sent) == len(set(sent))

    def sessions_of_failures(self) -> list[str]:
        """The conversations of the failed calls, one for each failure."""
        failed = [event for event in self.of_type("tool_call") if not event["success"]]
        return sorted(event["session_id"] for event in failed)

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """Stored events of one type, in the order they came."""
        with self.changed:
            return [event for event in self.events.values() if event["type"] == kind]

    def calls(self) -> int:
        """Calls that the stored events stand for."""
        whole = len(self.of_type("tool_call")) + len(self.of_type("tool_error"))
        return whole + sum(event.get("calls", 0) for event in self.of_type("tool_call_counts"))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Broken connections are the point of these tests."""


@contextmanager
def running_collector(certificate: Path | None = None) -> Iterator[Server]:
    """A collector on a free port; with a certificate (and its key in one file) it speaks TLS."""
    server = Server()
    if certificate is not None:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.sslsocket_class = GoneSocket
        server.context.load_cert_chain(certificate)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def honest(handler: Handler, batch: dict[str, Any]) -> None:
    """Store, then acknowledge."""
    handler.answer(200, json.dumps(handler.store(batch)).encode())


def status(code: int, body: bytes = b"{}", **headers: str) -> Behaviour:
    """Answer with a status and store nothing."""
    return lambda handler, batch: handler.answer(code, body, **headers)


def lying(body: bytes, **headers: str) -> Behaviour:
    """Say 200 and store nothing, as a captive portal does."""
    return status(200, body, **headers)


def silent(handler: Handler, batch: dict[str, Any]) -> None:
    """Never answer."""
    handler.server.released.wait()
    handler.close_connection = True


def stored_but_silent(handler: Handler, batch: dict[str, Any]) -> None:
    """Store, and cut the connection before the answer."""
    handler.store(batch)
    reset(handler, batch)


def reset(handler: Handler, batch: dict[str, Any]) -> None:
    """Reset the connection."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def dripping(handler: Handler, batch: dict[str, Any]) -> None:
    """Answer a byte at a time, so slowly that no single read times out."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        if handler.server.released.wait(0.02):
            break
    handler.close_connection = True


def garbage(handler: Handler, batch: dict[str, Any]) -> None:
    """Answer with something that is not HTTP."""
    handler.wfile.write(b"\x00\x01\x02 this is not HTTP\r\n\r\n")
    handler.close_connection = True


def torn(handler: Handler, batch: dict[str, Any]) -> None:
    """Announce more than is sent."""
    handler.answer(200, b'{"accepted":', Content_Length="500")
    handler.close_connection = True
