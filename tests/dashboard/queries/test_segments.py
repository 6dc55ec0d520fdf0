"""A window counted in segments, some of them from memory, gives what counting it whole gives."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Connection, Engine, event, func, insert, select
from tests.cases import long_cases
from tests.dashboard.conftest import copied_database, on_engines
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.clock import DAY_US, MINUTE_US, format_time
from toolfault_collector.doctor.recount import recount
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import (
    is_sqlite,
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import quarter_version
from toolfault_dashboard import queries
from toolfault_dashboard.queries import FREQUENCIES, Dimension, Scope
from toolfault_dashboard.queries.comparisons.cohorts import cohort_of
from toolfault_dashboard.queries.conditions import failures_of
from toolfault_dashboard.queries.counting.segments import (
    cut,
    in_segments,
    is_asked_at_once,
    keep_at_most,
)
from toolfault_dashboard.queries.failures.matches import matches
from toolfault_dashboard.queries.figures.matrices import matrix
from toolfault_dashboard.queries.figures.trends import trends_by_tool
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search import parse

pytestmark = pytest.mark.slow

TEXTS = (
    "until:25d",
    "since:6d until:36h chain:recovered,open",
    "since:2026-11-12 until:2026-11-15T10:30 tool:http_request,search",
    "since:26h -model:claude* has:issue",
    "since:2026-11-16T10:59:59",
)
MORE_WINDOWS = ("", "since:14d", "until:7d", "since:20m")
MORE_FILTERS = ("tool:http_request,search", "chain:recovered,open", "-model:claude* has:issue")


def _cohort(conn: Connection, scope: Scope) -> Any:
    """Return one cohort of a comparison; its cells come in no order."""
    found = cohort_of(conn, scope, "cohort")
    cells = sorted(found.cells, key=lambda cell: (cell.conversation, cell.stratum))
    return cells, found.folded, found.calls, found.failures, found.conversations


def _change(conn: Connection, scope: Scope) -> Any:
    """Return the effect of a change in the middle of what is written, whatever the window."""
    row = ChangeRow("", NOW - 8 * DAY_US, "", None, "manual", "api")
    whole = replace(scope, query=scope.query.without("since", "until"))
    found = queries.change_effect(conn, whole, row, window=6 * DAY_US)
    return found.before, found.after  # of sums of floats the last digit is nobody's


def _compared(conn: Connection, scope: Scope) -> Any:
    """Return the codes of one tool beside those of all others."""
    cohorts = scope.narrowed("tool:search"), scope.narrowed("-tool:search")
    found = queries.comparison(conn, *cohorts)
    return found.effect.before, found.effect.after, [
        (each.code, each.before, each.after) for each in found.codes
    ]  # fmt: skip


def _trial(conn: Connection, scope: Scope) -> Any:
    """Return how many calls the arms of a trial had at every look, and how many failed."""
    looked = queries.experiment_looks(conn, scope, "b")
    return looked and [
        (each.until_at, each.arm, each.n_control, each.n_treatment, _rounded(each.control),
         _rounded(each.treatment), _rounded(each.always.low if each.always else None))
        for each in looked.looks
    ]  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return value if value is None else round(value, 9)


def _by(dimension: Dimension) -> Callable[[Connection, Scope], Any]:
    return lambda conn, scope: queries.frequency(conn, scope, dimension)


QUESTIONS: dict[str, Callable[[Connection, Scope], Any]] = {
    "overview": queries.overview,
    "round_trips": queries.round_trips,
    "arguments": queries.chains_by_argument,
    "facets": queries.facets,
    "kinds": lambda conn, scope: queries.kinds(conn, scope, limit=20),
    "failures": lambda conn, scope: queries.failure_list(conn, scope, limit=5),
    "chains": lambda conn, scope: queries.chain_list(conn, scope, limit=5),
    "over_time": queries.failures_over_time,
    "trends": trends_by_tool,
    "messages": queries.message_efficacy,
    "phantoms": queries.phantom_arguments,
    "repeats": queries.repeated_executions,
    "fixes": queries.fix_next,
    "change": lambda conn, scope: _change(conn, scope),
    "compared": lambda conn, scope: _compared(conn, scope),
    "trial": lambda conn, scope: _trial(conn, scope),
    "cohort": lambda conn, scope: _cohort(conn, scope),
    "rungs": queries.conversation_rungs,
    "codes": lambda conn, scope: matrix(conn, scope, "code"),
    "fields": lambda conn, scope: matrix(conn, scope, "field"),
    **{f"by_{by}": _by(by) for by in FREQUENCIES},
}


EACH_WAY = ("overview", "facets", "kinds", "failures", "over_time", "fixes", "cohort")
"""One question of each way in which segments are added up."""


def _kept(engine: Engine, scope: Scope, names: Iterable[str] = QUESTIONS) -> dict[str, Any]:
    """What readers are told: of large histories from segments, which are kept."""
    with read_connection(engine) as conn:
        return {name: QUESTIONS[name](conn, scope) for name in names}


def _whole(engine: Engine, scope: Scope, names: Iterable[str] = QUESTIONS) -> dict[str, Any]:
    """What a writer is told, of whom nothing is kept: every answer is counted at once."""
    with write_transaction(engine) as conn:
        return {name: QUESTIONS[name](conn, scope) for name in names}


def _project(engine: Engine) -> int:
    with read_connection(engine) as conn:
        found = find_project(conn, "generated")
    assert found is not None
    return found


@on_engines(
    "text",
    [
        TEXTS[1],
        *long_cases(TEXTS[0], *TEXTS[2:]),
        *(
            pytest.param(f"{window} {text}", marks=pytest.mark.long)
            for window in MORE_WINDOWS
            for text in MORE_FILTERS
        ),
    ],
    TEXTS[3:4],
    history="large_url",
)
def test_segments_make_up_the_whole(large: Engine, text: str) -> None:
    """Every answer is the same whether its window is counted whole, in segments, or from memory.

    Parts are added up without the engine: of PostgreSQL one question of each way is asked.
    """
    scope = Scope(_project(large), parse(text), NOW)
    names = QUESTIONS if is_sqlite(large) else EACH_WAY
    whole = _whole(large, scope, names)
    with read_connection(large) as conn:
        assert not is_asked_at_once(conn, scope)
    assert _kept(large, scope, names) == whole
    assert _kept(large, scope, names) == whole


@pytest.fixture
def written(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path
) -> Iterator[Engine]:
    """A database that is written to while readers ask, large from its first event on."""
    if request.param == "sqlite":
        shutil.copyfile(sqlite_template, tmp_path / "toolfault.db")
        url = f"sqlite:///{tmp_path / 'toolfault.db'}"
    else:
        url = copied_database(request, "segments")
    engine = open_engine(url)
    yield engine
    engine.dispose()


_GIVEN_UP: Final = "since:14d chain:abandoned,switched"


class _Agent:
    """Sends calls to a database, and asks it twice after each: for what is kept must be right."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.events = engine, 0
        with write_transaction(engine) as conn:
            self.project = ensure_project(conn, "segments")
            # As if one day had been written to a million times: its windows are large.
            at = (NOW // DAY_US - 11) * DAY_US
            conn.execute(
                insert(quarter_version).values(
                    project_id=self.project, starts_at=at, version=1_000_000
                )
            )

    def send(self, *events: dict[str, Any], received: int = NOW) -> None:
        with write_transaction(self.engine) as conn:
            receipt = store_events(
                conn, self.project, list(events), received_at=received, time_policy="import"
            )
        assert not receipt.rejected

    def event(self, kind: str, ago: int, **more: Any) -> dict[str, Any]:
        self.events += 1
        at = format_time(NOW - ago)
        return {
            "type": kind,
            "event_id": f"00000000-0000-7000-8000-{self.events:012x}",
            "occurred_at": at,
            **more,
        }

    def call(self, ago: int, session: str | None, *, failed: bool, tool: str = "t") -> Any:
        error = {
            "code": "wrong_type",
            "category": "parameter",
            "issues": [{"field": "a", "code": "wrong_type", "near_miss": ["strip"]}],
            "renderings": {"llm": "a: write it anew"},
        }
        more: dict[str, Any] = {"error": error} if failed else {}
        return self.event(
            "tool_call",
            ago,
            session_id=session,
            tool=tool,
            success=not failed,
            seq=self.events,
            **more,
        )

    def check(self, *texts: str, now: int = NOW) -> dict[str, Any]:
        for text in texts or ("", _GIVEN_UP):
            scope = Scope(self.project, parse(text), now)
            kept = _kept(self.engine, scope, EACH_WAY)
            assert kept == _whole(self.engine, scope, EACH_WAY), text
        return kept


_written_on = pytest.mark.parametrize(
    "written",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
)


@_written_on
def test_what_is_kept_follows_every_write(written: Engine) -> None:
    """Late calls, late ends, repairs and retention change what a day was counted as, at once."""
    agent = _Agent(written)
    old = [agent.call(10 * DAY_US - n * MINUTE_US, f"c{n}", failed=True) for n in range(6)]
    agent.send(*old, agent.call(9 * DAY_US, None, failed=True))
    assert agent.check("")["overview"].summary.chains == 6
    # A success two days later recovers a chain of the day before it, a success of another tool
    # switches one, and an end does nothing that can be seen.
    agent.send(agent.call(8 * DAY_US, "c0", failed=False))
    assert agent.check()["overview"].summary.chains == 5
    agent.send(agent.call(8 * DAY_US, "c1", failed=False, tool="other"))
    agent.check(_GIVEN_UP)
    agent.send(agent.event("conversation_end", 7 * DAY_US, session_id="c2", calls={"t": 4}))
    agent.check("")
    counts = {"tool": "t", "calls": 7, "conversations": 1, "calls_squared": 49}
    minute = format_time((NOW - 5 * DAY_US) // DAY_US * DAY_US - MINUTE_US)
    agent.send(agent.event("tool_call_counts", DAY_US, minute=minute, **counts))
    assert agent.check("")["overview"].summary.calls
    with write_transaction(written) as conn:
        conn.exec_driver_sql("UPDATE chain SET round_trips = 5")
        conn.exec_driver_sql("UPDATE failure_counts SET failures = failures + 1")
    recount(written, repair=True)
    agent.check("")
    agent.send(*(agent.call(3 * DAY_US, f"d{n}", failed=True) for n in range(20)))
    agent.check("")
    prune(written, max_calls=4, force=True, clock=lambda: NOW)
    assert agent.check()["failures"].total < 20


def test_what_is_kept_follows_a_conversation_that_is_cut(sqlite_engine: Engine) -> None:
    """A chain costs less once retention has removed other calls of a day after it began."""
    agent = _Agent(sqlite_engine)
    for ago, failed, tool in (
        (10, True, "t"), (9, False, "other"), (8, False, "other"), (5, True, "t"),
        (4, False, "other"),
    ):  # fmt: skip
        call = agent.call(ago * DAY_US, "long", failed=failed, tool=tool)
        agent.send(call, received=NOW - ago * DAY_US)
    before = agent.check("")["fixes"].cost
    prune(sqlite_engine, days=6, force=True, clock=lambda: NOW)
    assert agent.check("")["fixes"].cost < before


def test_what_daily_counts_hold_is_no_part_however_many_there_are(sqlite_engine: Engine) -> None:
    """Tool, code and field of more failures than are counted stay exact, and say so each."""
    agent = _Agent(sqlite_engine)
    agent.send(
        *(agent.call(3 * DAY_US + n, f"c{n}", failed=True) for n in range(6)),
        *(agent.call(2 * DAY_US + n, f"d{n}", failed=True, tool="other") for n in range(5)),
    )
    for text, exact in (("", {"tool", "code", "field"}), ("own_code:wrong_type", {"tool", "code"})):
        with read_connection(sqlite_engine) as conn:
            found = queries.facets(conn, Scope(agent.project, parse(text), NOW), most=7)
        facets = {each.key: each for each in found.facets}
        assert {key for key, facet in facets.items() if facet.exact} == exact
        assert not found.exact
        counts = {value.value: value.failures for value in facets["tool"].values}
        assert counts == {"t": 6, "other": 5}
        for key, facet in facets.items():
            counted = 11 if key in exact else 7
            assert facet.counted == counted
            assert sum(value.failures for value in facet.values) == counted, key


def test_a_cohort_of_calls_with_times_has_no_others(sqlite_engine: Engine) -> None:
    """What has no time is on neither side of a change, however its days are counted."""
    agent = _Agent(sqlite_engine)
    untimed = agent.call(4 * DAY_US, "untimed", failed=True) | {"time_source": "none"}
    agent.send(agent.call(4 * DAY_US, "timed", failed=True))
    for events in ([], [untimed]):
        agent.send(*events)
        with read_connection(sqlite_engine) as conn:
            for text, failures in (("-time:none", 1), ("", 1 + len(events))):
                cohort = cohort_of(conn, Scope(agent.project, parse(text), NOW), "")
                assert cohort.failures.rows == failures


@_written_on
def test_an_open_chain_is_given_up_in_time(written: Engine) -> None:
    """A chain that nobody writes to any more is abandoned half an hour later, kept or not.

    What was counted while it was open is known until then, and from then on what is counted anew.
    """
    agent = _Agent(written)
    agent.send(
        agent.call(4 * DAY_US, "long", failed=True),
        agent.call(5 * MINUTE_US, "long", failed=False, tool="other"),
        agent.call(4 * DAY_US, "done", failed=True),
        agent.call(5 * MINUTE_US, "short", failed=True),
    )
    settles = NOW + 25 * MINUTE_US
    for now, still_open in ((settles - 1, 2), (settles, 0), (settles - 1, 2)):
        told = agent.check("since:14d", now=now)["overview"].summary
        assert (told.open, told.abandoned + told.switched) == (still_open, 3 - still_open)
    count = _Counting(written, agent.project, outcomes=True)
    days = f"since:{format_time((NOW // DAY_US - 14) * DAY_US)}"
    assert count(days) > 2
    assert count(days, settles - 1) == 0
    assert count(days, settles) == 2  # the day on which one of them began, and today
    assert count(days, settles + MINUTE_US) == 0


def test_open_chains_are_found_beside_any_number_of_others(sqlite_engine: Engine) -> None:
    """SQLite looks at the chains that are open, not at all that were given up before them."""
    agent = _Agent(sqlite_engine)
    agent.send(agent.call(5 * MINUTE_US, "alive", failed=True))
    count = _Counting(sqlite_engine, agent.project, outcomes=True)
    days = f"since:{format_time((NOW // DAY_US - 14) * DAY_US)}"
    steps: list[int] = []
    for _ in range(2):
        agent.send(*(agent.call(4 * DAY_US, f"old{n}", failed=True) for n in range(500)))
        count(days)
        with read_connection(sqlite_engine) as conn:
            driver: Any = conn.connection.driver_connection
            counted = itertools.count()
            driver.set_progress_handler(lambda counted=counted: next(counted) < 0, 1)
            count.within(conn, days)
            driver.set_progress_handler(None, 0)
        steps.append(next(counted))
    assert steps[1] < 1.2 * steps[0]


def test_what_was_written_and_undone_is_not_kept(sqlite_engine: Engine) -> None:
    """What a transaction sees of its own writes is nobody else's, and may never come to be."""
    agent = _Agent(sqlite_engine)
    agent.send(agent.call(4 * DAY_US, "one", failed=True))
    scope = Scope(agent.project, parse("since:14d"), NOW)
    writing = sqlite_engine.connect().execution_options(toolfault_write=True)
    with writing as conn, conn.begin() as transaction:
        events = [agent.call(4 * DAY_US, "two", failed=True)]
        store_events(conn, agent.project, events, received_at=NOW, time_policy="import")
        assert queries.count_failures(conn, scope) == 2
        transaction.rollback()
    agent.send(agent.call(4 * DAY_US + 1, "three", failed=True))
    agent.send(agent.call(4 * DAY_US + 2, "four", failed=True))
    agent.check("since:14d")


_large_on_sqlite = pytest.mark.parametrize(
    "large_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres])],
    indirect=True,
    scope="session",
)
"""What is kept is kept in memory, whatever the engine."""


class _Counting:
    """Counts failures in segments, and how many questions that took."""

    def __init__(
        self, engine: Engine, project: int, *, outcomes: bool = False, stored: bool = False
    ) -> None:
        self.engine, self.project, self.asked = engine, project, 0
        self.ways = {"outcomes": outcomes, "stored": stored}

    def __call__(self, text: str = "since:14d", now: int = NOW) -> int:
        with read_connection(self.engine) as conn:
            whole = self._read(conn, Scope(self.project, parse(text), now))[0]
            self.asked = 0
            assert self.within(conn, text, now) == whole > 0
        return self.asked

    def within(self, conn: Connection, text: str, now: int = NOW) -> int:
        """Count the failures of *text* in the read transaction of *conn*."""
        scope = Scope(self.project, parse(text), now)
        segments = in_segments(conn, scope, self._read, together=self._together, **self.ways)
        return sum(number for (number,) in segments)

    def _read(self, conn: Connection, scope: Scope) -> tuple[int]:
        self.asked += 1
        return (conn.execute(select(func.count()).where(failures_of(scope))).scalar_one(),)

    def _together(self, numbers: Sequence[tuple[int]]) -> tuple[int]:
        return (sum(number for (number,) in numbers),)


@_large_on_sqlite
def test_tomorrow_few_days_are_counted_anew(large: Engine) -> None:
    """What was counted of a day is known to the same window a day later, and to other windows."""
    count = _Counting(large, _project(large))
    assert count("since:14d") > 10
    assert count("since:14d", NOW + DAY_US) <= 5
    assert count("since:10d until:3d") <= 5


@_large_on_sqlite
def test_what_has_no_room_is_counted_anew(large: Engine) -> None:
    """Answers that have more rows together than are kept are right, and forgotten."""
    count = _Counting(large, _project(large))
    keep_at_most(large, 1_000)
    first, again = count(), count()
    assert again < first
    keep_at_most(large, 0)
    assert count() == count() == first


@contextmanager
def _read_failures(engine: Engine) -> Iterator[list[str]]:
    """Yield a list that takes the statements over calls that are sent to *engine*."""
    sent: list[str] = []

    def remember(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "FROM tool_call" in statement:
            sent.append(statement)

    event.listen(engine, "before_cursor_execute", remember)
    yield sent
    event.remove(engine, "before_cursor_execute", remember)


@_large_on_sqlite
def test_facets_of_a_day_are_known_to_other_windows(large: Engine) -> None:
    """What facets of a filtered list counted of a day is known whatever window it is seen in."""
    project = _project(large)
    read = []
    for days in (14, 7):
        asked = Scope(project, parse(f"code:wrong_type model:gpt-5 since:{days}d"), NOW)
        with _read_failures(large) as sent, read_connection(large) as conn:
            queries.facets(conn, asked, keys=("code", "model", "agent"))
        read.append(len(sent))
    assert read[0] > 14 > 7 > read[1] > 0


@_large_on_sqlite
@pytest.mark.parametrize("text", ["model:gpt-5 attempt:2", "-model:gpt-5", "no such text"])
def test_facets_leave_it_to_the_list_which_failures_are_few(large: Engine, text: str) -> None:
    """After facets as before, which failures a narrow list has is known from memory.

    The list would read a window of any size whenever somebody looks at it.
    """
    found = []
    for facets_first in (False, True):
        with read_connection(large) as conn, cut(conn, always=True):
            project = find_project(conn, "timed")
            assert project is not None
            asked = Scope(project, parse(f"{text} since:20d"), NOW)
            if facets_first:
                queries.facets(conn, asked)
            found.append(matches(conn, asked))
    assert found[0].number == found[1].number
    assert sorted(found[0].rows or ()) == sorted(found[1].rows or ())


@_large_on_sqlite
def test_values_of_a_filtered_key_are_counted_alone(large: Engine) -> None:
    """Who asks for values of one key under a filter does not wait for those of all other keys."""
    asked = Scope(_project(large), parse("code:wrong_type since:14d"), NOW)
    with _read_failures(large) as sent, read_connection(large) as conn:
        assert queries.values_of(conn, asked, "model", limit=5)
    assert sent
    assert not [each for each in sent if "tool_call.agent" in each or "JOIN chain" in each]


@_large_on_sqlite
def test_the_future_is_one_segment(large: Engine) -> None:
    """A cohort that ends in two weeks is not asked for every quarter of a day until then."""
    read = []
    for days in (1, 14):
        keep_at_most(large, 0)
        count = _Counting(large, _project(large), stored=True)
        read.append(count(f"since:14d until:{format_time(NOW + days * DAY_US)}"))
    assert read[0] == read[1] > 10
