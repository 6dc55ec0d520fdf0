"""Every figure equals a naive recount over the rows, with and without filters, on both engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from sqlalchemy import Connection, Engine
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables, load

from toolfault_collector.clock import DAY_US, MINUTE_US
from toolfault_collector.engine import read_connection
from toolfault_collector.projects import find_project
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import wilson
from toolfault_dashboard.queries import FACET_KEYS, FREQUENCIES, Scope, parts
from toolfault_dashboard.search import parse

TEXTS = (
    "",
    "tool:http_request,search",
    "-tool:http_request since:14d",
    "code:wrong_type,not_found model:claude*",
    "field:port -audience:user",
    "chain:recovered,none",
    'since:2026-11-01 until:2026-11-15 model:""',
    "variant:treatment has:near_miss",
    "conversation:conv-*",
    "time:none",
    "tool:nothing_like_it",
)

# One filter of each sort is in the quick suite: none, one of a call, one of a failure.
QUICK = ("", "-tool:http_request since:14d", "field:port -audience:user")
EACH_TEXT = [
    text if text in QUICK else pytest.param(text, marks=pytest.mark.slow) for text in TEXTS
]

# Each field and signature is a query of its own: minutes, where the others take seconds. Of fields
# the quick suite asks for one sort.
LONGER = ("signature", "field_pattern")
EACH_FREQUENCY = [
    pytest.param(by, marks=pytest.mark.slow) if by in LONGER else by for by in FREQUENCIES
]


@pytest.fixture(scope="module")
def stored(history: Engine) -> Tables:
    """All rows of the generated project."""
    with read_connection(history) as conn:
        project = find_project(conn, "generated")
        assert project is not None
        return load(conn, project, NOW)


@pytest.fixture(params=EACH_TEXT)
def asked(request: pytest.FixtureRequest, project: int) -> Scope:
    """A scope to recount."""
    return Scope(project, parse(request.param), NOW)


def _count(rows: list[dict[str, Any]], column: str, weight: str | None = None) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[row[column] or ""] += row[weight] if weight else 1
    return dict(found)


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
    mean = sum(c["failures"] for c in recovered) / len(recovered) if recovered else None
    assert found.mean_failures_before_recovery == mean
    assert dict(found.codes) == _count(failures, "code")
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


def test_overview(conn: Connection, asked: Scope, stored: Tables) -> None:
    """First-try success counts operations: calls that are no retries."""
    found = queries.overview(conn, asked)
    failures = stored.failures(asked.query, NOW)
    outside = sum(1 for c in failures if c["chain_id"] is None)
    operations = found.summary.calls - found.summary.round_trips
    if operations >= found.summary.chains + outside:
        assert found.first_try.n == operations
        assert found.first_try.count == operations - found.summary.chains - outside
    assert found.untimed_failures == sum(1 for c in failures if c["time_source"] == "none")
    outcomes = Counter(chain["outcome_now"] for chain in stored.opened(asked.query, NOW))
    assert found.recovery_rate.count == outcomes["recovered"]
    assert found.recovery_rate.n == outcomes.total() - outcomes["open"]
    if found.failure_rate.n:
        interval = wilson(found.failure_rate.count, found.failure_rate.n)
        assert (found.failure_rate.low, found.failure_rate.high) == (interval.low, interval.high)


@pytest.mark.parametrize(("bucket", "width"), [("hour", 60 * MINUTE_US), ("day", DAY_US)])
def test_over_time(
    conn: Connection, asked: Scope, stored: Tables, bucket: queries.Bucket, width: int
) -> None:
    """Buckets have no gaps, hold every timed failure once, and no untimed one."""
    found = queries.failures_over_time(conn, asked, bucket=bucket, top=2)
    failures = stored.failures(asked.query, NOW)
    timed = [c for c in failures if c["time_source"] != "none"]
    assert found.untimed == len(failures) - len(timed)
    lines = [*found.series, *([found.other] if found.other else [])]
    assert sum(line.total for line in lines) == len(timed)
    assert len(found.series) <= 2
    assert all(b - a == width for a, b in zip(found.starts, found.starts[1:], strict=False))
    expected = Counter((c["code"], c["occurred_at"] // width * width) for c in timed)
    for line in found.series:
        for start, count in zip(found.starts, line.counts, strict=True):
            assert count == expected[line.name, start]


@pytest.mark.parametrize("by", EACH_FREQUENCY)
def test_frequency(conn: Connection, asked: Scope, stored: Tables, by: queries.Dimension) -> None:
    """Each row's failures are exactly those its own query selects; its rate has its own calls."""
    found = queries.frequency(conn, asked, by)
    failures = stored.failures(asked.query, NOW)
    assert found.failures == len(failures)
    if by not in {"field", "field_pattern", "variant"}:
        assert sum(row.failures for row in found.rows) == len(failures)
    for row in found.rows:
        narrowed = asked.narrowed(row.query)
        assert row.failures == len(stored.failures(narrowed.query, NOW)), row.query
        own = (
            parse(row.query)
            if by in {"tool", "model", "agent", "release", "variant", "environment"}
            else parse("")
        )
        base = asked.query.and_(own)
        if row.tool is not None:
            base = base.and_(parse(f'tool:"{row.tool}"'))
        calls = sum(c["calls"] for c in stored.denominators(base, NOW))
        assert row.rate.n == max(calls, row.failures)
        times = [
            c["occurred_at"]
            for c in stored.failures(narrowed.query, NOW)
            if c["time_source"] != "none"
        ]
        assert (row.first_at, row.last_at) == (min(times, default=None), max(times, default=None))
    assert [row.failures for row in found.rows] == sorted(
        (row.failures for row in found.rows), reverse=True
    )


def test_round_trips(conn: Connection, asked: Scope, stored: Tables) -> None:
    """Funnel, distribution and groups add up to the chains of the rows."""
    found = queries.round_trips(conn, asked)
    chains = stored.opened(asked.query, NOW)
    assert found.funnel.chains == len(chains)
    assert found.funnel.retried == sum(1 for c in chains if c["round_trips"] > 0)
    assert found.funnel.first_retry_fix == sum(1 for c in chains if c["first_retry_fix"])
    assert found.round_trips == sum(c["round_trips"] for c in chains)
    expected = Counter((c["round_trips"], c["outcome_now"]) for c in chains)
    for line in found.distribution:
        for outcome in ("recovered", "switched", "abandoned", "open"):
            assert getattr(line, outcome) == expected[line.round_trips, outcome]
    for groups, column in (
        (found.by_tool, "tool"), (found.by_code, "first_code"), (found.by_model, "model"),
    ):  # fmt: skip
        assert {g.name: g.chains for g in groups} == _count(chains, column)
        assert {g.name: g.round_trips for g in groups} == _count(chains, column, "round_trips")
        assert {g.name: g.identical_repeats for g in groups} == _count(
            chains, column, "identical_repeats"
        )
        assert sum(g.recovered for g in groups) == found.funnel.recovered
        for group in groups:
            own = Counter(c["outcome_now"] for c in chains if (c[column] or "") == group.name)
            assert group.recovery_rate.count == own["recovered"]
            assert group.recovery_rate.n == own.total() - own["open"]


def test_facets(conn: Connection, asked: Scope, stored: Tables) -> None:
    """A facet's count is what is left when its value alone is chosen for its key."""
    found = queries.facets(conn, asked, limit=1_000)
    assert found.exact
    assert [facet.key for facet in found.facets] == list(FACET_KEYS)
    for facet in found.facets:
        kept = type(asked.query)(
            tuple(c for c in asked.query.clauses if c.key != facet.key or c.negated)
        )
        assert facet.distinct == len(facet.values)
        for value in facet.values:
            chosen = kept.toggled(facet.key, value.value)
            assert value.failures == len(stored.failures(chosen, NOW)), (facet.key, value)
            assert value.selected == asked.query.selects(facet.key, value.value)


@pytest.mark.parametrize("most", [1, 40, 150])
@pytest.mark.parametrize("many", [0, 2**62], ids=["parts", "whole"])
def test_facets_of_more_than_can_be_counted_say_which_failures_they_count(
    history: Engine,
    asked: Scope,
    stored: Tables,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    many: int,
) -> None:
    """A facet counts all failures or exactly the newest, and says so, kept by day or not."""
    monkeypatch.setattr(parts, "MANY", many)
    for _ in range(2):  # the second time from what is kept
        with read_connection(history) as conn:
            found = queries.facets(conn, asked, limit=1_000, most=most)
        rows = stored.failures(asked.query, NOW)
        assert found.counted == min(most, len(rows))
        assert found.exact == all(facet.exact for facet in found.facets)
        for facet in found.facets:
            kept = type(asked.query)(
                tuple(c for c in asked.query.clauses if c.key != facet.key or c.negated)
            )
            every = [c["event_id"] for c in stored.failures(kept, NOW)]
            assert facet.counted == (len(every) if facet.exact else most)
            assert facet.exact or len(every) > most
            counted = set(every[: facet.counted])
            assert facet.distinct == len(facet.values)
            seen = set()
            for value in facet.values:
                chosen = stored.failures(kept.toggled(facet.key, value.value), NOW)
                expected = counted & {c["event_id"] for c in chosen}
                assert value.failures == len(expected) > 0, (facet.key, value)
                seen |= expected
            assert seen == counted, facet.key


def test_values_are_of_all_failures_however_many(conn: Connection, asked: Scope) -> None:
    """Values that are asked for by themselves are those of a facet that counts all failures."""
    whole = {each.key: each.values for each in queries.facets(conn, asked, limit=20).facets}
    for key in FACET_KEYS:
        assert queries.values_of(conn, asked, key, limit=20) == whole[key]


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
