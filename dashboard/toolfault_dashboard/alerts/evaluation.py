"""The state machine: what a rule thought, and what was measured, to what it thinks and says.

Pure: it knows no clock and no database. Of a figure: quiet -> pending (it passes the threshold) ->
firing (it has for `HOLD_US`: one message) -> quiet (it has been clear for `HOLD_US`: one more).
Between passing and clear lies a margin in which nothing changes, so a figure that wavers about its
threshold is told once. Of kinds of failure: quiet -> firing at the first chain of a kind that
nobody was told of, and quiet again when the kind has been gone for the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from toolfault_dashboard.alerts.rules import HOLD_US, Rule

__all__ = ["MARGIN", "MOST_NOTICES", "Figure", "Measured", "Notice", "Sighting", "State", "advance"]

Phase = Literal["quiet", "pending", "firing"]

MARGIN: Final = 0.1
"""How far back over its threshold a figure must be to be clear, as a share of the threshold; of
a share that must not fall, at most half of what is left up to 1."""

MOST_NOTICES: Final = 10
"""Kinds that one evaluation speaks of one by one; more are told in one message."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the window: ``low`` and ``high`` are the ends of its 95% interval.

    All are None where there is nothing to divide by. Counts are their own interval.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """One kind of failure that was seen in the window.

    Attributes:
        subject: Its fingerprint.
        title: What it is, in words.
        query: Clauses that select its failures.
        began_at: When its newest chain began; of a new kind when it was first seen, of one that
            came back when it did. In microseconds.
        failures: Its failures in the window.
        fixed_at: Of one that came back, when it had been fixed, in microseconds; else None.
    """

    subject: str
    title: str
    query: str
    began_at: int
    failures: int
    fixed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a rule asked for, of one moment: a figure, or the kinds that were seen."""

    figure: Figure | None = None
    sightings: tuple[Sighting, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """What a rule thinks of one subject.

    Attributes:
        phase: Whether it is quiet, about to fire, or firing.
        since: Since when, in microseconds.
        clear_since: Since when what fires has been clear; None while it is not.
        told: Whether the firing was told.
        told_until: Chains of this kind that began up to this moment were told, or need not be.
    """

    phase: Phase = "quiet"
    since: int = 0
    clear_since: int | None = None
    told: bool = False
    told_until: int = 0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to be said: that a rule fires, or that it is over.

    ``sightings`` are the kinds that it is about, one unless there are too many.
    """

    event: Literal["firing", "resolved"]
    subject: str
    figure: Figure | None = None
    sightings: tuple[Sighting, ...] = ()


def advance(
    rule: Rule, states: Mapping[str, State], measured: Measured, now: int
) -> tuple[dict[str, State], tuple[Notice, ...]]:
    """Return the states of *rule* after *measured*, and what is to be said.

    Args:
        rule: The rule; nothing is said while it is snoozed, and what still fires afterwards is.
        states: By subject; the figure itself has the subject "".
        measured: What was measured at *now*.
        now: Microseconds since the epoch; never before that of the last call.
    """
    if measured.figure is not None:
        state, notices = _of_figure(rule, states.get("", State()), measured.figure, now)
        return {"": state}, notices
    return _of_kinds(rule, states, measured.sightings, now)


def _of_figure(
    rule: Rule, state: State, figure: Figure, now: int
) -> tuple[State, tuple[Notice, ...]]:
    passes, clear = _passes(rule, figure), _is_clear(rule, figure)
    if state.phase == "firing":
        return _while_firing(rule, state, figure, now, clear=clear)
    if not passes:
        return (state if state.phase == "quiet" else State(since=now)), ()
    if state.phase == "quiet":
        return State("pending", now), ()
    if now - state.since < HOLD_US:
        return state, ()
    return _while_firing(rule, State("firing", now), figure, now, clear=False)


def _while_firing(
    rule: Rule, state: State, figure: Figure, now: int, *, clear: bool
) -> tuple[State, tuple[Notice, ...]]:
    if not clear:
        state = replace(state, clear_since=None)
    elif state.clear_since is None:
        state = replace(state, clear_since=now)
    elif now - state.clear_since >= HOLD_US:
        # What nobody was told of needs no end, and what was told has one, snooze or not.
        over = (Notice("resolved", "", figure),) if state.told else ()
        return State(since=now), over
    if state.told or clear or now < rule.snoozed_until:
        return state, ()
    return replace(state, told=True), (Notice("firing", "", figure),)


def _passes(rule: Rule, figure: Figure) -> bool:
    """Say whether the near end of the interval is beyond the threshold."""
    kind = rule.asks.kind
    if kind == "none":
        return figure.value == 0 and figure.n > 0
    if figure.value is None or figure.low is None or figure.high is None or figure.n < rule.least:
        return False
    if kind == "above":
        return figure.low > rule.threshold
    return figure.high < rule.threshold


def _is_clear(rule: Rule, figure: Figure) -> bool:
    """Say whether the figure is back over its threshold by the margin, or nothing is there."""
    kind, threshold = rule.asks.kind, rule.threshold
    if kind == "none":
        return bool(figure.value)
    if not figure.n or figure.value is None:
        return True
    if figure.n < rule.least:
        return False
    if kind == "above":
        return figure.value <= threshold * (1 - MARGIN)
    margin = threshold * MARGIN
    return figure.value >= threshold + (
        min(margin, (1 - threshold) / 2) if rule.asks.share else margin
    )


def _of_kinds(
    rule: Rule, states: Mapping[str, State], sightings: tuple[Sighting, ...], now: int
) -> tuple[dict[str, State], tuple[Notice, ...]]:
    found = dict(states)
    spoken: list[Sighting] = []
    seen = {each.subject: each for each in sightings if each.failures >= rule.least}
    for subject, state in states.items():
        if state.phase == "firing" and subject not in seen:
            found[subject] = State(since=now, told_until=state.told_until)
    for subject, sighting in seen.items():
        state = found.get(subject, State())
        if sighting.fixed_at is not None and state.told_until > sighting.fixed_at:
            continue  # told since that fix; retention moves the failure that came back first
        # Nothing from before the rule is news.
        if sighting.began_at <= max(state.told_until, rule.created_at):
            if sighting.fixed_at is not None:
                found[subject] = State(since=now, told_until=sighting.began_at)
            continue
        if state.phase == "firing" and rule.condition != "new_kind":
            # It goes on: further chains of a kind that is being told of are no further message.
            found[subject] = replace(state, told_until=sighting.began_at)
        elif now >= rule.snoozed_until:
            found[subject] = State("firing", now, told=True, told_until=sighting.began_at)
            spoken.append(sighting)
    if len(spoken) > MOST_NOTICES:
        return found, (Notice("firing", "", sightings=tuple(spoken)),)
    return found, tuple(Notice("firing", each.subject, sightings=(each,)) for each in spoken)
