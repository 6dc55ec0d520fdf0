"""The machine's clock jumps while events come: all are stored once, and none is removed as old."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.collector.recount import assert_counts_hold
from tests.factories import conversation_end, counts, failure, success
from tests.running import RunningCollector

from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine, read_connection
from toolfault_collector.storage.tables import call_counts, tool_call

HOUR = 3_600
YEARS = 10 * 365 * 24 * HOUR
PROGRAM = (str(Path(__file__).with_name("jumping_clock.py")),)


def set_clock_off(off: Path, seconds: int) -> None:
    """Let the collector's clock be off by *seconds*, from one instant to the next.

    A file that is written in place is empty for a moment, in which the collector would have no
    clock at all: that ends the server, which no clock does.
    """
    new = off.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(off)


JUMPS = [0, YEARS, 0, -YEARS, 0, 5 * HOUR, -HOUR, 2, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "jumps"),
    [
        pytest.param("sqlite", JUMPS, id="sqlite"),
        pytest.param("sqlite", [YEARS, 0], id="sqlite, from the start", marks=pytest.mark.long),
        pytest.param(
            "postgresql", JUMPS, id="postgresql", marks=[pytest.mark.long, pytest.mark.postgres]
        ),
    ],
    indirect=["database_url"],
)
def test_clock_of_the_server_jumps(database_url: str, tmp_path: Path, jumps: list[int]) -> None:
    """Whatever the clock says, each event is stored once, and kept for as long as it should be."""
    off = tmp_path / "off"
    set_clock_off(off, 0)
    sent = []
    with RunningCollector(
        database_url, folder=tmp_path, program=PROGRAM, CLOCK_IS_OFF_BY=str(off)
    ) as collector:
        for number, jump in enumerate(jumps):
            set_clock_off(off, jump)
            batch = [failure(session_id=f"c{number}"), success(session_id=f"c{number}")]
            batch += [counts(), conversation_end(f"c{number}")]
            first, again = collector.post(*batch), collector.post(*batch)
            assert first.json() == {"accepted": 4, "duplicate": 0, "rejected": []}
            assert again.json() == {"accepted": 0, "duplicate": 4, "rejected": []}
            assert collector.get("/readyz").status_code == 200
            sent += batch
        assert "Traceback" not in collector.output()

    engine = open_engine(database_url)
    Maintenance(engine, Settings(retention_days=30)).run_once()
    with read_connection(engine) as conn:
        calls = conn.execute(select(func.count()).select_from(tool_call)).scalar_one()
        folded = conn.execute(select(func.count()).select_from(call_counts)).scalar_one()
    assert (calls, folded) == (2 * len(jumps), len(jumps))
    assert recount(engine).right
    assert_counts_hold(engine)
    engine.dispose()
