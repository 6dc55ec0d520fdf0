"""Mutated bodies: whatever the bytes, an answer below 500, and no memory kept."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx2
import pytest
from tests.collector.mutations import Body, bodies
from tests.collector.process import handles_of, memory_of
from tests.factories import success
from tests.running import RunningCollector

from toolfault_collector.doctor.recount import recount
from toolfault_collector.storage.database.engine import open_engine

SEED = 20261122
SENDERS = 4
MIB = 1024 * 1024


@dataclass
class _Findings:
    """What became of the bodies."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def _send(server: RunningCollector, share: list[tuple[int, Body]]) -> _Findings:
    found = _Findings()
    headers = {"Authorization": f"Bearer {server.key}"}
    # One that hangs ends the test.
    with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
        for number, (body, own) in share:
            answer = client.post(f"{server.url}/v1/events", content=body, headers=own)
            found.statuses[answer.status_code] += 1
            if answer.status_code >= 500 or not answer.content.startswith(b"{"):
                found.faults.append(f"{number}: {answer.status_code} {answer.text[:200]}")
    return found


def _send_all(server: RunningCollector, count: int, seed: int) -> _Findings:
    """Send *count* bodies from several connections and return everything that was found."""
    every = _Findings()
    numbered = list(enumerate(bodies(seed, count)))
    with ThreadPoolExecutor(SENDERS) as pool:
        for found in pool.map(
            lambda share: _send(server, share), [numbered[n::SENDERS] for n in range(SENDERS)]
        ):
            every.statuses += found.statuses
            every.faults += found.faults
    return every


def _explore(server: RunningCollector, count: int) -> _Findings:
    found = _send_all(server, count, SEED)

    assert found.faults == []
    assert found.statuses.total() == count
    assert set(found.statuses) <= {200, 400, 413, 415, 422}
    # The mutations reach past the first check: some bodies are stored, some refused.
    assert min(found.statuses[200], found.statuses[400]) > count // 10
    assert server.post(success()).json()["accepted"] == 1
    assert server.get("/metrics").status_code == 200
    assert "Traceback" not in server.output()
    assert '"level":"error"' not in server.output()
    engine = open_engine(server.database_url)
    assert recount(engine).right
    engine.dispose()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "count"),
    [
        pytest.param("postgresql", 2_000, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_mutated_bodies_on_postgres(server: RunningCollector, count: int) -> None:
    """What PostgreSQL refuses in a text or a number is no answer of 500 and above."""
    _explore(server, count)


@pytest.mark.parametrize(
    ("warm_up", "count"),
    [
        (60, 120),
        pytest.param(10_000, 100_000, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
)
def test_mutated_bodies(collector: RunningCollector, warm_up: int, count: int) -> None:
    """Many bodies: no answer of 500 and above, what was stored adds up, and nothing else stays.

    After the first of them the process grows no more: neither its memory beyond what its database
    has grown, nor its open files, nor its threads.
    """
    _send_all(collector, warm_up, SEED + 1)
    before, handles = memory_of(collector.pid), handles_of(collector.pid)
    filled = _size(collector)

    _explore(collector, count)

    grown = memory_of(collector.pid) - before
    more = [now - then for now, then in zip(handles_of(collector.pid), handles, strict=True)]
    # The page cache of the writer fills with the database up to 64 MiB.
    assert grown <= 16 * MIB + min(64 * MIB, _size(collector) - filled)
    # Connections of senders that are just being closed, and a thread that reads for one.
    assert max(more) <= 2 * SENDERS


def _size(collector: RunningCollector) -> int:
    engine = open_engine(collector.database_url)
    with engine.connect() as conn:
        pages = conn.exec_driver_sql("PRAGMA page_count").scalar_one()
        size = conn.exec_driver_sql("PRAGMA page_size").scalar_one()
    engine.dispose()
    return int(pages) * int(size)
