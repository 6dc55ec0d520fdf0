"""Delivery over real sockets: whatever the collector does, every record is accounted for."""

from __future__ import annotations

import contextlib
import gc
import gzip
import select
import socket
import threading

import pytest
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Behaviour, Server
from tests.sdk.telemetry.conftest import QUICK, MakeClient, a_call, a_failure, conserved

from toolfault.telemetry._dsn import parse_dsn
from toolfault.telemetry._http import HttpTransport
from toolfault.telemetry._limits import Limits

# One batch per flush, however busy the machine is.
HELD = QUICK._replace(batch_seconds=60.0)


def capture(client, count: int) -> None:
    """Capture ``count`` calls, every third one failed."""
    for number in range(count):
        error = a_failure() if number % 3 == 0 else None
        client.on_call(a_call(error=error))


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


def hinting(handler: behave.Handler, batch: dict) -> None:
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
    "408": behave.status(408),
    "429": behave.status(429),
    "500": behave.status(500),
    "502": behave.status(502, b"<html>bad gateway</html>"),
    "503": behave.status(503),
    "504": behave.status(504),
    "507": behave.status(507),
    "captive portal": behave.lying(b"<html>please sign in</html>", Content_Type="text/html"),
    "204": behave.status(204, b""),
    "empty 200": behave.lying(b""),
    "wrong counts": behave.lying(b'{"accepted":1,"duplicate":0,"rejected":[]}'),
    "gzip lie": behave.lying(b"not gzip", Content_Encoding="gzip"),
    "redirect": behave.status(301, b"", Location="http://127.0.0.1:1/elsewhere"),
    "temporary redirect": behave.status(307, b"", Location="/v1/events"),
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

    def twice(handler: behave.Handler, batch: dict) -> None:
        behave.honest(handler, batch)
        asked.wait(20)
        behave.honest(handler, batch)
        said.set()

    collector.script.append(twice)
    client = make_client(collector.dsn)
    capture(client, 3)
    assert client.flush(20)
    asked.set()
    assert said.wait(20)
    collector.default = behave.status(401)
    capture(client, 3)
    assert not client.flush(20)
    assert client.stats().dropped == {"http_401": 3}
    assert client.stats().acked == len(collector.events) == 3
    conserved(client)


PERMANENT = {400: "http_400", 401: "http_401", 403: "http_403", 404: "http_404", 405: "http_405",
             415: "http_415", 422: "http_422", 501: "http_501"}  # fmt: skip


@pytest.mark.parametrize(("code", "reason"), PERMANENT.items())
def test_refused_batch_is_dropped_and_counted(
    code: int, reason: str, collector: Server, make_client: MakeClient
) -> None:
    """A batch the collector will never take is given up at once, by reason."""
    collector.default = behave.status(code)
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 7)
    assert not client.flush(20)
    assert client.stats().dropped == {reason: 7}
    assert len(collector.requests) == 1
    conserved(client)


def test_broken_server_is_retried_three_times(collector: Server, make_client: MakeClient) -> None:
    """A 500 that stays is a defect of the collector: three retries, then the batch is dropped."""
    collector.default = behave.status(500)
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 5)
    assert not client.flush(20)
    assert client.stats().dropped == {"http_500": 5}
    assert len(collector.requests) == 4
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

    def small_ones_only(handler: behave.Handler, batch: dict) -> None:
        if len(batch["events"]) > 3:
            handler.answer(413, b"{}")
        else:
            behave.honest(handler, batch)

    collector.default = small_ones_only
    client = make_client(collector.dsn)
    capture(client, 50)
    assert client.flush(20)
    assert len(collector.events) == 50
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
    client = make_client(collector.dsn, limits=HELD._replace(queue_events=10))
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
    client.close()
    assert collector.requests[0][1]["dropped"] == {"ignored": 1}
    assert collector.requests[0][1]["events"] == []


@pytest.mark.parametrize("behaviour", [behave.silent, behave.dripping], ids=["silent", "1 byte"])
def test_a_request_ends_at_its_deadline(
    behaviour: Behaviour, collector: Server, make_client: MakeClient
) -> None:
    """A collector that never finishes its answer costs one request's time, not the sender."""
    collector.script.append(behaviour)
    client = make_client(collector.dsn, limits=QUICK._replace(request_seconds=0.3))
    capture(client, 5)
    assert client.flush(20)
    assert len(collector.events) == 5
    conserved(client)


def test_retry_after_is_honoured(collector: Server, make_client: MakeClient) -> None:
    """Until the time the collector asked for is over no request is made, also not by flush."""
    collector.script.append(behave.status(429, b"{}", Retry_After="300"))
    client = make_client(collector.dsn, limits=HELD)
    capture(client, 5)
    assert not client.flush(0.3)
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
    [None, "http://KEY@no-such-host.invalid:80", "https://KEY@{address}"],
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
    limits = HELD._replace(queue_bytes=200_000)
    client = make_client(unreachable(), limits=limits)
    for _ in range(100):
        client.on_call(a_call(error=a_failure(message="x" * 5_000)))
    stats = client.stats()
    assert 20 < stats.pending < 200_000 / 5_000
    assert stats.dropped == {"queue_overflow": 100 - stats.pending}
    conserved(client)


def test_dead_connection_is_replaced(collector: Server, make_client: MakeClient) -> None:
    """A kept-alive connection that the collector closed meanwhile costs no attempt."""

    def answer_and_hang_up(handler: behave.Handler, batch: dict) -> None:
        behave.honest(handler, batch)
        handler.close_connection = True

    collector.default = answer_and_hang_up
    client = make_client(collector.dsn, limits=QUICK._replace(backoff_base=60.0))
    for _ in range(3):
        capture(client, 1)
        assert client.flush(5)
    assert len(collector.events) == 3


@pytest.mark.parametrize("behaviour", [behave.torn, behave.garbage, behave.silent, behave.honest])
def test_no_descriptor_is_left_open(behaviour: Behaviour, collector: Server) -> None:
    """Whatever became of an answer, closing the transport closes its socket at once."""
    collector.default = behaviour
    transport = HttpTransport(parse_dsn(collector.dsn))
    gc.disable()
    try:
        with contextlib.suppress(OSError):
            transport.send(gzip.compress(b'{"events": []}'), headers={}, timeout=0.3)
        held = transport._socket
        transport.close()
        assert held is None or held._sock.fileno() == -1
        open_sockets = [
            found
            for found in gc.get_objects()
            if isinstance(found, socket.socket)
            and found.fileno() != -1
            and _peer_port(found) == collector.server_port
        ]
        assert open_sockets == []
    finally:
        gc.enable()


def _peer_port(sock: socket.socket) -> int | None:
    try:
        return int(sock.getpeername()[1])
    except OSError:
        return None


def test_limits_are_those_of_the_protocol() -> None:
    """The bounds that users are promised."""
    limits = Limits()
    assert (limits.queue_events, limits.queue_bytes) == (10_000, 16 * 1024 * 1024)
    assert limits.exit_seconds == 2.0
    assert limits.batch_events <= 1_000
    assert limits.event_bytes == 256 * 1024
