"""When a rule would have fired: the state machine of the server, over the past."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_dashboard.alerts.evaluation import Figure, Measured, Notice, State, advance
from toolfault_dashboard.alerts.figures import measure, scope_of
from toolfault_dashboard.alerts.rules import HOLD_US, HOUR_US, Rule
from toolfault_dashboard.queries.counting.sampling_weights import sampling
from toolfault_dashboard.queries.figures.alerting import failures_per_hour

__all__ = ["DAYS", "SECONDS", "Firing", "Preview", "moments", "preview", "suggested"]

DAYS: Final = 30
SECONDS: Final = 4.0
"""How long a page looks at the past."""

_LONGEST_STEP: Final = 6 * HOUR_US


@dataclass(frozen=True, slots=True)
class Firing:
    """One time at which the rule would have spoken; ``ended_at`` is None while it goes on.

    Kinds of failure have no end: their rule speaks once.
    """

    began_at: int
    ended_at: int | None
    notice: Notice


@dataclass(frozen=True, slots=True)
class Preview:
    """What a rule would have said.

    Attributes:
        firings: Oldest first.
        begin: From when on the past was looked at, in microseconds.
        moments: How many moments were looked at.
        step: Time between two of them, in microseconds.
        now: What is measured now.
        complete: Whether there was time to look at all of the days.
    """

    firings: tuple[Firing, ...]
    begin: int
    moments: int
    step: int
    now: Measured
    complete: bool


def moments(rule: Rule, now: int, days: int = DAYS) -> list[int]:
    """Return the moments to look at, oldest first, the last of them *now*.

    They lie a quarter of the window apart, at least an hour and at most six: the server looks
    every minute, so what lasts less than that is not seen here.
    """
    step = min(max(rule.window_us // 4, HOUR_US), _LONGEST_STEP)
    return [now - each * step for each in range(days * DAY_US // step, -1, -1)]


def preview(
    conn: Connection,
    rule: Rule,
    now: int,
    *,
    days: int = DAYS,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Preview:
    """Say when *rule* would have fired in the last *days*.

    How many moments fit into *seconds* is told by how long the figure of now takes: where not all
    do, they lie twice as far apart. They are measured from now backwards until the time is over,
    so of a large project the newest days are looked at. A moment whose failures are too few to
    pass the threshold is measured only if the rule fires by then: else it cannot change anything.

    Raises:
        QueryError: The query cannot be read, or names what the reader may not see.
    """
    if rule.asks.kind == "digest":
        return Preview((), now, 0, 0, Measured(), complete=True)
    began = clock()
    latest = measure(conn, rule, now)
    each = max(clock() - began, 1e-4)
    every = moments(rule, now, days)
    if seconds / each < len(every) and rule.window_us >= 4 * (every[1] - every[0]):
        every = every[::-2][::-1]  # windows still overlap by half
    known = {now: latest}
    telling = _telling(conn, rule, every)
    at = every[-2:]
    for number in range(len(every) - 1, 0, -1):
        if clock() - began > seconds:
            break
        at, moment = every[number - 1 :], every[number - 1]
        if moment in telling:
            known[moment] = measure(conn, rule, moment)
    return Preview(
        firings=tuple(_replay(conn, rule, at, known)),
        begin=at[0],
        moments=len(at),
        step=at[1] - at[0],
        now=latest,
        complete=len(at) == len(every),
    )


def _telling(conn: Connection, rule: Rule, at: list[int]) -> set[int]:
    """Return the moments at which *rule* may pass, by how much failed in their windows."""
    if rule.asks.kind == "none" or rule.condition == "sender_drops":
        return set(at)
    hours = failures_per_hour(conn, scope_of(conn, rule, at[0] - rule.window_us, at[-1]))
    needed = _needed(rule, sampled=sampling(conn, rule.project_id).calls)
    return {each for each in at if _within(hours, each - rule.window_us, each) >= needed}


def _replay(
    conn: Connection, rule: Rule, at: list[int], known: dict[int, Measured]
) -> list[Firing]:
    """Return when *rule* fires at the moments *at*, oldest first.

    Those that are not *known* cannot pass: what they are counts only while it fires.
    """
    # Nothing from before the first moment is news, as for a rule that is made then.
    rule = replace(rule, created_at=at[0], snoozed_until=0)
    states: dict[str, State] = {}
    firings: list[Firing] = []
    for moment in at:
        found = known.get(moment)
        if found is None:
            fires = rule.asks.kind != "kinds" and states.get("", State()).phase == "firing"
            found = measure(conn, rule, moment) if fires else _nothing(rule)
        states, notices = advance(rule, states, found, moment)
        for notice in notices:
            if notice.event == "firing":
                firings.append(Firing(moment, None, notice))
            else:
                firings[-1] = replace(firings[-1], ended_at=moment)
    return firings


def _needed(rule: Rule, *, sampled: bool) -> float:
    """Return how many failures a window must have for *rule* to pass, at least.

    The figure itself must pass, of as many as the floor asks for. Of sampled calls rows say
    little, and kinds begin with their first failure: there one is enough.
    """
    if sampled or rule.asks.kind == "kinds":
        return 1
    least, threshold = rule.least, rule.threshold
    if rule.condition == "failure_rate":
        return least * threshold
    if rule.condition == "first_try_success":
        return least * (1 - threshold)
    if rule.condition == "round_trips_per_operation":
        # A round trip fails, or ends a chain that began with a failure.
        return least * threshold / 2
    return least  # closed chains, each begun by a failure


_WIDEST: Final = 0.4
"""An interval of a share that is wider says nothing of what is usual: beyond its far end nearly
every share would be unusual, and the rule would never fire."""


def suggested(conn: Connection, rule: Rule, now: int) -> tuple[Figure | None, float]:
    """Return what the figure of *rule* was in the last `DAYS`, and a threshold that fits it.

    The threshold lies half as far again beyond the far end of the interval (for a share that must
    not fall: of what is missing up to 1), so that what is usual does not fire. Where there is not
    enough to say what is usual, it is the rule's own: few calls, or a share of few conversations
    whose interval is wider than `_WIDEST`.
    """
    if rule.asks.kind not in ("above", "below") or rule.condition == "sender_drops":
        return None, rule.threshold
    figure = measure(conn, replace(rule, window_us=DAYS * DAY_US), now).figure
    assert figure is not None, "these conditions measure a figure"
    if figure.low is None or figure.high is None or figure.n < rule.least:
        return figure, rule.threshold
    if rule.asks.share and figure.high - figure.low > _WIDEST:
        return figure, rule.threshold
    if rule.asks.kind == "above":
        threshold = figure.high * 1.5
        return figure, _round(min(threshold, 0.95) if rule.asks.share else threshold)
    return figure, _round(max(0.05, 1 - (1 - figure.low) * 1.5))


def _round(threshold: float) -> float:
    return max(0.01, round(threshold, 2))


def _within(hours: dict[int, int], begin: int, end: int) -> int:
    return sum(hours.get(hour, 0) for hour in range(begin - begin % HOUR_US, end, HOUR_US))


def _nothing(rule: Rule) -> Measured:
    """Return a measurement that does not pass, and ends nothing that goes on."""
    return Measured() if rule.asks.kind == "kinds" else Measured(Figure(None, None, None, 0))


assert HOLD_US <= HOUR_US, "two moments of a preview are far enough apart to hold"
