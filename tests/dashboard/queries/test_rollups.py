"""What is answered from rollups is what a count over the rows gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables

from toolfault_collector.admin.projects import find_project
from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.counting import rollups
from toolfault_dashboard.queries.figures.totals import calls_by
from toolfault_dashboard.search import parse

TEXTS = (
    "",
    "since:7d",
    "since:14d until:3d",
    "since:2026-11-01 until:2026-11-15",
    "since:2026-11-01T10:17:23Z until:2026-11-09T05:00:01Z",
    "since:2026-11-09T05:00:00Z until:2026-11-09T05:30:00Z",
    "since:2026-11-09T05:59:59Z until:2026-11-09T06:00:01Z",
    "until:10d",
    "since:7d since:3d",
    "since:1d until:2d",
)


@pytest.fixture
def timed(conn: Connection, rows_of: Callable[[str], Tables]) -> tuple[int, Tables]:
    """A project in which every call has a time, and its rows."""
    project = find_project(conn, "timed")
    assert project is not None
    return project, rows_of("timed")


@on_engines("text", TEXTS, [TEXTS[4]])
def test_rollups_are_the_rows(conn: Connection, timed: tuple[int, Tables], text: str) -> None:
    """Calls by tool, and failures and calls by hour, day and week, are those of the rows."""
    project, tables = timed
    scope = Scope(project, parse(text), NOW)
    assert rollups.usable(conn, scope)
    failures = tables.failures(scope.query, NOW)
    calls = Counter[str]()
    for row in tables.denominators(scope.query, NOW):
        calls[row["tool"]] += row["calls"]
    found = queries.summary(conn, scope)
    assert {name: tool.calls for name, tool in found.tools.items()} == dict(calls)
    assert found.failures == len(failures)
    conversations = {
        row["session_id"] for row in tables.denominators(scope.query, NOW)
        if row.get("session_id")
    }  # fmt: skip
    assert found.conversations >= len(conversations)
    widths: dict[queries.Bucket, int] = {
        "hour": 60 * MINUTE_US, "day": DAY_US, "week": 7 * DAY_US,
    }  # fmt: skip
    for bucket, width in widths.items():
        over = queries.failures_over_time(conn, scope, bucket=bucket, top=99)
        offset = 4 * DAY_US if bucket == "week" else 0
        expected = Counter(
            (row["code"], (row["occurred_at"] - offset) // width * width + offset)
            for row in failures
        )
        shown = {
            (line.name, start): count
            for line in over.series
            for start, count in zip(over.starts, line.counts, strict=True)
            if count
        }
        assert shown == dict(expected), bucket
        assert sum(over.calls) <= found.calls


def test_rollups_are_left_alone_where_they_do_not_fit(
    conn: Connection, scope: Scope, timed: tuple[int, Tables]
) -> None:
    """A query for more than time, or a project with untimed calls, is counted from the rows."""
    assert not rollups.usable(conn, scope)
    of_tool = Scope(timed[0], parse("since:7d tool:search"), NOW)
    assert not rollups.usable(conn, of_tool)
    assert rollups.usable(conn, of_tool, keys=rollups.PAIR_KEYS)
    of_model = Scope(timed[0], parse("since:7d model:gpt-5"), NOW)
    assert not rollups.usable(conn, of_model, keys=rollups.PAIR_KEYS)


NARROWED = (
    "since:7d tool:search",
    "since:14d until:3d -tool:search,http_request",
    "since:9d own_code:wrong_type tool:http*",
    "until:10d -own_code:t*",
    "since:14d tool:a*b own_code:wrong_type,timeout",
    "tool:nobody",
    'own_code:""',
)


@on_engines("text", [*TEXTS, *NARROWED], [TEXTS[4], NARROWED[1]])
def test_tools_codes_and_arguments_are_the_rows(
    conn: Connection, timed: tuple[int, Tables], text: str
) -> None:
    """Failures by tool and code and by argument, and the calls beside them, are the rows'."""
    project, tables = timed
    scope = Scope(project, parse(text), NOW)
    failures = tables.failures(scope.query, NOW)
    pairs = Counter((row["tool"], row["code"]) for row in failures)
    alone = Counter((row["tool"], row["code"]) for row in failures if not row["chain_id"])
    found = rollups.failures_by_pair(conn, scope)
    assert found == {pair: (number, alone[pair]) for pair, number in pairs.items()}
    assert queries.count_failures(conn, scope) == len(failures)
    calls = Counter[str]()
    for row in tables.denominators(scope.query, NOW):
        calls[row["tool"]] += row["calls"]
    assert {tool: each.whole for tool, each in calls_by(conn, scope, "tool").items()} == calls
    if rollups.usable(conn, scope):
        arguments = Counter[tuple[str, str]]()
        for row in failures:
            roots = {each["root_field"] for each in row["issues"] if each["root_field"]} or {""}
            arguments.update((row["tool"], root) for root in roots)
        assert rollups.failures_by_field(conn, scope) == arguments
