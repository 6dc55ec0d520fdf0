"""Days of traffic, one after the other: nothing that the process holds grows with them."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from tests.collector.process import handles_of, memory_of
from tests.collector.recount import assert_counts_hold
from tests.collector.test_clock_jumps import PROGRAM, set_clock_off
from tests.factories import change, conversation_end, counts, failure, success
from tests.running import RunningCollector

from toolfault_collector.clock import MINUTE_US, SECOND_US, now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    sqlite_path,
)
from toolfault_collector.storage.tables import tool_call

MIB = 1024 * 1024
HOURS = 24
CALLS_KEPT = 1_000


def _hour(day: int, hour: int, generator: random.Random) -> list[list[dict[str, Any]]]:
    """The batches of an hour: many by day, few by night; conversations that fail, retry and end."""
    ended = now_us() + (day * HOURS + hour) * 60 * MINUTE_US - MINUTE_US
    batches = []
    for number in range(1 + hour % 12 // 3):
        session = f"{day}-{hour}-{number}"
        calls = [
            generator.choice([failure, failure, success])(
                generator.choice(["search", "book", "pay"]),
                session_id=session,
                at=ended + place * SECOND_US,
                seq=place,
                tags={"customer": f"c{day}-{number}"},
            )
            for place in range(30)
        ]
        rest = [counts("search", at=ended), conversation_end(session, at=ended + MINUTE_US // 2)]
        batches += [calls[:20], [*calls[20:], *rest]]
    return [*batches, [change(at=ended)]]


LONG = [pytest.mark.long, pytest.mark.timeout(3_600)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "days", "warm_up"),
    [
        ("sqlite", 2, 1),
        pytest.param("sqlite", 200, 20, marks=LONG),
        pytest.param("postgresql", 200, 20, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_days_of_traffic(database_url: str, tmp_path: Path, days: int, warm_up: int) -> None:
    """After the first days: no more memory, files or threads, and no larger database.

    The server's clock goes on by an hour at a time, answers get lost, and what is old is removed.
    """
    off, generator = tmp_path / "off", random.Random(days)
    set_clock_off(off, 0)
    engine = open_engine(database_url)
    sizes, sent, before = [], 0, (0, (0, 0))
    with RunningCollector(
        database_url, folder=tmp_path, program=PROGRAM, CLOCK_IS_OFF_BY=str(off)
    ) as collector:
        for day in range(days):
            for hour in range(HOURS):
                set_clock_off(off, (day * HOURS + hour) * 3_600)
                for batch in _hour(day, hour, generator):
                    assert collector.post(*batch).json()["accepted"] == len(batch)
                    sent += len(batch)
                assert collector.post(*batch).json()["duplicate"] == len(batch)
                assert collector.post({"type": "x"}).json()["accepted"] == 0
                if hour % 6 == 5:
                    ahead = (day * HOURS + hour) * 60 * MINUTE_US
                    prune(engine, max_calls=CALLS_KEPT, force=True, clock=partial(_later, ahead))
            sizes.append(_size(engine))
            assert collector.get("/metrics").status_code == 200
            if day == warm_up - 1:
                before = memory_of(collector.pid), handles_of(collector.pid)
        grown = memory_of(collector.pid) - before[0]
        more = [now - then for now, then in zip(handles_of(collector.pid), before[1], strict=True)]
        assert "Traceback" not in collector.output()

    # The writer's page cache fills with the database, which stays small.
    assert grown <= 16 * MIB, f"{grown / MIB:.1f} MiB in {days - warm_up} days"
    assert max(more) <= 2
    assert sizes[-1] <= 1.5 * sizes[warm_up - 1]
    with read_connection(engine) as conn:
        left = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
    assert CALLS_KEPT <= left < 2 * CALLS_KEPT < sent
    assert recount(engine).right
    assert_counts_hold(engine)
    engine.dispose()


def _later(ahead: int) -> int:
    return now_us() + ahead


def _size(engine: Engine) -> int:
    """Bytes of the database and its log; of PostgreSQL, which vacuums when it likes, nothing."""
    if not is_sqlite(engine):
        return 0
    path = Path(sqlite_path(engine))
    log = path.with_name(path.name + "-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
