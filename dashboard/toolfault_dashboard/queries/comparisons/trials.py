"""A trial in time: what its conversations did before it, and how its effect grew day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, case, false, func, select

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.comparisons.earlier import Earlier
from toolfault_dashboard.analysis.comparisons.experiments import arm_effect
from toolfault_dashboard.analysis.comparisons.metrics import METRICS, MetricName
from toolfault_dashboard.analysis.rates import Interval
from toolfault_dashboard.queries.comparisons.cohorts import growing_cohorts
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import Clause, Pattern, Query

__all__ = ["MOST_LOOKS", "TrialLook", "TrialLooks", "before_trial", "trial_looks", "trial_scope"]

MOST_LOOKS: Final = 30
"""Moments at which a trial is looked at: for each all of its estimates are made anew."""


@dataclass(frozen=True, slots=True)
class TrialLook:
    """The effect of one arm as it was known at one moment."""

    until_at: int
    arm: str
    n_control: int
    n_treatment: int
    control: float | None
    treatment: float | None
    difference: float | None
    fixed: Interval | None  # right if this had been the one moment chosen to look
    always: Interval | None  # right at all moments together


@dataclass(frozen=True, slots=True)
class TrialLooks:
    """A trial looked at again and again, oldest look first."""

    name: str
    metric: MetricName
    control: str
    days: int  # between two looks
    looks: tuple[TrialLook, ...]


def trial_scope(scope: Scope, name: str, arm: str | None = None) -> Scope:
    """Return the scope of one arm of the trial *name*, or of all arms together."""
    pattern = Pattern((f"{name}={arm}",)) if arm is not None else Pattern((f"{name}=", ""))
    return replace(scope, query=scope.query.and_(Query((Clause("variant", (pattern,)),))))


def before_trial(conn: Connection, scope: Scope, name: str) -> Earlier:
    """Return failures and reported calls of the trial's conversations before they got their arm.

    The window of the query bounds the trial, not what came before it. Folded successes belong to no
    conversation and are not there; that costs narrowness, never truth, since no arm had begun.
    """
    first = (
        select(tool_call.c.session_id, func.min(tool_call.c.started_at).label("at"))
        .where(calls_of(trial_scope(scope, name)), tool_call.c.session_id.is_not(None))
        .group_by(tool_call.c.session_id)
        .subquery()
    )
    earlier = replace(scope, query=scope.query.without("since", "variant"))
    rows = conn.execute(
        select(
            tool_call.c.session_id,
            func.count(case((tool_call.c.success == false(), 1))),
            func.count(),
        )
        .join(first, first.c.session_id == tool_call.c.session_id)
        .where(calls_of(earlier), tool_call.c.occurred_at < first.c.at)
        .group_by(tool_call.c.session_id)
    )
    return {session: (failures, calls) for session, failures, calls in rows}


def trial_looks(
    conn: Connection,
    scope: Scope,
    name: str,
    arms: Sequence[str],
    control: str,
    *,
    metric: MetricName = "failure_rate",
    confidence: float = 0.95,
) -> TrialLooks:
    """Look at a trial at the end of every day, or of every so many that 30 looks are enough.

    The last look is the trial as `experiment` shows it. Chains that opened before a look count with
    their outcome as of now.

    Args:
        conn: Open connection.
        scope: Bounds the trial.
        name: Name of the trial.
        arms: Its arms.
        control: The arm to compare with.
        metric: What is compared.
        confidence: Coverage of the always-valid interval at all looks together.

    """
    measured = next(each for each in METRICS if each.name == metric)
    begin, end = _extent(conn, scope, name)
    days = max(1, -(-((end - begin) // DAY_US + 1) // MOST_LOOKS)) if end > begin else 1
    looks: list[TrialLook] = []
    ends = _ends(begin, end, days * DAY_US)
    scopes = {arm: trial_scope(scope, name, arm) for arm in arms}
    for until, cohorts in zip(
        ends, growing_cohorts(conn, scopes, ends) if ends else (), strict=True
    ):
        for arm in arms:
            if arm == control:
                continue
            found = arm_effect(measured, cohorts[control], cohorts[arm], confidence=confidence)
            looks.append(
                TrialLook(
                    until, arm, found.n_control, found.n_treatment, found.control,
                    found.treatment, found.difference, found.fixed, found.always,
                )
            )  # fmt: skip
    return TrialLooks(name, metric, control, days, tuple(looks))


def _extent(conn: Connection, scope: Scope, name: str) -> tuple[int, int]:
    """Return when the trial began, as far as its reported calls tell, and when it ended."""
    ours, at = trial_scope(scope, name), tool_call.c.occurred_at
    # Successes may have been counted after the last call that was reported.
    counted = select(func.max(call_counts.c.minute)).where(counts_of(ours)).scalar_subquery()
    row = conn.execute(
        select(func.min(at), func.max(at), counted).where(
            calls_of(ours), tool_call.c.time_source != "none"
        )
    ).one()
    if row[0] is None:
        return 0, 0
    last = max(int(row[1]) + 1, 0 if row[2] is None else int(row[2]) + MINUTE_US)
    _, until = window(scope)
    return int(row[0]), min(last, until if until is not None else scope.now)


def _ends(begin: int, end: int, step: int) -> list[int]:
    """Return the ends of the days (UTC) from *begin* on; the last is *end* itself."""
    if end <= begin:
        return []
    first = (begin // DAY_US) * DAY_US + step
    return [*range(first, end, step), end]
