"""The time a page may count: once it is over, the page says how far it is instead of waiting.

What was counted of whole days is kept (``queries.counting.segments``), so counting can stop between
two days and go on later without losing anything. The API, files and the command line have no
budget: they get the answer however long it takes. A page has one. When it is spent, the page says
how far it is and loads itself again; for a reader who has left, nothing goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

__all__ = ["StillCounting", "counting", "day_counted", "next_question", "pause", "time_budget"]

_KEY: Final = "toolfault_time_budget"


class StillCounting(Exception):  # noqa: N818 - reads as what happened
    """The answer is not known yet, and asking again goes on where this left off.

    Attributes:
        question: Which of the page's questions is being counted, from 1.
        done: Segments of it that are known.
        of: Segments that it has; 0 if that is not known yet.
    """

    def __init__(self, question: int, done: int, of: int) -> None:
        super().__init__(f"Question {question}: {done} of {of} segments are counted.")
        self.question, self.done, self.of = question, done, of


@dataclass(slots=True)
class _TimeBudget:
    seconds: float
    since: float | None = None  # on the monotonic clock: when counting began
    question: int = 0
    done: int = 0
    of: int = 0
    gone_on: bool = False


@contextmanager
def time_budget(conn: Connection, seconds: float | None) -> Iterator[None]:
    """Let counting on *conn* pause between two segments when it took *seconds*; None is for ever.

    What else a page asks has no budget: it would be asked again with every step.

    Raises:
        StillCounting: It paused. At least one segment was counted and kept that was unknown before.
    """
    if seconds is None:
        yield
        return
    info = conn.info
    info[_KEY] = _TimeBudget(seconds)
    try:
        yield
    finally:
        info.pop(_KEY, None)


def next_question(conn: Connection) -> None:
    """Note that another question is asked of *conn*."""
    if (held := _of(conn)) is not None:
        held.question, held.done, held.of = held.question + 1, 0, 0


def counting(conn: Connection, done: int, of: int) -> None:
    """Note how much of the question is known."""
    if (held := _of(conn)) is not None:
        held.done, held.of = done, of


def day_counted(conn: Connection) -> None:
    """Note that something was counted that stays known: asking again gets further."""
    if (held := _of(conn)) is not None:
        held.gone_on = True


def pause(conn: Connection) -> None:
    """Leave off, before the next segment is counted, if the time is over and anything was gained.

    Raises:
        StillCounting: It is.
    """
    held, now = _of(conn), time.monotonic()
    if held is None:
        return
    if held.since is None:
        held.since = now
    elif held.gone_on and now >= held.since + held.seconds:
        raise StillCounting(held.question, held.done, held.of)


def _of(conn: Connection) -> _TimeBudget | None:
    found: _TimeBudget | None = conn.info.get(_KEY)
    return found
