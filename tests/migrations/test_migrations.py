"""The schema's history: up, down and up again with rows in every table, on both engines."""

from __future__ import annotations

import re
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import (
    ColumnClause,
    Engine,
    column,
    insert,
    inspect,
    select,
    table,
    text,
)
from tests.engines import POSTGRESQL_IS_LONG
from tests.factories import change, conversation_end, counts, failure, success, tool_error
from tests.next_schema import add_next_schema
from tests.starting import completed
from tests.statements import Statements

import toolfault_migrations as migrations
from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.doctor.recount import recount
from toolfault_collector.errors import SchemaTooNew, SchemaTooOld
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    sqlite_path,
    write_transaction,
)
from toolfault_collector.storage.database.schema import is_at_head, prepare
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import metadata

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
        "kind_state": {
            "project_id": project_id,
            "fingerprint": "f" * 32,
            "state": "ignored",
            "owner": WEIRD,
            "note": WEIRD,
            "changed_by": "ada",
            "changed_at": at,
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
        "drop_counts": {"project_id": project_id, "period": 0, "reason": WEIRD, "events": 3},
        "stored_answer": {
            "project_id": project_id,
            "question": "x",
            "starts_at": 0,
            "ends_at": 1,
            "version": 1,
            "counted_by": "x",
            "answer": b"\0x",
        },
        "alert_channel": {
            "id": 1,
            "project_id": project_id,
            "name": WEIRD,
            "kind": "webhook",
            "url": "https://example.org/hook",
            "created_by": "ada",
            "created_at": at,
            "failures": 0,
            "retry_at": 0,
        },
        "alert_rule": {
            "id": 1,
            "project_id": project_id,
            "name": WEIRD,
            "condition": "failure_rate",
            "query": "tool:x",
            "audience": "system",
            "threshold": 0.2,
            "least": 50,
            "window_us": 1,
            "channel_id": 1,
            "quiet": "",
            "zone": "UTC",
            "snoozed_until": 0,
            "created_by": "ada",
            "created_at": at,
            "evaluated_at": 0,
            "seen": "",
            "figure": {"value": 0.5},
        },
        "alert_state": {
            "project_id": project_id,
            "rule_id": 1,
            "subject": "",
            "phase": "firing",
            "since": at,
            "told": True,
            "told_until": at,
        },
        "alert_message": {
            "project_id": project_id,
            "message_id": "x",
            "rule_id": 1,
            "rule_name": WEIRD,
            "channel_id": 1,
            "channel_name": WEIRD,
            "event": "firing",
            "subject": "",
            "title": WEIRD,
            "body": WEIRD,
            "query": "",
            "decided_at": at,
            "not_before": at,
            "attempts": 0,
        },
        "alert_lease": {"name": "alerts", "holder": "x", "expires_at": at},
        "trace": {
            "project_id": project_id,
            "trace_id": "a" * 32,
            "received_at": at,
            "spans": 1,
            "size": 2,
            "reads": 1,
            "calls": {"x": "y"},
        },
        "trace_batch": {
            "project_id": project_id,
            "trace_id": "a" * 32,
            "spans": 1,
            "body": b"\0\xff",
        },
        "otlp_request": {
            "project_id": project_id,
            "received_at": at,
            "signal": "traces",
            "encoding": "json",
            "items": 1,
            "calls": 1,
            "rejected": 0,
            "detail": [[WEIRD]],
        },
        "metric_calls": {
            "project_id": project_id,
            "day": 0,
            "source": "execute_tool",
            "tool": WEIRD,
            "error_type": "",
            "calls": 3,
        },
        "metric_series": {
            "project_id": project_id,
            "digest": "x",
            "started_at": at,
            "ended_at": at,
            "calls": 3,
        },
    }


@pytest.mark.parametrize(
    "empty_database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
)
def test_models_match_the_history(empty: Engine) -> None:
    """The tables that the revisions make are those of `tables`."""
    migrations.upgrade(empty)

    assert migrations.check(empty, metadata) == []


LOST = "ALTER TABLE issue DROP COLUMN near_miss"


@pytest.mark.parametrize(
    ("database_url", "damage", "said"),
    [
        pytest.param("sqlite", LOST, "add_column .*near_miss", id="column"),
        pytest.param(
            "sqlite",
            f"{LOST}; ALTER TABLE issue ADD near_miss JSON DEFAULT 7",
            "modify_default",
            id="default",
        ),
        pytest.param(
            *("postgresql", "DROP TABLE issue_default", "not divided"),
            id="partition",
            marks=pytest.mark.postgres,
        ),
    ],
    indirect=["database_url"],
)
def test_check_sees_a_difference(engine: Engine, damage: str, said: str) -> None:
    """A column that is missing, another default, and lost partitions are named."""
    with write_transaction(engine) as conn:
        for statement in damage.split("; "):
            conn.exec_driver_sql(statement)

    (line,) = migrations.check(engine, metadata)

    assert re.search(said, line)
    assert "issue" in line


def test_printed_sql_makes_the_schema(empty: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """What `db upgrade --sql` prints makes, run by somebody else, the schema of today."""
    migrations.print_upgrade(empty)
    assert migrations.current(empty) is None

    printed = capsys.readouterr().out.strip().removeprefix("BEGIN;").removesuffix("COMMIT;")
    with empty.begin() as conn:
        for each in printed.strip().split(";\n"):
            conn.exec_driver_sql(each)

    assert is_at_head(empty)
    assert migrations.check(empty, metadata) == []


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


def test_orphans_stop_a_migration(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that would leave a row without its parent is undone."""
    engine = open_engine(sqlite_url)
    before = migrations.current(engine)
    add_next_schema(tmp_path, monkeypatch.setattr)
    with closing(sqlite3.connect(sqlite_path(engine))) as raw:  # foreign keys are off
        raw.execute("INSERT INTO quarter_version VALUES (7, 0, 1)")
        raw.commit()

    with pytest.raises(RuntimeError, match="quarter_version without their parent"):
        migrations.upgrade(engine)

    assert migrations.current(engine) == before
    assert "added" not in _columns(engine)["tool_call"]
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


def test_indexes_of_sqlite_are_made_in_one_order(sqlite_url: str) -> None:
    """Which of several equally good indexes SQLite takes does not differ from file to file."""
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as file:
        names = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        made = [name for (name,) in file.execute(f"{names} ORDER BY rowid")]
    assert len(made) > 30
    assert made == sorted(made, reverse=True)


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


@POSTGRESQL_IS_LONG
def test_a_revision_keeps_what_was_stored(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each revision can be undone and done again, and keeps the rows of the schema before it.

    Children are there after their parent was rebuilt, and nothing is left behind at the end.
    """
    older = migrations.current(engine)
    assert older is not None
    _fill(engine)
    columns = _columns(engine)
    stored = _rows_of(engine, columns)
    assert [name for name, rows in stored.items() if not rows] == []
    add_next_schema(tmp_path, monkeypatch.setattr)

    for _ in range(2):
        migrations.upgrade(engine)
        assert is_at_head(engine)
        assert _rows_of(engine, columns) == stored
        migrations.downgrade(engine, older)
        assert _columns(engine) == columns
        assert _rows_of(engine, columns) == stored
    assert migrations.check(engine, metadata) == []
    if is_sqlite(engine):
        with engine.connect() as conn:
            assert conn.execute(text("PRAGMA foreign_keys")).scalar_one() == 1

    migrations.downgrade(engine, "base")
    left = set(inspect(engine).get_table_names())
    migrations.upgrade(engine, older)
    assert left == {"alembic_version"}
    assert migrations.check(engine, metadata) == []


KILLED = """
import os, pathlib, signal, sys
from sqlalchemy import event
from tests.next_schema import add_next_schema
from tests.starting import completed
import toolfault_migrations as migrations
from toolfault_collector.storage.database.engine import open_engine
engine, left = open_engine(sys.argv[1]), int(sys.argv[2])
add_next_schema(pathlib.Path(sys.argv[3]))
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
        ("sqlite", 1),
        pytest.param("postgresql", 1, marks=pytest.mark.postgres),
        pytest.param("sqlite", 20, marks=LONG),
        pytest.param("postgresql", 20, marks=[*LONG, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)
def test_killed_in_a_migration(
    engine: Engine, kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that is killed anywhere leaves what it found; the next is whole."""
    older = migrations.current(engine)
    assert older is not None
    _fill(engine)
    columns = _columns(engine)
    stored = _rows_of(engine, columns)
    add_next_schema(tmp_path, monkeypatch.setattr)
    total = _statements_of_an_upgrade(engine)
    migrations.downgrade(engine, older)
    url = engine.url.render_as_string(hide_password=False)
    for kill in range(kills):
        left = str(max(1, total * (2 * kill + 1) // (2 * kills)))
        ended = completed("-c", KILLED, url, left, str(tmp_path))
        assert ended.returncode == -signal.SIGKILL, ended.stderr

        assert migrations.current(engine) == older
        assert _rows_of(engine, columns) == stored
    migrations.upgrade(engine)
    assert is_at_head(engine)
    assert _rows_of(engine, columns) == stored
    assert recount(engine).right


def _statements_of_an_upgrade(engine: Engine) -> int:
    with Statements(engine) as statements:
        migrations.upgrade(engine)
    return len(statements)


def test_older_sqlite_file_is_copied_first(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older SQLite file is migrated after a copy of it was made beside it."""
    engine = open_engine(sqlite_url)
    older = migrations.current(engine)
    _fill(engine)
    add_next_schema(tmp_path, monkeypatch.setattr)

    prepare(engine, migrate=False)

    assert is_at_head(engine)
    copy = sqlite_path(engine).with_name(f"toolfault.db.schema-{older}.bak")
    with closing(sqlite3.connect(copy)) as raw:
        assert raw.execute("SELECT count(*) FROM tool_call").fetchone() == (3,)
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert copy.stat().st_mode & 0o777 == 0o600
    engine.dispose()


def test_the_newest_revision_is_that_of_alembic() -> None:
    """There is one line of revisions, and its end is the constant that a start compares with."""
    scripts = ScriptDirectory.from_config(migrations.alembic_config())

    assert scripts.get_heads() == [migrations.HEAD]
    assert len(scripts.get_bases()) == 1
    assert all(migrations.knows(each.revision) for each in scripts.walk_revisions())
    assert not any(map(migrations.knows, migrations.UNRELEASED))


def test_a_server_on_the_schema_of_today_starts_without_alembic(sqlite_url: str) -> None:
    """What only a migration needs is loaded when there is one."""
    code = (
        "import sys; import toolfault_collector.__main__;"
        "from toolfault_collector.storage.database.engine import open_engine;"
        "from toolfault_collector.storage.database.schema import is_at_head, prepare;"
        "engine = open_engine(sys.argv[1]); prepare(engine, migrate=False);"
        "assert is_at_head(engine);"
        "sys.exit('alembic' in sys.modules)"
    )

    done = completed("-c", code, sqlite_url)

    assert done.returncode == 0, done.stderr
