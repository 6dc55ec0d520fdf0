"""Whether what Fix next predicts comes true: what a picked fix promised beside what it saved.

The saving is that of Fix next itself (`analysis.fixes.saved_since`): what the failures cost before
the change of the tool, carried forward per operation, less what they cost since. Both figures are
calls a week at as many operations a week as the tool had when the fix was picked, so that a busier
week keeps no promise and breaks none.

What is predicted of a time is its own saving, not the average week: the interval is one of
prediction (`analysis.fixes.prediction`), and the shorter the time, the wider it is. A prediction is
shown for the four weeks to come and judged by the time that has passed since the change, which is
measured in operations: a week is as many as the tool had in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import Connection

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.effect import FEWEST
from toolfault_dashboard.analysis.fixes.fixes import Since
from toolfault_dashboard.analysis.fixes.prediction import prediction_interval
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.fixes.fix_next import one_fix, operations, saved_by_fixes_since
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.windows import between, window
from toolfault_dashboard.search import Clause, Pattern
from toolfault_dashboard.writes.picked_fixes import PickedFix, Prediction

__all__ = ["AHEAD_WEEKS", "LOOKED_BACK", "Outcome", "Verdict", "held", "outcomes", "predicted"]

LOOKED_BACK: Final = "since:28d"
"""What a prediction rests on: four weeks, so that no day of the week counts more than another."""

AHEAD_WEEKS: Final = 4.0
"""The time to come that a prediction is shown for: as long as it looks back."""

Verdict = Literal["held", "missed", "not enough data", "not changed yet"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a picked fix.

    ``held``: the saving lies within the interval that was predicted for as long a time; ``missed``:
    it does not.
    """

    picked: PickedFix
    verdict: Verdict
    change: str = ""  # label of the change of its tool
    saved: float | None = None  # calls a week since the change
    low: float | None = None  # how well that is known
    high: float | None = None
    n: int | None = None  # operations of the tool since the change
    weeks: float | None = None  # since the change, by operations
    predicted_low: float | None = None  # for so long a time, in calls a week
    predicted_high: float | None = None


def predicted(
    conn: Connection, scope: Scope, *, tool: str, field: str, remedy: str
) -> Prediction | None:
    """Return what a fix will save a week; None where that is unknown.

    It rests on the last four weeks, or on the time since the tool was last changed if that is less:
    what was before is of another tool.

    Args:
        conn: Open connection.
        scope: The whole project.
        tool: The tool to mend.
        field: The pattern of its argument.
        remedy: What would have accepted the value.
    """
    looked_at = scope.narrowed(LOOKED_BACK)
    changes = [each.occurred_at for each in queries.changes(conn, looked_at) if each.tool == tool]
    if changes:
        looked_at = between(looked_at, max(changes), None)
    found = one_fix(conn, looked_at, tool=tool, field=field, remedy=remedy)
    if found is None:
        return None
    fix, weeks = found
    counted = operations(conn, _of_tool(looked_at, tool))
    if fix.saved <= 0 or counted < FEWEST:
        return None
    low, high = prediction_interval(fix.saved, fix.squares, weeks, ahead=AHEAD_WEEKS)
    return Prediction(
        per_week=fix.saved / weeks,
        low=low,
        high=high,
        n=fix.failures,
        operations=counted / weeks,
        weeks=weeks,
        squares=fix.squares,
    )


def outcomes(conn: Connection, scope: Scope, picked: Sequence[PickedFix]) -> tuple[Outcome, ...]:
    """Return what became of each of *picked*, in their order.

    The first change of its tool after a fix was picked is taken for the one that carried it out.
    What was before that reaches back to the change before it.

    Args:
        conn: Open connection.
        scope: The whole project.
        picked: What people picked in it.
    """
    changes = [each for each in reversed(queries.changes(conn, scope)) if each.tool is not None]
    asked: dict[str, _Since] = {}  # by the change
    found: list[Outcome] = []
    for each in picked:
        own = [change for change in changes if change.tool == each.tool]
        earlier = [change for change in own if change.occurred_at < each.added_at]
        if len(earlier) == len(own):
            found.append(Outcome(each, "not changed yet"))
            continue
        change = own[len(earlier)]
        if change.event_id not in asked:
            asked[change.event_id] = _Since(conn, scope, change, earlier[-1] if earlier else None)
        found.append(_outcome(each, change, asked[change.event_id]))
    return tuple(found)


def held(found: Iterable[Outcome]) -> Rate:
    """Return how many predictions held, of those of which it is known."""
    known = [each.verdict == "held" for each in found if each.verdict in ("held", "missed")]
    return rate(sum(known), len(known))


class _Since:
    """What is known of one tool since a change of it, asked once for all fixes of it."""

    def __init__(
        self, conn: Connection, scope: Scope, change: ChangeRow, earlier: ChangeRow | None
    ) -> None:
        tool = change.tool or ""
        if earlier is not None:
            scope = between(scope, earlier.occurred_at, window(scope)[1])
        self.saved: Mapping[tuple[str, str], Since] = saved_by_fixes_since(
            conn, scope, tool, change.occurred_at
        )
        own = _of_tool(scope, tool)
        self.operations = operations(conn, queries.cohorts_of_change(own, change)[1])


def _outcome(picked: PickedFix, change: ChangeRow, since: _Since) -> Outcome:
    found = since.saved.get((picked.field, picked.remedy))
    n = since.operations
    promise = _promise(picked)
    if found is None or promise is None or n < FEWEST:
        return Outcome(picked, "not enough data", change.label, n=n)
    a_week = promise.operations / n
    saved = found.saved * a_week
    low, high = prediction_interval(
        promise.per_week * promise.weeks, promise.squares, promise.weeks, ahead=1 / a_week
    )
    return Outcome(
        picked,
        "held" if low <= saved <= high else "missed",
        change.label,
        saved=saved,
        low=found.low * a_week,
        high=found.high * a_week,
        n=n,
        weeks=1 / a_week,
        predicted_low=low,
        predicted_high=high,
    )


def _promise(picked: PickedFix) -> Prediction | None:
    """Return the prediction that was stored with *picked*, if one was."""
    stored = (
        picked.predicted_per_week, picked.predicted_low, picked.predicted_high,
        picked.predicted_n, picked.predicted_operations, picked.predicted_weeks,
        picked.predicted_squares,
    )  # fmt: skip
    if any(each is None for each in stored) or not picked.predicted_per_week:
        return None
    per_week, low, high, n, usual, weeks, squares = (float(each or 0) for each in stored)
    return Prediction(per_week, low, high, int(n), usual, weeks, squares)


def _of_tool(scope: Scope, tool: str) -> Scope:
    return scope.narrowed(str(Clause("tool", (Pattern((tool,)),))))
