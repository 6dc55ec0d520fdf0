"""A real HTTP server that takes webhooks, as a receiver would run one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Delivery", "Receiver", "receiving"]


@dataclass(frozen=True)
class Delivery:
    """One request that arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """By which a receiver knows that it has the message already."""
        return self.headers["webhook-id"]

    @property
    def document(self) -> Any:
        """What was sent."""
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        """What the message is about."""
        return self.document["data"]


@dataclass
class Receiver:
    """What arrived so far, and what is answered."""

    url: str = ""
    status: int = 204
    location: str = ""
    deliveries: list[Delivery] = field(default_factory=list)

    def by_id(self) -> dict[str, list[Delivery]]:
        """The deliveries of each message, in the order in which they came."""
        found: dict[str, list[Delivery]] = {}
        for each in self.deliveries:
            found.setdefault(each.id, []).append(each)
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on this machine for the length of the block."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.deliveries.append(Delivery(headers, body))
            self.send_response(receiver.status)
            if receiver.location:
                self.send_header("location", receiver.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
