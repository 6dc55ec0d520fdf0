"""When a rule would have fired: the state machine of the server, over the past."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.clock import DAY_US
from toolfault_dashboard.alerts.evaluation import Figure, Measured, Notice, State, advance
from toolfault_dashboard.alerts.figures import measure
from toolfault_dashboard.alerts.rules import HOLD_US, HOUR_US, Rule
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.alerting import failures_per_hour
from toolfault_dashboard.queries.windows import between
from toolfault_dashboard.search import parse

__all__ = ["DAYS", "Firing", "Preview", "moments", "preview", "replay", "suggested"]

DAYS: Final = 30
_SECONDS: Final = 4.0
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
    seconds: float = _SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Preview:
    """Say when *rule* would have fired in the last *days*.

    It looks from now backwards until *seconds* are over, so that of a large project the newest
    days are shown. A moment without a failure in its window is not asked about where failures are
    what it takes.

    Raises:
        QueryError: The query cannot be read, or names what the reader may not see.
    """
    if rule.asks.kind == "digest":
        return Preview((), now, 0, 0, Measured(), complete=True)
    at = moments(rule, now, days)
    hours = _failing_hours(conn, rule, at[0] - rule.window_us, now)
    found: list[tuple[int, Measured]] = []
    until = clock() + seconds
    for moment in reversed(at):
        if found and clock() > until:
            break
        idle = hours is not None and not _any_in(hours, moment - rule.window_us, moment)
        empty = idle and moment != now
        found.append((moment, _nothing(rule) if empty else measure(conn, rule, moment)))
    found.reverse()
    return Preview(
        firings=tuple(replay(rule, found)),
        begin=found[0][0],
        moments=len(found),
        step=at[1] - at[0],
        now=found[-1][1],
        complete=len(found) == len(at),
    )


def suggested(conn: Connection, rule: Rule, now: int) -> tuple[Figure | None, float]:
    """Return what the figure of *rule* was in the last `DAYS`, and a threshold that fits it.

    The threshold lies half as far again beyond the far end of the interval (for a share that must
    not fall: of what is missing up to 1), so that what is usual does not fire. Where there is not
    enough to say what is usual, it is the rule's own.
    """
    if rule.asks.kind not in ("above", "below") or rule.condition == "sender_drops":
        return None, rule.threshold
    figure = measure(conn, replace(rule, window_us=DAYS * DAY_US), now).figure
    assert figure is not None, "these conditions measure a figure"
    if figure.low is None or figure.high is None or figure.n < rule.least:
        return figure, rule.threshold
    if rule.asks.kind == "above":
        threshold = figure.high * 1.5
        return figure, _round(min(threshold, 0.95) if rule.asks.share else threshold)
    return figure, _round(max(0.05, 1 - (1 - figure.low) * 1.5))


def _round(threshold: float) -> float:
    return max(0.01, round(threshold, 2))


def replay(rule: Rule, measured: list[tuple[int, Measured]]) -> list[Firing]:
    """Return when *rule* fires on what was *measured*, oldest first."""
    # Nothing from before the first moment is news, as for a rule that is made then.
    rule = replace(rule, created_at=measured[0][0], snoozed_until=0)
    states: dict[str, State] = {}
    firings: list[Firing] = []
    for at, each in measured:
        states, notices = advance(rule, states, each, at)
        for notice in notices:
            if notice.event == "firing":
                firings.append(Firing(at, None, notice))
            else:
                firings[-1] = replace(firings[-1], ended_at=at)
    return firings


def _failing_hours(conn: Connection, rule: Rule, begin: int, end: int) -> set[int] | None:
    """Return the hours in which something of the rule failed; None where that decides nothing."""
    if rule.asks.kind == "none" or rule.condition == "sender_drops":
        return None
    whole = Scope(rule.project_id, parse(rule.query), end, rule.audience)
    return set(failures_per_hour(conn, between(whole, begin, end)))


def _any_in(hours: set[int], begin: int, end: int) -> bool:
    return any(hour in hours for hour in range(begin - begin % HOUR_US, end, HOUR_US))


def _nothing(rule: Rule) -> Measured:
    """Return what is measured where nothing failed, as far as a state machine asks."""
    return Measured() if rule.asks.kind == "kinds" else Measured(Figure(None, None, None, 0))


assert HOLD_US <= HOUR_US, "two moments of a preview are far enough apart to hold"
