"""Fix next: what several tools fail with is one line where it is one thing to mend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine
from tests.factories import failure

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import MINUTE_US, parse_time
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

NOW = parse_time("2026-11-20T12:00:00Z")
UNREAD = "Read the file first."


def _failures(tool: str, number: int, text: str | None, **error: Any) -> Iterator[dict[str, Any]]:
    told = {} if text is None else {"llm": text}
    for each in range(number):
        yield failure(
            tool, session_id=f"{tool}-{text}-{each}", at=NOW - MINUTE_US, field=None,
            code="precondition_failed", error={"renderings": told, **error},
        )  # fmt: skip


def test_tools_are_one_line_where_all_their_failures_say_the_same(sqlite_engine: Engine) -> None:
    """Each failure of the line has its text; a tool of which another has not stands by itself."""
    events = [
        *_failures("Edit", 5, UNREAD),
        *_failures("Write", 4, UNREAD),
        *(*_failures("Silent", 1, UNREAD), *_failures("Silent", 6, None)),
        *(*_failures("Broken", 3, UNREAD), *_failures("Broken", 7, "Down", category="internal")),
        *(*_failures("Other", 3, UNREAD), *_failures("Other", 8, "Write to another folder.")),
    ]
    with write_transaction(sqlite_engine) as conn:
        project = ensure_project(conn, "p")
        assert store_events(conn, project, events, received_at=NOW).accepted == len(events)
    scope = Scope(project, parse("since:7d"), NOW)
    with read_connection(sqlite_engine) as conn:
        rows = queries.fix_next(conn, scope).rows
        told = {
            row.query: queries.failure_list(conn, scope.narrowed(row.query), limit=100).rows
            for row in rows
        }
    assert {row.title.split(" fail")[0]: row.failures for row in rows} == {
        "Edit and Write": 9, "Silent": 7, "Broken": 10, "Other": 11,
    }  # fmt: skip
    (together,) = (row for row in rows if "Edit" in row.title)
    assert {each.text for each in told[together.query]} == {UNREAD}
    assert len(told[together.query]) == together.failures
