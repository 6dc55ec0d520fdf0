"""Bodies made to explode: refused before they have, whatever they are wrapped in."""

from __future__ import annotations

import gzip
import random
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.collector.process import most_memory_of
from tests.running import RunningCollector

GZIP = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
KIB, MIB = 1024, 1024 * 1024
MOST = 40 * MIB
OVER = 24 * MIB  # more than a body may be, unfolded
HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952: deflate, no name, no time


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _endless(size: int) -> bytes:
    """The first *size* bytes of a gzip stream of zeros a thousand times as long."""
    squeeze = zlib.compressobj(9, wbits=-15)
    # After a full flush the same bytes mean the same again: no need to compress gigabytes.
    block = squeeze.compress(b"0" * MIB) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return (HEAD + block * (size // len(block)))[:size]


def _words(size: int) -> bytes:
    """Text that compresses about twice, like what senders send."""
    return random.Random(7).randbytes(size // 2).hex().encode()


def _raw_deflate() -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(b"0" * OVER) + squeeze.flush()


BOMBS: dict[str, Callable[[], bytes]] = {
    "zeros": lambda: _gzip(b"0" * OVER),
    "4 GiB of zeros": lambda: _endless(4 * MIB),
    "many members": lambda: _gzip(b"0" * MIB) * 64,
    "many gigabytes in members": lambda: (_gzip(b"0" * 16 * MIB) * 200)[: 4 * MIB],
    "ten thousand empty members": lambda: _gzip(b"") * 10_000,
    "a batch that never ends": lambda: _gzip(b'{"events": ["' + b"a" * OVER),
    "events that never end": lambda: _gzip(b'{"events": [' + b"{}," * (OVER // 3)),
    "nested arrays": lambda: _gzip(b"[" * OVER),
    "a ratio over the limit, bytes under it": lambda: _gzip(b" " * 15 * MIB),
    "an honest beginning": lambda: _gzip(_words(2 * MIB) + b"0" * OVER),
    "an honest ratio": lambda: _gzip((_words(64 * KIB) + b"0" * MIB) * 24),
    "after an honest member": lambda: _gzip(b'{"events": []}') + _gzip(b" " * OVER),
}
BATCH = _gzip(b'{"events": []}')
DUDS: dict[str, Callable[[], bytes]] = {
    "nested": lambda: _gzip(_gzip(b"0" * OVER)),
    "raw deflate": _raw_deflate,
    "zlib": lambda: zlib.compress(b"0" * OVER),
    "truncated": lambda: BATCH[:-9],
    "wrong checksum": lambda: BATCH[:-8] + b"\0\0\0\0" + BATCH[-4:],
    "wrong length": lambda: BATCH[:-4] + b"\1\0\0\0",
    "trailing junk": lambda: BATCH + b"junk",
    "a name without an end": lambda: HEAD[:3] + b"\x08" + HEAD[4:] + b"n" * 4 * MIB,
    "empty": lambda: b"",
}
CODINGS = ("gzip, gzip", "deflate", "br", "zstd", "compress")
CASES = [
    *(pytest.param(make, GZIP, 413, id=name) for name, make in BOMBS.items()),
    *(pytest.param(make, GZIP, 400, id=name) for name, make in DUDS.items()),
    *(
        pytest.param(
            lambda: BATCH, {**GZIP, "Content-Encoding": coding}, 415, id=f"sent as {coding}"
        )
        for coding in CODINGS
    ),
]


class _Peak:
    """The most memory the process had while the block ran, beyond what it had before."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.growth = 0

    def __enter__(self) -> _Peak:
        Path(f"/proc/{self._pid}/clear_refs").write_text("5")  # forget the peak so far
        self._before = most_memory_of(self._pid)
        return self

    def __exit__(self, *_: object) -> None:
        self.growth = most_memory_of(self._pid) - self._before


@pytest.mark.parametrize(("make", "headers", "status"), CASES)
def test_decompression_bomb(
    collector: RunningCollector,
    make: Callable[[], bytes],
    headers: dict[str, str],
    status: int,
) -> None:
    """A bomb is refused while it unfolds, and memory stays where it was."""
    body = make()

    with _Peak(collector.pid) as peak:
        answer = _post(collector, body, headers)

    assert answer.status_code == status, answer.text
    assert len(answer.content) < 1_024
    assert peak.growth <= MOST


@pytest.mark.parametrize("name", ["4 GiB of zeros", "after an honest member"])
def test_decompression_bomb_in_pieces(collector: RunningCollector, name: str) -> None:
    """A bomb that comes in chunks of unknown number is refused while it unfolds, too."""
    body = BOMBS[name]()

    with _Peak(collector.pid) as peak:
        answer = _post(collector, _pieces(body), GZIP)

    assert answer.status_code == 413, answer.text
    assert peak.growth <= MOST


@pytest.mark.parametrize("key", ["tf_ingest_" + "a" * 43, "x"])
def test_bombs_are_for_members_only(collector: RunningCollector, key: str) -> None:
    """Without a key nothing is unfolded at all."""
    with _Peak(collector.pid) as peak:
        answer = _post(collector, _gzip(b"0" * OVER), {**GZIP, "Authorization": f"Bearer {key}"})

    assert answer.status_code == 401
    assert peak.growth <= 4 * MIB


def test_bomb_behind_a_short_length(collector: RunningCollector) -> None:
    """What is beyond the length that was said is no part of the body, and unfolds nothing."""
    bomb = _endless(MIB)
    head = (
        "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {collector.key}\r\nContent-Encoding: gzip\r\n"
        "Content-Length: 20\r\nConnection: close\r\n\r\n"
    )

    with (
        _Peak(collector.pid) as peak,
        socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock,
    ):
        sock.sendall(head.encode() + bomb[:64])
        answer = sock.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 400")
    assert peak.growth <= MOST


def _post(
    collector: RunningCollector, body: bytes | Iterator[bytes], headers: dict[str, str]
) -> httpx2.Response:
    return collector.client.post(f"{collector.url}/v1/events", content=body, headers=headers)


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 8 * KIB):
        yield body[start : start + 8 * KIB]
