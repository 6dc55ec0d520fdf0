"""What an answer means (S10): settled, retried or dropped, and after which wait."""

from __future__ import annotations

import gzip
import time
from collections.abc import Mapping
from email.utils import formatdate
from itertools import pairwise

import pytest
from tests.sdk.telemetry.conftest import QUICK, Clock, MakeClient, Scripted, a_call

from toolfault.telemetry import Response

ACK = b'{"accepted":2,"duplicate":1,"rejected":[]}'
FAULTS = 6  # more than any answer's attempts are bounded to

SETTLED = [
    (200, ACK, 3),
    (201, ACK, 3),
    (207, ACK, 3),
    (200, b'{"accepted":1,"duplicate":1,"rejected":[{"index":2,"code":"x"}]}', 2),
    (200, b'{"accepted":1,"duplicate":0,"rejected":[{"index":2},{"index":0}]}', 1),
    (200, b'{"accepted":3,"duplicate":0,"rejected":[],"more":1}', 3),
]
NO_ACKNOWLEDGEMENT = [
    b"",
    b"<html>sign in</html>",
    b"[]",
    b'"ok"',
    b'{"accepted":true,"duplicate":2,"rejected":[]}',
    b'{"accepted":2.0,"duplicate":1,"rejected":[]}',
    b'{"accepted":4,"duplicate":-1,"rejected":[]}',
    b'{"accepted":2,"duplicate":0,"rejected":[]}',
    b'{"accepted":2,"duplicate":0,"rejected":[{"index":3}]}',
    b'{"accepted":1,"duplicate":0,"rejected":[{"index":1},{"index":1}]}',
    b'{"accepted":2,"duplicate":0,"rejected":["1"]}',
    b'{"accepted":2,"duplicate":1}',
    b"\xff\xfe",
    b"[" * 100_000,
]
RETRIED = [
    *((200, body) for body in NO_ACKNOWLEDGEMENT),
    *((status, b"") for status in (101, 204, 301, 302, 304, 307, 308, 999)),
    *((status, b"") for status in (429, 502, 503, 504, 507, 520, 527, 530)),
    None,
]
GIVEN_UP = {
    408: 2,
    500: 4,
    **dict.fromkeys((400, 401, 403, 404, 405, 409, 410, 415, 422, 425, 431, 501, 505, 511), 1),
}


def meets(make_client: MakeClient, passing: Clock, answer: Response | None) -> Scripted:
    """Capture three calls that meet the same answer again and again, then an acknowledgement."""
    transport = Scripted(*[answer] * FAULTS)
    client = make_client(transport=transport, limits=None)
    passing.held = True  # so that all three are in one batch
    for _ in range(3):
        client.on_call(a_call())
    passing.held = False
    while not client.flush(1_000) and client.stats().pending:
        continue
    return transport


@pytest.mark.parametrize(("status", "body", "acked"), SETTLED)
def test_an_acknowledgement_settles(
    status: int, body: bytes, acked: int, make_client: MakeClient
) -> None:
    """An answer whose counts add up settles the batch; the positions it names are rejected."""
    transport = Scripted(Response(status, {}, body))
    together = QUICK.with_(batch_seconds=60.0)  # until the flush
    client = make_client(transport=transport, limits=together)
    for _ in range(3):
        client.on_call(a_call())
    client.flush(20)
    stats = client.stats()
    assert (len(transport.at), stats.acked, stats.rejected) == (1, acked, 3 - acked)


@pytest.mark.parametrize("answer", RETRIED, ids=str)
def test_what_is_no_answer_is_retried_until_there_is_one(
    answer: tuple[int, bytes] | None, make_client: MakeClient, passing: Clock
) -> None:
    """Anything that is not from a collector, or asks to come back, never costs an event."""
    response = answer and Response(answer[0], {}, answer[1])
    assert len(meets(make_client, passing, response).at) == FAULTS + 1


@pytest.mark.parametrize(("status", "attempts"), GIVEN_UP.items())
def test_what_will_never_be_taken_is_dropped(
    status: int, attempts: int, make_client: MakeClient, passing: Clock
) -> None:
    """A refusal is final at once, a timeout of the other side after two attempts, a 500 after 4."""
    transport = Scripted(*[Response(status, {}, b"")] * attempts)
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    while client.stats().pending:
        client.flush(1_000)
    assert client.stats().dropped == {f"http_{status}": 1}
    assert transport.sizes.count(1) == attempts


class Firewall(Scripted):
    """Lets everything through but batches that hold a certain word."""

    def __init__(self, answer: Response | None) -> None:
        super().__init__()
        self.answer = answer

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Answer itself, or cut the connection, where the word is."""
        if b"DROP TABLE" not in gzip.decompress(body):
            return super().send(body, headers=headers, timeout=timeout)
        if self.answer is None:
            raise ConnectionResetError
        return self.answer


@pytest.mark.parametrize(
    ("status", "reason"),
    [(None, "network_error"), (200, "not_an_ack"), (400, "http_400"), (403, "http_403")],
)
def test_one_event_that_is_not_let_through_costs_no_other(
    status: int | None, reason: str, make_client: MakeClient, passing: Clock
) -> None:
    """The batch is taken apart until that event is alone; it is given up, and all others arrive."""
    answer = None if status is None else Response(status, {}, b"<html>blocked</html>")
    transport = Firewall(answer)
    client = make_client(transport=transport, limits=None)
    passing.held = True  # so that all are in one batch
    for number in range(50):
        client.on_call(a_call("DROP TABLE" if number == 20 else f"tool_{number}"))
    passing.held = False
    while client.stats().pending:
        client.flush(1_000)
    assert client.stats().dropped == {reason: 1}
    assert len(transport.events) == 49


def test_an_outage_that_ends_costs_no_event(make_client: MakeClient, passing: Clock) -> None:
    """What failed while no empty batch got through is tried again before it is given up."""
    # Three attempts and an empty batch, twice, three attempts more; then an empty batch arrives.
    transport = Scripted(*[None] * 11)
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    while client.stats().pending:
        client.flush(1_000)
    assert transport.sizes == [1, 1, 1, 0] * 3 + [1]
    assert (client.stats().acked, client.stats().dropped) == (1, {})


NOW = 1_790_000_000.0


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("value", "wait"),
    [
        ("7", 7.0),
        (" 7 ", 7.0),
        ("0", 1.0),
        ("-1", 1.0),
        ("1000000000000", 300.0),
        ("9" * 5_000, 300.0),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 3_600, usegmt=True), 1.0),
        (formatdate(NOW + 86_400, usegmt=True), 300.0),
        *((odd, None) for odd in ("soon", "", "1.5", "7, 8", "\u0667", "Wed, 99 Foo 2026 9:9:9")),
    ],
)
def test_retry_after(
    value: str,
    wait: float | None,
    status: int,
    make_client: MakeClient,
    passing: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seconds and dates are kept between 1 and 300 seconds, and a fifth more; the rest is noise."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    transport = Scripted(Response(status, {"retry-after": value}, b""))
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    assert transport.acknowledged.wait(60)
    asked, came_back = transport.at
    if wait is None:
        assert came_back - asked <= 1.0
    else:
        assert wait <= came_back - asked <= wait * 1.2 + 1e-3


def gaps(transport: Scripted) -> list[float]:
    """The waits between attempts."""
    return [later - earlier for earlier, later in pairwise(transport.at)]


def test_waits_grow_and_are_spread(make_client: MakeClient, passing: Clock) -> None:
    """The bound of a wait doubles up to a minute, and the wait is drawn from all of it.

    So clients that failed together do not come back together.
    """
    transport = Scripted(*[None] * 400)
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    assert transport.acknowledged.wait(60)
    waits = gaps(transport)
    assert all(wait <= min(60.0, 2.0**number) + 1e-3 for number, wait in enumerate(waits))
    grown = waits[6:]
    assert 24 < sum(grown) / len(grown) < 36  # six standard deviations around the middle
    assert min(grown) < 6
    assert max(grown) > 54


def test_a_success_ends_the_growth(make_client: MakeClient, passing: Clock) -> None:
    """The first wait after a delivery is at most a second again."""
    transport = Scripted(*[None] * 30)
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    assert transport.acknowledged.wait(60)
    transport.acknowledged.clear()
    transport.answers = [None]
    client.on_call(a_call())
    assert transport.acknowledged.wait(60)
    assert gaps(transport)[-1] <= 1.0 + 1e-3


def test_clients_told_the_same_come_back_apart(make_client: MakeClient, passing: Clock) -> None:
    """A wait that was asked for is never shortened, and spread over a fifth of it."""
    transport = Scripted(*[Response(429, {"retry-after": "10"}, b"")] * 100)
    client = make_client(transport=transport, limits=None)
    client.on_call(a_call())
    assert transport.acknowledged.wait(60)
    waits = gaps(transport)
    assert all(10.0 - 1e-3 <= wait <= 12.0 + 1e-3 for wait in waits)
    assert max(waits) - min(waits) > 1.0
