"""Sampled calls count as those that they stand for: every figure is recounted with weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection
from tests.dashboard.conftest import on_engines
from tests.dashboard.generated import NOW
from tests.dashboard.naive import Tables, codes_of, matches

from toolfault_collector.admin.projects import find_project
from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.estimates import crude
from toolfault_dashboard.analysis.comparisons.metrics import METRICS
from toolfault_dashboard.analysis.prices import parse_prices
from toolfault_dashboard.analysis.rates import Rate, wilson_share
from toolfault_dashboard.exports.fixes import fixes_markdown
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.comparisons.cohorts import cohort_of
from toolfault_dashboard.search import Query, parse

TEXTS = ("", "-tool:http_request since:14d", "code:wrong_type,not_found model:claude*")
MORE_TEXTS = (
    "tool:http_request,search",
    "since:2026-11-01T05:00 until:2026-11-15T07:00",
    "chain:recovered,none",
)
ONE = "-tool:http_request since:14d code:wrong_type,not_found"
each_text = on_engines("text", TEXTS, [ONE], long=MORE_TEXTS)
DIMENSIONS: tuple[queries.Dimension, ...] = (
    "code", "tool", "model", "field", "message", "signature",
)  # fmt: skip
Rows = list[dict[str, Any]]


@pytest.fixture
def stored(rows_of: Callable[[str], Tables]) -> Tables:
    """All rows of the sampled project."""
    return rows_of("sampled")


@pytest.fixture
def everything(conn: Connection) -> Scope:
    """The sampled project."""
    project = find_project(conn, "sampled")
    assert project is not None
    return Scope(project, parse(""), NOW)


@pytest.fixture
def asked(everything: Scope, text: str) -> Scope:
    """A scope to recount."""
    return everything.narrowed(text)


def _weight(row: dict[str, Any]) -> float:
    return 1.0 / row.get("sample_rate", 1.0)


@dataclass(frozen=True, slots=True)
class _Sums:
    """What rows stand for together, the sum of squares of it, and how many calls are in them."""

    n: int = 0  # a minute of counts is many
    weight: float = 0.0
    square: float = 0.0


def _added(rows: Rows) -> _Sums:
    each = [(row.get("calls", 1), _weight(row)) for row in rows]
    return _Sums(
        sum(n for n, _ in each), fsum(n * w for n, w in each), fsum(n * w**2 for n, w in each)
    )


def _near(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, abs=0.5 + 1e-4)


def _is_rate(found: Rate, part: _Sums, of: _Sums) -> None:
    """A share of weights, with Wilson's interval at p (1 - p) / linearised variance."""
    if of.weight < part.weight:
        of = part
    if not of.n:
        assert found.value is None
        return
    assert (found.count, found.n) == (part.n, max(of.n, part.n))
    total = of.weight
    p = part.weight / total
    assert found.value == pytest.approx(p, abs=1e-6)
    squares = part.square, of.square
    variance = (squares[0] * (1 - p) ** 2 + (squares[1] - squares[0]) * p**2) / total**2
    n = p * (1 - p) / variance if 0 < p < 1 else total**2 / squares[1]
    interval = wilson_share(p, n)
    if found.clusters is None:
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=2e-3)
    else:  # never narrower than that of independent calls
        assert (found.low or 0) <= interval.low + 2e-3
        assert (found.high or 1) >= interval.high - 2e-3
    assert found.weighed == (part.n != part.weight or of.n != total)


def _own(rows: Rows, column: str, value: str) -> Rows:
    return [row for row in rows if (row[column] or "") == value]


def _of_code(rows: Rows, code: str) -> Rows:
    return [row for row in rows if code in codes_of(row)]


def _chains(stored: Tables, query: Query) -> Rows:
    """Chains with what their opening failure stands for."""
    by_event = {call["event_id"]: call for call in stored.calls}
    return [
        chain | {"sample_rate": by_event[chain["chain_id"]]["sample_rate"], "calls": 1}
        for chain in stored.opened(query, NOW)
    ]


@each_text
def test_summary_and_overview(conn: Connection, asked: Scope, stored: Tables) -> None:
    """Counts are sums of weights, rates are ratios of them, n is what is there."""
    found = queries.overview(conn, asked)
    calls, failures = stored.denominators(asked.query, NOW), stored.failures(asked.query, NOW)
    chains = _chains(stored, asked.query)
    summary = found.summary
    all_calls, all_failures, all_chains = _added(calls), _added(failures), _added(chains)
    assert found.sampled
    _near(summary.calls, all_calls.weight)
    _near(summary.failures, all_failures.weight)
    assert summary.failure_rate == pytest.approx(all_failures.weight / all_calls.weight, abs=1e-6)
    for name, tool in summary.tools.items():
        _near(tool.calls, _added(_own(calls, "tool", name)).weight)
        _near(tool.failures, _added(_own(failures, "tool", name)).weight)
    for code, number in summary.codes.items():
        _near(number, _added(_of_code(failures, code)).weight)
    for outcome in ("recovered", "switched", "abandoned", "open"):
        _near(getattr(summary, outcome), _added(_own(chains, "outcome_now", outcome)).weight)
    trips = sum(_weight(chain) * chain["round_trips"] for chain in chains)
    _near(summary.round_trips, trips)
    _is_rate(found.failure_rate, all_failures, all_calls)
    closed = [chain for chain in chains if chain["outcome_now"] != "open"]
    _is_rate(found.recovery_rate, _added(_own(closed, "outcome_now", "recovered")), _added(closed))
    outside = [call for call in failures if call["chain_id"] is None]
    first = all_chains.weight + _added(outside).weight
    operations = all_calls.weight - trips
    assert operations > first
    assert found.first_try.value == pytest.approx(1 - first / operations, abs=1e-6)
    rows = all_calls.n - sum(chain["round_trips"] for chain in chains)
    assert found.first_try.n == rows


@each_text
def test_rates_by_tool_and_code(conn: Connection, asked: Scope, stored: Tables) -> None:
    """The rates of the tables are those of their rows."""
    calls, failures = stored.denominators(asked.query, NOW), stored.failures(asked.query, NOW)
    for name, rates in queries.rates_by_tool(conn, asked).items():
        _is_rate(
            rates.failure_rate,
            _added(_own(failures, "tool", name)),
            _added(_own(calls, "tool", name)),
        )
    for code, each in queries.rates_by_code(conn, asked).items():
        _is_rate(each, _added(_of_code(failures, code)), _added(calls))


@on_engines(
    "by,text",
    [*zip(DIMENSIONS, (*TEXTS, *MORE_TEXTS), strict=True)],
    [(by, ONE) for by in DIMENSIONS[::3]],
)
def test_frequency(conn: Connection, asked: Scope, stored: Tables, by: queries.Dimension) -> None:
    """Each row's failures are the weights of those that its own query selects."""
    found = queries.frequency(conn, asked, by)
    failures, calls = stored.failures(asked.query, NOW), stored.denominators(asked.query, NOW)
    assert found.rows
    _near(found.failures, _added(failures).weight)
    for row in found.rows:
        query = parse(row.query)
        own = [each for each in failures if matches(query, each, NOW)]
        _near(row.failures, _added(own).weight)
        of = [
            each
            for each in calls
            if (row.tool is None or each["tool"] == row.tool)
            and (by not in {"tool", "model"} or matches(query, each, NOW))
        ]
        _is_rate(row.rate, _added(own), _added(of))
        assert row.rate.count == len(own)


@pytest.mark.parametrize("by", ["code", "field"])
@each_text
def test_matrix(conn: Connection, asked: Scope, stored: Tables, by: Any) -> None:
    """Cells and lines are weights; nothing is lost in what is hidden."""
    found = queries.matrix(conn, asked, by)
    failures = stored.failures(asked.query, NOW)
    for cell in found.cells:
        own = _own(failures, "tool", cell.tool)
        own = [
            call
            for call in own
            if cell.column in codes_of(call)
            or (by == "field" and cell.column in {i["root_field"] for i in call["issues"]})
        ]
        _near(cell.failures, _added(own).weight)
    for line in found.tools:
        _near(line.failures, _added(_own(failures, "tool", line.tool)).weight)
    assert found.hidden == 0


@pytest.mark.parametrize("bucket", [pytest.param("hour", marks=pytest.mark.long), "day"])
@each_text
def test_over_time(conn: Connection, asked: Scope, stored: Tables, bucket: queries.Bucket) -> None:
    """Every bucket has the weights of its calls and failures, and a rate of the unrounded."""
    width = DAY_US if bucket == "day" else DAY_US // 24
    found = queries.failures_over_time(conn, asked, bucket=bucket, top=20)

    def sums(rows: Rows, key: Callable[[dict[str, Any]], Any]) -> dict[Any, float]:
        added: defaultdict[Any, float] = defaultdict(float)
        for row in rows:
            added[key(row)] += row.get("calls", 1) * _weight(row)
        return added

    def at(row: dict[str, Any]) -> int:
        return int(row["minute" if "minute" in row else "occurred_at"]) // width * width

    calls = sums(stored.denominators(asked.query, NOW), at)
    failures = sums(stored.failures(asked.query, NOW), lambda row: (row["code"], at(row)))
    for place, start in enumerate(found.starts):
        _near(found.calls[place], calls[start])
        for line in found.series:
            _near(line.counts[place], failures[line.name, start])
        failed = sum(weight for (_, begin), weight in failures.items() if begin == start)
        share = failed / max(calls[start], failed) if failed or calls[start] else None
        assert found.rates[place].value == pytest.approx(share)
        assert found.rates[place].weighed == (share is not None)


@each_text
def test_round_trips_and_costs(conn: Connection, asked: Scope, stored: Tables) -> None:
    """A chain stands for as many as the failure that opened it."""
    chains = _chains(stored, asked.query)
    found = queries.round_trips(conn, asked)
    retried = [chain for chain in chains if chain["round_trips"] > 0]
    _near(found.funnel.retried, _added(retried).weight)
    fixed = [chain for chain in retried if chain["first_retry_fix"]]
    _is_rate(found.first_retry_rate, _added(fixed), _added(retried))
    for group in found.by_tool:
        own = _own(chains, "tool", group.name)
        _near(group.round_trips, sum(_weight(c) * c["round_trips"] for c in own))
        _near(group.calls_spent, sum(_weight(c) * c["spent"] for c in own))
        closed = [chain for chain in own if chain["outcome_now"] != "open"]
        recovered = _own(closed, "outcome_now", "recovered")
        _is_rate(group.recovery_rate, _added(recovered), _added(closed))
    for row in queries.costs(conn, asked, "tool", parse_prices("")).rows:
        own = _own(chains, "tool", row.name)
        assert row.time_lost_ms == pytest.approx(sum(_weight(c) * c["time_lost_ms"] for c in own))
        told = [chain for chain in own if chain["tokens_lost"] is not None]
        _near(row.tokens_lost or 0, sum(_weight(c) * c["tokens_lost"] for c in told))


@on_engines("text", TEXTS[1:2], [ONE], long=[TEXTS[0], *TEXTS[2:], *MORE_TEXTS])
def test_messages(conn: Connection, asked: Scope, stored: Tables) -> None:
    """Failures of a wording are weights, and its rates ratios of them."""
    failures = stored.failures(asked.query, NOW)
    answered = 0
    for row in (row for group in queries.message_efficacy(conn, asked) for row in group.rows):
        query = parse(row.query)
        own = [each for each in failures if matches(query, each, NOW)]
        _near(row.failures, _added(own).weight)
        assert row.recovery.n <= len(own)
        answered += row.recovery.n
        if row.recovery.value is not None:
            assert row.fixed == pytest.approx(row.recovery.value * row.asked, abs=1.01)
    assert answered or asked.query.has("chain")


def _clustered(part: Iterable[Any], of: Iterable[Any]) -> tuple[float, float]:
    """The ratio of two lists of (conversation, weight), and its linearised variance."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for place, pairs in enumerate((part, of)):
        for conversation, weight in pairs:
            sums[conversation][place] += weight
    table = np.array(list(sums.values()))
    ratio = table[:, 0].sum() / table[:, 1].sum()
    z = table[:, 0] - ratio * table[:, 1]
    n = len(table)
    return ratio, float((z * z).sum() / table[:, 1].sum() ** 2 * n / (n - 1))


def test_sides_of_a_comparison(conn: Connection, everything: Scope, stored: Tables) -> None:
    """Rates and their clustered variance are those of the weights, for calls that are stored."""
    # Of one conversation's environment nothing was only counted, so each call is in a row.
    query = parse("environment:test")
    cohort = cohort_of(conn, replace(everything, query=query), "")
    assert not cohort.folded.calls
    calls, failures = stored.denominators(query, NOW), stored.failures(query, NOW)
    keyed = [
        [(row["session_id"] or row["event_id"], _weight(row)) for row in rows]
        for rows in (failures, calls)
    ]
    ratio, variance = _clustered(*keyed)
    found = crude(METRICS[0], cohort)
    assert found.value == pytest.approx(ratio)
    assert found.variance == pytest.approx(variance)
    assert found.counted == len(calls)
    chains = [chain for chain in _chains(stored, query) if chain["outcome_now"] != "open"]
    recovered = [chain for chain in chains if chain["outcome_now"] == "recovered"]
    keyed = [[(c["session_id"], _weight(c)) for c in rows] for rows in (recovered, chains)]
    ratio, variance = _clustered(*keyed)
    (metric,) = (each for each in METRICS if each.name == "recovery_rate")
    found = crude(metric, cohort)
    assert (found.value, found.variance) == pytest.approx((ratio, variance))


def test_comparison(conn: Connection, everything: Scope, stored: Tables) -> None:
    """Both cohorts and every code of a comparison are weighed; n is what is there."""
    scopes = [everything.narrowed(f"release:{name}") for name in ("1.3.0", "1.4.0")]
    found = queries.comparison(conn, *scopes)
    assert found.effect.sampled
    for scope, cohort, name in zip(
        scopes, (found.effect.before, found.effect.after), ("before", "after"), strict=True
    ):
        calls, failures = stored.denominators(scope.query, NOW), stored.failures(scope.query, NOW)
        _near(cohort.calls, _added(calls).weight)
        _near(cohort.failures, _added(failures).weight)
        _is_rate(cohort.failure_rate, _added(failures), _added(calls))
        assert getattr(found.effect.metrics[0], f"n_{name}") == _added(calls).n
        for code in found.codes:
            _is_rate(getattr(code, name), _added(_of_code(failures, code.code)), _added(calls))


@on_engines("text", TEXTS[2:], long=[*TEXTS[:2], *MORE_TEXTS])
def test_what_is_not_weighed_says_so(conn: Connection, scope: Scope, asked: Scope) -> None:
    """Fixes are of rows and say so where rows were sampled, and there alone."""
    found, plain = (queries.fix_next(conn, each, limit=1) for each in (asked, scope))
    assert found.unweighed
    assert "Calls were sampled" in fixes_markdown(found, {})
    assert not plain.unweighed
    assert "sampled" not in fixes_markdown(plain, {})
    assert not queries.overview(conn, scope).sampled
