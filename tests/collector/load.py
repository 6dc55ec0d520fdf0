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

from toolfault_collector.admin.projects import find_project
from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.tables import tool_call

__all__ = ["Load", "load", "stored_ids", "writing"]

SENDERS = 4
BATCH = 20
SECONDS = 120  # bounds a hang; what is waited for takes a moment


class _Sender(threading.Thread):
    """An agent that sends batches and sends each again until it is acknowledged.

    Args:
        number: Names its conversations.
        common: Where to, until when, and what became of it; a batch that one collector does not
            take is sent to the next.
    """

    def __init__(self, number: int, common: Load) -> None:
        super().__init__(name=f"sender-{number}")
        self._number = number
        self._common = common
        self._tries = number

    def run(self) -> None:
        """Send until told to stop."""
        headers = {"Authorization": f"Bearer {self._common.collectors[0].key}"}
        with httpx2.Client(headers=headers, timeout=10, trust_env=False) as client:
            turn = 0
            while not self._common.stop.is_set():
                turn += 1
                self._deliver(client, self._batch(turn))

    def _batch(self, turn: int) -> list[dict[str, object]]:
        session = f"conv-{self._number}-{turn // 3}"
        make = [failure, failure, success]
        return [make[place % 3](session_id=session, event_id=event_id()) for place in range(BATCH)]

    def _deliver(self, client: httpx2.Client, batch: list[dict[str, object]]) -> None:
        common = self._common
        ids = {str(event["event_id"]) for event in batch}
        common.note_sent(ids)
        while not common.stop.is_set():
            self._tries += 1
            collector = common.collectors[self._tries % len(common.collectors)]
            try:
                answer = client.post(f"{collector.url}/v1/events", json={"events": batch})
            except httpx2.TransportError:
                common.stop.wait(0.02)  # nobody listens: as an agent does, try again later
                continue
            if answer.status_code == 200:
                body = answer.json()
                assert body["accepted"] + body["duplicate"] == len(batch), body
                common.note_acknowledged(ids)
                return
            common.refused.append(answer.text)


class Load:
    """Senders, and the ledger of what they sent and what they were promised."""

    def __init__(self, collectors: Sequence[RunningCollector]) -> None:
        self.collectors = collectors
        self.stop = threading.Event()
        self.refused: list[str] = []
        self.sent: set[str] = set()
        self.acknowledged: set[str] = set()
        self._batches = 0
        self._changed = threading.Condition()

    def note_sent(self, ids: set[str]) -> None:
        """Note that *ids* are about to be sent."""
        with self._changed:
            self.sent |= ids

    def note_acknowledged(self, ids: set[str]) -> None:
        """Note that a batch with *ids* was answered."""
        with self._changed:
            self.acknowledged |= ids
            self._batches += 1
            self._changed.notify_all()

    def wait_for(self, batches: int) -> None:
        """Return when so many more *batches* were acknowledged."""
        assert self.wait_a_moment_for(batches, SECONDS)

    def wait_a_moment_for(self, batches: int, seconds: float) -> bool:
        """Return whether so many more *batches* were acknowledged within *seconds*."""
        with self._changed:
            wanted = self._batches + batches
            return self._changed.wait_for(lambda: self._batches >= wanted, seconds)


def stored_ids(engine: Engine) -> Counter[str]:
    """How often each event of the senders' project is stored."""
    with read_connection(engine) as conn:
        project_id = find_project(conn, "demo")
        query = select(tool_call.c.event_id).where(tool_call.c.project_id == project_id)
        return Counter(conn.execute(query).scalars())


@contextmanager
def load(*collectors: RunningCollector, may_stop: bool = False) -> Iterator[Load]:
    """Send while the block lasts, then compare what is stored with what was promised.

    None of the senders may have been refused, unless by a collector that *may_stop* and did.
    """
    ledger = Load(collectors)
    senders = [_Sender(number, ledger) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    try:
        yield ledger
    finally:
        ledger.stop.set()
        for sender in senders:
            sender.join(30)
    assert ledger.acknowledged, collectors[0].output()
    assert [each for each in ledger.refused if not may_stop or '"unavailable"' not in each] == []
    engine = open_engine(collectors[0].database_url)
    try:
        stored = stored_ids(engine)
        assert ledger.acknowledged <= stored.keys(), "an acknowledged event was lost"
        assert stored.keys() <= ledger.sent
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
