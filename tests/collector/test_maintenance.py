"""What a running collector does now and then."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, select
from tests.factories import conversation_end, failure, success

from toolfault_collector.chains import IDLE_US
from toolfault_collector.clock import DAY_US, MINUTE_US, SECOND_US, ClockWatch, now_us
from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.maintenance import Maintenance, settle_outcomes
from toolfault_collector.projects import ensure_project
from toolfault_collector.settings import Settings
from toolfault_collector.store import store_events
from toolfault_collector.tables import chain, rejected_event, tool_call

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


def _store(engine: Engine, *events: dict[str, object], received_at: int | None = None) -> None:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, events, received_at=received_at or now_us())


def _outcomes(engine: Engine) -> dict[str, str]:
    with read_connection(engine) as conn:
        rows = conn.execute(select(chain.c.session_id, chain.c.outcome))
        return {row.session_id: row.outcome for row in rows}


def _calls(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return len(conn.execute(select(tool_call.c.id)).all())


def test_outcomes_are_settled(engine: Engine) -> None:
    """Idle and ended conversations get their outcome; one that goes on is open again."""
    now = now_us()
    for name in ("idle", "switching", "ended"):
        _store(engine, failure(session_id=name, at=now - 10 * SECOND_US))
    _store(engine, success("other", session_id="switching", at=now - 5 * SECOND_US))
    _store(engine, conversation_end("ended", at=now))
    settle_outcomes(engine, now=now)
    assert _outcomes(engine) == {"idle": "open", "switching": "open", "ended": "abandoned"}

    later = now + IDLE_US + SECOND_US
    settle_outcomes(engine, now=later)
    assert _outcomes(engine) == {"idle": "abandoned", "switching": "switched", "ended": "abandoned"}

    _store(engine, failure(session_id="idle", at=now), success(session_id="ended", at=now))
    assert _outcomes(engine)["idle"] == "open"
    assert _outcomes(engine)["ended"] == "recovered"
    assert settle_outcomes(engine, now=later) == 1
    assert settle_outcomes(engine, now=later) == 0


def test_outcome_of_long_ago_is_settled_when_a_call_comes_late(engine: Engine) -> None:
    """A success that was spooled for days still makes a switch of what was taken for abandoned."""
    now = now_us()
    then = now - 3 * DAY_US
    _store(engine, failure(session_id="late", at=then))
    settle_outcomes(engine, now=now)
    assert _outcomes(engine) == {"late": "abandoned"}

    _store(engine, success("other", session_id="late", at=then + SECOND_US))
    settle_outcomes(engine, now=now)

    assert _outcomes(engine) == {"late": "switched"}


@SQLITE
def test_retention_runs_by_itself(engine: Engine) -> None:
    """With a limit set, old conversations and rejects go without anybody asking."""
    old = now_us() - 20 * DAY_US
    _store(engine, failure(session_id="old", at=old), {"type": "x"}, received_at=old)
    _store(engine, failure(session_id="new"))

    Maintenance(engine, Settings(retention_days=10)).run_once()

    with read_connection(engine) as conn:
        assert list(conn.execute(select(tool_call.c.session_id)).scalars()) == ["new"]
        assert conn.execute(select(rejected_event)).all() == []


@SQLITE
def test_clock_that_jumped_removes_nothing(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a clock ten years ahead nothing goes until it has run for a day."""
    _store(engine, failure(session_id="fresh"), {"type": "x"})
    passed = 0
    jump = 3_650 * DAY_US
    began = now_us()
    care = Maintenance(
        engine,
        Settings(retention_days=10),
        clock=lambda: began + passed + jump,
        watch=ClockWatch(lambda: passed),
    )
    care.run_once()
    passed += DAY_US - 1
    care.run_once()

    with read_connection(engine) as conn:
        assert len(conn.execute(select(tool_call.c.id)).all()) == 1
        assert len(conn.execute(select(rejected_event.c.id)).all()) == 1
    assert "clock_doubted" in capsys.readouterr().out

    passed += 2
    care.run_once()
    with read_connection(engine) as conn:
        assert conn.execute(select(tool_call.c.id)).all() == []


HOUR_US = 60 * MINUTE_US


@pytest.mark.parametrize(
    ("steps", "believed"),
    [
        ([(HOUR_US, 0), (HOUR_US, 0)], [True, True]),
        ([(HOUR_US, 5 * HOUR_US), (HOUR_US, -9 * HOUR_US)], [True, True]),
        ([(HOUR_US, 3_650 * DAY_US), (HOUR_US, 0)], [False, True]),
        ([(HOUR_US, -3_650 * DAY_US), (HOUR_US, 0)], [False, True]),
        ([(HOUR_US, 3_650 * DAY_US), (25 * HOUR_US, 3_650 * DAY_US)], [False, True]),
        ([(HOUR_US, 3_650 * DAY_US), (25 * HOUR_US, 7_000 * DAY_US)], [False, False]),
        ([(30 * DAY_US, 0)], [True]),
    ],
)
def test_clock_is_believed_while_it_goes_on(
    steps: list[tuple[int, int]], believed: list[bool]
) -> None:
    """Steps are (time that passes, what the clock is off by); a jump is doubted for a day."""
    passed = 0
    watch = ClockWatch(lambda: passed)
    began = now_us()
    assert watch.believes(began, newest=began)
    found = []
    for pause, off in steps:
        passed += pause
        found.append(watch.believes(began + passed + off, newest=began))

    assert found == believed


@POSTGRESQL
def test_only_one_collector_at_a_time(engine: Engine) -> None:
    """While another collector does it nothing is done here; SQLite's writers take turns anyway."""
    old = now_us() - 20 * DAY_US
    _store(engine, failure(session_id="old", at=old), received_at=old)
    _store(engine, failure(session_id="new"))
    settings = Settings(retention_days=10)
    left: list[int] = []

    def another_comes() -> int:
        Maintenance(engine, settings).run_once()
        left.append(_calls(engine))
        return now_us()

    Maintenance(engine, settings, clock=another_comes).run_once()

    assert left
    assert set(left) == {2}
    assert _calls(engine) == 1


@SQLITE
def test_nothing_is_removed_by_default(engine: Engine) -> None:
    """Without a limit everything stays."""
    old = now_us() - 4_000 * DAY_US
    _store(engine, failure(session_id="old", at=old), received_at=old)

    Maintenance(engine, Settings()).run_once()

    assert _calls(engine) == 1


@SQLITE
def test_a_failing_step_does_not_end_it(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """What fails is logged, and the next step runs."""
    old = now_us() - 20 * DAY_US
    _store(engine, {"type": "x"}, received_at=old)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("ALTER TABLE chain RENAME TO elsewhere")

    Maintenance(engine, Settings(retention_days=10)).run_once()

    with read_connection(engine) as conn:
        assert conn.execute(select(rejected_event)).all() == []
    assert "maintenance_failed" in capsys.readouterr().out


@SQLITE
def test_it_ends_when_told(engine: Engine) -> None:
    """The thread ends at once, although it waits for minutes between its rounds."""
    before = set(threading.enumerate())
    care = Maintenance(engine, Settings())
    care.start()
    (thread,) = set(threading.enumerate()) - before

    care.stop(10)

    assert not thread.is_alive()
