"""Conversations with real tools: two weeks of them in some seconds, then one after another."""

from __future__ import annotations

import itertools

import toolfault
from toolfault_demo.agent import Agent
from toolfault_demo.chance import DAY, SimulatedPace, chances
from toolfault_demo.fleet import Assignment, Deployment, assignments
from toolfault_demo.ledger import Ledger
from toolfault_demo.models import MODELS
from toolfault_demo.plans import PLANS
from toolfault_demo.problems import (
    ARMS,
    CHANGES,
    EXPERIMENT,
    EXPERIMENT_AGENT,
    HISTORY_DAYS,
    phase_after,
)
from toolfault_demo.toolkit import Toolkit
from toolfault_demo.world import World

__all__ = ["DeliveryError", "converse", "live_through"]

# Events waiting at which the agents pause for the collector: the SDK's queue holds 1,000 and drops
# the oldest beyond that, which is right for an agent and wrong for a history told in fast motion.
_MOST_WAITING = 500
_FLUSH_SECONDS = 30.0


class DeliveryError(RuntimeError):
    """The collector did not take what the agents sent."""


async def converse(assignment: Assignment, toolkit: Toolkit, *, seed: int, ledger: Ledger) -> None:
    """Have one conversation.

    Args:
        assignment: Which.
        toolkit: The tools and the world they work on.
        seed: Seed of the demo; the conversation's chances come from it and its stream.
        ledger: Where it is counted.
    """
    rng = chances(seed, assignment.stream)
    toolkit.world.rng = rng
    ledger.day = int(assignment.after_days)
    phase = phase_after(assignment.after_days)
    plan = PLANS[assignment.deployment.agent](toolkit.world.pace.now(), rng, phase)
    with toolfault.conversation(
        assignment.session_id, model=assignment.model, ends=True
    ) as conversation:
        tried = assignment.deployment.agent == EXPERIMENT_AGENT
        arm = toolfault.variant(EXPERIMENT, ARMS) if tried else ARMS[0]
        agent = Agent(
            toolkit.caller(phase, arm),
            conversation.turn,
            model=MODELS[assignment.model],
            rng=rng,
            lapses=chances(seed, assignment.stream, "lapses"),
            pace=toolkit.world.pace,
            ledger=ledger,
        )
        await agent.follow(plan)


async def live_through(*, dsn: str | None, seed: int, until: float, days: int) -> Ledger:
    """Live through the ``days`` before ``until`` and send everything to the collector.

    Args:
        dsn: Where to send it; nowhere if None.
        seed: Same seed and same ``until``, same calls.
        until: End of the history, seconds since the epoch.
        days: Length of the history.

    Returns:
        The simulation's own count.

    Raises:
        DeliveryError: The collector did not take it.
    """
    ledger = Ledger()
    start = until - days * DAY
    _record_changes(dsn, start=start, scale=days / HISTORY_DAYS)
    every = assignments(seed=seed, until=until, days=days)
    for deployment, group in itertools.groupby(every, key=lambda one: one.deployment):
        pace = SimulatedPace(start)
        toolkit = Toolkit(World(pace, started_at=start, scale=days / HISTORY_DAYS))
        _start_reporting(dsn, deployment, pace)
        await _have_all(list(group), toolkit, seed=seed, ledger=ledger)
    return ledger


def _start_reporting(dsn: str | None, deployment: Deployment, pace: SimulatedPace) -> None:
    toolfault.init(
        dsn,
        agent=deployment.agent,
        environment=deployment.environment,
        release=deployment.release,
        capture_values=True,  # all of it is made up
        clock=pace.now,
    )


async def _have_all(
    group: list[Assignment], toolkit: Toolkit, *, seed: int, ledger: Ledger
) -> None:
    pace = toolkit.world.pace
    for assignment in group:
        pace.move_to(assignment.starts_at)
        await converse(assignment, toolkit, seed=seed, ledger=ledger)
        if toolfault.stats().pending > _MOST_WAITING:
            _deliver()
    _deliver()
    toolfault.close()


def _record_changes(dsn: str | None, *, start: float, scale: float) -> None:
    """Record the changes at the moments they were made."""
    pace = SimulatedPace(start)
    toolfault.init(dsn, clock=pace.now)
    for change in CHANGES:
        pace.move_to(start + change.after_days * DAY * scale)
        toolfault.record_change(change.label, tool=change.tool)
    _deliver()
    toolfault.close()


def _deliver() -> None:
    if not toolfault.flush(_FLUSH_SECONDS):
        raise DeliveryError(
            f"The collector did not take what the agents sent within {_FLUSH_SECONDS:.0f} seconds: "
            f"{toolfault.stats()}"
        )
