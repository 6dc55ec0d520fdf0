"""What a running collector does now and then."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, select
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import rejected_event, tool_call

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize(
    "database_url", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


def _store(engine: Engine, *events: dict[str, object], received_at: int | None = None) -> None:
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        store_events(conn, project_id, events, received_at=received_at or now_us())


def _calls(engine: Engine) -> int:
    with read_connection(engine) as conn:
        return len(conn.execute(select(tool_call.c.id)).all())


@SQLITE
def test_retention_runs_by_itself(engine: Engine) -> None:
    """With a limit set, old conversations and rejects go without anybody asking."""
    old = now_us() - 20 * DAY_US
    _store(engine, failure(session_id="old", at=old), {"type": "x"}, received_at=old)
    _store(engine, failure(session_id="new"), received_at=now_us() - DAY_US)

    Maintenance(engine, Settings(retention_days=10)).run_once()

    with read_connection(engine) as conn:
        assert list(conn.execute(select(tool_call.c.session_id)).scalars()) == ["new"]
        assert conn.execute(select(rejected_event)).all() == []


@POSTGRESQL
def test_only_one_collector_at_a_time(engine: Engine) -> None:
    """While another collector does it nothing is done here; SQLite's writers take turns anyway."""
    old = now_us() - 20 * DAY_US
    _store(engine, failure(session_id="old", at=old), received_at=old)
    _store(engine, failure(session_id="new"), received_at=now_us() - DAY_US)
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


@POSTGRESQL
def test_a_failing_step_does_not_end_it(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """What fails is logged, and the next step runs."""
    old = now_us() - 20 * DAY_US
    _store(engine, {"type": "x"}, received_at=old)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("ALTER TABLE issue RENAME TO elsewhere")

    Maintenance(engine, Settings(retention_days=10)).run_once()

    with read_connection(engine) as conn:
        assert conn.execute(select(rejected_event)).all() == []
    assert "_see_to_partitions" in capsys.readouterr().out


@SQLITE
def test_it_ends_when_told(engine: Engine) -> None:
    """The thread ends at once, although it waits for minutes between its rounds."""
    before = set(threading.enumerate())
    care = Maintenance(engine, Settings())
    care.start()
    (thread,) = set(threading.enumerate()) - before

    care.stop(10)

    assert not thread.is_alive()
