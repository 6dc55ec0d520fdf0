"""The schema's history: up, down and up again with rows in every table, on both engines."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, column, func, insert, inspect, select, table, text
from tests.factories import change, conversation_end, counts, failure, success, tool_error
from tests.statements import Statements
from tests.tables import tables_of

import toolfault_migrations as migrations
from toolfault_collector.clock import now_us
from toolfault_collector.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.errors import SchemaTooNew, SchemaTooOld
from toolfault_collector.keys import create_key
from toolfault_collector.projects import ensure_project
from toolfault_collector.recount import recount
from toolfault_collector.schema import is_at_head, prepare
from toolfault_collector.store import store_events
from toolfault_collector.tables import metadata

# Rollups are counted anew where a revision counts by more; `recount` says whether they are right.
COUNTED_ANEW = {"0005": {"failure_counts"}}
WEIRD = "a\tb\n'\"; DROP TABLE x; -- \u202e \U0001f600"


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Engine]:
    """A database without a schema."""
    engine = open_engine(empty_database_url)
    yield engine
    engine.dispose()


def _fill(engine: Engine) -> None:
    """Put rows into every table, parents with children."""
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        create_key(conn, project_id, "ingest", label=WEIRD)
        events = [failure(error={"received": WEIRD}), success(), tool_error(), counts(), change()]
        events += [conversation_end(), {"type": "unknown"}]
        store_events(conn, project_id, events, received_at=now_us())
        for name, row in _rows(project_id).items():
            conn.execute(insert(metadata.tables[name]).values(row))


def _rows(project_id: int) -> dict[str, dict[str, Any]]:
    at = now_us()
    return {
        "user_account": {"id": 1, "name": "ada", "role": "admin", "created_at": at},
        "login_session": {
            "user_id": 1,
            "kind": "link",
            "token_hash": "x",
            "created_at": at,
            "expires_at": at,
        },
        "saved_view": {
            "project_id": project_id,
            "user_id": 1,
            "name": WEIRD,
            "page": "failures",
            "query": "tool:x",
            "shared": True,
            "created_at": at,
        },
        "picked_fix": {
            "project_id": project_id,
            "tool": "search",
            "field": WEIRD,
            "remedy": "int_from_string",
            "event_id": "x",
            "added_by": "ada",
            "added_at": at,
        },
        "quota_bucket": {"project_id": project_id, "events_left": -2.5, "filled_at": at},
        "audit_log": {"occurred_at": at, "actor": "ada", "action": "key.create", "detail": {}},
    }


def _contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    with read_connection(engine) as conn:
        return {
            table.name: sorted(tuple(map(repr, row)) for row in conn.execute(select(table)))
            for table in tables_of(engine)
        }


def test_models_match_the_history(empty: Engine) -> None:
    """The tables that the revisions make are those of `tables.py`."""
    migrations.upgrade(empty)

    assert migrations.check(empty, metadata) == []


def test_check_sees_a_difference(empty: Engine) -> None:
    """A column that is missing is named."""
    migrations.upgrade(empty)
    with write_transaction(empty) as conn:
        conn.exec_driver_sql("ALTER TABLE issue DROP COLUMN near_miss")

    (line,) = migrations.check(empty, metadata)

    assert "add_column" in line
    assert "near_miss" in line


def test_every_table_is_filled(empty: Engine) -> None:
    """The rows these tests carry through reach every table."""
    migrations.upgrade(empty)
    _fill(empty)

    assert [name for name, rows in _contents(empty).items() if not rows] == []


def test_down_and_up_again(empty: Engine) -> None:
    """Down to nothing and up again leaves the schema of today, and no table behind."""
    migrations.upgrade(empty)
    _fill(empty)

    migrations.downgrade(empty, "base")
    left = set(inspect(empty).get_table_names())
    migrations.upgrade(empty)

    assert left == {"alembic_version"}
    assert migrations.check(empty, metadata) == []


def test_upgrade_keeps_every_row(empty: Engine) -> None:
    """An upgrade of the schema of today, which has nothing to do, changes no row."""
    migrations.upgrade(empty)
    _fill(empty)
    before = _contents(empty)

    migrations.upgrade(empty)

    assert _contents(empty) == before


def test_failed_migration_leaves_nothing(empty: Engine) -> None:
    """A revision that fails half-way is undone as a whole and can be run again."""
    with empty.begin() as conn:
        conn.exec_driver_sql("CREATE TABLE tool_call (id INTEGER)")  # in the way

    with pytest.raises(Exception, match="tool_call"):
        migrations.upgrade(empty)

    assert set(inspect(empty).get_table_names()) <= {"tool_call", "alembic_version"}
    assert migrations.current(empty) is None
    with empty.begin() as conn:
        conn.exec_driver_sql("DROP TABLE tool_call")
    migrations.upgrade(empty)
    assert is_at_head(empty)


def test_rebuilding_a_parent_keeps_its_children(sqlite_url: str) -> None:
    """Copying and dropping a parent table, as SQLite migrations do, deletes no child row."""
    engine = open_engine(sqlite_url)
    _fill(engine)
    before = _contents(engine)

    with migrations._migrating(engine) as conn:
        from alembic.operations import Operations
        from alembic.runtime.migration import MigrationContext

        operations = Operations(MigrationContext.configure(conn))
        with operations.batch_alter_table("project", recreate="always"):
            pass
        with operations.batch_alter_table("tool_call", recreate="always"):
            pass

    assert _contents(engine) == before
    with engine.connect() as conn:
        assert conn.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
    engine.dispose()


def test_orphans_stop_a_migration(sqlite_url: str) -> None:
    """A migration that would leave a row without its parent is undone."""
    engine = open_engine(sqlite_url)
    _fill(engine)
    before = _contents(engine)

    with (
        pytest.raises(RuntimeError, match="without their parent"),
        migrations._migrating(engine) as conn,
    ):
        conn.exec_driver_sql("DELETE FROM project")

    assert _contents(engine) == before
    engine.dispose()


def test_new_database_is_migrated(empty: Engine) -> None:
    """A new SQLite file is migrated; an empty PostgreSQL database only when asked for."""
    if is_sqlite(empty):
        prepare(empty, migrate=False)
    else:
        with pytest.raises(SchemaTooOld, match="toolfault db upgrade"):
            prepare(empty, migrate=False)
        assert migrations.current(empty) is None
        prepare(empty, migrate=True)

    assert is_at_head(empty)


def test_newer_schema_is_refused(engine: Engine) -> None:
    """A schema of a newer version is never touched, and the message says what to do."""
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaTooNew, match="upgrade toolfault-server"):
        prepare(engine, migrate=True)

    assert migrations.current(engine) == "9999"


def test_every_revision_goes_down_one_and_up_again(engine: Engine) -> None:
    """From head each revision can be undone and redone with rows in place."""
    _fill(engine)
    revisions = migrations.revisions()

    for revision in reversed(revisions):
        migrations.downgrade(engine, revision.down or "base")
        migrations.upgrade(engine, revision.name)
        migrations.downgrade(engine, revision.down or "base")
    migrations.upgrade(engine)

    assert migrations.check(engine, metadata) == []
    with read_connection(engine) as conn:
        assert (
            conn.execute(select(func.count()).select_from(metadata.tables["project"])).scalar() == 0
        )


def _rows_of(engine: Engine, columns: dict[str, list[str]]) -> dict[str, list[tuple[str, ...]]]:
    """Every row of the tables of *columns*, as texts that compare alike on both engines."""
    with engine.connect() as conn:
        return {
            name: sorted(
                tuple(map(repr, row))
                for row in conn.execute(select(*map(column, names)).select_from(table(name)))
            )
            for name, names in columns.items()
        }


@pytest.mark.parametrize("revision", [each.name for each in migrations.revisions() if each.down])
def test_a_revision_keeps_what_was_stored(engine: Engine, revision: str) -> None:
    """Rows in every table, written by the schema before it, are there unchanged after it."""
    (before,) = (each.down for each in migrations.revisions() if each.name == revision)
    _fill(engine)
    migrations.downgrade(engine, before or "base")
    found = inspect(engine)
    partitions = migrations._partitions(engine.connect())
    columns = {
        name: [each["name"] for each in found.get_columns(name)]
        for name in found.get_table_names()
        if name not in (*partitions, "alembic_version")
    }
    stored = _rows_of(engine, columns)

    migrations.upgrade(engine, revision)

    after = _rows_of(engine, columns)
    for name in columns.keys() - COUNTED_ANEW.get(revision, set()):
        assert stored[name], name
        assert after[name] == stored[name], name
    migrations.upgrade(engine)
    assert recount(engine).right


KILLED = """
import os, signal, sys
from sqlalchemy import event
import toolfault_migrations as migrations
from toolfault_collector.engine import open_engine
engine, left = open_engine(sys.argv[1]), int(sys.argv[2])
@event.listens_for(engine, "after_cursor_execute")
def count(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
migrations.upgrade(engine)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kills", [4, pytest.param(20, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])]
)
def test_killed_in_a_migration(engine: Engine, kills: int) -> None:
    """A migration that is killed anywhere leaves the schema and rows it found; the next is whole.

    All revisions at once, from the first schema to the one of today, which is one transaction.
    """
    _fill(engine)
    migrations.downgrade(engine, "0001")
    found = inspect(engine)
    columns = {
        name: [each["name"] for each in found.get_columns(name)] for name in found.get_table_names()
    }
    stored = _rows_of(engine, columns)
    total = _statements_of_an_upgrade(engine)
    migrations.downgrade(engine, "0001")
    url = engine.url.render_as_string(hide_password=False)
    for kill in range(kills):
        left = str(total * (2 * kill + 1) // (2 * kills))
        command = [sys.executable, "-c", KILLED, url, left]
        assert subprocess.run(command, timeout=120, check=False).returncode == -signal.SIGKILL

        assert migrations.current(engine) == "0001"
        assert _rows_of(engine, columns) == stored
    migrations.upgrade(engine)
    assert migrations.check(engine, metadata) == []
    assert recount(engine).right


def _statements_of_an_upgrade(engine: Engine) -> int:
    with Statements(engine) as statements:
        migrations.upgrade(engine)
    return len(statements)


def test_older_sqlite_file_is_copied_first(sqlite_url: str) -> None:
    """An older SQLite file is migrated after a copy of it was made beside it."""
    engine = open_engine(sqlite_url)
    revisions = migrations.revisions()
    if len(revisions) < 2:
        pytest.skip("there is no older schema yet")
    _fill(engine)
    migrations.downgrade(engine, revisions[-2].name)

    prepare(engine, migrate=False)

    assert is_at_head(engine)
    copy = sqlite_path(engine).with_name(f"toolfault.db.schema-{revisions[-2].name}.bak")
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("SELECT count(*) FROM tool_call").fetchone() == (3,)
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copy.stat().st_mode & 0o777 == 0o600
    engine.dispose()


def test_history_of_an_older_schema_recounts_right(engine: Engine) -> None:
    """What migrations make of old rows is what the collector would have kept of them."""
    began = now_us() - 3_600_000_000
    with write_transaction(engine) as conn:
        project_id = ensure_project(conn, "demo")
        events = [failure(sample_rate=0.3), success(sample_rate=0.1), success("u"), failure("u")]
        store_events(conn, project_id, events, received_at=began)
        # An end that arrived after the last call, and one of a conversation without calls.
        later = [conversation_end(), conversation_end("silent")]
        store_events(conn, project_id, later, received_at=began + 60_000_000)

    for revision in ("0001", "0002"):
        migrations.downgrade(engine, revision)
        migrations.upgrade(engine)

        assert recount(engine).right, revision


def test_revisions_are_read_as_alembic_reads_them() -> None:
    """The line of revisions that is read from the files is the one that alembic runs."""
    scripts = ScriptDirectory.from_config(migrations.alembic_config())

    walked = [(each.revision, each.down_revision) for each in scripts.walk_revisions()]

    assert [(each.name, each.down) for each in migrations.revisions()] == walked[::-1]
    assert scripts.get_heads() == [migrations.head()]


def test_a_server_on_the_schema_of_today_starts_without_alembic(engine: Engine) -> None:
    """What only a migration needs is loaded when there is one."""
    code = (
        "import sys; import toolfault_collector.__main__;"
        "from toolfault_collector.engine import open_engine;"
        "from toolfault_collector.schema import is_at_head, prepare;"
        "engine = open_engine(sys.argv[1]); prepare(engine, migrate=False);"
        "assert is_at_head(engine);"
        "sys.exit('alembic' in sys.modules)"
    )
    url = engine.url.render_as_string(hide_password=False)

    done = subprocess.run([sys.executable, "-c", code, url], timeout=60, check=False)

    assert done.returncode == 0
