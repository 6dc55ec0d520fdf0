"""A collector that is killed loses nothing it acknowledged and stores nothing twice."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import cycle, pairwise
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import Engine
from tests.collector.load import Load, load, stored_ids
from tests.collector.recount import assert_counts_hold
from tests.factories import failure, success
from tests.running import RunningCollector
from tests.starting import completed

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.failpoints import POINTS, REMOVAL_POINTS
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.storage.store import store_events

LONG = [pytest.mark.long, pytest.mark.timeout(3_600)]


def _check_integrity(engine: Engine) -> None:
    if is_sqlite(engine):
        with closing(sqlite3.connect(sqlite_path(engine))) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


@contextmanager
def _load(collector: RunningCollector) -> Iterator[Load]:
    """Send while the block lasts; what is stored then is whole and what was promised."""
    with load(collector) as ledger:
        yield ledger
    engine = open_engine(collector.database_url)
    _check_integrity(engine)
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "kills"),
    [
        ("sqlite", 2),
        pytest.param("sqlite", 200, marks=LONG),
        pytest.param("postgresql", 200, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_killed_under_load(server: RunningCollector, kills: int) -> None:
    """Kills under load, however many, lose no acknowledged event and store none twice."""
    generator = random.Random(kills)
    with _load(server) as ledger:
        for _ in range(kills):
            ledger.wait_for(generator.randrange(1, 20))
            server.kill()
            server.start()
        ledger.wait_for(4)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_point_under_load(server: RunningCollector, point: str) -> None:
    """Dying twenty-five times at one point under load loses and repeats nothing."""
    generator = random.Random(point)
    with _load(server) as ledger:
        for _ in range(25):
            server.kill()
            server.launch(TOOLFAULT_FAILPOINT=f"{point}:{generator.randrange(1, 12)}")
            assert server.wait(60) == -signal.SIGKILL
        server.start()
        ledger.wait_for(4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "points"),
    [
        ("sqlite", POINTS),
        pytest.param("postgresql", ("inserted",), marks=pytest.mark.postgres),
        pytest.param("postgresql", POINTS, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_killed_at_point(database_url: str, points: tuple[str, ...], tmp_path: Path) -> None:
    """Dying at any point stores a batch whole or not at all; the resend completes it.

    The process that takes the resend is the one that dies at the next point, with the batch after.
    """
    engine = open_engine(database_url)
    sent = [failure(), success()]
    with RunningCollector(
        database_url, folder=tmp_path, TOOLFAULT_FAILPOINT=f"{points[0]}:2"
    ) as collector:
        assert collector.post(*sent).status_code == 200
        for point, following in pairwise([*points, "none"]):
            batch = [failure(), failure(), success()]
            ids = {event["event_id"] for event in batch}

            with pytest.raises(httpx2.TransportError):
                collector.post(*batch)
            assert collector.wait() == -signal.SIGKILL, point
            before = stored_ids(engine)
            assert len(ids & before.keys()) in (0, len(ids)), point
            assert (ids <= before.keys()) == (point in ("committed", "respond")), point

            collector.start(TOOLFAULT_FAILPOINT=f"{following}:2")
            answer = collector.post(*batch).json()
            assert answer["accepted"] + answer["duplicate"] == len(batch), point
            sent += batch

    assert stored_ids(engine) == Counter(event["event_id"] for event in sent)
    _check_integrity(engine)
    assert_counts_hold(engine)
    engine.dispose()


PRUNE = """
import sys
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.retention.policy import prune
print(prune(open_engine(sys.argv[1]), max_calls=300, force=True).conversations)
"""


def _prune(database_url: str, failpoint: str) -> subprocess.CompletedProcess[str]:
    return completed(
        "-c", PRUNE, database_url, environ={**os.environ, "TOOLFAULT_FAILPOINT": failpoint}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "kills"),
    [
        ("sqlite", 2),
        pytest.param("sqlite", 25, marks=LONG),
        pytest.param("postgresql", 25, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_killed_in_retention(engine: Engine, kills: int) -> None:
    """Retention that is killed again and again leaves every count right, and comes to its end."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        for number in range(20 + 20 * kills):
            calls = [failure(session_id=f"c{number}") for _ in range(20)]
            alone = [success(session_id=None) for _ in range(5)]
            store_events(conn, project_id, [*calls, *alone], received_at=now_us())

    url = engine.url.render_as_string(hide_password=False)
    points = [f"{point}:{time}" for time in (1, 2) for point in REMOVAL_POINTS]
    for _, point in zip(range(kills), cycle(points), strict=False):
        ended = _prune(url, point)
        assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr
        assert recount(engine).right
    ended = _prune(url, "")

    assert ended.returncode == 0, ended.stderr
    assert 300 <= sum(stored_ids(engine).values()) <= 330
    assert recount(engine).right
    _check_integrity(engine)
