"""What retention asks every five minutes is answered by indexes, however long the history is."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Table, event, insert, literal, select
from tests.factories import counts, failure

from toolfault_collector.admin.project_settings import ProjectSettings, change_settings
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, now_us
from toolfault_collector.protocol.records import Context
from toolfault_collector.protocol.submission import read_events
from toolfault_collector.retention.policy import Limits, prune_projects
from toolfault_collector.retention.schedule import Maintenance
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.name_limits import NameLimits
from toolfault_collector.storage.tables import call_counts, conversation, failure_counts, tool_call

NOW = now_us()
DAYS = 40
TALKS = 700  # of each project: enough that PostgreSQL takes an index where there is one
# May be read whole, being small or no tables.
SMALL = re.compile(
    r"SCAN (project|json_each|anon_\d+|CONSTANT ROW|\(|alembic_version|sqlite_schema)"
)
LARGE = {"tool_call_0", "conversation", "call_counts"}


def _fill(conn: Connection) -> list[int]:
    """Fill three projects with conversations of four calls, calls alone, and counts, over 40 days.

    The database copies the first to the others.
    """
    ids = [ensure_project(conn, name) for name in ("kept", "limited", "large")]
    project_id, *others = ids
    rows: dict[Table, list[dict[str, Any]]] = {tool_call: [], conversation: [], call_counts: []}
    for number in range(TALKS):
        at = NOW - DAYS * DAY_US + number * (DAYS * DAY_US // TALKS)
        # One of a hundred goes on for ever.
        session = f"c-{number if number % 100 else 'main'}"
        for place in range(6):
            alone = place > 3
            rows[tool_call].append(
                {
                    "project_id": project_id,
                    "event_id": f"{number}-{place}",
                    "event_type": "tool_call",
                    "session_id": None if alone else session,
                    "tool": f"t{place % 3}",
                    "started_at": at + place * SECOND_US,
                    "occurred_at": at + place * SECOND_US,
                    "received_at": at + place * SECOND_US,
                    "success": True,
                }
            )
        moments = {"first_at": at, "last_at": at + SECOND_US, "received_at": at + 3 * SECOND_US}
        if number % 100:
            rows[conversation].append({"project_id": project_id, "session_id": session, **moments})
        rows[call_counts].append(
            {
                "project_id": project_id, "event_id": f"{number}", "minute": at, "tool": "t1",
                "received_at": at, "calls": 1, "conversations": 0, "calls_squared": 0,
            }
        )  # fmt: skip
    forever = {"first_at": NOW - DAYS * DAY_US, "last_at": NOW, "received_at": NOW}
    rows[conversation].append({"project_id": project_id, "session_id": "c-main", **forever})
    for table, values in rows.items():
        conn.execute(insert(table), values)
        for other in others:
            columns = [table.c[name] for name in values[0] if name != "project_id"]
            same = select(literal(other), *columns).where(table.c.project_id == project_id)
            conn.execute(insert(table).from_select([table.c.project_id, *columns], same))
    of_project = {"by": "tool", "period": 0, "tool": "", "name": "t1", "failures": 0}
    counted = [{**of_project, "project_id": each, "calls": 6 * TALKS} for each in ids]
    conn.execute(insert(failure_counts), counted)
    return ids


@pytest.fixture
def filled(database_url: str) -> Iterator[tuple[Engine, list[int]]]:
    """A database with a project that has limits, and two that keep everything."""
    engine = open_engine(database_url)
    with write_transaction(engine) as conn:
        ids = _fill(conn)
        for number in (ids[0], ids[2]):
            stored = ProjectSettings(retention_days=0, retention_calls=0)
            change_settings(conn, number, stored, actor="ada")
    if not is_sqlite(engine):
        with write_transaction(engine) as conn:
            conn.exec_driver_sql("ANALYZE")
    yield engine, ids
    engine.dispose()


@contextmanager
def _asked(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """Yield what is asked of the tables of events in a block, once each."""
    asked: dict[str, tuple[str, Any]] = {}

    def note(statement: str, parameters: Any = None) -> None:
        if re.match(r"\s*(SELECT|DELETE|UPDATE|WITH)", statement) and "pg_" not in statement:
            asked.setdefault(re.sub(r"\d+|'[^']*'", "", statement), (statement, parameters))

    def connected(connection: Any, _record: object) -> None:
        connection.set_trace_callback(note)  # what is sent past SQLAlchemy as well, with its values

    def sent(_conn: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        note(statement, parameters)

    found: list[tuple[str, Any]] = []
    engine.dispose()
    kind, listener = (
        ("connect", connected) if is_sqlite(engine) else ("before_cursor_execute", sent)
    )
    event.listen(engine, kind, listener)
    yield found
    event.remove(engine, kind, listener)
    engine.dispose()
    found += asked.values()


def _faults(conn: Connection, statement: str, parameters: Any) -> list[str]:
    """Return where the plan of *statement* reads all of a table, or sorts to find a few rows."""
    limited = " LIMIT " in statement
    if is_sqlite(conn):
        plan = [row.detail for row in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]
        return [
            line
            for line in plan
            if (line.startswith("SCAN ") and not SMALL.match(line))
            or (limited and line == "USE TEMP B-TREE FOR ORDER BY")
        ]
    explained = conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
    large = any(f'"Relation Name": "{name}"' in json.dumps(explained) for name in LARGE)
    nodes, faults = [(explained[0]["Plan"], False)], []
    while nodes:
        node, stops = nodes.pop()
        kind, relation = node["Node Type"], node.get("Relation Name", "")
        # What takes the first row of an index, whichever it is, has no condition.
        nodes += [(each, stops or kind == "Limit") for each in node.get("Plans", [])]
        bound = "Index Cond" in node or kind == "Bitmap Heap Scan" or "Scan" not in kind
        if relation in LARGE and not bound and not (stops and "Filter" not in node):
            faults.append(f"{kind} {relation}")
        if limited and large and kind == "Sort":
            faults.append("Sort")
    return faults


def test_a_round_of_retention_reads_by_index(filled: tuple[Engine, list[int]]) -> None:
    """No statement of a round, nor of its preview, reads a whole table or sorts a project."""
    engine, (_, limited, _) = filled
    care = Maintenance(engine, Settings(retention_days=39, retention_calls=6 * TALKS - 60))
    with _asked(engine) as asked:
        care.run_once()
        limits = {limited: Limits(days=30, max_calls=100)}
        prune_projects(engine, limits, dry_run=True)
        for days in (38, 37, 36, 25):
            prune_projects(
                engine, {limited: Limits(days=days, max_calls=days * (6 * TALKS // DAYS - 5))}
            )

    removed = [statement for statement, _ in asked if statement.startswith("DELETE FROM tool_call")]
    assert removed
    with read_connection(engine) as conn:
        wrong = {
            statement: faults
            for statement, parameters in asked
            if (faults := _faults(conn, statement, parameters))
        }
    assert wrong == {}


def test_the_first_event_of_a_project_reads_no_history(engine: Engine) -> None:
    """The names a project has used are those of its rollups."""
    with write_transaction(engine) as conn:
        batch = read_events(
            [failure(tool="t1"), counts("t2")], Context(ensure_project(conn, "demo"), NOW)
        )
    call, folded = batch.records
    with _asked(engine) as asked, read_connection(engine) as conn:
        NameLimits().apply(conn, [call], [folded], [], Counter())  # type: ignore[list-item]

    assert any("failure_counts" in statement for statement, _ in asked)
    assert not [statement for statement, _ in asked if "call_counts" in statement]
