"""More than can be stored: refused for later, in bounded memory, and the process answers on."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from tests.collector.load import stored_ids
from tests.collector.process import most_memory_of
from tests.collector.test_fairness import nothing_is_stored, queued_events
from tests.factories import success
from tests.running import RunningCollector, new_key

from toolfault_collector.storage.database.engine import open_engine

KIB, MIB = 1024, 1024 * 1024
QUEUE = 4 * MIB
SENDERS = 8
# Five times what the queue has room for is refused before anything is stored.
REFUSED = 80
BODY = 250 * KIB


@pytest.mark.slow
@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
)
def test_what_the_queue_has_no_room_for_is_refused(database_url: str, tmp_path: Path) -> None:
    """While nothing can be stored each further batch is 503 with Retry-After, and memory stays.

    Eight projects together, so that the share of one is not what stops them.
    """
    engine = open_engine(database_url)
    refused: list[httpx2.Response] = []
    enough, acknowledged = threading.Event(), set[str]()

    def send(key: str) -> None:
        with httpx2.Client(trust_env=False, timeout=90) as client:
            while not enough.is_set():
                event = success(planet="x" * (BODY - 1_000))
                answer = client.post(
                    f"{collector.url}/v1/events",
                    json={"events": [event]},
                    headers={"Authorization": f"Bearer {key}"},
                )
                if answer.status_code == 200:
                    acknowledged.add(str(event["event_id"]))
                    return  # it waited for the end
                refused.append(answer)
                if len(refused) >= REFUSED:
                    enough.set()

    settings = {"TOOLFAULT_QUEUE_BYTES": str(QUEUE), "TOOLFAULT_BUSY_SECONDS": "60"}
    with RunningCollector(database_url, folder=tmp_path, **settings) as collector:
        assert collector.post(*[success() for _ in range(500)]).status_code == 200
        keys = [new_key(database_url, project=f"p{number}") for number in range(SENDERS)]
        before = most_memory_of(collector.pid)
        threads = [threading.Thread(target=send, args=(key,)) for key in keys for _ in range(3)]
        with nothing_is_stored(engine):
            for thread in threads:
                thread.start()
            assert enough.wait(120)
            assert collector.get("/healthz").status_code == 200
            assert queued_events(collector) > 0
        for thread in threads:
            thread.join(90)
        grown = most_memory_of(collector.pid) - before
        assert collector.post(success()).status_code == 200

    assert Counter(answer.status_code for answer in refused) == {503: len(refused)}
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unavailable"
        assert 1 <= int(answer.headers["retry-after"]) <= 300
    # What waits, the bodies that arrive meanwhile, and what is being stored.
    assert grown <= 10 * QUEUE
    assert acknowledged
    with engine.connect() as conn:
        stored = set(conn.exec_driver_sql("SELECT event_id FROM tool_call").scalars())
    assert acknowledged <= stored
    assert len(stored_ids(engine)) == 501
    engine.dispose()
