"""Counting a window in segments, so that what was counted of whole days is not counted again.

Rows of the past hardly change. A question over a large window is asked of its whole days, of the
hours around them and of what is left at its edges; the answers for days and hours are kept in
memory with the version of their days (``toolfault_collector.storage.cache_versions``), which every
transaction raises that changes a row of them. Version and rows come from one snapshot, so a kept
answer is what counting again would give. A chain that is open changes with time alone: where
outcomes are asked for, an answer is kept until the next chain of its days settles.

Where answers can be added up, those of the whole days are asked for and kept day by day, and their
sum as well: tomorrow one day is counted, not two weeks, and other windows know most of their days.
A question that takes longer than a reader may wait has done some of its work by then, and a page
leaves off between two days to say how far it is (``queries.counting.time_budget``).

Some answers about days that are over are stored in the database as well, and those about their
quarters, since few windows begin at midnight (``stored_answers``): a server that has just started
looks there before it counts.

A question over few rows is asked at once: that costs less than looking up what is known.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, func, literal_column, select

from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.cache_versions import EVERY_QUARTER, QUARTER_US
from toolfault_collector.storage.database.engine import is_columnar
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.tables import chain, quarter_version
from toolfault_dashboard.queries.counting.deadline import begin_anew
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.stored_answers import (
    StoredAnswer,
    StoredAnswers,
    question_of,
    whole_of,
)
from toolfault_dashboard.queries.counting.time_budget import (
    counting,
    day_counted,
    next_question,
    pause,
)
from toolfault_dashboard.queries.projects import written
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.windows import between, window
from toolfault_dashboard.search import Clause, Moment, Pattern, Query, is_of_all_days

__all__ = [
    "answers_to_store",
    "as_kept",
    "forget_stored",
    "in_segments",
    "is_asked_at_once",
    "keep_at_most",
    "may_be_stored",
    "version_of",
    "versions_of_quarters",
]

MANY: Final = 50_000
"""Calls and minutes of a window, as the versions of its days tell, from which it is cut."""

MOST_ANSWERS: Final = 4_096
MOST_ROWS: Final = 1_000_000
"""How many answers are kept of one database, and how many rows they may have together unless
`keep_at_most` says otherwise: the pages of a project with a million failures in 90 days put 800,000
there in their default windows."""

MOST_PIECES: Final = 100
"""Days of a window up to which each is counted by itself; beyond it they are taken together."""

_CUT: Final = "toolfault_cut"

_T = TypeVar("_T")


class _Key(NamedTuple):
    """What an answer is remembered under.

    Attributes:
        asked: Who counted it, with which arguments, of which project, for whom, and the query.
        whole: The day or quarter that it is about, where it may be stored.
        question: What it is stored under; None where answers to it are not.
    """

    asked: tuple[Any, ...]
    whole: tuple[int, int] | None
    question: str | None


@dataclass(frozen=True, slots=True)
class _Segment:
    """A segment of a window, [begin, end) in microseconds; None where the window is open."""

    begin: int | None
    end: int | None
    keep: bool


def in_segments(
    conn: Connection,
    scope: Scope,
    read: Callable[..., _T],
    *args: Hashable,
    outcomes: bool = False,
    together: Callable[..., _T] | None = None,
    many: int | None = None,
    stored: bool = False,
) -> list[_T]:
    """Return what ``read(conn, segment, *args)`` gives for segments of *scope* that make it up.

    Args:
        conn: Open connection in a read transaction.
        scope: What to count.
        read: Counts one segment; a function of a module. Nobody may change what it returns, and
            ``len`` of it says how much it is.
        args: Further arguments.
        outcomes: Whether outcomes of chains are counted, or hang together with what is.
        together: ``together(answers, *args)`` adds answers of *read* up to the one of all their
            segments. It changes none of them.
        many: Calls and minutes of a window from which it is cut, where that is fewer than `MANY`
            since counting costs more.
        stored: Whether answers about days that are over are worth storing where the query asks for
            nothing but a window, or for one tool in it: they are small and the same for every
            audience, *args* are few texts and numbers, and counting them anew takes long.
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
    known, question = None, None
    if stored and (of := _stored_of(scope.query)) is not None:
        question = question_of(read, args, of)
        last = scope.now if until is None else min(until, scope.now)
        known = StoredAnswers(conn, scope.project_id, question, since, last)

    def kept(segment: _Segment, ask: Callable[[Scope], _T]) -> _T:
        narrowed = between(scope, segment.begin, segment.end)
        if not segment.keep:
            return ask(narrowed)
        past = segment.end is not None and segment.end <= today
        may_store = known is not None and segment.end is not None and segment.end <= scope.now
        key = _Key(
            (read, args, scope.project_id, scope.audience, str(narrowed.query)),
            whole_of(segment.begin, segment.end) if may_store else None,
            question,
        )
        version = _version(versions, open_chains, [(segment.begin, segment.end)])
        look: Callable[[], _T | None] = partial(_stored, known, key, version)
        return _kept(conn, key, version, partial(ask, narrowed), look, past=past)

    def once_more(narrowed: Scope) -> _T:
        return read(conn, narrowed, *args)

    cut_up = [
        (segment, _pieces(segment, versions, scope.now if known else None))
        for segment in _cut(since, until, now=scope.now)
    ]
    # Of all segments that are cut further, so that a reader who waits never sees it begin anew.
    ends = list(accumulate(len(pieces) if len(pieces) > 1 else 0 for _, pieces in cut_up))

    def added(pieces: Sequence[_Segment], end: int, narrowed: Scope) -> _T:
        if together is None or len(pieces) < 2:
            return once_more(narrowed)
        found = []
        for number, piece in enumerate(pieces, end - len(pieces)):
            counting(conn, number, ends[-1])
            found.append(kept(piece, once_more))
        counting(conn, end, ends[-1])
        return together(found, *args)

    return [
        kept(segment, partial(added, pieces, end))
        for (segment, pieces), end in zip(cut_up, ends, strict=True)
    ]


def may_be_stored(query: Query) -> bool:
    """Say whether answers about the failures of *query* are stored: where it selects little."""
    return _stored_of(query) is not None


def _stored_of(query: Query) -> str | None:
    """Return what *query* asks for beside its window; None where no answer to that is stored."""
    rest = query.without("since", "until")
    match rest.clauses:
        case () | (Clause(key="tool", values=(Pattern(exact=str()),), negated=False),):
            return str(rest)
    return None


def answers_to_store(engine: Engine, project_id: int) -> Iterator[StoredAnswer]:
    """Yield what is remembered about days of a project that are over and would stay as it is."""
    answers = _ANSWERS.get(engine)
    for key, (version, answer) in answers.all_known() if answers is not None else ():
        if _may_be_stored(key, version, project_id):
            begin, end = key.whole
            yield StoredAnswer(project_id, key.question, begin, end, version[0], answer)


def forget_stored(engine: Engine, project_id: int) -> None:
    """Forget what `answers_to_store` yields: it is stored by now, and takes memory."""
    if (answers := _ANSWERS.get(engine)) is not None:
        answers.forget(lambda key, version: _may_be_stored(key, version, project_id))


def _may_be_stored(key: Any, version: Any, project_id: int) -> bool:
    is_whole = isinstance(key, _Key) and key.whole is not None and key.asked[2] == project_id
    return is_whole and version[1] is None


def keep_at_most(engine: Engine, rows: int) -> None:
    """Let the answers kept about the database of *engine* have so many *rows* together.

    What was kept of it before is forgotten.
    """
    with _NEW:
        _ANSWERS[engine] = _Answers(rows)


@contextmanager
def cut(conn: Connection, *, always: bool) -> Iterator[None]:
    """Let every window be cut that is asked for on *conn*, however little it holds; or none."""
    conn.info[_CUT] = always
    try:
        yield
    finally:
        del conn.info[_CUT]


def is_asked_at_once(conn: Connection, scope: Scope, *, many: int | None = None) -> bool:
    """Say whether `in_segments` reads all of *scope* at once, as it is."""
    if not _may_keep(conn) or is_of_all_days(scope.query):
        return True
    if _CUT in conn.info:
        return not conn.info[_CUT]
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
    """Say whether what *conn* sees is committed: what a transaction wrote may never come to be.

    Of ClickHouse nothing is kept, nor is a window cut: it counts all of it as fast, and its days
    have no versions.
    """
    if is_columnar(conn):
        return False
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


def _cut(since: int | None, until: int | None, *, now: int) -> Iterator[_Segment]:
    """Yield the segments of a window in order: edge, hours, days up to yesterday, hours, edge."""
    today = now // DAY_US * DAY_US
    last = today if until is None else min(today, until // DAY_US * DAY_US)
    first_hour = None if since is None else -(-since // HOUR_US) * HOUR_US
    first_day = None if since is None else -(-since // DAY_US) * DAY_US
    if first_day is not None and first_day >= last:
        yield _Segment(since, until, keep=False)
        return
    last_hour = last if until is None else max(last, until // HOUR_US * HOUR_US)
    ends = [
        _Segment(since, first_hour, keep=False),
        _Segment(first_hour, first_day, keep=True),
        _Segment(first_day, last, keep=True),
        _Segment(last, last_hour, keep=True),
        _Segment(last_hour, until, keep=until is None),
    ]
    for segment in ends:
        if segment.begin is None and segment.end is None:
            continue
        if segment.begin is not None and segment.end is not None and segment.begin >= segment.end:
            continue
        yield segment


def _pieces(segment: _Segment, versions: dict[int, int], now: int | None) -> Sequence[_Segment]:
    """Return the days of *segment* that have any row; the segment itself where it has few or many.

    Where answers are stored *now* is given: then less than a day, or what is not over, is cut into
    its quarters and what is left around them, of today up to now.
    """
    begin, end = segment.begin, segment.end
    if not segment.keep:
        return (segment,)
    of_days = end is not None and not end % DAY_US and not (begin or 0) % DAY_US
    if end is None or not of_days or (now is not None and end > now):
        if begin is None or now is None:
            return (segment,)
        first = (begin // QUARTER_US + 1) * QUARTER_US
        last = now + 1 if end is None else min(end, now + 1)
        if EVERY_QUARTER not in versions:  # what lies behind all that was written is one piece
            last = min(last, max(versions, default=0) + QUARTER_US + 1)
        inner = range(first, last, QUARTER_US)
        return [_Segment(*each, keep=True) for each in pairwise((begin, *inner, end))]
    # A conversation that goes on for many days raises no version but that of every day.
    days: Sequence[int] = () if begin is None else range(begin, end, DAY_US)
    if EVERY_QUARTER not in versions:
        touched = {quarter // DAY_US * DAY_US for quarter in versions}
        days = sorted(day for day in touched if (begin is None or day >= begin) and day < end)
    if not 1 < len(days) <= MOST_PIECES:
        return (segment,)
    return [_Segment(day, day + DAY_US, keep=True) for day in days]


@memoised
def _versions(conn: Connection, project_id: int, many: int) -> dict[int, int]:
    """Return the versions of quarters; nothing where all together are too few to be cut."""
    if written(conn, project_id) < many and _CUT not in conn.info:
        return {}
    return versions_of_quarters(conn, project_id)


def versions_of_quarters(conn: Connection, project_id: int) -> dict[int, int]:
    """Return the versions of the quarters of days of a project that have one."""
    row = quarter_version.c
    rows = conn.execute(select(row.starts_at, row.version).where(row.project_id == project_id))
    return {int(quarter): int(version) for quarter, version in rows}


def _between(versions: dict[int, int], begin: int | None, end: int | None) -> int:
    """Return the sum of the versions of all quarters that [begin, end) touches."""
    first = 0 if begin is None else begin // QUARTER_US * QUARTER_US
    return sum(
        version
        for quarter, version in versions.items()
        if quarter != EVERY_QUARTER and quarter >= first and (end is None or quarter < end)
    )


@memoised
def _open_chains(conn: Connection, project_id: int, now: int) -> Sequence[tuple[int, int, int]]:
    """Return the chains that are open at *now*: first and last quarter, and the next to settle."""
    first, last = (
        column // QUARTER_US * QUARTER_US for column in (chain.c.started_at, chain.c.last_at)
    )
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
            (end is None or first < end) and (begin is None or last + QUARTER_US > begin)
            for begin, end in windows
        )
    ]
    written_to = sum(_between(versions, *each) for each in windows)
    return versions.get(EVERY_QUARTER, 0) + written_to, min(settles, default=None)


def version_of(versions: dict[int, int], begin: int, end: int) -> int:
    """Return the version of [begin, end) among those of quarters."""
    return _version(versions, (), [(begin, end)])[0]


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

    def all_known(self) -> list[tuple[Any, Any]]:
        """Return all that was answered: what was asked, and its version with the answer."""
        with self._lock:
            return list(self._known.items())

    def forget(self, which: Callable[[Any, Any], bool]) -> None:
        """Forget *which* answers, by what was asked and the version."""
        with self._lock:
            for key in [key for key, (version, _) in self._known.items() if which(key, version)]:
                self._forget(self._known.pop(key))

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


def _stored(known: StoredAnswers | None, key: _Key, version: tuple[int, int | None]) -> Any:
    """Return the stored answer of *key*; None if it is not known, or will change with time."""
    if known is None or key.whole is None or version[1] is not None:
        return None
    return known.get(*key.whole, version[0])


def _kept(
    conn: Connection,
    key: Any,
    version: Hashable,
    ask: Callable[[], _T],
    look: Callable[[], _T | None] = lambda: None,
    *,
    past: bool = False,
) -> _T:
    """Return what is known under *key*, what *look* finds stored, or count it.

    Before what is *past* counting may pause. Today's rows change: who paused behind them might find
    them changed each time.
    """
    with _NEW:
        answers = _ANSWERS.setdefault(conn.engine, _Answers())
    found: _T | None = answers.get(key, version)
    if found is None:
        found = look()  # what is stored can be looked up again: kept is what is made of it
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
