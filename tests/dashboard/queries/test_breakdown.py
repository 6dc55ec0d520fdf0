"""Break down: calls, failures and rates by a property of calls, and by tool and that property."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables

from toolfault_dashboard.analysis.rates import wilson
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.figures.breakdown import BREAKDOWNS, MINIMUM_CALLS, breakdown
from toolfault_dashboard.search import arms_of, parse

ASKED = [(by, text) for by in BREAKDOWNS for text in ("", "since:14d -tool:search")]
ASKED += [("model", "code:wrong_type"), ("release", "tool:nothing_like_it")]


def _names(row: dict[str, Any], by: str) -> tuple[str, ...]:
    return arms_of(row[by] or "") if by == "variant" else (row[by] or "",)


@on_engines("by,text", ASKED, [("model", "since:14d -tool:search"), ("variant", "")])
def test_cells_and_groups_are_those_of_the_rows(
    conn: Connection, project: int, stored: Tables, by: Any, text: str
) -> None:
    """Every cell and group has the calls and failures of its rows, and the rate of these."""
    scope = Scope(project, parse(text), NOW)
    found = breakdown(conn, scope, by)
    calls: Counter[tuple[str, str]] = Counter()
    failures: Counter[tuple[str, str]] = Counter()
    for row in stored.denominators(scope.query, NOW):
        for name in _names(row, by):
            calls[row["tool"], name] += row["calls"]
    for row in stored.failures(scope.query, NOW):
        for name in _names(row, by):
            failures[row["tool"], name] += 1
    cells = {(cell.tool, cell.name): cell for cell in found.cells}
    assert {pair: cell.calls for pair, cell in cells.items()} == dict(calls)
    for pair, cell in cells.items():
        assert cell.failures == failures[pair]
        assert (cell.rate.count, cell.rate.n) == (failures[pair], calls[pair])
        interval = wilson(cell.failures, cell.calls)
        assert (cell.rate.low, cell.rate.high) == (interval.low, interval.high)
    for group in found.groups:
        of_group = {pair for pair in calls if pair[1] == group.name}
        assert group.calls == sum(calls[pair] for pair in of_group)
        assert group.failures == sum(failures[pair] for pair in of_group)
    assert {group.name for group in found.groups} == {name for _, name in calls}
    opened = stored.opened(scope.query, NOW)
    if by != "variant":
        for group in found.groups:
            own = [chain for chain in opened if (chain[by] or "") == group.name]
            spent = group.chains.calls_spent if group.chains else 0
            assert spent == sum(chain["spent"] for chain in own)


def test_the_worst_is_that_with_the_highest_lower_bound(
    conn: Connection, project: int, stored: Tables
) -> None:
    """Of a tool's models with enough calls one at most is the worst, and none begins higher."""
    found = breakdown(conn, Scope(project, parse(""), NOW), "model")
    worst = [cell for cell in found.cells if cell.worst]
    assert worst
    assert len({cell.tool for cell in worst}) == len(worst)
    for cell in worst:
        others = [c for c in found.cells if c.tool == cell.tool and c.rate.n >= MINIMUM_CALLS]
        assert len(others) > 1
        assert cell in others
        assert max(other.rate.low or 0.0 for other in others) == cell.rate.low
        assert min(other.rate.value or 0.0 for other in others) < (cell.rate.value or 0.0)
