"""A collector that is killed loses nothing it acknowledged and stores nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine
from tests.collector.load import load, stored_ids
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success
from tests.running import RunningCollector

from toolfault_collector.clock import now_us
from toolfault_collector.engine import is_sqlite, open_engine, sqlite_path, write_transaction
from toolfault_collector.failpoints import POINTS, REMOVAL_POINTS
from toolfault_collector.projects import ensure_project
from toolfault_collector.recount import recount
from toolfault_collector.store import store_events


def _check_integrity(engine: Engine) -> None:
    if is_sqlite(engine):
        with closing(sqlite3.connect(sqlite_path(engine))) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


@contextmanager
def _load(collector: RunningCollector) -> Iterator[threading.Event]:
    """Send while the block lasts; yield something to wait on that never comes."""
    with load(collector):
        yield threading.Event()
    engine = open_engine(collector.database_url)
    _check_integrity(engine)
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
def test_killed_two_hundred_times(server: RunningCollector) -> None:
    """Two hundred kills under load lose no acknowledged event and store none twice."""
    restarts = sorted(_kill_while_sending(server, 200, seed=200))
    # Shown with pytest -rP; how long a start takes says as much about the machine.
    sys.stdout.write(f"ready again: median {restarts[100]:.2f} s, most {restarts[-1]:.2f} s\n")


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
        before = stored_ids(engine)
        assert len(ids & before.keys()) in (0, len(ids))
        assert (ids <= before.keys()) == (point in ("committed", "respond"))
        collector.start(TOOLFAULT_FAILPOINT="")
        answer = collector.post(*second).json()

    assert answer["accepted"] + answer["duplicate"] == len(second)
    assert stored_ids(engine) == Counter(event["event_id"] for event in first + second)
    _check_integrity(engine)
    assert_counts_hold(engine)
    engine.dispose()


PRUNE = """
import sys
from toolfault_collector.engine import open_engine
from toolfault_collector.retention import prune
print(prune(open_engine(sys.argv[1]), max_calls=300, force=True).conversations)
"""


def _prune(database_url: str, failpoint: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRUNE, database_url],
        env={**os.environ, "TOOLFAULT_FAILPOINT": failpoint},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("point", REMOVAL_POINTS)
@pytest.mark.parametrize(
    "kills", [3, pytest.param(25, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
)
def test_killed_in_retention(engine: Engine, point: str, kills: int) -> None:
    """Retention that is killed again and again leaves every count right, and comes to its end."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        for number in range(60 + 40 * kills):
            calls = [failure(session_id=f"c{number}") for _ in range(20)]
            alone = [success(session_id=None) for _ in range(5)]
            store_events(conn, project_id, [*calls, *alone], received_at=now_us())

    url = engine.url.render_as_string(hide_password=False)
    for number in range(kills):
        ended = _prune(url, f"{point}:{1 + number % 2}")
        assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
        assert recount(engine).right
    ended = _prune(url, "")

    assert ended.returncode == 0, ended.stderr
    assert 300 <= sum(stored_ids(engine).values()) <= 330
    assert recount(engine).right
    _check_integrity(engine)
