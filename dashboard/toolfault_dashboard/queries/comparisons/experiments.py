"""Randomised trials, as conversations carry them: ``variant`` is a list of ``trial=arm``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select, union

from toolfault_collector.storage.tables import call_counts, tool_call
from toolfault_dashboard.analysis.comparisons.balance import balance
from toolfault_dashboard.analysis.comparisons.experiments import ArmEffect, Experiment, arm_effects
from toolfault_dashboard.analysis.comparisons.metrics import MetricName
from toolfault_dashboard.queries.comparisons.cohorts import cohorts_of
from toolfault_dashboard.queries.comparisons.trials import (
    TrialLooks,
    before_trial,
    trial_looks,
    trial_scope,
)
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.figures.conversation_counts import count_conversations
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import arms_of

__all__ = ["MOST_ARMS", "experiment", "experiment_looks", "experiments"]

MOST_ARMS = 30
"""Arms that are compared. Names of arms come from senders, and each arm is compared with the
control metric by metric, which no limit on the time of statements bounds."""


@memoised
def experiments(conn: Connection, scope: Scope) -> Mapping[str, tuple[str, ...]]:
    """Return the trials of the scope and their arms, in alphabetical order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for variant in {
        each
        for segment in in_segments(conn, scope, _variants, together=_together)
        for each in segment
    }:
        for entry in arms_of(variant):
            name, separator, arm = entry.partition("=")
            if separator:
                found[name].add(arm)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def _together(segments: Sequence[list[str]]) -> list[str]:
    return list(dict.fromkeys(variant for segment in segments for variant in segment))


def _variants(conn: Connection, scope: Scope) -> list[str]:
    of_calls, of_counts = (
        select(table.c.variant).where(where, table.c.variant.is_not(None))
        for table, where in ((tool_call, calls_of(scope)), (call_counts, counts_of(scope)))
    )
    return list(conn.execute(union(of_calls.distinct(), of_counts.distinct())).scalars())


def experiment(
    conn: Connection,
    scope: Scope,
    name: str,
    *,
    control: str | None = None,
    weights: Mapping[str, float] | None = None,
    confidence: float = 0.95,
) -> Experiment | None:
    """Compare the arms of the trial *name* with its control; None if there is no such trial.

    Args:
        conn: Open connection.
        scope: Bounds the trial in time, tools and so on.
        name: Name of the trial.
        control: The arm to compare with: by default ``control``, else the first by name.
        weights: Shares the arms were meant to get; equal by default.
        confidence: Two-sided coverage of every interval.

    Raises:
        ValueError: *control* is no arm, a weight is missing, or there are too many arms.
    """
    arms = experiments(conn, scope).get(name)
    if arms is None:
        return None
    control = _control(arms, control)
    cohorts = cohorts_of(conn, {arm: trial_scope(scope, name, arm) for arm in arms})
    earlier = before_trial(conn, scope, name)
    effects: list[ArmEffect] = []
    for arm in arms:
        if arm != control:
            effects += arm_effects(
                cohorts[control], cohorts[arm], confidence=confidence, earlier=earlier
            )
    counted = count_conversations(conn, *(trial_scope(scope, name, arm) for arm in arms))
    conversations = dict(zip(arms, counted, strict=True))
    return Experiment(
        name=name,
        control=control,
        arms=arms,
        balance=balance(conversations, weights),
        effects=tuple(effects),
        confidence=confidence,
    )


def experiment_looks(
    conn: Connection,
    scope: Scope,
    name: str,
    *,
    control: str | None = None,
    metric: MetricName = "failure_rate",
    confidence: float = 0.95,
) -> TrialLooks | None:
    """Say how the effects of the trial *name* were known day after day; None if there is no such.

    See `experiment` for the arguments, and `trial_looks` for what is counted.
    """
    arms = experiments(conn, scope).get(name)
    if arms is None:
        return None
    control = _control(arms, control)
    return trial_looks(conn, scope, name, arms, control, metric=metric, confidence=confidence)


def _control(arms: Sequence[str], wanted: str | None) -> str:
    if len(arms) > MOST_ARMS:
        raise ValueError(
            f"The trial has {len(arms)} arms; at most {MOST_ARMS} are compared. Name some of them"
            " in the query, for example variant:NAME=control,NAME=treatment."
        )
    if wanted is None:
        return "control" if "control" in arms else arms[0]
    if wanted not in arms:
        raise ValueError(f"The trial has no arm of that name; it has {', '.join(arms)}.")
    return wanted
