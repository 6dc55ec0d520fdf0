"""Agents that send until they are told to stop, and remember what they were promised."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx2
from sqlalchemy import Engine, select
from tests.collector.recount import assert_counts_hold
from tests.factories import event_id, failure, success
from tests.running import RunningCollector

from toolfault_collector.engine import open_engine, read_connection
from toolfault_collector.projects import find_project
from toolfault_collector.recount import recount
from toolfault_collector.tables import tool_call

__all__ = ["Sender", "load", "stored_ids", "writing"]

SENDERS = 4
BATCH = 20


class Sender(threading.Thread):
    """An agent that sends batches and sends each again until it is acknowledged.

    Args:
        collectors: Where to; a batch that one does not take is sent to the next.
        number: Names its conversations.
        stop: Set when it shall end.
    """

    def __init__(
        self, collectors: Sequence[RunningCollector], number: int, stop: threading.Event
    ) -> None:
        super().__init__(name=f"sender-{number}")
        self._collectors = collectors
        self._number = number
        self._stop_sending = stop
        self._tries = number
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self.refused: list[str] = []

    def run(self) -> None:
        """Send until told to stop."""
        headers = {"Authorization": f"Bearer {self._collectors[0].key}"}
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
            self._tries += 1
            collector = self._collectors[self._tries % len(self._collectors)]
            try:
                answer = client.post(f"{collector.url}/v1/events", json={"events": batch})
            except httpx2.TransportError:
                self._stop_sending.wait(0.01)
                continue
            if answer.status_code == 200:
                body = answer.json()
                assert body["accepted"] + body["duplicate"] == len(batch), body
                self.acknowledged |= ids
                return
            self.refused.append(answer.text)


def stored_ids(engine: Engine) -> Counter[str]:
    """How often each event of the senders' project is stored."""
    with read_connection(engine) as conn:
        project_id = find_project(conn, "demo")
        query = select(tool_call.c.event_id).where(tool_call.c.project_id == project_id)
        return Counter(conn.execute(query).scalars())


@contextmanager
def load(*collectors: RunningCollector) -> Iterator[list[Sender]]:
    """Send while the block lasts, then compare what is stored with what was promised.

    Yields the senders; none of them may have been refused.
    """
    stop = threading.Event()
    senders = [Sender(collectors, number, stop) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    try:
        yield senders
    finally:
        stop.set()
        for sender in senders:
            sender.join(30)
    acknowledged = set().union(*(sender.acknowledged for sender in senders))
    sent = set().union(*(sender.sent for sender in senders))
    assert acknowledged, collectors[0].output()
    assert [refused for sender in senders for refused in sender.refused] == []
    engine = open_engine(collectors[0].database_url)
    try:
        stored = stored_ids(engine)
        assert acknowledged <= stored.keys(), "an acknowledged event was lost"
        assert stored.keys() <= sent
        assert set(stored.values()) == {1}, "an event was stored twice"
        assert_counts_hold(engine)
        assert recount(engine).right
    finally:
        engine.dispose()


@contextmanager
def writing(store: Callable[[int], str]) -> Iterator[list[str]]:
    """Call *store* with 0, 1, 2 ... in a thread while the block lasts; yield what it returned.

    The block begins when something was stored.
    """
    stop, begun = threading.Event(), threading.Event()
    stored: list[str] = []

    def write() -> None:
        while not stop.is_set():
            stored.append(store(len(stored)))
            begun.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert begun.wait(60)
        yield stored
    finally:
        stop.set()
        writer.join(60)
