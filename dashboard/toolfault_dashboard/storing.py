"""Storing what was counted of days that are over, for the next start of a server.

Readers look into the stored answers (``queries.counting.stored_answers``) and count the rest. Who
stores them asks for what the pages ask, once for each day and each quarter of a day.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from itertools import chain, islice, pairwise
from math import isclose
from typing import Any, Final

from sqlalchemy import Connection, Engine

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.cache_versions import EVERY_QUARTER, QUARTER_US
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.cohorts import Cohort
from toolfault_dashboard.analysis.fixes.opportunity_arrays import ByFix
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.comparisons.cohorts import cohort_of, cohort_with_codes
from toolfault_dashboard.queries.comparisons.detected import detected_changes
from toolfault_dashboard.queries.counting.segments import (
    answers_to_store,
    cut,
    forget_stored,
    is_asked_at_once,
    keep_at_most,
    version_of,
    versions_of_quarters,
)
from toolfault_dashboard.queries.counting.stored_answers import (
    forget_answers,
    forget_stale,
    store_answers,
    stored_versions,
)
from toolfault_dashboard.queries.counting.time_budget import StillCounting, time_budget
from toolfault_dashboard.queries.figures.breakdown import breakdown
from toolfault_dashboard.queries.figures.trends import trends_by_tool
from toolfault_dashboard.queries.fixes.fix_evidence import evidence
from toolfault_dashboard.queries.fixes.messages import Wording, wordings
from toolfault_dashboard.queries.rows import FrequencyTable
from toolfault_dashboard.queries.windows import between, window
from toolfault_dashboard.search import Clause, Pattern, Query, parse

__all__ = ["MOST_DAYS", "Storing", "alike", "wrong_answers"]

_WINDOW: Final = "since:14d"  # what a page shows if its reader chooses nothing
_TWO_WEEKS: Final = 14 * DAY_US
_SECONDS: Final = 0.5  # of the clock after which a snapshot is let go
_MOST_TRIES: Final = 5  # at two snapshots between which nothing was written
_MOST_IDLE: Final = 3  # times that asking on may bring nothing to store: memory is too small

_Ask = Callable[[Connection, Scope], Any]


def _codes_and_fields(conn: Connection, scope: Scope) -> list[FrequencyTable]:
    return [queries.frequency(conn, scope, by, limit=1) for by in ("code", "field")]


def _wordings(conn: Connection, scope: Scope) -> list[Wording]:
    return sorted(wordings(conn, scope))


def _facets(conn: Connection, scope: Scope) -> list[Any]:
    """Return all values of a list of failures, and those of releases, which Compare proposes."""
    releases = queries.values_of(conn, scope, "release", limit=1)
    return [queries.facets(conn, scope, most=sys.maxsize), releases]


def _by_model(conn: Connection, scope: Scope) -> Any:
    return breakdown(conn, scope, "model")


def _cohort(conn: Connection, scope: Scope) -> Cohort:
    return cohort_of(conn, scope, "")


def _fixes(conn: Connection, scope: Scope) -> list[ByFix]:
    """Return what Fix next ranks, of two weeks at a time: of all days it would fill the memory."""
    since, until = window(scope)
    assert since is not None
    assert until is not None
    ends = [*range(since, until, _TWO_WEEKS), until]
    return [evidence(conn, between(scope, *each), most=None).fixes for each in pairwise(ends)]


_OF_QUARTERS: Final[tuple[_Ask, ...]] = (
    queries.overview,
    queries.round_trips,
    queries.repeated_executions,
    queries.phantom_arguments,
    queries.conversation_rungs,
    _codes_and_fields,
    _facets,
    _wordings,
    _fixes,
)
_OF_DAYS: Final[tuple[_Ask, ...]] = (*_OF_QUARTERS, trends_by_tool, detected_changes)
_COHORT: Final[tuple[_Ask, ...]] = (_cohort,)
"""What has answers that are worth storing, of days and of their quarters; cohorts of comparisons
are asked for one day at a time, since each is as large as all other answers together."""

_OF_A_TOOL: Final[tuple[_Ask, ...]] = (
    queries.overview,
    queries.repeated_executions,
    queries.phantom_arguments,
    _by_model,
    _wordings,
    _fixes,
)
"""What the page of a tool asks that takes long."""

MOST_DAYS: Final = 98
"""Of a window of more days none is counted by itself (`queries.counting.segments`)."""

MOST_TOOLS: Final = 20
"""Tools of which answers are stored, for the two weeks that their pages show first and the two
weeks before, which they compare them with."""


class Storing:
    """Stores answers about days that are over, and knows of which days that was done.

    Args:
        engine: The server's database.
        days: Newest days of which answers are stored.
        tools: Tools of which answers are stored as well, those with the most failures.
    """

    def __init__(self, engine: Engine, days: int = MOST_DAYS, tools: int = MOST_TOOLS) -> None:
        self._engine, self._days, self._tools = engine, days, tools
        self._done: dict[int, dict[int, int]] = {}

    def store(self, now: int, stopping: Callable[[], bool]) -> int:
        """Store what is not stored yet, or has changed since; return how many answers.

        Args:
            now: Microseconds since the epoch.
            stopping: Says whether to leave off.
        """
        with read_connection(self._engine) as conn:
            projects = queries.projects(conn)
        return sum(self._store(project.id, now, stopping) for project in projects)

    def _store(self, project_id: int, now: int, stopping: Callable[[], bool]) -> int:
        oldest = now - now % DAY_US - self._days * DAY_US
        with read_connection(self._engine) as conn:
            is_small = is_asked_at_once(conn, Scope(project_id, parse(_WINDOW), now))
            versions = versions_of_quarters(conn, project_id)
        forget_stale(
            self._engine,
            project_id,
            lambda begin, end, version: (
                begin >= oldest and version == version_of(versions, begin, end)
            ),
        )
        if is_small:
            return 0
        changed = _changed(self._done.get(project_id, {}), versions)
        stored = 0
        for asks, scope in self._questions(
            Scope(project_id, parse(""), now), {day for day in changed if day >= oldest}
        ):
            for ask in asks:
                new, answered = self._ask(scope, ask, oldest, stopping)
                stored += new
                if not answered:
                    return stored
            stored += self._keep(project_id, oldest)
            forget_stored(self._engine, project_id)
        # What is not over yet will be, and then be worth storing, though nothing comes to it.
        today = now // DAY_US * DAY_US
        self._done[project_id] = {at: each for at, each in versions.items() if at < today}
        return stored

    def _questions(self, whole: Scope, changed: Set[int]) -> Iterator[tuple[Sequence[_Ask], Scope]]:
        """Yield what to ask of the *changed* days, and of which calls of them."""
        for asks, ends in _windows(changed, whole.now):
            yield asks, between(whole, *ends)
        windows = [*_windows(_shown(changed, whole.now), whole.now)]
        for tool in _tools(self._engine, whole, self._tools) if windows else ():
            for asks, ends in windows:
                if asks is not _COHORT:
                    yield _OF_A_TOOL, between(tool, *ends)

    def _ask(
        self, scope: Scope, ask: _Ask, oldest: int, stopping: Callable[[], bool]
    ) -> tuple[int, bool]:
        """Ask on until it is answered, and store what it leaves off with.

        Returns:
            How many answers were stored, and whether it was answered.
        """
        stored = idle = 0
        while idle < _MOST_IDLE and not stopping():
            if _is_answered(self._engine, ask, scope):
                return stored, True
            new = self._keep(scope.project_id, oldest)
            stored += new
            idle = 0 if new else idle + 1
        return stored, False

    def _keep(self, project_id: int, oldest: int) -> int:
        """Store what is remembered, true and not stored yet; return how much."""
        with read_connection(self._engine) as conn:
            known = stored_versions(conn, project_id)
            versions = versions_of_quarters(conn, project_id)
        # Of one question there may be older answers too: those that other audiences were told.
        new = {
            (each.question, each.starts_at, each.ends_at): each
            for each in answers_to_store(self._engine, project_id)
            if each.starts_at >= oldest
            and each.version == version_of(versions, each.starts_at, each.ends_at)
        }
        return store_answers(
            self._engine, [each for key, each in new.items() if known.get(key) != each.version]
        )


def _is_answered(engine: Engine, ask: _Ask, scope: Scope) -> bool:
    """Ask, for so long as a snapshot is held; say whether that was long enough."""
    with (
        suppress(StillCounting),
        read_connection(engine) as conn,
        cut(conn, always=True),
        time_budget(conn, _SECONDS),
    ):
        ask(conn, scope)
        return True
    return False


def _changed(before: Mapping[int, int], after: Mapping[int, int]) -> set[int]:
    """Return the days of which a quarter has another version than *before*."""
    every = before.get(EVERY_QUARTER) != after.get(EVERY_QUARTER)
    changed = (at for at in after if at != EVERY_QUARTER and (every or before.get(at) != after[at]))
    return {at // DAY_US * DAY_US for at in changed}


def _windows(changed: Set[int], now: int) -> Iterator[tuple[Sequence[_Ask], tuple[int, int]]]:
    """Yield what to ask of which windows: they are cut into *changed* days and their quarters."""
    today = now // DAY_US * DAY_US
    days = sorted(day for day in changed if day <= today)
    if days and days[0] < today:
        yield _OF_DAYS, (days[0], today)
    # A window is cut where it holds a whole day: each has the later quarters of the day before
    # that one, and the earlier quarters of the day after it.
    begins = {each - before for each in days for before in (2 * DAY_US, DAY_US, 0)}
    for day in sorted(each for each in begins if each + DAY_US < today):
        for asks in (_OF_QUARTERS, _COHORT):
            yield asks, (day + QUARTER_US, min(day + 3 * DAY_US - QUARTER_US, now))


def _shown(days: Set[int], now: int) -> Set[int]:
    """Return those of *days* that are over and that pages of tools show, or compare with."""
    today = now // DAY_US * DAY_US
    return {day for day in days if today - 2 * _TWO_WEEKS <= day < today}


def _tools(engine: Engine, whole: Scope, most: int) -> list[Scope]:
    """Return what narrows *whole* to each of the tools that failed most often of late."""
    with read_connection(engine) as conn:
        tools = queries.summary(conn, replace(whole, query=parse(_WINDOW))).tools
    clauses = (Clause("tool", (Pattern((tool,)),)) for tool in islice(tools, most))
    return [replace(whole, query=Query((clause,))) for clause in clauses]


def wrong_answers(engine: Engine, now: int, *, repair: bool) -> int:
    """Count again what answers are stored of; return of how many stretches of days any is wrong.

    Args:
        engine: The database. What is remembered of it in this process is forgotten.
        now: Microseconds since the epoch.
        repair: Whether to forget all stored answers of a project of which any is wrong.
    """
    with read_connection(engine) as conn:
        projects = queries.projects(conn)
    wrong = 0
    for project in projects:
        with read_connection(engine) as conn:
            stored = stored_versions(conn, project.id)
        days = {start // DAY_US * DAY_US for _, start, _ in stored}
        whole = Scope(project.id, parse(""), now)
        asks = (*_OF_QUARTERS, trends_by_tool, _cohort_in_rows)
        checks: list[tuple[Scope, Sequence[_Ask]]] = [
            (between(whole, *ends), asks)
            for asked, ends in _windows(days, now)
            if asked is _OF_QUARTERS
        ]
        if days:
            checks.append((whole, (detected_changes,)))
        if shown := _shown(days, now):  # of tools all days, and the quarters around them
            ends = (min(shown) - QUARTER_US, max(shown) + DAY_US + QUARTER_US)
            of_tools = (between(tool, *ends) for tool in _tools(engine, whole, MOST_TOOLS))
            checks.extend((tool, _OF_A_TOOL) for tool in of_tools)
        own = sum(not _is_right(engine, *each) for each in checks)
        if repair and own:
            forget_answers(engine, project.id)
        wrong += own
    return wrong


def _cohort_in_rows(conn: Connection, scope: Scope) -> tuple[Any, ...]:
    """Return a cohort of a comparison and its failures by code as rows: arrays are in no order."""
    cohort, codes, amounts = cohort_with_codes(conn, scope, "")
    talks = cohort.columns.names.in_order
    pairs = zip(codes.code.tolist(), codes.conversation.tolist(), strict=True)
    names = [(codes.codes[code], talks[conversation]) for code, conversation in pairs]
    failures = sorted(zip(names, codes.failures.tolist(), strict=True))
    cells = sorted(
        chain.from_iterable(cohort.blocks), key=lambda cell: (cell.conversation, cell.stratum)
    )
    return cells, failures, cohort.folded, amounts


def _is_right(engine: Engine, scope: Scope, asks: Sequence[_Ask]) -> bool:
    """Say whether *asks* are answered alike with what is stored and from the rows alone."""
    for _ in range(_MOST_TRIES):
        found, versions = [], []
        for always in (True, False):
            keep_at_most(engine, 0)
            with read_connection(engine) as conn, cut(conn, always=always):
                versions.append(versions_of_quarters(conn, scope.project_id))
                found.append([ask(conn, scope) for ask in asks])
        if versions[0] == versions[1]:
            return alike(*found)
    return True  # it changes all the time, and what has changed is counted anew


def alike(one: Any, other: Any) -> bool:
    """Say whether two answers are one, to nine digits: sums hang on the order of adding."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return isclose(one, other, rel_tol=1e-9)
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(
            alike(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)
        )
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)
