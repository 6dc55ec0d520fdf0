"""More than can be stored: refused for later, in bounded memory, and the process answers on."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from tests.collector.load import stored_ids
from tests.collector.test_fairness import _nothing_is_stored, _queued
from tests.factories import success
from tests.running import RunningCollector, new_key

from toolfault_collector.engine import open_engine

KIB, MIB = 1024, 1024 * 1024
QUEUE = 4 * MIB
SENDERS = 8
# Thirty times what the queue has room for.
BODIES = 60
BODY = 250 * KIB


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * KIB


@pytest.mark.slow
def test_what_the_queue_has_no_room_for_is_refused(database_url: str, tmp_path: Path) -> None:
    """While nothing can be stored each further batch is 503 with Retry-After, and memory stays.

    Eight projects together, so that the share of one is not what stops them.
    """
    engine = open_engine(database_url)
    answers: list[httpx2.Response] = []
    acknowledged: set[str] = set()

    def send(key: str) -> None:
        with httpx2.Client(trust_env=False, timeout=90) as client:
            for _ in range(BODIES):
                event = success(planet="x" * (BODY - 1_000))
                answer = client.post(
                    f"{collector.url}/v1/events",
                    json={"events": [event]},
                    headers={"Authorization": f"Bearer {key}"},
                )
                answers.append(answer)
                if answer.status_code == 200:
                    acknowledged.add(str(event["event_id"]))
                    return  # it waited for the end

    settings = {"TOOLFAULT_QUEUE_BYTES": str(QUEUE), "TOOLFAULT_BUSY_SECONDS": "60"}
    with RunningCollector(database_url, folder=tmp_path, **settings) as collector:
        assert collector.post(*[success() for _ in range(500)]).status_code == 200
        keys = [new_key(database_url, project=f"p{number}") for number in range(SENDERS)]
        before = _peak(collector.pid)
        threads = [threading.Thread(target=send, args=(key,)) for key in keys for _ in range(3)]
        with _nothing_is_stored(engine):
            for thread in threads:
                thread.start()
            while len(answers) < SENDERS * BODIES // 2:
                assert any(thread.is_alive() for thread in threads)
            assert collector.get("/healthz").status_code == 200
            assert _queued(collector) > 0
            refused = list(answers)
        for thread in threads:
            thread.join(90)
        grown = _peak(collector.pid) - before
        assert collector.post(success()).status_code == 200

    assert Counter(answer.status_code for answer in refused) == {503: len(refused)}
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "unavailable"
        assert 1 <= int(answer.headers["retry-after"]) <= 300
    assert {answer.status_code for answer in answers} <= {200, 503}
    # What waits, the bodies that arrive meanwhile, and what is being stored.
    assert grown <= 10 * QUEUE
    assert acknowledged
    with engine.connect() as conn:
        stored = set(conn.exec_driver_sql("SELECT event_id FROM tool_call").scalars())
    assert acknowledged <= stored
    assert len(stored_ids(engine)) == 501
    engine.dispose()
