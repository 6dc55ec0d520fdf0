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
from sqlalchemy import Engine
from tests.collector.load import load, stored_ids
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success
from tests.running import RunningCollector

from toolfault_collector.engine import is_sqlite, open_engine, sqlite_path
from toolfault_collector.failpoints import POINTS


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
