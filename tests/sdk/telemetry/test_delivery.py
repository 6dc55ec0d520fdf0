"""Delivery over real sockets: whatever the collector does, every record is accounted for."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cases import long_cases
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Behaviour, Server
from tests.sdk.telemetry.conftest import (
    QUICK,
    MakeClient,
    Scripted,
    a_call,
    a_failure,
    conserved,
)

import toolfault
from toolfault.telemetry import Client, Limits, Response
from toolfault.testing import MemoryTransport

# One batch per flush, however busy the machine is.
HELD = QUICK.with_(batch_seconds=60.0)


def capture(client: Client, count: int) -> None:
    """Capture ``count`` calls, every third one failed."""
    for number in range(count):
        error = a_failure() if number % 3 == 0 else None
        client.on_call(a_call(error=error))


class Busy(MemoryTransport):
    """Another thread captures while the first batch is sent; the second waits until it may go."""

    def __init__(self) -> None:
        super().__init__()
        self.capture: Callable[[], object] = bool
        self.may_go = threading.Event()

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Send."""
        if self.batches:
            self.may_go.wait(60)
        else:
            thread = threading.Thread(target=self.capture)
            thread.start()
            thread.join()
        return super().send(body, headers=headers, timeout=timeout)


@pytest.mark.parametrize("is_failure", [False, True], ids=["folded", "failure"])
@pytest.mark.parametrize("spools", [False, True], ids=["memory", "spool"])
def test_flush_waits_for_nothing_that_comes_after_it(
    is_failure: bool, spools: bool, make_client: MakeClient, tmp_path: Path
) -> None:
    """A host whose other threads go on calling tools gets its answer nevertheless."""
    transport = Busy()
    folder = str(tmp_path) if spools else None
    client = make_client(transport=transport, limits=HELD, successes="folded", spool_dir=folder)
    transport.capture = lambda: client.on_call(a_call(error=a_failure() if is_failure else None))
    client.on_call(a_call("before", error=a_failure()))
    try:
        assert client.flush(5)
        assert [event["tool"] for event in transport.events] == ["before"]
        assert client.stats().pending == 1
    finally:
        transport.may_go.set()
    assert client.flush(20)
    assert client.stats().pending == 0


def test_everything_captured_arrives(collector: Server, make_client: MakeClient) -> None:
    """What was captured is stored once, and flush says so."""
    client = make_client(collector.dsn)
    capture(client, 450)
    assert client.flush()
    assert len(collector.events) == 450
    assert client.stats().acked == client.stats().captured == 450
    conserved(client)


def test_batches_are_bounded_and_carry_the_key(collector: Server, make_client: MakeClient) -> None:
    """A request has at most 200 events, the key in its header, and a versioned envelope."""
    client = make_client(collector.dsn, agent="bot", release="1.2", environment="test")
    capture(client, 450)
    assert client.flush()
    headers, batch = collector.requests[0]
    assert headers["Authorization"] == "Bearer KEY"
    assert headers["Content-Encoding"] == "gzip"
    assert batch["schema_version"] == 1
    assert batch["resource"] == {"agent": "bot", "environment": "test", "release": "1.2"}
    assert batch["sdk"]["name"] == "toolfault-python"
    assert max(len(sent["events"]) for _, sent in collector.requests) <= 200


def hinting(handler: behave.Handler, batch: dict[str, Any]) -> None:
    """Send an interim answer, as proxies may (RFC 8297), and the true one late."""
    handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
    select.select([handler.connection], [], [], 20)  # until the client goes on or hangs up
    behave.honest(handler, batch)


TRANSIENT: dict[str, Behaviour] = {
    "early hints": hinting,
    "reset": behave.reset,
    "stored, answer lost": behave.stored_but_silent,
    "not HTTP": behave.garbage,
    "torn answer": behave.torn,
    "gzip lie": behave.lying(b"not gzip", Content_Encoding="gzip"),
}


@pytest.mark.parametrize("behaviour", TRANSIENT.values(), ids=TRANSIENT.keys())
def test_transient_fault_loses_nothing(
    behaviour: Behaviour, collector: Server, make_client: MakeClient
) -> None:
    """A fault that ends costs no event and stores none twice."""
    collector.script.append(behaviour)
    client = make_client(collector.dsn)
    capture(client, 20)
    assert client.flush(20)
    assert len(collector.events) == 20
    assert client.stats().acked == 20
    conserved(client)


def test_an_interim_answer_is_no_answer_to_the_next_request(
    collector: Server, make_client: MakeClient
) -> None:
    """What follows an interim answer is read by nobody: no batch is settled by another's answer."""
    collector.script.append(hinting)
    client = make_client(collector.dsn)
    capture(client, 3)
    assert client.flush(20)
    collector.default = behave.status(401)
    capture(client, 3)
    assert not client.flush(20)
    stats = client.stats()
    assert (stats.acked, stats.dropped) == (3, {"http_401": 3})
    assert len(collector.events) == 3
    conserved(client)


def test_an_answer_nobody_asked_for_settles_nothing(
    collector: Server, make_client: MakeClient
) -> None:
    """A second answer that comes late is not taken for the one to the next batch."""
    asked, said = threading.Event(), threading.Event()

    def twice(handler: behave.Handler, batch: dict[str, Any]) -> None:
        try:
            behave.honest(handler, batch)
            asked.wait(60)
            behave.honest(handler, batch)
        finally:
            said.set()

    collector.script.append(twice)
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 3)
    assert client.flush(20)
    asked.set()
    assert said.wait(60)
    collector.default = behave.status(401)
    capture(client, 3)
    assert not client.flush(20)
    assert client.stats().dropped == {"http_401": 3}
    assert client.stats().acked == len(collector.events) == 3
    conserved(client)


def test_refused_batch_is_dropped_and_counted(collector: Server, make_client: MakeClient) -> None:
    """A batch the collector will never take is given up at once, by reason."""
    collector.default = behave.status(401)
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 7)
    assert not client.flush(20)
    assert client.stats().dropped == {"http_401": 7}
    assert collector.sent_once()
    conserved(client)


def test_rejected_events_are_counted_one_by_one(collector: Server, make_client: MakeClient) -> None:
    """Events the collector refuses are rejected; the others of the batch are stored."""
    collector.refuses = lambda event: not event["success"]
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 9)
    assert not client.flush()
    stats = client.stats()
    assert (stats.acked, stats.rejected) == (6, 3)
    assert len(collector.events) == 6
    conserved(client)


def test_large_batch_is_split(collector: Server, make_client: MakeClient) -> None:
    """413 halves a batch until the parts are taken."""

    def small_ones_only(handler: behave.Handler, batch: dict[str, Any]) -> None:
        if len(batch["events"]) > 3:
            handler.answer(413, b"{}")
        else:
            behave.honest(handler, batch)

    collector.default = small_ones_only
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 12)
    assert client.flush(20)
    assert len(collector.events) == 12
    conserved(client)


def test_single_event_too_large_is_shortened_once(
    collector: Server, make_client: MakeClient
) -> None:
    """A single event that is too large is sent once more, shorter and saying so; then dropped."""
    collector.script.append(behave.status(413))
    client = make_client(collector.dsn, limits=HELD)
    client.on_call(a_call(error=a_failure(message="x" * 6_000)))
    assert client.flush(20)
    (event,) = collector.events.values()
    assert "error.renderings.llm" in event["truncated"]
    collector.default = behave.status(413)
    client.on_call(a_call(error=a_failure()))
    assert not client.flush(20)
    assert client.stats().dropped == {"http_413": 1}
    conserved(client)


def test_a_shortened_event_outlives_a_fault(collector: Server, make_client: MakeClient) -> None:
    """What is sent shorter is retried as everything is: only a second 413 drops it."""
    collector.script.extend([behave.status(413), behave.status(503), behave.reset])
    client = make_client(collector.dsn, limits=HELD)
    client.on_call(a_call(error=a_failure(message="x" * 6_000)))
    assert client.flush(20)
    (event,) = collector.events.values()
    assert event["truncated"]
    assert client.stats().acked == 1
    conserved(client)


def test_drops_travel_with_the_next_batch(collector: Server, make_client: MakeClient) -> None:
    """The collector learns how many records were dropped and why, once."""
    client = make_client(collector.dsn, limits=HELD.with_(queue_events=10))
    capture(client, 25)
    client.flush()
    assert collector.requests[0][1]["dropped"] == {"queue_overflow": 15}
    capture(client, 1)
    client.flush()
    assert "dropped" not in collector.requests[1][1]
    assert len(collector.events) == 11
    conserved(client)


def test_drops_are_told_when_nothing_else_follows(
    collector: Server, make_client: MakeClient
) -> None:
    """When every record was dropped, an empty batch says so."""
    client = make_client(collector.dsn, ignore=("wrong_type",))
    client.on_call(a_call(error=a_failure()))
    client.flush()
    client.close(20)
    assert collector.requests[0][1]["dropped"] == {"ignored": 1}
    assert collector.requests[0][1]["events"] == []


@pytest.mark.parametrize("behaviour", [behave.silent, behave.dripping], ids=["silent", "1 byte"])
def test_a_request_ends_at_its_deadline(
    behaviour: Behaviour, collector: Server, make_client: MakeClient
) -> None:
    """A collector that never finishes its answer costs one request's time, not the sender."""
    collector.script.append(behaviour)
    client = make_client(collector.dsn, limits=QUICK.with_(request_seconds=0.3))
    capture(client, 5)
    assert client.flush(20)
    assert len(collector.events) == 5
    conserved(client)


def test_retry_after_is_honoured(collector: Server, make_client: MakeClient) -> None:
    """Until the time the collector asked for is over no request is made, also not by flush."""
    collector.script.append(behave.status(429, b"{}", Retry_After="300"))
    client = make_client(collector.dsn, limits=HELD.with_(batch_events=5))
    capture(client, 5)
    collector.wait_for(lambda server: len(server.requests) == 1)
    assert not client.flush(0.1)
    assert len(collector.requests) == 1
    assert client.stats().pending == 5
    conserved(client)


def unreachable() -> str:
    """A DSN whose port nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://KEY@127.0.0.1:{sock.getsockname()[1]}"


@pytest.mark.parametrize(
    "dsn",
    [
        None,
        pytest.param("http://KEY@no-such-host.invalid:80", marks=pytest.mark.long),
        "https://KEY@{address}",
    ],
    ids=["refused", "no such host", "TLS failure"],
)
def test_unreachable_collector_keeps_events_pending(
    dsn: str | None, collector: Server, make_client: MakeClient
) -> None:
    """Events wait for a collector that cannot be reached, and are counted while they do."""
    address = f"127.0.0.1:{collector.server_port}"
    client = make_client(dsn.format(address=address) if dsn else unreachable())
    capture(client, 12)
    assert not client.flush(0.3)
    assert client.stats().pending == 12
    conserved(client)
    assert not client.close(0.3)
    assert client.stats().dropped == {"shutdown": 12}


def test_events_are_bounded_in_bytes(make_client: MakeClient) -> None:
    """The queue gives up its oldest events when they take too many bytes."""
    limits = HELD.with_(queue_bytes=200_000)
    client = make_client(unreachable(), limits=limits)
    for _ in range(100):
        client.on_call(a_call(error=a_failure(message="x" * 5_000)))
    stats = client.stats()
    assert 20 < stats.pending < 200_000 / 5_000
    assert stats.dropped == {"queue_overflow": 100 - stats.pending}
    conserved(client)


def test_dead_connection_is_replaced(collector: Server, make_client: MakeClient) -> None:
    """A kept-alive connection that the collector closed meanwhile costs no attempt."""

    def answer_and_hang_up(handler: behave.Handler, batch: dict[str, Any]) -> None:
        behave.honest(handler, batch)
        handler.close_connection = True

    collector.default = answer_and_hang_up
    client = make_client(collector.dsn, limits=QUICK.with_(backoff_base=60.0))
    for _ in range(3):
        capture(client, 1)
        assert client.flush(5)
    assert len(collector.events) == 3


@pytest.mark.parametrize(
    "behaviour",
    [
        behave.silent,
        behave.honest,
        *long_cases(behave.torn, behave.garbage),
    ],
)
def test_closing_hangs_up(behaviour: Behaviour, collector: Server, make_client: MakeClient) -> None:
    """Whatever became of an answer, the collector hears the end of the connection at once."""
    connections, begun, hung_up = [], threading.Event(), threading.Semaphore(0)

    def listening(handler: behave.Handler, batch: dict[str, Any]) -> None:
        listener = threading.Thread(target=heard, args=(handler.connection.dup(),))
        listener.start()
        connections.append(listener)
        begun.set()
        behaviour(handler, batch)

    def heard(connection: socket.socket) -> None:
        with connection:
            closing = select.poll()
            closing.register(connection, select.POLLRDHUP)
            if closing.poll(60_000):
                hung_up.release()

    collector.default = listening
    client = make_client(collector.dsn, limits=QUICK.with_(request_seconds=0.3))
    capture(client, 1)
    assert begun.wait(60)
    client.flush(0.3)
    client.close(0.0)
    for listener in connections:
        assert hung_up.acquire(timeout=60)
        listener.join()


def test_closing_tries_once_more_at_once(collector: Server, make_client: MakeClient) -> None:
    """Who closes while the sender waits after a failed request does not lose what it holds."""
    collector.script.append(behave.status(503))
    waits = QUICK.with_(backoff_base=1e9, backoff_cap=1e9)
    client = make_client(collector.dsn, limits=waits)
    capture(client, 1)
    collector.wait_for(lambda server: len(server.requests) == 1)
    assert client.close(20)
    assert len(collector.events) == 1


def test_closing_takes_two_seconds_at_most(make_client: MakeClient) -> None:
    """Without a timeout no request of the end is given more than two seconds."""
    timeouts: list[float] = []

    class Refusing(MemoryTransport):
        def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
            timeouts.append(timeout)
            raise ConnectionRefusedError

    client = make_client(transport=Refusing(), limits=Limits(batch_seconds=60.0))
    capture(client, 1)
    assert not toolfault.close()
    assert timeouts
    assert max(timeouts) <= 2.0
    assert client.stats().dropped == {"shutdown": 1}


def test_the_queue_holds_ten_thousand_events(make_client: MakeClient) -> None:
    """Beyond it, as users are promised, the oldest make room; a request carries 200."""
    transport = Scripted(*[None] * 10_000)
    client = make_client(transport=transport, limits=None)
    for _ in range(10_500):
        client.on_call(a_call())
    stats = client.stats()
    assert 10_000 <= stats.pending <= 10_200  # up to one request may be on its way
    assert stats.dropped == {"queue_overflow": 10_500 - stats.pending}
    assert transport.asked.wait(60)
    assert {size for size in transport.sizes if size} == {200}  # an empty batch asks for the way
