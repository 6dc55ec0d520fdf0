"""A collector that is killed loses nothing it acknowledged and stores nothing twice."""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine, select
from tests.collector.recount import assert_counts_hold
from tests.factories import event_id, failure, success
from tests.running import RunningCollector

from toolfault_collector.engine import is_sqlite, open_engine, read_connection, sqlite_path
from toolfault_collector.failpoints import POINTS
from toolfault_collector.recount import recount
from toolfault_collector.tables import tool_call

SENDERS = 4
BATCH = 20


class Sender(threading.Thread):
    """An agent that sends batches and sends each again until it is acknowledged."""

    def __init__(self, collector: RunningCollector, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"sender-{number}")
        self._collector = collector
        self._number = number
        self._stop_sending = stop
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self.refused: list[str] = []

    def run(self) -> None:
        """Send until told to stop."""
        headers = {"Authorization": f"Bearer {self._collector.key}"}
        with httpx2.Client(headers=headers, timeout=10, trust_env=False) as client:
            turn = 0
            while not self._stop_sending.is_set():
                turn += 1
                self._deliver(client, self._batch(turn))

    def _batch(self, turn: int) -> list[dict[str, object]]:
        session = f"conv-{self._number}-{turn // 3}"
        make = [failure, failure, success]
        return [make[place % 3](session_id=session, event_id=event_id()) for place in range(BATCH)]

    def _deliver(self, client: httpx2.Client, batch: list[dict[str, object]]) -> None:
        ids = {str(event["event_id"]) for event in batch}
        self.sent |= ids
        while not self._stop_sending.is_set():
            try:
                answer = client.post(f"{self._collector.url}/v1/events", json={"events": batch})
            except httpx2.TransportError:
                self._stop_sending.wait(0.01)
                continue
            if answer.status_code == 200:
                body = answer.json()
                assert body["accepted"] + body["duplicate"] == len(batch), body
                self.acknowledged |= ids
                return
            self.refused.append(answer.text)


def _stored(engine: Engine) -> Counter[str]:
    with read_connection(engine) as conn:
        return Counter(conn.execute(select(tool_call.c.event_id)).scalars())


def _check_integrity(engine: Engine) -> None:
    if is_sqlite(engine):
        with closing(sqlite3.connect(sqlite_path(engine))) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


@contextmanager
def _load(collector: RunningCollector) -> Iterator[threading.Event]:
    """Send while the block lasts, then compare what is stored with what was promised.

    Yields an event that is set when the senders stop.
    """
    stop = threading.Event()
    senders = [Sender(collector, number, stop) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    try:
        yield stop
    finally:
        stop.set()
        for sender in senders:
            sender.join(30)
    acknowledged = set().union(*(sender.acknowledged for sender in senders))
    sent = set().union(*(sender.sent for sender in senders))
    assert acknowledged, collector.output()
    assert not [refused for sender in senders for refused in sender.refused]
    engine = open_engine(collector.database_url)
    try:
        stored = _stored(engine)
        assert acknowledged <= stored.keys(), "an acknowledged event was lost"
        assert stored.keys() <= sent
        assert set(stored.values()) == {1}, "an event was stored twice"
        _check_integrity(engine)
        assert_counts_hold(engine)
        assert recount(engine).right
    finally:
        engine.dispose()


def _kill_while_sending(collector: RunningCollector, kills: int, seed: int) -> list[float]:
    """Kill *collector* so often under load; return how many seconds each restart took."""
    generator = random.Random(seed)
    restarts = []
    with _load(collector) as stop:
        for _ in range(kills):
            stop.wait(generator.uniform(0.01, 0.25))
            collector.kill()
            began = time.monotonic()
            collector.start()
            restarts.append(time.monotonic() - began)
        stop.wait(0.2)
    return restarts


@pytest.mark.slow
def test_killed_twenty_times(server: RunningCollector) -> None:
    """Twenty kills under load lose no acknowledged event and store none twice."""
    _kill_while_sending(server, 20, seed=20)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_killed_two_hundred_times(
    server: RunningCollector, record_property: Callable[[str, object], None]
) -> None:
    """Two hundred kills under load lose no acknowledged event and store none twice."""
    restarts = sorted(_kill_while_sending(server, 200, seed=200))
    record_property("ready again, median seconds", round(restarts[100], 2))
    record_property("ready again, most seconds", round(restarts[-1], 2))


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_point_under_load(server: RunningCollector, point: str) -> None:
    """Dying twenty-five times at one point under load loses and repeats nothing."""
    generator = random.Random(point)
    with _load(server) as stop:
        for _ in range(25):
            server.kill()
            server.launch(TOOLFAULT_FAILPOINT=f"{point}:{generator.randrange(1, 12)}")
            assert server.wait(60) == -signal.SIGKILL
        server.start()
        stop.wait(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_point(database_url: str, point: str, tmp_path: Path) -> None:
    """Dying at any point stores a batch whole or not at all; the resend completes it."""
    first, second = [failure(), success()], [failure(), failure(), success()]
    ids = {event["event_id"] for event in second}
    with RunningCollector(
        database_url, folder=tmp_path, TOOLFAULT_FAILPOINT=f"{point}:2"
    ) as collector:
        assert collector.post(*first).status_code == 200

        with pytest.raises(httpx2.TransportError):
            collector.post(*second)
        collector.wait()
        engine = open_engine(database_url)
        before = _stored(engine)
        assert len(ids & before.keys()) in (0, len(ids))
        assert (ids <= before.keys()) == (point in ("committed", "respond"))
        collector.start(TOOLFAULT_FAILPOINT="")
        answer = collector.post(*second).json()

    assert answer["accepted"] + answer["duplicate"] == len(second)
    assert _stored(engine) == Counter(event["event_id"] for event in first + second)
    _check_integrity(engine)
    assert_counts_hold(engine)
    engine.dispose()
