"""Every figure equals a naive recount over the rows, with and without filters.

SQLite is asked with every kind of denominator and, in the long run, with every filter; PostgreSQL
with one: what differs there is how it is asked. What a filter selects `search/test_where` shows.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables, codes_of, load, matches

from toolfault_collector.admin.projects import find_project
from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.storage.database.engine import read_connection
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import effective_interval, wilson, wilson_share
from toolfault_dashboard.queries import FREQUENCIES, Scope
from toolfault_dashboard.queries.counting.segments import cut
from toolfault_dashboard.queries.figures.summaries import calls_per_trial
from toolfault_dashboard.queries.rows import Facets
from toolfault_dashboard.search import FACETS, parse

TEXTS = (
    "",
    "-tool:http_request since:14d",
    "chain:recovered,none",
    "tool:nothing_like_it",
)
MORE_TEXTS = (
    "tool:http_request,search",
    "field:port -audience:user",
    "code:wrong_type,not_found model:claude*",
    'since:2026-11-01 until:2026-11-15 model:""',
    "variant:treatment has:near_miss",
    "conversation:conv-*",
    "-conversation:conv-7,conv-8 -tool:search",
    "time:none",
    "first_seen:24d",
)
ONE = "code:wrong_type,not_found model:claude* since:28d"
each_text = on_engines("text", TEXTS, [ONE], long=MORE_TEXTS)

# Of calls and folded successes these are known, so a rate by them has a denominator of its own.
OF_CALLS = {"tool", "model", "agent", "release", "variant", "environment"}
# Every dimension with a filter and every filter with a dimension.
PAIRS = list(zip(FREQUENCIES, (*TEXTS, *MORE_TEXTS), strict=True))
# Days with every filter, hours with some: a bucket differs in its width alone.
HOUR, DAY = ("hour", 60 * MINUTE_US), ("day", DAY_US)
BUCKETS = [*((*DAY, text) for text in TEXTS), (*HOUR, TEXTS[1])]
MORE_BUCKETS = [*((*DAY, text) for text in MORE_TEXTS), (*HOUR, MORE_TEXTS[2])]


@pytest.fixture
def asked(project: int, text: str) -> Scope:
    """A scope to recount."""
    return Scope(project, parse(text), NOW)


def _count(rows: list[dict[str, Any]], column: str, weight: str | None = None) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row[column] or ""] += row[weight] if weight else 1
    return dict(found)


@each_text
def test_conversation_rungs(conn: Connection, asked: Scope, stored: Tables) -> None:
    """What named the conversations, by framework and side, and which failures are in no chain."""
    found = queries.conversation_rungs(conn, asked)
    failures = stored.failures(asked.query, NOW)
    expected = Counter(
        (
            failure["conversation_rung"],
            failure["framework"] or "",
            failure["side"] or "",
            failure["chain_id"] is not None,
        )
        for failure in failures
    )
    assert {
        (row.rung, row.framework, row.side, row.chained): row.failures for row in found.rows
    } == expected
    assert (found.failures, found.chained) == (
        len(failures),
        sum(failure["chain_id"] is not None for failure in failures),
    )
    alone = sum(failure["session_id"] is None for failure in failures)
    assert dict(found.unchained) == ({"nothing named the conversation": alone} if alone else {})
    assert all(row.chained == (row.because == "") for row in found.rows)


@each_text
def test_summary(conn: Connection, asked: Scope, stored: Tables) -> None:
    """Calls, failures, chains, outcomes and round trips are those of the rows."""
    found = queries.summary(conn, asked)
    failures = stored.failures(asked.query, NOW)
    calls = stored.denominators(asked.query, NOW)
    chains = stored.opened(asked.query, NOW)
    recovered = [c for c in chains if c["outcome_now"] == "recovered"]
    assert found.calls == sum(c["calls"] for c in calls)
    assert found.failures == len(failures)
    assert found.failure_rate == (len(failures) / found.calls if found.calls else None)
    assert found.chains == len(chains)
    outcomes = Counter(c["outcome_now"] for c in chains)
    assert (found.recovered, found.switched, found.abandoned, found.open) == tuple(
        outcomes[name] for name in ("recovered", "switched", "abandoned", "open")
    )
    assert found.recovered + found.switched + found.abandoned + found.open == found.chains
    assert found.round_trips == sum(c["round_trips"] for c in chains)
    assert found.calls_spent == sum(c["spent"] for c in chains)
    mean = sum(c["failures"] for c in recovered) / len(recovered) if recovered else None
    assert found.mean_failures_before_recovery == mean
    assert dict(found.codes) == Counter(code for each in failures for code in codes_of(each))
    assert {name: tool.calls for name, tool in found.tools.items()} == _count(
        calls, "tool", "calls"
    )
    assert {n: t.failures for n, t in found.tools.items() if t.failures} == _count(failures, "tool")


def test_conversations_are_counted_once(conn: Connection, scope: Scope, stored: Tables) -> None:
    """Conversations are those with a call and those that senders only counted, none twice."""
    with_calls = {c["session_id"] for c in stored.calls if c["session_id"]}
    told = sum(c["conversations"] for c in stored.counts if not c["tool"])
    ended = {s for s in with_calls if s.startswith("conv-") and int(s[5:]) % 3 != 0}
    expected = len(with_calls) + max(0, told - len(ended))
    assert queries.summary(conn, scope).conversations == expected


@each_text
def test_overview(conn: Connection, asked: Scope, stored: Tables) -> None:
    """First-try success counts operations: calls that are no retries."""
    found = queries.overview(conn, asked)
    failures = stored.failures(asked.query, NOW)
    outside = sum(1 for c in failures if c["chain_id"] is None)
    first = found.summary.chains + outside
    # A chain of these failures may go on in calls that are not of these.
    operations = max(found.summary.calls - found.summary.round_trips, first)
    assert (found.first_try.n, found.first_try.count) == (operations, operations - first)
    assert found.untimed_failures == sum(1 for c in failures if c["time_source"] == "none")
    outcomes = Counter(chain["outcome_now"] for chain in stored.opened(asked.query, NOW))
    assert found.recovery_rate.count == outcomes["recovered"]
    assert found.recovery_rate.n == outcomes.total() - outcomes["open"]
    if not found.summary.calls:
        assert found.failure_rate.value is found.failure_rate.low is None
        assert not stored.denominators(asked.query, NOW)
        return
    rate, interval = found.failure_rate, wilson(len(failures), found.summary.calls)
    assert rate.low is not None
    assert rate.high is not None
    if rate.clusters is not None:  # never narrower than that of independent calls
        assert rate.low <= interval.low + 1e-12
        assert rate.high >= interval.high - 1e-12
    per_failure = found.summary.round_trips / len(failures) if failures else None
    assert found.round_trips_per_failure == per_failure


@each_text
def test_intervals_are_those_of_conversations(
    conn: Connection, asked: Scope, stored: Tables
) -> None:
    """The recovery rate varies as its conversations do, that of each tool as those of the tool."""
    closed = [c for c in stored.opened(asked.query, NOW) if c["outcome_now"] != "open"]
    found = queries.overview(conn, asked).recovery_rate
    assert (found.low, found.high) == pytest.approx(_interval(closed))
    for group in queries.chains_by(conn, asked, "tool"):
        own = [c for c in closed if c["tool"] == group.name]
        rate = group.recovery_rate
        assert (rate.low, rate.high) == pytest.approx(_interval(own))


def _interval(chains: list[dict[str, Any]]) -> tuple[float, float] | tuple[None, None]:
    """The interval of the share that recovered, from conversations one by one."""
    if not chains:
        return None, None
    talks: defaultdict[str, list[bool]] = defaultdict(list)
    for chain in chains:
        talks[chain["session_id"]].append(chain["outcome_now"] == "recovered")
    sums = [(sum(each), len(each)) for each in talks.values()]
    part, whole, count = sum(f for f, _ in sums), len(chains), len(sums)
    share, effect, degrees, most = part / whole, 1.0, 1.0, math.inf
    if count >= 2:
        variance = sum((f - share * n) ** 2 for f, n in sums) / whole**2 * count / (count - 1)
        effect = most = sum(n * n for _, n in sums) / whole
        if 0 < share < 1:
            effect = max(1.0, variance * whole / (share * (1 - share)))
        both = [f for f, _ in sums], [n - f for f, n in sums]
        like = [sum(each) ** 2 / sum(f * f for f in each) for each in both if any(each)]
        degrees = max(1.0, min(count, *like) - 1)
    interval = effective_interval(share, whole, effect, degrees, most=most)
    return interval.low, interval.high


@on_engines("bucket,width,text", BUCKETS, [(*DAY, ONE)], long=MORE_BUCKETS)
def test_over_time(
    conn: Connection, asked: Scope, stored: Tables, bucket: queries.Bucket, width: int
) -> None:
    """Buckets have no gaps, begin and end with a call, hold each timed failure once, no other."""
    found = queries.failures_over_time(conn, asked, bucket=bucket, top=2)
    failures = stored.failures(asked.query, NOW)
    timed = [c for c in failures if c["time_source"] != "none"]
    assert found.untimed == len(failures) - len(timed)
    lines = [*found.series, *([found.other] if found.other else [])]
    assert sum(line.total for line in lines) == len(timed)
    assert len(found.series) <= 2
    assert all(b - a == width for a, b in zip(found.starts, found.starts[1:], strict=False))
    assert found.earlier == 0
    if not asked.query.has("since", "until"):
        calls = stored.denominators(asked.query, NOW)
        times = [
            int(c["minute"] if "minute" in c else c["occurred_at"])
            for c in calls
            if c.get("time_source") != "none"
        ]
        ends = [end(times) // width * width for end in (min, max) if times]
        assert ends == [*found.starts[:1], *found.starts[1:][-1:]]
    expected = Counter((c["code"], c["occurred_at"] // width * width) for c in timed)
    for line in found.series:
        for start, count in zip(found.starts, line.counts, strict=True):
            assert count == expected[line.name, start]
    for at, start in enumerate(found.starts):
        failed = sum(n for (_, begin), n in expected.items() if begin == start)
        assert found.rates[at].count == failed
        assert found.rates[at].n == max(found.calls[at], failed)


@each_text
def test_the_rate_of_a_bucket_is_as_uncertain_as_that_of_its_window(
    conn: Connection, asked: Scope
) -> None:
    """A call of one day tells as much of the day as any call tells of the whole window."""
    found = queries.failures_over_time(conn, asked, bucket="day")
    whole = queries.overview(conn, asked).failure_rate
    calls = [rate.n for rate in found.rates if rate.n]
    if whole.value is None or not calls:
        return
    per_trial = calls_per_trial(conn, asked)
    interval = wilson_share(whole.value, whole.n / per_trial)
    assert (whole.low, whole.high) == pytest.approx((interval.low, interval.high))
    for rate in found.rates:
        if rate.value is not None:
            interval = wilson_share(rate.count / rate.n, rate.n / per_trial)
            assert (rate.low, rate.high) == (interval.low, interval.high)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("since:2026-11-18T06:00:00Z until:2026-11-20T00:00:00Z", [True, False]),
        ("since:2026-11-18T00:00:00Z until:2026-11-19T12:00:00Z", [False, True]),
        ("since:2026-11-18T00:00:00Z until:2026-11-20T00:00:00Z", [False, False]),
    ],
)
def test_a_part_of_a_day_is_marked(
    conn: Connection, scope: Scope, text: str, cut: list[bool]
) -> None:
    """A bucket of which the window holds only a part is named, a whole one is not."""
    found = queries.failures_over_time(conn, replace(scope, query=parse(text)), bucket="day")
    assert [at in found.cut for at in range(len(found.starts))] == cut


def test_today_is_a_part_of_a_day(conn: Connection, scope: Scope) -> None:
    """Of a window that ends later, the day that is not over yet is marked, and none after it."""
    for text in ("since:2d", "since:2d until:2027-01-01T00:00:00Z"):
        found = queries.failures_over_time(conn, replace(scope, query=parse(text)), bucket="day")
        today = found.starts.index(NOW // DAY_US * DAY_US)
        assert today == found.cut[-1]


@on_engines("by,text", PAIRS, [(by, ONE) for by in FREQUENCIES[::5]])
def test_frequency(conn: Connection, asked: Scope, stored: Tables, by: queries.Dimension) -> None:
    """Each row's failures are exactly those its own query selects; its rate has its own calls."""
    found = queries.frequency(conn, asked, by)
    failures = stored.failures(asked.query, NOW)
    calls = stored.denominators(asked.query, NOW)
    assert found.failures == len(failures)
    if by not in {"code", "field", "field_pattern", "variant"}:
        assert sum(row.failures for row in found.rows) == len(failures)
    assert bool(found.rows) == bool(failures)
    for row in found.rows:
        query = parse(row.query)
        own = [each for each in failures if matches(query, each, NOW)]
        assert row.failures == len(own), row.query
        of = [
            each["calls"]
            for each in calls
            if (row.tool is None or each["tool"] == row.tool)
            and (by not in OF_CALLS or matches(query, each, NOW))
        ]
        assert row.rate.n == max(sum(of), row.failures)
        times = [each["occurred_at"] for each in own if each["time_source"] != "none"]
        assert (row.first_at, row.last_at) == (min(times, default=None), max(times, default=None))
    if by in {"tool", "code"}:  # the rates of Overview and Tools, intervals included
        elsewhere = (
            queries.rates_by_code(conn, asked)
            if by == "code"
            else {
                name: each.failure_rate for name, each in queries.rates_by_tool(conn, asked).items()
            }
        )
        assert [row.rate for row in found.rows] == [elsewhere[row.name] for row in found.rows]
    assert [row.failures for row in found.rows] == sorted(
        (row.failures for row in found.rows), reverse=True
    )


@each_text
def test_round_trips(conn: Connection, asked: Scope, stored: Tables) -> None:
    """Funnel, distribution and groups add up to the chains of the rows."""
    found = queries.round_trips(conn, asked)
    chains = stored.opened(asked.query, NOW)
    assert found.funnel.chains == len(chains)
    assert found.funnel.retried == sum(1 for c in chains if c["round_trips"] > 0)
    assert found.funnel.first_retry_fix == sum(1 for c in chains if c["first_retry_fix"])
    assert found.round_trips == sum(c["round_trips"] for c in chains)
    assert found.calls_spent == sum(c["spent"] for c in chains)
    expected = Counter((c["round_trips"], c["outcome_now"]) for c in chains)
    for line in found.distribution:
        for outcome in ("recovered", "switched", "abandoned", "open"):
            assert getattr(line, outcome) == expected[line.round_trips, outcome]
    for groups, column in (
        (found.by_tool, "tool"), (found.by_code, "first_code"), (found.by_model, "model"),
    ):  # fmt: skip
        assert {g.name: g.chains for g in groups} == _count(chains, column)
        assert {g.name: g.round_trips for g in groups} == _count(chains, column, "round_trips")
        assert {g.name: g.calls_spent for g in groups} == _count(chains, column, "spent")
        assert [(-g.calls_spent, -g.abandoned) for g in groups] == sorted(
            (-g.calls_spent, -g.abandoned) for g in groups
        )
        assert {g.name: g.identical_repeats for g in groups} == _count(
            chains, column, "identical_repeats"
        )
        assert sum(g.recovered for g in groups) == found.funnel.recovered
        for group in groups:
            own = Counter(c["outcome_now"] for c in chains if (c[column] or "") == group.name)
            assert group.recovery_rate.count == own["recovered"]
            assert group.recovery_rate.n == own.total() - own["open"]


@pytest.fixture(scope="module")
def _loaded() -> dict[str, Tables]:
    """Rows of the large history that were read, by engine: nobody writes to it."""
    return {}


@pytest.fixture
def known(large: Engine, _loaded: dict[str, Tables]) -> tuple[Scope, Tables]:
    """The large history and its rows."""
    with read_connection(large) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        if large.dialect.name not in _loaded:
            _loaded[large.dialect.name] = load(conn, project, NOW)
    return Scope(project, parse(""), NOW), _loaded[large.dialect.name]


def _are_counted(found: Facets, asked: Scope, stored: Tables, most: int) -> None:
    assert found.counted == len(stored.failures(asked.query, NOW))
    assert found.exact == all(facet.exact for facet in found.facets)
    assert [facet.key for facet in found.facets] == list(FACETS)
    for facet in found.facets:
        kept = type(asked.query)(
            tuple(c for c in asked.query.clauses if c.key != facet.key or c.negated)
        )
        every = stored.failures(kept, NOW)
        assert facet.counted == (len(every) if facet.exact else most)
        assert facet.exact or len(every) > most
        counted = every[: facet.counted]
        assert facet.distinct == len(facet.values)
        seen = set()
        for value in facet.values:
            alone = parse("").toggled(facet.key, value.value)
            own = {each["event_id"] for each in counted if matches(alone, each, NOW)}
            assert value.failures == len(own) > 0, (facet.key, value)
            seen |= own
        assert seen == {each["event_id"] for each in counted}, facet.key


@each_text
def test_facets(conn: Connection, asked: Scope, stored: Tables) -> None:
    """A facet's count is what is left when its value alone is chosen for its key."""
    found = queries.facets(conn, asked, limit=1_000)
    assert found.exact
    _are_counted(found, asked, stored, most=2**31)
    for facet in found.facets:
        for value in facet.values:
            assert value.selected == asked.query.selects(facet.key, value.value)


NEWEST = (("", 40), ("field:port -audience:user", 1), ("-tool:http_request since:14d", 150))


@on_engines("text,most", NEWEST, NEWEST[2:])
def test_facets_of_more_than_can_be_counted_say_which_failures_they_count(
    conn: Connection, asked: Scope, stored: Tables, most: int
) -> None:
    """A facet counts all failures or exactly the newest, and says so."""
    _are_counted(queries.facets(conn, asked, limit=1_000, most=most), asked, stored, most)


_FACETS = "toolfault_dashboard.queries.failures.facets"


@on_engines("text", ["-tool:http_request since:14d", "code:wrong_type model:gpt-5"])
def test_facets_of_a_window_that_can_be_read_count_all_failures(
    monkeypatch: pytest.MonkeyPatch, conn: Connection, asked: Scope, stored: Tables
) -> None:
    """Of a window that is not too large they count all, also of more than are exact elsewhere."""
    monkeypatch.setattr(f"{_FACETS}.EXACT_UP_TO", 10)
    for total in (None, len(stored.failures(asked.query, NOW))):  # a list of kinds knows it
        found = queries.facets(conn, asked, limit=1_000, total=total)
        assert found.exact
        _are_counted(found, asked, stored, most=2**31)
    monkeypatch.setattr(f"{_FACETS}.READ_UP_TO", 10)
    _are_counted(queries.facets(conn, asked, limit=1_000), asked, stored, most=10)


@on_engines("text,most", NEWEST[2:], history="large_url", long=NEWEST[:2])
def test_facets_that_are_kept_by_day_say_which_failures_they_count(
    large: Engine, known: tuple[Scope, Tables], text: str, most: int
) -> None:
    """Of a large history they count the same, the first time and from what is kept."""
    scope, stored = known
    asked = scope.narrowed(text)
    for _ in range(2):
        with read_connection(large) as conn:
            found = queries.facets(conn, asked, limit=1_000, most=most)
        _are_counted(found, asked, stored, most)


SELECTED = (
    "code:wrong_type model:gpt-5",
    "field:port issue:wrong_type",
    "code:wrong_type -variant:*=a chain:recovered,abandoned",
    "model:gpt-5 agent:* release:*",
)


@on_engines("text", SELECTED, SELECTED[:2], history="large_url")
def test_facets_of_rows_that_are_read_once_are_those_of_each_query(
    large: Engine, known: tuple[Scope, Tables], text: str
) -> None:
    """Of a large history each facet counts its own failures among the rows that all read."""
    scope, stored = known
    asked = scope.narrowed(text)
    with read_connection(large) as conn:
        found = queries.facets(conn, asked, limit=1_000)
    assert found.exact
    _are_counted(found, asked, stored, most=2**31)


@on_engines("text", SELECTED, SELECTED[1:2])
def test_facets_of_one_look_are_those_that_are_asked_at_once(conn: Connection, text: str) -> None:
    """Sizes that a look tells, where rollups tell that of the window, are the same."""
    project = find_project(conn, "timed")
    assert project is not None
    asked, found = Scope(project, parse(f"{text} since:20d"), NOW), []
    for always in (False, True):
        with read_connection(conn.engine) as own, cut(own, always=always):
            found.append(queries.facets(own, asked, limit=1_000))
    assert found[0] == found[1]
    assert 0 < found[0].counted < max(facet.counted for facet in found[0].facets)


@each_text
def test_values_are_of_all_failures_however_many(conn: Connection, asked: Scope) -> None:
    """Values that are asked for by themselves are those of a facet that counts all failures."""
    whole = {each.key: each.values for each in queries.facets(conn, asked, limit=20).facets}
    for key in FACETS:
        assert queries.values_of(conn, asked, key, limit=20) == whole[key]


@each_text
def test_lists_and_streams_hold_the_same_rows(
    conn: Connection, asked: Scope, stored: Tables
) -> None:
    """A list page by page, its total and its export are one and the same rows in one order."""
    expected = [c["event_id"] for c in stored.failures(asked.query, NOW)]
    stream = queries.iter_failures(conn, asked)
    place = stream.columns.index("event_id")
    assert [row[place] for row in stream.rows] == expected
    listed: list[str] = []
    cursor: str | None = None
    while True:
        page = queries.failure_list(conn, asked, cursor=cursor, limit=37)
        assert page.total == len(expected)
        listed += [row.event_id for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert listed == expected
    chains = queries.iter_chains(conn, asked)
    place = chains.columns.index("chain_id")
    assert [row[place] for row in chains.rows] == [
        c["chain_id"] for c in stored.opened(asked.query, NOW)
    ]
    issues = queries.iter_issues(conn, asked)
    assert sum(1 for _ in issues.rows) == sum(
        len(c["issues"]) for c in stored.failures(asked.query, NOW)
    )
