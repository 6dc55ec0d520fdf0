"""What an interval knows of conversations is the same however a window is cut into days."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from sqlalchemy import Connection, Engine, event, insert
from tests.clickhouse import copied_to_clickhouse
from tests.dashboard.conftest import ENGINES, copied_database
from tests.dashboard.generated import NOW

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clickhouse.database import open_events
from toolfault_collector.clock import DAY_US, MINUTE_US, format_time
from toolfault_collector.retention.policy import prune
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.rollups import HOUR_US
from toolfault_collector.storage.store import store_events
from toolfault_collector.storage.tables import quarter_version
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.clusters import Moments
from toolfault_dashboard.analysis.fixes.fixes import add_up
from toolfault_dashboard.queries.comparisons.cohorts import cohort_with_codes
from toolfault_dashboard.queries.comparisons.detected import detected_changes
from toolfault_dashboard.queries.counting.segments import cut, is_asked_at_once
from toolfault_dashboard.queries.figures.clusters import (
    CallClusters,
    calls_of_conversations,
    chains_by_key,
)
from toolfault_dashboard.queries.figures.conversation_counts import count_conversations
from toolfault_dashboard.queries.figures.trends import trends_by_tool
from toolfault_dashboard.queries.fixes.fix_evidence import evidence
from toolfault_dashboard.queries.reading import read_events_from, reading
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.search import Query, parse
from toolfault_dashboard.storing import Storing, alike

pytestmark = pytest.mark.slow

TOOLS: Final = ("search", "order")
# Whole days, hours and edges, ends in the past, and what no folded success is counted by.
TEXTS: Final = ("", "since:2026-11-05T07:20 until:2026-11-16T21:10 tool:order")
MORE_TEXTS: Final = (
    "since:14d",
    "since:20d until:3d",
    "until:30h",
    "since:16d agent:a",
    "since:15d until:26h code:wrong_type",
)
LENGTHS: Final = (MINUTE_US, 3 * HOUR_US, 30 * HOUR_US, 6 * DAY_US, 35 * DAY_US, 50 * DAY_US)


class _Fleet:
    """Conversations of minutes to months, whose successes are partly counted only."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine, self.random, self.events = engine, Random(seed), 0
        self.calls: dict[str, list[tuple[str, bool]]] = defaultdict(list)
        with write_transaction(engine) as conn:
            self.project = ensure_project(conn, "fleet")
            # As if these days had been written to a million times: a window with one is cut.
            for ago in (5, 12):
                at = (NOW // DAY_US - ago) * DAY_US
                conn.execute(
                    insert(quarter_version).values(
                        project_id=self.project, starts_at=at, version=10**6
                    )
                )

    def send(self, conversations: int) -> None:
        """Store *conversations* more, in batches that mix early and late calls of each."""
        found = [event for n in range(conversations) for event in self._conversation()]
        self.random.shuffle(found)
        for low in range(0, len(found), 40):
            self._store(found[low : low + 40])

    def go_on(self, name: str, ago: int) -> None:
        """Store one more failure of the conversation *name*."""
        self._store([self._call(name, NOW - ago, "search", failed=True)])

    def _store(self, events: list[dict[str, Any]]) -> None:
        with write_transaction(self.engine) as conn:
            receipt = store_events(
                conn, self.project, events, received_at=NOW, time_policy="import"
            )
        assert not receipt.rejected

    def _conversation(self) -> Iterator[dict[str, Any]]:
        length = self.random.choice(LENGTHS)
        begin = NOW - length - self.random.randrange(18 * DAY_US)
        name = f"c{len(self.calls)}"
        counted: Counter[str] = Counter()
        for _ in range(self.random.randint(1, 9)):
            at = begin + self.random.randrange(length)
            tool = self.random.choice(TOOLS)
            if self.random.random() < 0.4:
                counted[tool] += 1
                self.calls[name].append((tool, False))
                yield self._counts(at, tool, calls=1)
            else:
                yield self._call(name, at, tool, failed=self.random.random() < 0.6)
        if self.random.random() < 0.6 or counted:
            # It may end on a day after its last call.
            yield from self._end(name, begin + length + self.random.randrange(20 * MINUTE_US))

    def _call(self, name: str, at: int, tool: str, *, failed: bool) -> dict[str, Any]:
        self.calls[name].append((tool, failed))
        code = self.random.choice(("wrong_type", "missing_field"))
        issues = [{"field": "a", "code": "wrong_type"}]
        error = {"code": code, "category": "parameter", "issues": issues}
        return self._event(
            "tool_call",
            at,
            session_id=name,
            tool=tool,
            agent="a",
            success=not failed,
            seq=self.events,
            **({"error": error} if failed else {}),
        )

    def _counts(self, at: int, tool: str | None, **numbers: int) -> dict[str, Any]:
        none = {"calls": 0, "conversations": 0, "calls_squared": 0}
        minute = format_time(at // MINUTE_US * MINUTE_US)
        more = {} if tool is None else {"tool": tool, "agent": "a"}
        return self._event("tool_call_counts", at, minute=minute, **more, **none | numbers)

    def _end(self, name: str, at: int) -> Iterator[dict[str, Any]]:
        """Yield the end of a conversation, and the counters of its minute, by all who tell them.

        In some with failures these are two: a client and a server of tools, or one after the other.
        """
        calls = [tool for tool, _ in self.calls[name]]
        of_two = len(self.calls) % 3 == 0 and any(failed for _, failed in self.calls[name])
        senders = (calls[::2], calls[1::2]) if of_two and len(calls) > 1 else (calls,)
        for number, own in enumerate(map(Counter, senders)):
            moment = at - number * 7 * HOUR_US
            yield self._event("conversation_end", moment, session_id=name, calls=dict(own))
            for tool, n in (*own.items(), (None, own.total())):
                yield self._counts(moment, tool, conversations=1, calls_squared=n * n)

    def _event(self, kind: str, at: int, **more: Any) -> dict[str, Any]:
        self.events += 1
        event_id = f"00000000-0000-7000-8000-{self.events:012x}"
        return {"type": kind, "event_id": event_id, "occurred_at": format_time(at), **more}

    def check(self, texts: Iterable[str]) -> None:
        """Hold what readers are told, of parts that are kept, to what is counted at once."""
        for text in texts:
            scope = Scope(self.project, parse(text), NOW)
            with write_transaction(self.engine) as conn:
                whole = _asked(conn, scope)
            with read_connection(self.engine) as conn:
                assert not is_asked_at_once(conn, scope)
                assert _asked(conn, scope) == whole, text

    def check_new_server(self, texts: Iterable[str]) -> None:
        """Hold what a server tells that has just started to what is counted at once."""
        url = self.engine.url.render_as_string(hide_password=False)
        for text in texts:
            scope = Scope(self.project, parse(text), NOW)
            with write_transaction(self.engine) as conn:
                whole = [ask(conn, scope) for ask in _PAGES]
            started = open_engine(url)
            with read_connection(started) as conn, cut(conn, always=True):
                assert alike([ask(conn, scope) for ask in _PAGES], whole), text
            started.dispose()


def _cohorts_of_change(scope: Scope) -> tuple[Scope, Scope]:
    """Return the day before and the day after a midnight."""
    at = (NOW // DAY_US - 2) * DAY_US
    return queries.cohorts_of_change(
        replace(scope, query=Query()),
        ChangeRow("", at, "", None, "manual", "api"),
        window=DAY_US,
    )


def _cohort(conn: Connection, scope: Scope) -> Any:
    """Return a cohort of a comparison; its cells and failures come in no order."""
    cohort, codes, _ = cohort_with_codes(conn, scope, "")
    talks = cohort.columns.names.in_order
    failures = zip(codes.code, codes.conversation, codes.failures, strict=True)
    return (
        sorted(cohort.cells, key=lambda cell: (cell.conversation, cell.stratum)),
        cohort.folded,
        sorted((codes.codes[code], talks[talk], float(n)) for code, talk, n in failures),
    )


def _change(conn: Connection, scope: Scope) -> Any:
    return [_cohort(conn, each) for each in _cohorts_of_change(scope)]


_PAGES: Final[tuple[Callable[[Connection, Scope], Any], ...]] = (
    queries.overview,
    queries.message_efficacy,
    queries.repeated_executions,
    queries.phantom_arguments,
    queries.rates_by_tool,
    queries.rates_by_code,
    queries.round_trips,
    partial(queries.frequency, by="code", limit=100),
    partial(queries.frequency, by="field", limit=100),
    queries.fix_next,
    trends_by_tool,
    detected_changes,
    _cohort,
    _change,
)


def _asked(conn: Any, scope: Scope) -> Any:
    keys = ((), ("tool", "first_code"))
    fixes = evidence(conn, scope, most=None).fixes
    return (
        calls_of_conversations(conn, scope),
        [chains_by_key(conn, scope, *key) for key in keys],
        add_up([each for key in fixes for each in fixes.opportunities(key)], weeks=1.0),
    )


@pytest.fixture(params=ENGINES)
def empty(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path
) -> Iterator[Engine]:
    """A database that is written to while readers ask."""
    if request.param == "sqlite":
        shutil.copyfile(sqlite_template, tmp_path / "toolfault.db")
        url = f"sqlite:///{tmp_path / 'toolfault.db'}"
    else:
        url = copied_database(request, "clusters")
    engine = open_engine(url)
    yield engine
    engine.dispose()


_LONG_POSTGRESQL: Final = ("postgresql", pytest.mark.long, pytest.mark.postgres)
_long_on_postgresql = pytest.mark.parametrize(
    "empty", ["sqlite", pytest.param("postgresql", marks=_LONG_POSTGRESQL[1:])], indirect=True
)
_SEEDS: Final = [
    ("sqlite", 1),
    *(
        pytest.param(name, seed, marks=marks)
        for name, *marks in (("sqlite", pytest.mark.long), _LONG_POSTGRESQL)
        for seed in range(1, 5)
        if (name, seed) != ("sqlite", 1)
    ),
]


@pytest.mark.parametrize(("empty", "seed"), _SEEDS, indirect=["empty"])
def test_moments_of_days_are_those_of_the_whole_window(empty: Engine, seed: int) -> None:
    """A conversation counts once, over midnight and for months, and after every write to it.

    What a fix of its failures would have saved is the same, too.
    """
    fleet, texts = _Fleet(empty, seed), TEXTS if seed == 1 else TEXTS + MORE_TEXTS
    fleet.send(40)
    fleet.check(texts)
    fleet.send(8)
    for n, ago in enumerate((2 * HOUR_US, 4 * DAY_US, 11 * DAY_US, 17 * DAY_US)):
        fleet.go_on(f"c{7 * n}", ago)  # later than all its calls, or earlier
    fleet.check(texts)
    prune(empty, max_calls=60, force=True, clock=lambda: NOW)
    fleet.check(texts)


@pytest.mark.parametrize(("empty", "seed"), _SEEDS, indirect=["empty"])
def test_what_is_stored_is_what_the_rows_say(empty: Engine, seed: int) -> None:
    """A server that starts tells what rows say, whatever came after the answers were stored."""
    fleet, is_long = _Fleet(empty, seed), seed > 1 or empty.dialect.name != "sqlite"
    texts = ("", "since:20d until:3d", "since:10d tool:order")[: 3 if is_long else 1]
    fleet.send(40 if is_long else 25)

    def store() -> int:
        return Storing(empty, days=21 if is_long else 2, tools=int(is_long)).store(
            NOW, lambda: False
        )

    assert store() > (50 if is_long else 20)
    if is_long:
        assert not store()
        fleet.check_new_server(texts)
    fleet.send(8)
    for n, ago in enumerate((30 * HOUR_US, 4 * DAY_US, 11 * DAY_US, 17 * DAY_US)):
        fleet.go_on(f"c{7 * n}", ago)
    fleet.check_new_server(texts)
    if is_long:
        assert store() > 50
        fleet.check_new_server(texts)
    prune(empty, max_calls=60, force=True, clock=lambda: NOW)
    fleet.check_new_server(texts)


@_long_on_postgresql
@pytest.mark.parametrize("hours", ["", "T06:00Z"])
def test_a_comparison_reads_no_day_that_is_stored(empty: Engine, hours: str) -> None:
    """Cohorts that differ in time alone, also those of a change, are made of what is stored.

    So are those that begin and end with a quarter of a day, and a day to which nothing came after
    the last round that it saw.
    """
    fleet, seen, tomorrow = _Fleet(empty, 1), list[str](), NOW + DAY_US
    fleet.send(40)
    storing = Storing(empty, days=5, tools=0)
    for now in (NOW, tomorrow):
        storing.store(now, lambda: False)
    started = open_engine(empty.url.render_as_string(hide_password=False))

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        if "tool_call.session_id" in statement or "chain.session_id" in statement:
            seen.append(statement)

    window = parse(f"since:2026-11-17{hours} until:2026-11-21{hours}")
    scope = Scope(fleet.project, window, tomorrow)
    with read_connection(started) as conn, cut(conn, always=True):
        event.listen(started, "before_cursor_execute", note)
        found = _cohort(conn, scope), _change(conn, scope)
    started.dispose()
    assert all(cells for cells, *_ in (found[0], *found[1]))
    assert seen == []


@_long_on_postgresql
def test_a_window_into_the_future_knows_the_quarters_of_today(empty: Engine) -> None:
    """Two weeks after a change of last week end next week: of today the hours alone are read."""
    fleet, begins, evening = _Fleet(empty, 1), list[int](), NOW + 6 * HOUR_US
    fleet.send(40)
    Storing(empty, days=5, tools=0).store(evening, lambda: False)
    started = open_engine(empty.url.render_as_string(hide_password=False))

    def note(_conn: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if "tool_call.session_id" in statement or "chain.session_id" in statement:
            values = parameters.values() if isinstance(parameters, dict) else parameters
            begins.append(min(each for each in values if isinstance(each, int) and each > DAY_US))

    scope = Scope(fleet.project, parse("since:2026-11-18 until:2026-12-01"), evening)
    with read_connection(started) as conn, cut(conn, always=True):
        event.listen(started, "before_cursor_execute", note)
        assert _cohort(conn, scope)[0]
    started.dispose()
    assert begins
    assert min(begins) >= evening


@_long_on_postgresql
def test_each_conversation_counts_with_all_its_calls(empty: Engine) -> None:
    """The sums over conversations are those over the calls that agents made, counted ones too."""
    fleet = _Fleet(empty, 3)
    fleet.send(50)
    scope = Scope(fleet.project, parse(""), NOW)
    with read_connection(empty) as conn:
        assert not is_asked_at_once(conn, scope)
        found = calls_of_conversations(conn, scope)
        assert count_conversations(conn, scope) == [len(fleet.calls)]
    assert found.failures == _moments(fleet.calls.values())
    for tool in TOOLS:
        of_tool = [[call for call in calls if call[0] == tool] for calls in fleet.calls.values()]
        assert found.failures_of[tool] == _moments(of_tool)


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_clickhouse_adds_up_the_same_conversations(empty: Engine) -> None:
    """Each counts as often and with as many calls as with SQL, whichever of its ends are asked."""
    pytest.importorskip("chdb", reason="the engine of ClickHouse (chdb) is not installed")
    fleet = _Fleet(empty, 3)
    fleet.send(50)
    url = empty.url.render_as_string(hide_password=False)
    other, columnar = open_engine(url), open_events(copied_to_clickhouse(url))
    read_events_from(other, columnar)
    for text in ("", "since:9d until:30h tool:order"):
        scope = Scope(fleet.project, parse(text), NOW)
        with read_connection(empty) as conn, reading(other) as conn_of_other:
            one, same = (calls_of_conversations(each, scope) for each in (conn, conn_of_other))
        assert (same.failures, same.failures_of) == (one.failures, one.failures_of), text
    for engine in (other, columnar):
        engine.dispose()


ODD_TEXTS: Final = (
    "",
    "since:9d",
    "since:9d until:4d",
    "tool:search since:8d",
    "-tool:order",
    "agent:a",
    "model:m since:7d until:2d",
    "code:wrong_type",
)


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("seed", "sampled", "counted"),
    [(1, False, True), (2, True, True), (3, False, False), (4, True, False)],
)
def test_clickhouse_adds_up_odd_conversations(
    empty: Engine, seed: int, sampled: bool, counted: bool
) -> None:
    """Calls of several models, sampled ones, those outside; ends that name what nobody reported."""
    pytest.importorskip("chdb", reason="the engine of ClickHouse (chdb) is not installed")
    project = _send_odd(empty, Random(seed), sampled=sampled, counted=counted)
    url = empty.url.render_as_string(hide_password=False)
    other, columnar = open_engine(url), open_events(copied_to_clickhouse(url))
    read_events_from(other, columnar)
    for text in ODD_TEXTS:
        scope = Scope(project, parse(text), NOW)
        with read_connection(empty) as conn, reading(other) as conn_of_other:
            one, same = (
                _flat(calls_of_conversations(each, scope)) for each in (conn, conn_of_other)
            )
            for only in ("all", "tool", "code"):
                part = _flat(calls_of_conversations(conn_of_other, scope, only))
                assert part.items() <= same.items(), text
        assert same == pytest.approx(one), text
    for engine in (other, columnar):
        engine.dispose()


@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_clickhouse_adds_up_any_number_of_calls(empty: Engine) -> None:
    """The square of what an end names may be more than 64 bits hold."""
    pytest.importorskip("chdb", reason="the engine of ClickHouse (chdb) is not installed")
    fleet, at = _Fleet(empty, 0), NOW - DAY_US
    named = {"search": 4 * 10**9}
    ends = [fleet._event("conversation_end", at + n, session_id="c", calls=named) for n in range(2)]
    squared = {"conversations": 1, "calls_squared": 2**40}
    counts = [fleet._counts(at, tool, calls=n, **squared) for tool, n in (("search", 9), (None, 0))]
    fleet._store([fleet._call("c", at, "search", failed=True), *ends, *counts])
    url = empty.url.render_as_string(hide_password=False)
    other, columnar = open_engine(url), open_events(copied_to_clickhouse(url))
    read_events_from(other, columnar)
    scope = Scope(fleet.project, parse(""), NOW)
    with read_connection(empty) as conn, reading(other) as conn_of_other:
        one, same = (_flat(calls_of_conversations(each, scope)) for each in (conn, conn_of_other))
    assert same == pytest.approx(one)
    for engine in (other, columnar):
        engine.dispose()


def _flat(found: CallClusters) -> dict[str, float]:
    """Return all sums that are not 0, by name."""
    moments = {"failures": found.failures, "first": found.first_try_failures}
    for kind in ("failures_of", "first_try_failures_of", "by_code"):
        moments |= {f"{kind} {name}": own for name, own in getattr(found, kind).items()}
    return {
        f"{name} {place}": number
        for name, own in moments.items()
        for place, number in enumerate(own)
        if number
    }


def _send_odd(engine: Engine, random: Random, *, sampled: bool, counted: bool) -> int:
    """Store conversations whose senders disagree; return the project."""
    fleet, tools = _Fleet(engine, 0), ("search", "order", "mail", "never")
    events = list[dict[str, Any]]()
    for number in range(60):
        begin = NOW - random.randrange(14 * DAY_US)
        for _ in range(random.randint(0, 7)):
            at = begin + random.choice((random.randrange(HOUR_US), random.randrange(6 * DAY_US)))
            call = fleet._call(
                f"c{number}", at, random.choice(tools[:3]), failed=random.random() < 0.6
            )
            call |= {"agent": random.choice("ab"), "model": random.choice(("m", "n"))}
            if random.random() < 0.1:
                del call["session_id"]
            if sampled and random.random() < 0.4:
                call["sample_rate"] = random.choice((0.5, 0.1))
            events.append(call)
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            named = {tool: random.randrange(5) for tool in random.sample(tools, 3)}
            at = begin + random.randrange(8 * DAY_US)
            events.append(
                fleet._event("conversation_end", at, session_id=f"c{number}", calls=named)
            )
            if counted and random.random() < 0.8:
                for tool, n in (*named.items(), (None, sum(named.values()))):
                    calls = 0 if tool is None else random.randrange(3)
                    events.append(
                        fleet._counts(at, tool, calls=calls, conversations=1, calls_squared=n * n)
                    )
    random.shuffle(events)
    fleet._store([event for event in events if event["occurred_at"] < format_time(NOW)])
    return fleet.project


def _moments(conversations: Any) -> Moments:
    pairs = [(sum(failed for _, failed in calls), len(calls)) for calls in conversations if calls]
    return Moments(
        len(pairs),
        sum(f * f for f, _ in pairs),
        sum(f * n for f, n in pairs),
        sum(n * n for _, n in pairs),
    )
