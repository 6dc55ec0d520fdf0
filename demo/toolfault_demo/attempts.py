"""One attempt at a step, and what a model makes of being told that it failed. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from toolfault_demo.models import Model
from toolfault_demo.plans import Step
from toolfault_demo.problems import SLIPS
from toolfault_demo.reading import Complaint
from toolfault_demo.slips import BREAKS, Slip, as_sent

__all__ = ["Attempt", "blamed", "first_attempt", "next_attempt"]

# Share of first attempts made in haste, and how much rarer hasty slips are in the others.
_HASTE: Final = 0.2
_UNHURRIED: Final = 0.03

# How much of a model's obedience is left when a text names a field and not what is wrong with it.
_UNEXPLAINED: Final = 0.55


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a model is about to send.

    Attributes:
        step: What it wants to get done.
        slips: What it gets wrong.
        broken: How it spoils the JSON, or None.
    """

    step: Step
    slips: tuple[Slip, ...] = ()
    broken: Callable[[str], str] | None = None

    def text(self) -> str:
        """Return the argument text as sent."""
        return as_sent(self.step.arguments, self.slips, broken=self.broken)


def first_attempt(step: Step, model: Model, rng: random.Random) -> Attempt:
    """Return what ``model`` sends before it was told anything."""
    slips: dict[str, Slip] = {}
    haste = 1.0 if rng.random() < _HASTE else _UNHURRIED
    for slip in SLIPS:
        if slip.tool != step.tool or slip.field in slips or not slip.fits(step.arguments):
            continue
        chance = slip.rate * model.prone.get(slip.kind, 1.0)
        if rng.random() < (chance * haste if slip.in_haste else chance):
            slips[slip.field] = slip
    broken = rng.choice(BREAKS) if rng.random() < model.breaks_json else None
    return Attempt(step, tuple(slips.values()), broken)


def blamed(attempt: Attempt, complaint: Complaint) -> tuple[Slip, ...]:
    """Return the slips that ``complaint`` names; all of them when it names nothing."""
    if not complaint.fields:
        return attempt.slips
    return tuple(slip for slip in attempt.slips if slip.shows_as() & complaint.fields)


def next_attempt(
    attempt: Attempt, complaint: Complaint, *, model: Model, rng: random.Random
) -> Attempt:
    """Return what ``model`` sends after reading ``complaint``.

    It mends each field that the text names with the chance of its obedience, and one field at a
    guess when the text names none. When it mends nothing it repeats itself or fidgets.
    """
    if complaint.unparsed:
        return replace(attempt, broken=None) if rng.random() < model.obeys else attempt
    if complaint.transient:
        return attempt
    if complaint.fields:
        chance = model.obeys * (1.0 if complaint.explained else _UNEXPLAINED)
        named = blamed(attempt, complaint)
        kept = tuple(s for s in attempt.slips if s not in named or rng.random() >= chance)
    else:
        kept = attempt.slips[1:] if rng.random() < model.guesses else attempt.slips
    if kept == attempt.slips and rng.random() < model.fidgets:
        return replace(attempt, step=_fidget(attempt.step))
    return replace(attempt, slips=kept)


def _fidget(step: Step) -> Step:
    """Change the first number that has room: something else than what was asked for."""
    arguments: dict[str, Any] = dict(step.arguments)
    for name, value in arguments.items():
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            arguments[name] = value - 1
            break
    return replace(step, arguments=arguments)
