"""Failures of every tool over time, placed as a naive recount places them."""

from __future__ import annotations

from collections import Counter, defaultdict

from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables

from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.buckets import WIDTH, start_of
from toolfault_dashboard.queries.figures.trends import trends_by_tool
from toolfault_dashboard.search import parse

WINDOWS = {
    "": "day",
    "since:14d": "day",
    "since:36h": "hour",
    "since:300d": "week",
    "until:7d": "day",
    "since:2026-11-01 until:2026-11-15T10:30": "day",
    "since:20000d": "week",
    "code:wrong_type since:14d": "day",
    "time:none": "day",
    "tool:x": "day",
}


@on_engines("text", list(WINDOWS), ["since:36h", "code:wrong_type since:14d"])
def test_a_trend_is_what_a_recount_by_tool_gives(
    conn: Connection, project: int, stored: Tables, text: str
):
    """Every failure that has a time is in the bucket of its tool and moment, and no other is."""
    scope = Scope(project, parse(text), NOW)
    found = trends_by_tool(conn, scope)
    placed: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for row in stored.failures(scope.query, NOW):
        if row["time_source"] != "none":
            placed[row["tool"]][start_of(row["occurred_at"], found.bucket)] += 1
    assert found.bucket == WINDOWS[text]
    drawn = {
        tool: {start: n for start, n in zip(found.starts, counts, strict=True) if n}
        for tool, counts in found.counts.items()
    }
    assert drawn == placed
    gaps = {later - sooner for sooner, later in zip(found.starts, found.starts[1:], strict=False)}
    assert gaps <= {WIDTH[found.bucket]}


def test_the_axis_is_the_window_where_it_has_a_beginning(conn: Connection, project: int):
    """Of two weeks there are fifteen days, also where nothing failed at their ends."""
    found = trends_by_tool(conn, Scope(project, parse("since:14d"), NOW))
    assert len(found.starts) == 15
    assert (
        found.starts
        == queries.failures_over_time(conn, Scope(project, parse("since:14d"), NOW)).starts
    )
