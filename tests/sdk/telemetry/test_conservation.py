"""The conservation law (S4): captured = acknowledged + rejected + dropped by reason + pending.

One test for each thing that can go wrong between a capture and its acknowledgement. Forks are in
``test_fork.py``, the ends of processes in ``test_exit.py``, a full disk and ``kill -9`` in
``test_spool.py``, single answers in ``test_delivery.py``.
"""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Behaviour, Server
from tests.sdk.telemetry.conftest import QUICK, MakeClient, a_call, a_failure, conserved

import toolfault
from toolfault.telemetry import Client

IMPATIENT = QUICK.with_(request_seconds=0.2)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Meet each request with the next of ``behaviours``, over and over."""
    order = itertools.cycle(behaviours)
    return lambda handler, batch: next(order)(handler, batch)


FAULTS: dict[str, Behaviour] = {
    "black hole": behave.silent,
    "one byte at a time": behave.dripping,
    "resets": behave.reset,
    "stored, but the answer is lost": behave.stored_but_silent,
    "500 now and then": in_turn(behave.status(500), behave.status(503), behave.honest),
    "storm of 429 and 503": in_turn(behave.status(429), behave.status(503)),
    "all in turn": in_turn(
        behave.reset, behave.status(429), behave.silent, behave.stored_but_silent, behave.garbage,
        behave.torn, behave.status(503), behave.lying(b"{}"), behave.honest,
    ),
}  # fmt: skip


def work(client: Client, calls: int) -> None:
    """Make calls in conversations, every third one failed; the law holds after each."""
    for number in range(calls):
        with toolfault.conversation(f"c{number % 4}"):
            client.on_call(a_call(error=None if number % 3 else a_failure()))
        conserved(client)


@pytest.mark.parametrize(
    ("fault", "successes"),
    [
        ("black hole", "all"),
        ("stored, but the answer is lost", "folded"),
        ("500 now and then", "all"),
        ("all in turn", "folded"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                ("one byte at a time", "folded"),
                ("resets", "all"),
                ("storm of 429 and 503", "folded"),
                ("all in turn", "all"),
            )
        ),
    ],
)
def test_a_fault_that_ends(
    fault: str, successes: str, collector: Server, make_client: MakeClient
) -> None:
    """While it lasts every record is accounted for; after it all are stored, each once."""
    collector.default = FAULTS[fault]
    # An honest answer that is late must not count as one more attempt of a 500.
    limits = QUICK if "500" in fault else IMPATIENT
    client = make_client(collector.dsn, limits=limits, successes=successes)
    work(client, 40)
    client.flush(0.3)
    conserved(client)
    work(client, 20)
    conserved(client)
    collector.default = behave.honest
    assert client.flush(20)
    stats = client.stats()
    assert (stats.acked, stats.dropped, stats.pending) == (stats.captured, {}, 0)
    assert collector.calls() == 60
    conserved(client)


@pytest.mark.parametrize("fault", ["black hole", "all in turn"])
def test_a_queue_that_overflows_during_a_fault(
    fault: str, collector: Server, make_client: MakeClient
) -> None:
    """What found no room is counted as dropped, exactly, and the rest is stored."""
    collector.default = FAULTS[fault]
    client = make_client(collector.dsn, limits=IMPATIENT.with_(queue_events=25))
    work(client, 200)
    collector.default = behave.honest
    client.flush(20)
    stats = client.stats()
    assert stats.pending == 0
    assert stats.captured >= 200  # some conversations tell of their end as well
    assert set(stats.dropped) <= {"queue_overflow"}
    assert len(collector.events) == stats.acked == stats.captured - sum(stats.dropped.values())
    conserved(client)


@contextmanager
def deaf() -> Iterator[int]:
    """A port that accepts connections and reads nothing, with hardly any room to write into."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        accepted: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    accepted.append(listener.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_collector_that_reads_nothing(scheme: str, make_client: MakeClient) -> None:
    """A request that cannot be written, or a handshake nobody answers, ends at its deadline."""
    chance = random.Random(1)
    with deaf() as port:
        client = make_client(f"{scheme}://KEY@127.0.0.1:{port}", limits=IMPATIENT)
        for _ in range(100):
            noise = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=7_000))
            client.on_call(a_call(error=a_failure(message=noise)))
        assert not client.flush(0.3)
        conserved(client)
        assert client.stats().pending == 100
        assert not client.close(0.2)
    assert client.stats().dropped == {"shutdown": 100}
    conserved(client)
