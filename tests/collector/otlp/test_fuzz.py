"""Damaged requests of OTLP: an answer below 500, whole spans beside damaged ones, right counts."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from sqlalchemy import select
from tests.collector.otlp.damage import request
from tests.factories import success
from tests.running import RunningCollector

from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.tables import tool_call

SENDERS = 4


def _explore(server: RunningCollector, count: int) -> None:
    statuses: Counter[int] = Counter()
    faults: list[str] = []
    healthy: list[str] = []

    def send(first: int) -> None:
        headers = {"Authorization": f"Bearer {server.key}"}
        with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
            for number in range(first, count, SENDERS):
                drawn = request(number)
                url = f"{server.url}/v1/{drawn.signal}"
                answer = client.post(url, content=drawn.body, headers=drawn.headers)
                statuses[answer.status_code] += 1
                healthy.extend(drawn.healthy)
                if answer.status_code >= 500 or (drawn.whole and answer.status_code != 200):
                    faults.append(f"{number}: {answer.status_code} {answer.text[:200]}")

    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(send, range(SENDERS)))
    assert faults == []
    assert statuses.total() == count
    assert set(statuses) <= {200, 400, 413, 415}
    assert min(statuses[200], statuses[400]) > count // 10
    assert server.post(success()).json()["accepted"] == 1
    assert '"level":"error"' not in server.output()
    engine = open_engine(server.database_url)
    with engine.connect() as conn:
        found = conn.execute(select(tool_call.c.call_id).where(tool_call.c.tool.like("whole _")))
        stored = Counter(found.scalars())
    lost = sorted(set(healthy) - stored.keys())
    assert (lost[:5], len(lost)) == ([], 0)
    assert stored == Counter(healthy)
    assert recount(engine).right
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "count"),
    [
        ("sqlite", 80),
        pytest.param("postgresql", 20, marks=[pytest.mark.long, pytest.mark.postgres]),
        pytest.param("sqlite", 50_000, marks=[pytest.mark.long, pytest.mark.timeout(7_200)]),
    ],
    indirect=["database_url"],
)
def test_damaged_bodies(server: RunningCollector, count: int) -> None:
    """Nothing makes the server fail, loses the whole spans of a request, or spoils a count."""
    _explore(server, count)
