"""A clock that is wrong removes nothing, which can be seen; one that agrees is believed at once."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, func, select
from tests.factories import counts, failure

from toolfault_collector.admin.project_settings import ProjectSettings, change_settings
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, MINUTE_US, now_us
from toolfault_collector.doctor.checks import examine
from toolfault_collector.errors import PruneRefused
from toolfault_collector.metrics import Metrics
from toolfault_collector.retention.policy import prune
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import rejected_event, tool_call

HOUR_US = 60 * MINUTE_US
NOW = now_us()
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


def _store(engine: Engine, *events: dict[str, object], at: int, project: str = "demo") -> None:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, project)
        store_events(conn, project_id, events, received_at=at)


def _call(engine: Engine, at: int, *, project: str = "demo") -> None:
    _store(engine, failure(session_id=f"at-{at}", at=at), at=at, project=project)


def _calls(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return conn.execute(select(func.count()).select_from(tool_call)).scalar_one()


class _Server:
    """What a server does every five minutes, at moments of a clock that a test sets."""

    def __init__(self, engine: Engine, *, days: int = 10) -> None:
        self.now = NOW
        self._engine, self._metrics = engine, Metrics()
        self._settings = Settings(retention_days=days)
        self._care = Maintenance(
            engine, self._settings, metrics=self._metrics, clock=lambda: self.now
        )

    def run(self, now: int) -> float | None:
        """Do it once, and return what the metrics show of a refusal afterwards."""
        self.now = now
        self._care.run_once()
        return self._metrics.registry.get_sample_value("toolfault_retention_refused")

    def findings(self) -> dict[str, str]:
        found = examine(self._settings, self._engine, clock=lambda: self.now)
        return {each.name: f"{each.level}: {each.text}" for each in found}


@SQLITE
def test_a_clock_that_jumped_ahead_removes_nothing(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten years ahead nothing goes, whether calls come or not; it is said once, and once after."""
    for days in range(20, 0, -1):
        _call(engine, NOW - days * DAY_US)
    _store(engine, {"type": "x"}, at=NOW)
    _call(engine, NOW)
    jumped, server = NOW + 3_650 * DAY_US, _Server(engine)

    assert server.run(jumped) == 1
    assert "nothing is removed" in server.findings()["retention"]
    _call(engine, jumped + MINUTE_US)
    assert server.run(jumped + 5 * MINUTE_US) == 1
    assert _calls(engine) == 22
    with read_connection(engine) as conn:
        assert conn.execute(select(rejected_event.c.id)).all() == []
    assert capsys.readouterr().out.count("retention_refused") == 1

    # The clock is set right; what came while it was wrong is no reason to doubt what came since.
    _call(engine, NOW + 10 * MINUTE_US)
    assert server.run(NOW + 15 * MINUTE_US) == 0
    assert _calls(engine) == 12
    assert capsys.readouterr().out.count("retention_resumed") == 1
    assert "retention" not in server.findings()


@SQLITE
def test_after_a_pause_calls_of_an_hour_are_enough(engine: Engine) -> None:
    """A server that was off for longer than the time to keep removes again within an hour."""
    _call(engine, NOW - 40 * DAY_US)
    _call(engine, NOW - 30 * DAY_US)
    server = _Server(engine)

    assert server.run(NOW) == 1
    _call(engine, NOW)
    assert server.run(NOW + HOUR_US - 1) == 1
    assert server.run(NOW + HOUR_US) == 0
    assert _calls(engine) == 1


@SQLITE
def test_after_a_weekend_the_clock_is_believed(engine: Engine) -> None:
    """A server that was off for less than that removes at once, also if nothing comes any more."""
    for days in (14, 12, 9, 3):
        _call(engine, NOW - days * DAY_US)
    server = _Server(engine)

    assert server.run(NOW) == 0
    assert _calls(engine) == 2
    for minutes in range(0, 8 * 24 * 60, 60):
        assert server.run(NOW + minutes * MINUTE_US) == 0
    assert _calls(engine) == 0


@SQLITE
def test_successes_that_are_only_counted_are_a_witness_as_well(engine: Engine) -> None:
    """Where nothing has failed for longer than the time to keep, nothing is doubted."""
    _call(engine, NOW - 20 * DAY_US)
    for days in (20, 11, 5):
        _store(engine, counts(at=NOW - days * DAY_US), at=NOW - days * DAY_US)

    assert _Server(engine).run(NOW) == 0
    assert _calls(engine) == 0


@pytest.mark.parametrize("off", [2 * HOUR_US, pytest.param(-2 * HOUR_US, marks=pytest.mark.long)])
@POSTGRESQL
def test_the_clock_of_the_database_is_asked(engine: Engine, off: int) -> None:
    """A machine whose clock is not that of the database removes nothing."""
    for days in (20, 1):
        _call(engine, now_us() - days * DAY_US)
    server = _Server(engine)

    assert server.run(now_us() + off) == 1
    assert server.findings()["clock"].startswith("problem")
    assert "of the database" in server.findings()["retention"]
    assert _calls(engine) == 2
    assert server.run(now_us()) == 0
    assert _calls(engine) == 1


@SQLITE
def test_calls_that_came_later_than_now_are_a_reason(engine: Engine) -> None:
    """A clock that is behind what came last removes nothing, until it is set or forced."""
    for at in (NOW - 20 * DAY_US, NOW - DAY_US, NOW):
        _call(engine, at)
    behind = NOW - 2 * HOUR_US

    with pytest.raises(PruneRefused, match=r"events were received at .* --force"):
        prune(engine, days=10, clock=lambda: behind)
    assert _calls(engine) == 3

    assert prune(engine, days=10, force=True, clock=lambda: behind).calls == 1


@SQLITE
def test_where_nothing_is_to_be_removed_nothing_is_doubted(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a limit no clock is asked and nothing logged; old rejects go by any clock."""
    _call(engine, NOW)
    _store(engine, {"type": "x"}, at=NOW)
    with write_transaction(engine) as conn:
        number = ensure_project(conn, "kept")
        change_settings(conn, number, ProjectSettings(retention_calls=10), actor="ada")
    server = _Server(engine, days=0)

    assert server.run(NOW + 3_650 * DAY_US) == 0

    assert "retention" not in capsys.readouterr().out
    assert "retention" not in server.findings()
    with read_connection(engine) as conn:
        assert conn.execute(select(rejected_event.c.id)).all() == []
    assert _calls(engine) == 1
