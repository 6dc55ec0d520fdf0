"""Retention of one project: what Settings stored goes before what the environment says."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, select
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import failure

from toolfault_collector.admin.audit import acts
from toolfault_collector.admin.project_settings import ProjectSettings, change_settings, settings_of
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, now_us
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import project, tool_call

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def _project(engine: Engine, name: str, stored: ProjectSettings) -> None:
    """Make a project with a call of 20 days ago and one of yesterday."""
    now = now_us()
    with write_transaction(engine) as conn:
        number = ensure_project(conn, name)
        change_settings(conn, number, stored, actor="ada")
        for session, at in (("old", now - 20 * DAY_US), ("new", now - DAY_US)):
            event = failure(session_id=f"{name}-{session}", at=at)
            store_events(conn, number, [event], received_at=at, time_policy="import")


def _sessions(engine: Engine) -> set[str]:
    with read_connection(engine) as conn:
        return {str(each) for each in conn.execute(select(tool_call.c.session_id)).scalars()}


@POSTGRESQL_IS_LONG
def test_maintenance_keeps_of_each_project_what_is_stored_for_it(engine: Engine) -> None:
    """Ten days by default, 30 or for ever where Settings says so, one call where it says that."""
    _project(engine, "default", ProjectSettings())
    _project(engine, "longer", ProjectSettings(retention_days=30))
    _project(engine, "forever", ProjectSettings(retention_days=0))
    _project(engine, "one", ProjectSettings(retention_days=0, retention_calls=1))

    Maintenance(engine, Settings(retention_days=10)).run_once()

    assert _sessions(engine) == {
        "default-new", "longer-old", "longer-new", "forever-old", "forever-new", "one-new",
    }  # fmt: skip


@SQLITE
def test_a_change_is_stored_once_and_written_down(engine: Engine) -> None:
    """The log names what changed and nothing else; the same again changes nothing."""
    with write_transaction(engine) as conn:
        number = ensure_project(conn, "demo")
        wanted = ProjectSettings(retention_days=30, token_prices="*=2")
        assert change_settings(conn, number, wanted, actor="ada")
        assert not change_settings(conn, number, wanted, actor="ada")
        assert settings_of(conn, number) == wanted
        assert change_settings(conn, number, ProjectSettings(token_prices="*=2"), actor="bo")
    with read_connection(engine) as conn:
        found = [(act.actor, act.action, act.project, act.detail) for act in acts(conn)]
    assert found == [
        ("bo", "settings_changed", "demo", {"retention_days": "server"}),
        ("ada", "settings_changed", "demo", {"retention_days": 30, "token_prices": "*=2"}),
    ]


IMPOSSIBLE = (
    ProjectSettings(retention_days=-1),
    ProjectSettings(retention_days=36_501),
    ProjectSettings(retention_calls=10**13),
    ProjectSettings(token_prices="x" * 8_193),
)


@SQLITE
def test_what_cannot_be_is_refused(engine: Engine) -> None:
    """Numbers and texts have bounds, and nothing is stored beyond them."""
    with write_transaction(engine) as conn:
        number = ensure_project(conn, "demo")
    for wanted in IMPOSSIBLE:
        with pytest.raises(ValueError), write_transaction(engine) as conn:
            change_settings(conn, number, wanted, actor="ada")
    with read_connection(engine) as conn:
        assert conn.execute(select(project.c.retention_days)).scalars().all() == [None]
