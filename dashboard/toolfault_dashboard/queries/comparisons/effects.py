"""The effect of a change, or of any query against any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from toolfault_dashboard.analysis.comparisons.by_code import CodeEffect, compare_by_code
from toolfault_dashboard.analysis.comparisons.cohorts import without_model
from toolfault_dashboard.analysis.comparisons.effect import (
    Effect,
    MetricEffect,
    compare,
    compare_metric,
)
from toolfault_dashboard.analysis.comparisons.experiments import ArmComparison, as_trial
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.queries.comparisons.cohorts import TIMED, cohort_of, cohort_with_codes
from toolfault_dashboard.queries.counting.segments import as_kept, in_segments
from toolfault_dashboard.queries.failures.failures import count_failures
from toolfault_dashboard.queries.figures.totals import calls_by
from toolfault_dashboard.queries.projects import has_untimed
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Moment, Pattern, Query, parse

__all__ = [
    "Comparison",
    "Control",
    "change_comparison",
    "change_control",
    "change_effect",
    "cohort_scope",
    "cohorts_of_change",
    "comparison",
    "effect",
    "touched_by",
]


@dataclass(frozen=True, slots=True)
class Control:
    """The tools that a change did not touch, across the same moment.

    Attributes:
        metric: Their failure rate before and after.
        tools: How many tools the change is about, all others being the control.
    """

    metric: MetricEffect
    tools: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """An effect with what explains it: every code, and the tools that nobody touched.

    Attributes:
        effect: The metrics.
        codes: Every code.
        control: Failure rate of the tools that the change did not touch, see `change_control`.
        trial: Cohorts that were assigned at random: as arms of a trial.
        overlap: Calls that are in both cohorts, counted successes included. Intervals and verdicts
            take cohorts for separate, so they hold only where this is 0.
    """

    effect: Effect
    codes: tuple[CodeEffect, ...]
    control: MetricEffect | None
    trial: ArmComparison | None = None
    overlap: int = 0


def effect(
    conn: Connection,
    before: Scope,
    after: Scope,
    *,
    labels: tuple[str, str] = ("before", "after"),
    confidence: float = 0.95,
) -> Effect:
    """Compare two scopes: before and after a change, two releases, variants or any queries."""
    left, right = cohort_of(conn, before, labels[0]), cohort_of(conn, after, labels[1])
    if _differ_in_model(before.query, after.query):
        left, right = without_model(left), without_model(right)
    return compare(left, right, confidence=confidence)


def cohort_scope(scope: Scope, text: str) -> Scope:
    """Return one cohort of a comparison: *text* within *scope*.

    A key that the text names takes the place of the same key of the scope. A text that names a time
    is about calls that have one: those of an import without times would all be of its day.

    Raises:
        QueryError: *text* is no valid query.
    """
    own = parse(text)
    if own.has("since", "until") and not own.has("time"):
        own = own.and_(Query((TIMED,)))
    common = scope.query.without(*(clause.key for clause in own.clauses))
    return replace(scope, query=common.and_(own))


def comparison(
    conn: Connection,
    before: Scope,
    after: Scope,
    *,
    labels: tuple[str, str] = ("before", "after"),
    confidence: float = 0.95,
    equal_mix: bool | None = None,
) -> Comparison:
    """Compare two scopes metric by metric and code by code.

    Args:
        conn: Open connection.
        before: One cohort.
        after: The other cohort.
        labels: What the cohorts are called.
        confidence: Two-sided coverage of every interval.
        equal_mix: Compare at equal mix of tools, models and agents. None: unless the cohorts differ
            in their variant alone. These were assigned at random: their mix is equal but for
            chance, and a mix that differs after the assignment is part of the effect.
    """
    if equal_mix is None:
        equal_mix = not _differ_in_variant(before.query, after.query)
    left, failures, amounts = cohort_with_codes(conn, before, labels[0])
    right, others, their_amounts = cohort_with_codes(conn, after, labels[1])
    if equal_mix and _differ_in_model(before.query, after.query):
        left, right = without_model(left), without_model(right)
    found, codes = compare_by_code(
        left,
        right,
        (failures, others),
        amounts=(amounts, their_amounts),
        confidence=confidence,
        equal_mix=equal_mix,
    )
    arms = None if equal_mix else as_trial(left, right, confidence=confidence)
    overlap = _calls_of_both(conn, before, after)
    found = replace(found, excluded_untimed=_untimed_of_either(conn, before, after))
    return Comparison(found, codes, control=None, trial=arms, overlap=overlap)


def _calls_of_both(conn: Connection, before: Scope, after: Scope) -> int:
    """Return how many calls match both scopes, those included that were only counted."""
    both = replace(before, query=before.query.and_(after.query))
    since, until = window(both)
    if since is not None and until is not None and since >= until:
        return 0
    return sum(number for (number,) in in_segments(conn, both, _calls, together=_added))


def _calls(conn: Connection, scope: Scope) -> tuple[int]:
    return (calls_by(conn, scope, "tool").total().rows,)


def _added(numbers: Sequence[tuple[int]]) -> tuple[int]:
    return (sum(number for (number,) in numbers),)


def _differ_in_variant(before: Query, after: Query) -> bool:
    named = all(
        any(not clause.negated for clause in query.of("variant")) for query in (before, after)
    )
    others = [set(query.without("variant").clauses) for query in (before, after)]
    return named and before.of("variant") != after.of("variant") and others[0] == others[1]


def _differ_in_model(before: Query, after: Query) -> bool:
    """Say whether one cohort is of other models than the other: that is then what is compared.

    It cannot be mix as well: no combination with a model would be in both cohorts.
    """
    return before.of("model") != after.of("model")


def change_effect(
    conn: Connection, scope: Scope, change: ChangeRow, *, window: int | None = None
) -> Effect:
    """Compare the scope before and after *change*, for the tool that it names.

    Args:
        conn: Open connection.
        scope: What to compare; its own window bounds both cohorts.
        change: The marker. Rows whose source has no times are on neither side.
        window: Microseconds to look at on either side; None takes all.
    """
    before, after = cohorts_of_change(scope, change, window=window)
    found = as_kept(conn, (before, after), lambda: effect(conn, before, after), "effect")
    return replace(found, excluded_untimed=_untimed(conn, before))


def change_comparison(
    conn: Connection,
    scope: Scope,
    change: ChangeRow,
    *,
    window: int | None = None,
    confidence: float = 0.95,
) -> Comparison:
    """Compare like `change_effect`, with every code and with the other tools as control."""
    before, after = cohorts_of_change(scope, change, window=window)
    found = as_kept(
        conn,
        (before, after),
        lambda: comparison(conn, before, after, confidence=confidence),
        "comparison",
        confidence,
    )
    control = change_control(conn, scope, change, window=window, confidence=confidence)
    effect = replace(found.effect, excluded_untimed=_untimed(conn, before))
    return replace(found, effect=effect, control=None if control is None else control.metric)


def change_control(
    conn: Connection,
    scope: Scope,
    change: ChangeRow,
    *,
    window: int | None = None,
    confidence: float = 0.95,
) -> Control | None:
    """Compare the tools that *change* did not touch across the same moment.

    A change that names a tool touched that tool. A model or release that was first seen touched the
    tools that it has called since. If the others moved too, something else happened.

    Args:
        conn: Open connection.
        scope: What to compare.
        change: The marker.
        window: Microseconds to look at on either side; None takes all.
        confidence: Two-sided coverage.

    Returns:
        None where a change is about all tools, or no other tool is called in both cohorts.
    """
    touched = [change.tool] if change.tool is not None else []
    if change.is_detected and change.kind in ("model", "release"):
        _, after = cohorts_of_change(scope, change, window=window)
        touched = sorted(calls_by(conn, after, "tool"))
    if not touched:
        return None
    others = Clause("tool", tuple(Pattern((tool,)) for tool in touched), negated=True)
    left, right = (
        cohort_of(conn, replace(part, query=part.query.and_(Query((others,)))), "")
        for part in _in_time(scope, change, window)
    )
    if not left.calls.rows or not right.calls.rows:
        return None
    return Control(compare_metric(METRICS[0], left, right, confidence=confidence), len(touched))


def cohorts_of_change(
    scope: Scope, change: ChangeRow, *, window: int | None = None
) -> tuple[Scope, Scope]:
    """Return the scopes before and after *change*, as far as it can have touched them.

    A change that names a tool is about that tool. Of a release that was first seen, its agent
    before is compared with that release after; of a model, all before with that model after.
    """
    both = touched_by(change)
    only_after: list[Clause] = []
    if change.name is not None and change.kind in ("model", "release"):
        only_after.append(Clause(change.kind, (Pattern((change.name,)),)))
    before, after = _in_time(scope, change, window)
    return (
        replace(before, query=before.query.and_(both)),
        replace(after, query=after.query.and_(both).and_(Query(tuple(only_after)))),
    )


def touched_by(change: ChangeRow) -> Query:
    """Return which calls *change* is about, before and after it.

    Releases that were seen first are counted by agent; calls that name none have theirs, too.
    """
    found: list[Clause] = []
    if change.tool is not None:
        found.append(Clause("tool", (Pattern((change.tool,)),)))
    if change.agent is not None or (change.is_detected and change.kind == "release"):
        found.append(Clause("agent", (Pattern((change.agent or "",)),)))
    return Query(tuple(found))


def _in_time(scope: Scope, change: ChangeRow, window: int | None) -> tuple[Scope, Scope]:
    """Return all calls with a time before *change*, and after it."""
    at = change.occurred_at
    before = [TIMED, Clause("until", (Moment(at=at),))]
    after = [TIMED, Clause("since", (Moment(at=at),))]
    if window is not None:
        before.append(Clause("since", (Moment(at=at - window),)))
        after.append(Clause("until", (Moment(at=at + window),)))
    return (
        replace(scope, query=scope.query.and_(Query(tuple(before)))),
        replace(scope, query=scope.query.and_(Query(tuple(after)))),
    )


def _untimed_of_either(conn: Connection, before: Scope, after: Scope) -> int:
    """Return how many failures without a time the cohorts would have if none named a time."""
    cohorts = [
        replace(each, query=each.query.without("time", "since", "until"))
        for each in (before, after)
        if TIMED in each.query.clauses
    ]
    both = (
        [replace(cohorts[0], query=cohorts[0].query.and_(cohorts[1].query))]
        if len(cohorts) > 1
        else []
    )
    return sum(_untimed(conn, each) for each in cohorts) - sum(
        _untimed(conn, each) for each in both
    )


def _untimed(conn: Connection, before: Scope) -> int:
    if not has_untimed(conn, before.project_id):
        return 0
    untimed = replace(TIMED, negated=False)
    query = before.query.without("time", "until").and_(Query((untimed,)))
    return count_failures(conn, replace(before, query=query))
