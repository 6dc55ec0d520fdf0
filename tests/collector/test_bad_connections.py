"""Connections that lie, crawl or break off: raw sockets against a running collector."""

from __future__ import annotations

import json
import shutil
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.cases import long_cases
from tests.factories import success
from tests.running import RunningCollector

from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.tables import tool_call


@pytest.fixture(scope="module")
def collector(
    sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCollector]:
    """A collector that waits a second for what does not come, for the whole module."""
    folder = tmp_path_factory.mktemp("impatient")
    database = folder / "toolfault.db"
    shutil.copyfile(sqlite_template, database)
    patience = {"TOOLFAULT_BODY_TIMEOUT_SECONDS": "1", "TOOLFAULT_HEAD_TIMEOUT_SECONDS": "1"}
    with RunningCollector(f"sqlite:///{database}", folder=folder, **patience) as running:
        yield running
        assert running.post(success()).json()["accepted"] == 1


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: -1\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: x\r\n",
        b"Transfer-Encoding: gzip\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Host: a\r\nHost: b\r\n",
        b"X-Long: " + b"a" * 100_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % n for n in range(5_000)),
        b"Bad Name: a\r\n",
    ],
    ids=lambda head: repr(head)[:30],
)
def test_broken_head(collector: RunningCollector, head: bytes) -> None:
    """A request whose head contradicts itself is refused and the connection is closed."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=20) as sock:
        authorization = f"Authorization: Bearer {collector.key}\r\n".encode()
        host = b"" if head.startswith(b"Host") else b"Host: x\r\n"
        sock.sendall(b"POST /v1/events HTTP/1.1\r\n" + host + authorization + head + b"\r\n")
        answer = _read_to_end(sock)

    assert answer[9:12] in (b"400", b"431"), answer[:200]


def test_short_body(collector: RunningCollector) -> None:
    """A body that never comes is given up on, with an answer, and others are served meanwhile."""
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(head.encode())
        assert collector.post(success()).status_code == 200
        answer = _read_to_end(sock)

    assert answer.startswith(b"HTTP/1.1 408"), answer[:100]
    assert b"slow_body" in answer


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/events HTTP/1.1\r\nHost: x\r\n",
        *long_cases(b"", b"POST /v1/ev"),
    ],
)
def test_slow_head(collector: RunningCollector, head: bytes) -> None:
    """Fifty connections that never finish their head are closed, and others are served."""
    slow = [socket.create_connection(("127.0.0.1", collector.port), timeout=30) for _ in range(50)]
    try:
        for sock in slow:
            sock.sendall(head)
        assert collector.post(success()).status_code == 200
        answers = {_read_to_end(sock)[:12] for sock in slow}
    finally:
        for sock in slow:
            sock.close()

    assert answers == {b"HTTP/1.1 408"}


def test_endless_head(collector: RunningCollector) -> None:
    """A head that goes on and on is refused before it has filled anything."""
    answer = b""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\n")
        with suppress(ConnectionError):  # what is sent after the answer meets a closed connection
            for number in range(10_000):
                sock.sendall(b"X-%d: %s\r\n" % (number, b"a" * 1_000))
        with suppress(ConnectionError):
            answer = _read_to_end(sock)

    assert answer[9:12] in (b"431", b"")
    assert collector.post(success()).status_code == 200


def test_slow_head_after_a_request(collector: RunningCollector) -> None:
    """The second head on a connection has its deadline as well; a request under way has none."""
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(request)
        first = sock.recv(65_536)
        sock.sendall(request[:-4])
        rest = _read_to_end(sock)

    assert first.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 408" in rest


def test_client_gone(collector: RunningCollector) -> None:
    """A client that leaves mid-body stores nothing and leaves no trace in the log."""
    event = success()
    body = json.dumps({"events": [event]}).encode()
    head = (
        f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(head.encode() + body[:-1])

    collector.post(success())
    assert _stored(collector, event["event_id"]) == 0
    assert "Traceback" not in collector.output()


def test_client_gone_before_the_answer(collector: RunningCollector) -> None:
    """A client that resets the connection after its batch loses the answer and nothing else."""
    head = "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    events = [success() for _ in range(20)]
    for event in events:
        body = json.dumps({"events": [event]}).encode()
        with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
            # Closing sends a reset at once, so that the answer meets a connection that is gone.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(
                f"{head}Authorization: Bearer {collector.key}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )

    again = collector.post(*events).json()

    assert again["accepted"] + again["duplicate"] == len(events)
    assert all(_stored(collector, event["event_id"]) == 1 for event in events)
    assert "Traceback" not in collector.output()


def test_more_body_than_said(collector: RunningCollector) -> None:
    """What follows the length that was said is the next request, and none of the sender's key."""
    event = success()
    body = json.dumps({"events": []}).encode()
    smuggled = json.dumps({"events": [event]}).encode()
    head = (
        "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {collector.key}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(
            head.encode() + body + b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: "
            b"%d\r\nConnection: close\r\n\r\n" % len(smuggled) + smuggled
        )
        answers = _read_to_end(sock)

    assert [part[:3] for part in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"401"]
    assert _stored(collector, event["event_id"]) == 0


@pytest.mark.parametrize(
    "host",
    ["a/b?", "x@y", "[::1", "", "a b", "a#b", "x:y", "x:80:80", "[::1]x", "\u00e9", "a\\b", "%61"],
)
def test_bad_host(collector: RunningCollector, host: str) -> None:
    """A Host that names no host is refused before a key is looked at; no address is made of it."""
    path = "/healthz" if host == "a/b?" else "/v1/events"
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as sock:
        sock.sendall(request.encode())
        answer = _read_to_end(sock)

    assert answer.startswith(b"HTTP/1.1 400"), answer[:100]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8321", "[::1]:80", "a-b.example"])
def test_good_host(collector: RunningCollector, host: str) -> None:
    """Names and addresses, with a port or without, are hosts."""
    assert collector.client.get(f"{collector.url}/healthz", headers={"Host": host}).is_success


def _stored(collector: RunningCollector, event_id: str) -> int:
    engine = open_engine(collector.database_url)
    with read_connection(engine) as conn:
        found: int = conn.execute(
            select(func.count()).select_from(tool_call).where(tool_call.c.event_id == event_id)
        ).scalar_one()
    engine.dispose()
    return found


def _read_to_end(sock: socket.socket) -> bytes:
    data = b""
    while chunk := _receive(sock):
        data += chunk
    return data


def _receive(sock: socket.socket) -> bytes:
    try:
        return sock.recv(65_536)
    except ConnectionResetError:
        return b""
