"""Phoenix with failed tool calls in it, for `pages.py`: how it is filled, and its nearest pages."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ingest"))

from peers import BATCH, PEERS, install

__all__ = ["ASKED", "PAGES", "filled_phoenix"]

_PROJECT = "UHJvamVjdDox"  # "Project:1" in base64, the project that spans go to by default
PAGES = {
    f"/projects/{_PROJECT}/spans": "Phoenix: spans",
    f"/projects/{_PROJECT}/traces": "Phoenix: traces",
}
ASKED = """
window.asked = () => [
  ...performance.getEntriesByType("navigation"),
  ...performance.getEntriesByType("resource").filter(
    each => ["fetch", "xmlhttprequest"].includes(each.initiatorType)),
].reduce((sum, each) => sum + each.responseEnd - each.requestStart, 0);
"""
"""How long the server took for the page and for everything that its scripts asked for, in ms."""


@contextmanager
def filled_phoenix(home: Path, folder: Path, spans: int) -> Iterator[str]:
    """Run Phoenix, installed into *home*, with so many spans, and yield its address.

    Raises:
        RuntimeError: It did not store them within ten minutes.
    """
    requirements, make = PEERS["phoenix"]
    install(requirements, home)
    own = folder / "phoenix"
    own.mkdir()
    peer = make(own, home)
    with peer.server as server:
        address = f"http://127.0.0.1:{server.port}"
        for wire in peer.requests(-(-spans // BATCH)):
            _send(address, wire)
        until = time.monotonic() + 600
        while peer.count() < spans:
            if time.monotonic() > until:
                raise RuntimeError(f"Phoenix stored {peer.count()} of {spans} spans.")
            time.sleep(0.5)
        yield address


def _send(address: str, wire: bytes) -> None:
    """Send a request that `load` would send as it is; one that is put off is sent again."""
    head, _, body = wire.partition(b"\r\n\r\n")
    path = head.split(b" ", 2)[1].decode()
    request = urllib.request.Request(
        address + path, data=body, headers={"Content-Type": "application/x-protobuf"}
    )
    for _ in range(200):
        try:
            with urllib.request.urlopen(request, timeout=60):
                return
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                raise
            time.sleep(0.25)  # it says that its queue is full
    raise RuntimeError("Phoenix took no more spans.")
