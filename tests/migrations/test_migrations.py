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
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    ColumnClause,
    Connection,
    Engine,
    column,
    event,
    insert,
    inspect,
    select,
    table,
    text,
)
from tests.factories import change, conversation_end, counts, failure, success, tool_error
from tests.statements import Statements

import toolfault_migrations as migrations
from toolfault_collector.clock import now_us
from toolfault_collector.engine import (
    is_sqlite,
    open_engine,
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
LONG = [pytest.mark.long, pytest.mark.timeout(1_800)]
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


def test_models_match_the_history(empty: Engine) -> None:
    """The tables that the revisions make are those of `tables.py`."""
    migrations.upgrade(empty)

    assert migrations.check(empty, metadata) == []


def test_check_sees_a_difference(sqlite_url: str) -> None:
    """A column that is missing is named."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("ALTER TABLE issue DROP COLUMN near_miss")

    (line,) = migrations.check(engine, metadata)

    assert "add_column" in line
    assert "near_miss" in line
    engine.dispose()


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
    migrations.downgrade(engine, "0012")
    columns = _columns(engine)
    before = _rows_of(engine, columns)
    rebuilt: list[str] = []

    @event.listens_for(engine, "after_cursor_execute")
    def rebuild(conn: Connection, _cursor: object, statement: str, *_: object) -> None:
        """Do as a revision would, in the transaction of the one that runs."""
        if "UPDATE alembic_version" in statement and not rebuilt:
            rebuilt.extend(["project", "tool_call"])
            operations = Operations(MigrationContext.configure(conn))
            for name in rebuilt:
                with operations.batch_alter_table(name, recreate="always"):
                    pass

    migrations.upgrade(engine)

    assert rebuilt
    assert _rows_of(engine, columns) == before
    with engine.connect() as conn:
        assert conn.execute(text("PRAGMA foreign_keys")).scalar_one() == 1
    engine.dispose()


def test_orphans_stop_a_migration(sqlite_url: str) -> None:
    """A migration that would leave a row without its parent is undone."""
    engine = open_engine(sqlite_url)
    _fill(engine)
    migrations.downgrade(engine, "0012")
    with closing(sqlite3.connect(sqlite_path(engine))) as raw:  # foreign keys are off
        raw.execute("DELETE FROM project")
        raw.commit()
    columns = _columns(engine)
    before = _rows_of(engine, columns)

    with pytest.raises(RuntimeError, match="without their parent"):
        migrations.upgrade(engine)

    assert migrations.current(engine) == "0012"
    assert _rows_of(engine, columns) == before
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


def test_newer_schema_is_refused(sqlite_url: str) -> None:
    """A schema of a newer version is never touched, and the message says what to do."""
    engine = open_engine(sqlite_url)
    with write_transaction(engine) as conn:
        conn.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(SchemaTooNew, match="upgrade toolfault-server"):
        prepare(engine, migrate=True)

    assert migrations.current(engine) == "9999"
    engine.dispose()


def _columns(engine: Engine) -> dict[str, list[str]]:
    """The columns of every table; what PostgreSQL keeps in partitions belongs to their table."""
    found = inspect(engine)
    names = set(found.get_table_names()) - {"alembic_version"}
    if not is_sqlite(engine):
        with engine.connect() as conn:
            parts = text("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")
            names -= set(conn.execute(parts).scalars())
    return {name: [each["name"] for each in found.get_columns(name)] for name in names}


def _rows_of(engine: Engine, columns: dict[str, list[str]]) -> dict[str, list[tuple[str, ...]]]:
    """Every row of the tables of *columns*, as texts that compare alike on both engines."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    with engine.connect() as conn:
        for name, names in columns.items():
            wanted: list[ColumnClause[Any]] = [column(each) for each in names]
            query = select(*wanted).select_from(table(name))
            rows[name] = sorted(tuple(map(repr, row)) for row in conn.execute(query))
    return rows


def test_a_revision_keeps_what_was_stored(engine: Engine) -> None:
    """Each revision can be undone and done again, and keeps the rows of the schema before it.

    Children are there after their parent was rebuilt, and nothing is left behind at the end.
    """
    _fill(engine)
    for revision in reversed(migrations.revisions()):
        if revision.down is None:
            break
        migrations.downgrade(engine, revision.down)
        columns = _columns(engine)
        stored = _rows_of(engine, columns)
        assert [name for name, rows in stored.items() if not rows] == []

        migrations.upgrade(engine, revision.name)

        after = _rows_of(engine, columns)
        for name in columns.keys() - COUNTED_ANEW.get(revision.name, set()):
            assert after[name] == stored[name], f"{revision.name}: {name}"
        migrations.downgrade(engine, revision.down)
    migrations.upgrade(engine)
    assert migrations.check(engine, metadata) == []
    assert recount(engine).right

    migrations.downgrade(engine, "base")
    left = set(inspect(engine).get_table_names())
    migrations.upgrade(engine)
    assert left == {"alembic_version"}
    assert migrations.check(engine, metadata) == []


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
    ("database_url", "kills"),
    [
        ("sqlite", 2),
        pytest.param("postgresql", 1, marks=pytest.mark.postgres),
        pytest.param("sqlite", 20, marks=LONG),
        pytest.param("postgresql", 20, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_killed_in_a_migration(engine: Engine, kills: int) -> None:
    """A migration that is killed anywhere leaves the schema and rows it found; the next is whole.

    All revisions at once, from the first schema to the one of today, which is one transaction.
    """
    _fill(engine)
    migrations.downgrade(engine, "0001")
    columns = _columns(engine)
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
    older = migrations.revisions()[-2].name
    _fill(engine)
    migrations.downgrade(engine, older)

    prepare(engine, migrate=False)

    assert is_at_head(engine)
    copy = sqlite_path(engine).with_name(f"toolfault.db.schema-{older}.bak")
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("SELECT count(*) FROM tool_call").fetchone() == (3,)
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copy.stat().st_mode & 0o777 == 0o600
    engine.dispose()


@pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
)
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


def test_a_server_on_the_schema_of_today_starts_without_alembic(sqlite_url: str) -> None:
    """What only a migration needs is loaded when there is one."""
    code = (
        "import sys; import toolfault_collector.__main__;"
        "from toolfault_collector.engine import open_engine;"
        "from toolfault_collector.schema import is_at_head, prepare;"
        "engine = open_engine(sys.argv[1]); prepare(engine, migrate=False);"
        "assert is_at_head(engine);"
        "sys.exit('alembic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code, sqlite_url], timeout=60, check=False)

    assert done.returncode == 0
