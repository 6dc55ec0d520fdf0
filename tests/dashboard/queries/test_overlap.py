"""How many calls two cohorts of a comparison have in common."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Engine, func, select
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import find_project
from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.database.engine import read_connection
from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

pytestmark = pytest.mark.slow


def _calls_in_rows(conn: Connection, project: int, tool: str, since: int, until: int) -> int:
    """Count the calls of a tool in a window, row by row."""
    reported = select(func.count()).where(
        tool_call.c.project_id == project,
        tool_call.c.tool == tool,
        tool_call.c.occurred_at >= since,
        tool_call.c.occurred_at < until,
    )
    middle = call_counts.c.minute + MINUTE_US // 2
    counted = select(func.coalesce(func.sum(call_counts.c.calls), 0)).where(
        call_counts.c.project_id == project,
        call_counts.c.tool == tool,
        middle >= since,
        middle < until,
    )
    return int(conn.execute(reported).scalar_one() + conn.execute(counted).scalar_one())


WHOLE = ("tool:search", "", (90, 0))
PART = ("tool:search since:20d", "until:6d", (20, 6))
SHORT = ("tool:search since:9d until:2d", "since:12d until:6d", (9, 6))
NONE = ("tool:search until:10d", "since:10d", None)
MORE = (
    ("tool:search,http_request", "tool:search code:wrong_type", (90, 0)),
    ("tool:search", "-tool:search", None),
)
"""Two cohorts, and between how many days ago calls of one tool are on both; None where none is."""


def _long(*pairs: tuple[object, ...]) -> list[pytest.ParameterSet]:
    return [pytest.param(*pair, marks=pytest.mark.long) for pair in pairs]


@on_engines(
    "before,after,window", [WHOLE, PART, NONE, *_long(*MORE)], _long(WHOLE, PART, NONE, *MORE)
)
def test_the_overlap_is_the_calls_that_both_sides_match(
    history: Engine, before: str, after: str, window: tuple[int, int] | None
) -> None:
    """Calls that were reported and calls that were counted, by what restricts calls alone."""
    _check(history, before, after, window)


@on_engines(
    "before,after,window",
    [SHORT, *_long(WHOLE, PART, NONE, *MORE)],
    _long(WHOLE, PART, NONE, *MORE),
    history="large_url",
)
def test_the_overlap_of_large_windows_is_the_same(
    large: Engine, before: str, after: str, window: tuple[int, int] | None
) -> None:
    """It is added up over the days that both cohorts have."""
    _check(large, before, after, window)


def _check(engine: Engine, before: str, after: str, window: tuple[int, int] | None) -> None:
    with read_connection(engine) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        cohorts = [Scope(project, parse(text), NOW) for text in (before, after)]
        found = queries.comparison(conn, *cohorts).overlap
        wanted = 0
        if window is not None:
            since, until = (NOW - days * DAY_US for days in window)
            wanted = _calls_in_rows(
                conn, project, "search", since, until + (not window[1]) * DAY_US
            )
            assert wanted
    assert found == wanted
