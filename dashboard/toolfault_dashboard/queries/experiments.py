"""Randomised trials, as conversations carry them: ``variant`` is a list of ``trial=arm``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import Connection, select

from toolfault_collector.tables import call_counts, tool_call
from toolfault_dashboard.analysis.balance import balance
from toolfault_dashboard.analysis.experiments import ArmEffect, Experiment, arm_effects
from toolfault_dashboard.queries.conditions import calls_of, counts_of
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.sides import side_of
from toolfault_dashboard.queries.summaries import summary
from toolfault_dashboard.search import Clause, Pattern, Query, arms_of

__all__ = ["arm_scope", "experiment", "experiments"]


def experiments(conn: Connection, scope: Scope) -> Mapping[str, tuple[str, ...]]:
    """Return the trials of the scope and their arms, in alphabetical order."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for table, where in ((tool_call, calls_of(scope)), (call_counts, counts_of(scope))):
        variants = conn.execute(
            select(table.c.variant).where(where, table.c.variant.is_not(None)).distinct()
        ).scalars()
        for variant in variants:
            for entry in arms_of(variant):
                name, separator, arm = entry.partition("=")
                if separator:
                    found[name].add(arm)
    return {name: tuple(sorted(found[name])) for name in sorted(found)}


def arm_scope(scope: Scope, name: str, arm: str) -> Scope:
    """Return the scope of one arm of a trial."""
    clause = Clause("variant", (Pattern((f"{name}={arm}",)),))
    return Scope(scope.project_id, scope.query.and_(Query((clause,))), scope.now, scope.audience)


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
        ValueError: *control* is no arm, or a weight is missing.
    """
    arms = experiments(conn, scope).get(name)
    if arms is None:
        return None
    if control is None:
        control = "control" if "control" in arms else arms[0]
    elif control not in arms:
        raise ValueError(f"The trial has no arm of that name; it has {', '.join(arms)}.")
    sides = {arm: side_of(conn, arm_scope(scope, name, arm), arm) for arm in arms}
    effects: list[ArmEffect] = []
    for arm in arms:
        if arm != control:
            effects += arm_effects(sides[control], sides[arm], confidence=confidence)
    conversations = {arm: _conversations(conn, arm_scope(scope, name, arm)) for arm in arms}
    return Experiment(
        name=name,
        control=control,
        arms=arms,
        balance=balance(conversations, weights),
        effects=tuple(effects),
        confidence=confidence,
    )


def _conversations(conn: Connection, scope: Scope) -> int:
    return summary(conn, scope).conversations
