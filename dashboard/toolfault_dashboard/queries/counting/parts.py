"""Counting a window in parts, so that what was counted of whole days is not counted again.

Rows of the past hardly change. A question over a large window is asked of its whole days, of the
hours around them and of what is left at its edges; the answers for days and hours are kept in
memory with the version of their days (``toolfault_collector.storage.cache_versions``), which every
transaction raises that changes a row of them. Version and rows come from one snapshot, so a kept
answer is what counting again would give. A chain that is open changes with time alone: where
outcomes are asked for, an answer is kept until the next chain of its days settles.

Where answers can be added up, those of the whole days are asked for and kept day by day, and their
sum as well: tomorrow one day is counted, not two weeks, and other windows know most of their days.
A question that takes longer than a reader may wait has done a part of its work by then, and a page
leaves off between two days to say how far it is (``queries.patience``).

A question over few rows is asked at once: that costs less than looking up what is known.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, func, literal_column, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.cache_versions import EVERY_DAY
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.tables import chain, day_version
from toolfault_dashboard.queries.counting.deadline import begin_anew
from toolfault_dashboard.queries.counting.once import once
from toolfault_dashboard.queries.counting.patience import (
    counting,
    day_counted,
    next_question,
    pause,
)
from toolfault_dashboard.queries.projects import written
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import between, window
from toolfault_dashboard.search import Moment, is_of_all_days

__all__ = ["as_kept", "in_parts", "is_asked_at_once", "keep_at_most"]

MANY: Final = 50_000
"""Calls and minutes of a window, as the versions of its days tell, from which it is cut."""

MOST_ANSWERS: Final = 4_096
MOST_ROWS: Final = 1_000_000
"""How many answers are kept of one database, and how many rows they may have together unless
`keep_at_most` says otherwise: the pages of a project with a million failures in 90 days put 800,000
there in their default windows."""

MOST_PIECES: Final = 100
"""Days of a window up to which each is counted by itself; beyond it they are taken together."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a window, [begin, end) in microseconds; None where the window is open."""

    begin: int | None
    end: int | None
    keep: bool


def in_parts(
    conn: Connection,
    scope: Scope,
    read: Callable[..., _T],
    *args: Hashable,
    outcomes: bool = False,
    together: Callable[..., _T] | None = None,
    many: int | None = None,
) -> list[_T]:
    """Return what ``read(conn, part, *args)`` gives for parts of *scope* that make it up.

    Args:
        conn: Open connection in a read transaction.
        scope: What to count.
        read: Counts one part; a function of a module. Nobody may change what it returns, and
            ``len`` of it says how much it is.
        args: Further arguments.
        outcomes: Whether outcomes of chains are counted, or hang together with what is.
        together: ``together(answers, *args)`` adds answers of *read* up to the one of all their
            parts. It changes none of them.
        many: Calls and minutes of a window from which it is cut, where that is fewer than `MANY`
            since counting costs more.
    """
    least = MANY if many is None else min(many, MANY)
    if is_asked_at_once(conn, scope, many=least):
        return [read(conn, scope, *args)]
    next_question(conn)
    versions = _versions(conn, scope.project_id, least)
    today = scope.now // DAY_US * DAY_US
    since, until = window(scope)
    outcomes = outcomes or scope.query.has("chain")
    open_chains = _open_chains(conn, scope.project_id, scope.now) if outcomes else ()

    def kept(part: _Part, ask: Callable[[Scope], _T]) -> _T:
        narrowed = between(scope, part.begin, part.end)
        if not part.keep:
            return ask(narrowed)
        key = (read, args, scope.project_id, scope.audience, str(narrowed.query))
        version = _version(versions, open_chains, [(part.begin, part.end)])
        past = part.end is not None and part.end <= today
        return _kept(conn, key, version, partial(ask, narrowed), past=past)

    def once_more(narrowed: Scope) -> _T:
        return read(conn, narrowed, *args)

    def added(pieces: Sequence[_Part], narrowed: Scope) -> _T:
        if together is None or len(pieces) < 2:
            return once_more(narrowed)
        found = []
        for number, piece in enumerate(pieces):
            counting(conn, number, len(pieces))
            found.append(kept(piece, once_more))
        counting(conn, len(pieces), len(pieces))
        return together(found, *args)

    return [
        kept(part, partial(added, _pieces(part, versions)))
        for part in _cut(since, until, now=scope.now)
    ]


def keep_at_most(engine: Engine, rows: int) -> None:
    """Let the answers kept about the database of *engine* have so many *rows* together.

    What was kept of it before is forgotten.
    """
    with _NEW:
        _ANSWERS[engine] = _Answers(rows)


def is_asked_at_once(conn: Connection, scope: Scope, *, many: int | None = None) -> bool:
    """Say whether `in_parts` reads all of *scope* at once, as it is."""
    if not _may_keep(conn) or is_of_all_days(scope.query):
        return True
    least = MANY if many is None else many
    return _between(_versions(conn, scope.project_id, least), *window(scope)) < least


def as_kept(conn: Connection, scopes: Sequence[Scope], ask: Callable[[], _T], *key: Hashable) -> _T:
    """Return what *ask* gives, from memory where its windows are fixed and nothing came to them.

    Args:
        conn: Open connection in a read transaction.
        scopes: What *ask* reads, and nothing else. Only windows whose both ends are moments, not
            ages, can come again; outcomes of chains are taken to matter.
        ask: Counts; nobody may change what it returns.
        key: What else the answer depends on, the function above all.
    """
    if not _may_keep(conn) or not all(_is_fixed(scope) for scope in scopes):
        return ask()
    first = scopes[0]
    windows = [window(scope) for scope in scopes]
    versions = _versions(conn, first.project_id, MANY)
    if sum(_between(versions, *each) for each in windows) < MANY:
        return ask()
    version = _version(versions, _open_chains(conn, first.project_id, first.now), windows)
    asked = tuple((scope.project_id, scope.audience, str(scope.query)) for scope in scopes)
    return _kept(conn, (key, asked), version, lambda: (ask(),))[0]


def _may_keep(conn: Connection) -> bool:
    """Say whether what *conn* sees is committed: what a transaction wrote may never come to be."""
    writes = conn.get_execution_options().get("toolfault_write", False)
    return conn.get_transaction() is not None and not writes


def _is_fixed(scope: Scope) -> bool:
    ends = [clause for clause in scope.query.clauses if clause.key in {"since", "until"}]
    moments = [clause.values[0] for clause in ends]
    if is_of_all_days(scope.query):
        return False
    return {clause.key for clause in ends} == {"since", "until"} and all(
        isinstance(each, Moment) and each.at is not None for each in moments
    )


def _cut(since: int | None, until: int | None, *, now: int) -> Iterator[_Part]:
    """Yield the parts of a window in order: edge, hours, days up to yesterday, hours, edge."""
    today = now // DAY_US * DAY_US
    last = today if until is None else min(today, until // DAY_US * DAY_US)
    first_hour = None if since is None else -(-since // HOUR_US) * HOUR_US
    first_day = None if since is None else -(-since // DAY_US) * DAY_US
    if first_day is not None and first_day >= last:
        yield _Part(since, until, keep=False)
        return
    last_hour = last if until is None else max(last, until // HOUR_US * HOUR_US)
    ends = [
        _Part(since, first_hour, keep=False),
        _Part(first_hour, first_day, keep=True),
        _Part(first_day, last, keep=True),
        _Part(last, last_hour, keep=True),
        _Part(last_hour, until, keep=until is None),
    ]
    for part in ends:
        if part.begin is None and part.end is None:
            continue
        if part.begin is not None and part.end is not None and part.begin >= part.end:
            continue
        yield part


def _pieces(part: _Part, versions: dict[int, int]) -> Sequence[_Part]:
    """Return the days of *part* that have any row, or the part itself where it has few or many."""
    begin, end = part.begin, part.end
    if not part.keep or end is None or end % DAY_US or (begin is not None and begin % DAY_US):
        return (part,)
    # A conversation that goes on for many days raises no version but that of every day.
    days: Sequence[int] = () if begin is None else range(begin, end, DAY_US)
    if EVERY_DAY not in versions:
        days = sorted(day for day in versions if (begin is None or day >= begin) and day < end)
    if not 1 < len(days) <= MOST_PIECES:
        return (part,)
    return [_Part(day, day + DAY_US, keep=True) for day in days]


@once
def _versions(conn: Connection, project_id: int, many: int) -> dict[int, int]:
    """Return the versions of the days; nothing where all days together are too few to be cut."""
    if written(conn, project_id) < many:
        return {}
    table = day_version.c
    rows = conn.execute(select(table.day, table.version).where(table.project_id == project_id))
    return {int(day): int(version) for day, version in rows}


def _between(versions: dict[int, int], begin: int | None, end: int | None) -> int:
    """Return the sum of the versions of all days that [begin, end) touches."""
    first = 0 if begin is None else begin // DAY_US * DAY_US
    return sum(
        version
        for day, version in versions.items()
        if day != EVERY_DAY and day >= first and (end is None or day < end)
    )


@once
def _open_chains(conn: Connection, project_id: int, now: int) -> Sequence[tuple[int, int, int]]:
    """Return the chains that are open at *now*: first and last day, and when the next settles."""
    first, last = (column // DAY_US * DAY_US for column in (chain.c.started_at, chain.c.last_at))
    rows = conn.execute(
        select(first, last, func.min(chain.c.settles_at))
        # The latter is what the index of them is restricted by.
        .where(
            chain.c.project_id == project_id,
            chain.c.settles_at > now,
            chain.c.settles_at > literal_column("0"),
        )
        .group_by(first, last)
    )
    return [(int(begin), int(end), int(at)) for begin, end, at in rows]


def _version(
    versions: dict[int, int],
    open_chains: Sequence[tuple[int, int, int]],
    windows: Sequence[tuple[int | None, int | None]],
) -> tuple[int, int | None]:
    """Return what an answer about *windows* is known by: while it is the same, so is the answer.

    That is what was written to their days, and when the next chain of them settles: of the same
    chains, another is the next as soon as one has settled.
    """
    settles = [
        at
        for first, last, at in open_chains
        if any(
            (end is None or first < end) and (begin is None or last + DAY_US > begin)
            for begin, end in windows
        )
    ]
    written_to = sum(_between(versions, *each) for each in windows)
    return versions.get(EVERY_DAY, 0) + written_to, min(settles, default=None)


class _Answers:
    """What was answered about one database, the least used of it going first."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Any, tuple[Hashable, Any]] = OrderedDict()
        self._rows, self._most_rows = 0, most_rows

    def get(self, key: Any, version: Hashable) -> Any:
        """Return what was answered at *version*; None if nothing was."""
        with self._lock:
            found = self._known.get(key)
            if found is None or found[0] != version:
                return None
            self._known.move_to_end(key)
            return found[1]

    def put(self, key: Any, version: Hashable, answer: Any) -> None:
        """Keep an answer."""
        with self._lock:
            self._forget(self._known.pop(key, None))
            self._known[key] = (version, answer)
            self._rows += len(answer)
            while len(self._known) > MOST_ANSWERS or self._rows > self._most_rows:
                self._forget(self._known.popitem(last=False)[1])

    def _forget(self, found: tuple[Hashable, Any] | None) -> None:
        if found is not None:
            self._rows -= len(found[1])


_ANSWERS: Final[WeakKeyDictionary[Engine, _Answers]] = WeakKeyDictionary()
_NEW: Final = threading.Lock()


def _kept(
    conn: Connection, key: Any, version: Hashable, ask: Callable[[], _T], *, past: bool = False
) -> _T:
    """Return what is known under *key*, or count it. Before what is *past* counting may pause.

    Today's rows change: who paused behind them might find them changed each time.
    """
    with _NEW:
        answers = _ANSWERS.setdefault(conn.engine, _Answers())
    found: _T | None = answers.get(key, version)
    if found is None:
        if past:
            pause(conn)
        begin_anew(conn)
        found = ask()
        answers.put(key, version, found)
        begin_anew(conn)
        if past:
            day_counted(conn)
    return found
