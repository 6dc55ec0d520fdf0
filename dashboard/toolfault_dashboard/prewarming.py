"""Asking the questions of the pages before a reader does.

What was counted of whole days is kept in memory (``queries.counting.segments``), which is empty
after a start: of a large history the first reader of each page would wait for seconds. A thread of
the lowest priority asks for what the pages show first, once after the start of a server. From then
on it asks now and then for what was written to since, and stores the answers about days that are
over (``storing``): the next server begins with them. It holds no snapshot from one question to the
next, and asks nothing of projects that are answered at once.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Engine

from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.counting.segments import is_asked_at_once
from toolfault_dashboard.queries.figures.trends import trends_by_tool
from toolfault_dashboard.search import parse
from toolfault_dashboard.storing import Storing

__all__ = ["start_prewarming", "warm"]

_log = structlog.get_logger(__name__)
_LOWEST: Final = 19
_EVERY_SECONDS: Final = 900.0

WINDOW: Final = "since:14d"
"""What a page shows if its reader chooses nothing."""


def _weeks(conn: Connection, scope: Scope) -> Any:
    before, after = (
        replace(scope, query=parse(text)) for text in ("since:14d until:7d", "since:7d")
    )
    return queries.comparison(conn, before, after)


_QUESTIONS: Final[tuple[Callable[[Connection, Scope], Any], ...]] = (
    queries.overview,
    queries.facets,
    queries.round_trips,
    trends_by_tool,
    queries.message_efficacy,
    queries.fix_next,
    queries.all_changes,
    _weeks,
)


def warm(engine: Engine, now: int, stopping: Callable[[], bool]) -> int:
    """Ask what the pages of every large project show first.

    Args:
        engine: The server's database.
        now: Microseconds since the epoch.
        stopping: Says whether to leave off.

    Returns:
        How many questions were asked.
    """
    with read_connection(engine) as conn:
        projects = queries.projects(conn)
    asked = 0
    for project in projects:
        scope = Scope(project.id, parse(WINDOW), now)
        for ask in _QUESTIONS:
            if stopping():
                return asked
            with read_connection(engine) as conn:
                if is_asked_at_once(conn, scope):
                    break
                ask(conn, scope)
            asked += 1
    return asked


def start_prewarming(
    engine: Engine, clock: Callable[[], int], stopping: threading.Event
) -> threading.Thread:
    """Call `warm`, and `Storing.store` now and then, in a thread that nobody waits for."""

    def run() -> None:
        if sys.platform == "linux":  # where a thread has a priority of its own
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
        _try(lambda: warm(engine, clock(), stopping.is_set), "prewarmed", "questions")
        storing = Storing(engine)
        while not stopping.is_set():
            _try(lambda: storing.store(clock(), stopping.is_set), "stored_answers", "answers")
            stopping.wait(_EVERY_SECONDS)

    thread = threading.Thread(target=run, name="toolfault-prewarming", daemon=True)
    thread.start()
    return thread


def _try(step: Callable[[], int], said: str, unit: str) -> None:
    try:
        done = step()
    except Exception as error:  # noqa: BLE001 - the next round may go well
        # The reader who asks next is told by the same error what is the matter.
        _log.warning("prewarming_failed", error=type(error).__name__)
    else:
        if done:
            _log.info(said, **{unit: done})
