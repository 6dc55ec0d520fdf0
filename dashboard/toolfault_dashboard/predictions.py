"""Whether what Fix next predicts comes true: what a picked fix promised beside what it saved.

The saving is that of Fix next itself (`analysis.fixes.saved_since`): what the failures cost before
the change of the tool, carried forward per operation, less what they cost since. Both figures are
calls a week at as many operations a week as the tool had when the fix was picked, so that a busier
week keeps no promise and breaks none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.effect import FEWEST
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.picked_fixes import PickedFix, Prediction
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.fixes.fix_next import FixRow, operations
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search import Clause, Pattern

__all__ = ["LOOKED_BACK", "Outcome", "Verdict", "held", "outcomes", "predicted"]

LOOKED_BACK: Final = "since:28d"
"""What a prediction rests on: four weeks, so that no day of the week counts more than another."""

Verdict = Literal["held", "missed", "not enough data", "not changed yet"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a picked fix.

    ``held``: the saving lies within the predicted interval; ``missed``: it does not.
    """

    picked: PickedFix
    verdict: Verdict
    change: str = ""  # label of the change of its tool
    saved: float | None = None  # calls a week since the change
    low: float | None = None
    high: float | None = None
    n: int | None = None  # operations of the tool since the change


def predicted(
    conn: Connection, scope: Scope, *, tool: str, field: str, remedy: str
) -> Prediction | None:
    """Return what a fix would save a week, from the last four weeks; None where that is unknown.

    Args:
        conn: Open connection.
        scope: The whole project.
        tool: The tool to mend.
        field: The pattern of its argument.
        remedy: What would have accepted the value.
    """
    window = scope.narrowed(LOOKED_BACK)
    found = queries.fix_next(conn, _of_tool(window, tool))
    row = _row(found.rows, tool, field, remedy)
    if row is None or row.per_week is None or row.low is None or row.high is None:
        return None
    assert found.weeks is not None, "a rate per week has weeks"
    each_week = operations(conn, _of_tool(window, tool)) / found.weeks
    return Prediction(row.per_week, row.low, row.high, row.failures, each_week)


def outcomes(conn: Connection, scope: Scope, picked: Sequence[PickedFix]) -> tuple[Outcome, ...]:
    """Return what became of each of *picked*, in their order.

    Args:
        conn: Open connection.
        scope: The whole project.
        picked: What people picked in it.
    """
    changed: dict[str, ChangeRow] = {}
    for change in queries.changes(conn, scope):
        if change.tool is not None:
            changed.setdefault(change.tool, change)
    asked: dict[str, _Since] = {}
    found: list[Outcome] = []
    for each in picked:
        latest = changed.get(each.tool)
        if latest is None or latest.occurred_at < each.added_at:
            found.append(Outcome(each, "not changed yet"))
            continue
        if each.tool not in asked:
            asked[each.tool] = _Since(conn, scope, latest)
        found.append(_outcome(each, latest, asked[each.tool]))
    return tuple(found)


def held(found: Iterable[Outcome]) -> Rate:
    """Return how many predictions held, of those of which it is known."""
    known = [each.verdict == "held" for each in found if each.verdict in ("held", "missed")]
    return rate(sum(known), len(known))


class _Since:
    """What is known of one tool since its change, asked once for all fixes of it."""

    def __init__(self, conn: Connection, scope: Scope, change: ChangeRow) -> None:
        own = _of_tool(scope, change.tool or "")
        self.rows = queries.fix_next(conn, own).rows
        self.operations = operations(conn, queries.sides_of_change(own, change)[1])


def _outcome(picked: PickedFix, change: ChangeRow, since: _Since) -> Outcome:
    row = _row(since.rows, picked.tool, picked.field, picked.remedy)
    n = since.operations
    usual, low, high = picked.predicted_operations, picked.predicted_low, picked.predicted_high
    if (
        row is None
        or row.saved_since is None
        or row.saved_since_low is None
        or row.saved_since_high is None
        or usual is None
        or low is None
        or high is None
        or n < FEWEST
    ):
        return Outcome(picked, "not enough data", change.label, n=n)
    a_week = usual / n
    saved = row.saved_since * a_week
    verdict: Verdict = "held" if low <= saved <= high else "missed"
    least, most = row.saved_since_low * a_week, row.saved_since_high * a_week
    return Outcome(picked, verdict, change.label, saved, least, most, n)


def _of_tool(scope: Scope, tool: str) -> Scope:
    return scope.narrowed(str(Clause("tool", (Pattern((tool,)),))))


def _row(rows: Sequence[FixRow], tool: str, field: str, remedy: str) -> FixRow | None:
    wanted = (tool, field, remedy)
    return next((row for row in rows if (row.tool, row.field, row.remedy) == wanted), None)
