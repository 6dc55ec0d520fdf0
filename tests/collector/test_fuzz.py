"""Mutated bodies: whatever the bytes, an answer below 500, soon, and no memory kept."""

from __future__ import annotations

import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from tests.collector.mutations import Body, bodies
from tests.factories import success
from tests.running import RunningCollector

from toolfault_collector.engine import open_engine
from toolfault_collector.recount import recount

SEED = 20261122
SENDERS = 4
MIB = 1024 * 1024


@dataclass
class _Findings:
    """What became of the bodies."""

    statuses: Counter[int] = field(default_factory=Counter)
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


def _send(server: RunningCollector, share: list[tuple[int, Body]]) -> _Findings:
    found = _Findings()
    headers = {"Authorization": f"Bearer {server.key}"}
    with httpx2.Client(headers=headers, timeout=60, trust_env=False) as client:
        for number, (body, own) in share:
            began = time.perf_counter()
            answer = client.post(f"{server.url}/v1/events", content=body, headers=own)
            found.slowest = max(found.slowest, time.perf_counter() - began)
            found.statuses[answer.status_code] += 1
            if answer.status_code >= 500 or not answer.content.startswith(b"{"):
                found.faults.append(f"{number}: {answer.status_code} {answer.text[:200]}")
    return found


def _send_all(server: RunningCollector, count: int) -> _Findings:
    """Send *count* bodies from several connections and return everything that was found."""
    every = _Findings()
    numbered = list(enumerate(bodies(SEED, count)))
    with ThreadPoolExecutor(SENDERS) as pool:
        for found in pool.map(
            lambda share: _send(server, share), [numbered[n::SENDERS] for n in range(SENDERS)]
        ):
            every.statuses += found.statuses
            every.slowest = max(every.slowest, found.slowest)
            every.faults += found.faults
    return every


def memory_of(pid: int) -> int:
    """Bytes of memory that the process has now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024


def handles_of(pid: int) -> tuple[int, int]:
    """How many files and threads the process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir())), len(
        list(Path(f"/proc/{pid}/task").iterdir())
    )


def _explore(server: RunningCollector, count: int) -> _Findings:
    found = _send_all(server, count)

    assert found.faults == []
    assert found.statuses.total() == count
    assert set(found.statuses) <= {200, 400, 413, 415, 422}
    assert server.post(success()).json()["accepted"] == 1
    assert "Traceback" not in server.output()
    assert '"level":"error"' not in server.output()
    engine = open_engine(server.database_url)
    assert recount(engine).right
    engine.dispose()
    return found


def test_mutated_bodies(server: RunningCollector) -> None:
    """Two thousand bodies: no answer of 500 and above, and what was stored adds up."""
    found = _explore(server, 2_000)

    # The mutations reach past the first check: some bodies are stored, some refused.
    assert min(found.statuses[200], found.statuses[400]) > 200


# The page cache of the writer fills with the database up to 64 MiB, and then stays: it would hide
# what else grows.
SMALL_CACHES = """
import runpy
from toolfault_collector import engine
engine.WRITER_CACHE_KIB = 1_024
runpy.run_module("toolfault_collector", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("warm_up", "count"),
    [
        pytest.param(2_000, 4_000, marks=pytest.mark.slow),
        pytest.param(10_000, 100_000, marks=[pytest.mark.long, pytest.mark.timeout(3_600)]),
    ],
)
def test_memory_stays_where_it_is(
    sqlite_url: str, tmp_path: Path, warm_up: int, count: int
) -> None:
    """A hundred thousand bodies: after the first of them the process grows no more.

    Neither its memory, nor its open files, nor its threads.
    """
    with RunningCollector(sqlite_url, folder=tmp_path, program=("-c", SMALL_CACHES)) as collector:
        _send_all(collector, warm_up)
        before, handles = memory_of(collector.pid), handles_of(collector.pid)

        found = _explore(collector, count)

        grown = memory_of(collector.pid) - before
        more = [now - then for now, then in zip(handles_of(collector.pid), handles, strict=True)]
    sys.stdout.write(
        f"{dict(found.statuses)}, slowest {found.slowest:.3f} s, {grown / MIB:+.1f} MiB\n"
    )
    assert grown <= 16 * MIB
    # Connections of senders that are just being closed, and a thread that reads for one.
    assert max(more) <= 2 * SENDERS
    assert found.slowest < 10  # a bound on a hang; what was measured is printed
