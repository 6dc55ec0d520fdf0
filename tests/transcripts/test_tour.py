"""The tour's numbers are counted again from the transcripts it was written about."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.golden.reading import shortened

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.importers import import_paths
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.formats import count, decimal, percent, percent_interval, points
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.search import parse

TOUR = Path(__file__).resolve().parents[2] / "docs" / "tour.md"
GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "answers"
SPACES = re.compile(r"[\s\u202f\u00a0]+")


@pytest.fixture(scope="module")
def airline(
    sqlite_template: Path, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Connection, Scope]]:
    """The transcripts of the tour, imported; nobody writes to them."""
    path = tmp_path_factory.mktemp("tour") / "toolfault.db"
    shutil.copyfile(sqlite_template, path)
    engine = open_engine(f"sqlite:///{path}")
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "airline")
    import_paths(engine, project, [shared_data / "tau_bench_airline"])
    with read_connection(engine) as conn:
        yield conn, Scope(project, parse(""), now_us())
    engine.dispose()


def _said(text: str) -> bool:
    told = SPACES.sub(" ", TOUR.read_text("utf-8").replace("**", ""))
    return SPACES.sub(" ", text) in told


def _rate(found: Rate, *, prefix: str = "") -> str:
    return f"{percent(found.value)} ({prefix}{percent_interval(found)})"


def test_what_fails(airline: tuple[Connection, Scope]):
    """Overview, the two tools, and what the other tools have in common."""
    conn, scope = airline
    found = queries.overview(conn, scope)
    counted = found.summary
    assert _said(f"{counted.calls} calls, {counted.failures} failures")
    assert _said(f"a failure rate of {_rate(found.failure_rate, prefix='95%: ')}")
    assert _said(f"{counted.round_trips} round trips")
    assert _said(f"{counted.calls_spent} calls spent")
    assert _said(f"{counted.recovered} of {counted.chains} chains recovered")
    assert _said(_rate(found.recovery_rate))
    failing = {name: each for name, each in counted.tools.items() if each.failures}
    assert _said(f"Of {len(counted.tools)} tools only two ever fail")
    assert len(failing) == 2
    for name, each in failing.items():
        assert _said(f"`{name}` ({each.failures}")
    others = counted.calls - sum(each.calls for each in failing.values())
    assert _said(f"had {others} calls and no failure")


def test_why(airline: tuple[Connection, Scope]):
    """Which wording helps, and the chains after the one that does not."""
    conn, scope = airline
    rows = [row for group in queries.message_efficacy(conn, scope) for row in group.rows]
    for start in ("Error: payment amount does not add up", "Error: flight <id> not available"):
        (row,) = [row for row in rows if (row.message or "").startswith(start)]
        assert _said(_rate(row.recovery))
    narrow = scope.narrowed("code:resource_unavailable")
    trips = queries.round_trips(conn, narrow)
    funnel = trips.funnel
    assert _said(
        f"{funnel.chains} chains, {trips.round_trips} round trips, "
        f"{decimal(trips.round_trips / funnel.chains)} per chain"
    )
    everything = queries.round_trips(conn, scope)
    assert _said(f"is {decimal(everything.round_trips / everything.funnel.chains)}")
    assert _said(f"None of the {funnel.retried} that were retried")
    assert funnel.first_retry_fix == 0
    assert _said(f"{sum(g.identical_repeats for g in trips.by_tool)} retries repeated")
    assert _said(
        f"{funnel.chains - funnel.recovered} of the {funnel.chains} chains never recovered"
    )


def test_what_to_fix(airline: tuple[Connection, Scope]):
    """Fix next lists all calls spent; its first two lines and the wording have their numbers."""
    conn, scope = airline
    found = queries.fix_next(conn, scope)
    assert _said(f"lists all {found.cost:.0f} calls")
    first, second, third = found.rows[:3]
    assert _said(f"`{first.title}` ({first.cost:.0f})")
    abandoned = "one chain abandoned"
    assert _said(f"`{second.title}` ({second.cost:.0f}, and {abandoned})")
    assert second.abandoned == 1
    assert third.remedy == "reword"
    assert _said(f"{third.saved:.0f} calls saved")
    assert (third.shared_with, second.shared_with) == ((2,), (3,))
    assert _said(f"Its {third.failures} failures are among the {second.failures} of the second")


def test_did_it_help(airline: tuple[Connection, Scope]):
    """The comparison of the two halves says what the page says."""
    conn, scope = airline
    texts = re.findall(r"^\| (?:before|after) \| `(.*)` \|$", TOUR.read_text("utf-8"), re.MULTILINE)
    before, after = (scope.narrowed(text) for text in texts)
    found = queries.comparison(conn, before, after).effect
    rate = found.metrics[0]
    assert found.verdict == "no detectable change"
    assert _said(f"was {percent(rate.before)} before and {percent(rate.after)} after")
    assert _said(f"{points(rate.difference)}, 95% interval {points(rate.low).removesuffix('pp')}to")
    assert rate.smallest_detectable is not None
    assert _said(f"smaller than about {points(rate.smallest_detectable).lstrip('+')} would")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("τ-bench airline", "tau_bench_airline"),
        ("τ-bench retail", "agentrx_tau_retail"),
        ("LiveMCPBench", "livemcpbench"),
        ("Claude Code", "claude_code_sessions"),
        ("InterCode-SQL", "intercode_sql"),
    ],
)
def test_the_first_line_of_each_set(name: str, source: str) -> None:
    """The table has totals, first line and its calls as they are recorded; lists cover all."""
    recorded = json.loads((GOLDEN / f"{source}.json").read_text("utf-8"))
    summary, fixes = recorded["api summary"], recorded["api fix-next"]
    first = fixes["rows"][0]
    row = rf"^\| {re.escape(name)} \| (.*) \|$"
    (line,) = re.findall(row, TOUR.read_text("utf-8"), re.MULTILINE)
    *totals, title, calls = line.split(" | ")
    assert totals == [count(summary[each]) for each in ("calls", "failures", "calls_spent")]
    assert first["title"] == shortened(title)
    assert calls == count(round(first["saved"] if first["saved"] is not None else first["cost"]))
    assert fixes["cost"] == summary["calls_spent"]
