"""Pages show the figures that the queries give: the same snapshot, read by heading and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Connection
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.places import details, generated, scope_of
from tests.dashboard.reading import Cell, Page, Row
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project, find_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time, now_us
from toolfault_collector.storage.database.engine import read_connection, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.effect import Effect
from toolfault_dashboard.analysis.comparisons.metrics import MetricName
from toolfault_dashboard.analysis.rates import Rate, rate
from toolfault_dashboard.formats import (
    count,
    decimal,
    duration,
    percent,
    percent_interval,
    plural,
    points,
)
from toolfault_dashboard.queries import Scope
from toolfault_dashboard.queries.figures.breakdown import BreakdownKey, breakdown
from toolfault_dashboard.queries.fixes.fix_next import costliest_fixes
from toolfault_dashboard.queries.rows import (
    ChainGroup,
    FailureRow,
    FailuresOverTime,
    FrequencyRow,
    Overview,
)
from toolfault_dashboard.search import parse

NBSP = "\u00a0"
Reads = Callable[[str], Page]
GROUP_COLUMNS = (
    "cols=spent,round_trips,recovered,switched,abandoned,open,recovery,first_retry,repeats,time"
)


# With a filter a page that forgets it shows other figures; without one there are fewer ways to err.
FILTERED = "model:claude-x -code:timeout"


@pytest.fixture(
    params=[pytest.param("", marks=pytest.mark.long), FILTERED], ids=["all", "filtered"]
)
def query(request: pytest.FixtureRequest) -> str:
    """What is asked of both."""
    return str(request.param)


@pytest.fixture
def read(browser: Browser, query: str) -> Reads:
    """Opens a page of the generated project under the query, over all time."""

    def page(path: str) -> Page:
        joint = "&" if "?" in path else "?"
        return browser.page(f"{path}{joint}project=generated&window=all&q={query}").main

    return page


@pytest.fixture
def scope(browser: Browser, query: str) -> Scope:
    """The same for the queries."""
    return scope_of(browser.engine, query)


@pytest.fixture
def conn(browser: Browser) -> Iterator[Connection]:
    """A connection to the database of the pages."""
    with read_connection(browser.engine) as found:
        yield found


def shows(cell: Cell, found: Rate) -> None:
    """A cell shows value and interval of a rate, or that there is none."""
    if found.value is None:
        assert "%" not in cell.text
        return
    assert percent(found.value) in cell.text
    assert percent_interval(found) in cell.text


def is_tile(said: str, found: Rate) -> None:
    """A figure shows value, interval and n of a rate."""
    if found.value is None:
        assert said.startswith("–")
        return
    assert said.startswith(percent(found.value))
    assert f"95%: {percent_interval(found)}, n{NBSP}={NBSP}{count(found.n)} " in said


def are(rows: Sequence[Row], heading: str, values: Sequence[object]) -> None:
    """A column holds exactly these values, in their order; numbers with thin spaces."""
    expected = [count(each) if isinstance(each, int) else str(each) for each in values]
    assert [row[heading].text for row in rows] == expected, heading


def is_headline(page: Page, found: Overview) -> None:
    """The six figures at the top."""
    figures, counted = page.figures, found.summary
    assert figures["Calls"].split(" in ")[0] == count(counted.calls)
    assert f"in {plural(counted.conversations, 'conversation')}" in figures["Calls"]
    assert figures["Failures"].split(" ")[0] == count(counted.failures)
    others = counted.calls_spent - counted.round_trips
    more = f" and {plural(others, 'call')} of other tools" if others else ""
    assert figures["Calls spent"] == (
        f"{count(counted.calls_spent)} {plural(counted.round_trips, 'round trip')}"
        f"{more};"
        f" {count(counted.abandoned)} abandoned"
    )
    is_tile(figures["Failure rate"], found.failure_rate)
    is_tile(figures["Recovery rate"], found.recovery_rate)
    is_tile(figures["First-try success"], found.first_try)


def is_over_time(page: Page, title: str, found: FailuresOverTime) -> None:
    """Every bucket with a call or failure is a row: each code, the others, all, calls, the rate."""
    (table,) = page.section(title).tables
    series = [*found.series, *([found.other] if found.other else [])]
    assert list(table.headings[1:-3]) == [each.name for each in series]
    rows = [
        (start, [each.counts[at] for each in series], found.calls[at], found.rates[at])
        for at, start in enumerate(found.starts)
        if found.calls[at] or any(each.counts[at] for each in series)
    ]
    assert len(table.rows) == len(rows) > 3
    for row, (start, counts, calls, failing) in zip(table.rows, rows, strict=True):
        first, *cells, failures, called, share = row.values()
        assert first.moment == format_time(start)[:10] or first.moment.startswith(
            format_time(start)[:16]
        )
        assert [cell.number for cell in cells] == counts
        assert (failures.number, called.number) == (sum(counts), calls)
        shows(share, failing)
        assert ("part of it" in first.text) == (found.starts.index(start) in found.cut)


def are_failures(rows: Sequence[Row], found: Sequence[FailureRow]) -> None:
    """A list of failures shows code, audience, tool, text, outcome of the chain, and links each."""
    assert len(rows) == len(found) > 0
    for row, each in zip(rows, found, strict=True):
        assert row["Failure"].href.startswith(f"/failures/{each.event_id}?")
        assert row["Failure"].text.startswith(f"{each.code} {each.audience}")
        assert each.tool in row["Failure"].text
        assert (each.field or "") in row["Failure"].text
        assert row["Message"].text == " ".join((each.text or "").split())
        assert row["When (UTC)"].moment == (
            format_time(each.occurred_at)[:23] + "Z" if each.occurred_at is not None else ""
        )
        if "Chain" in row:
            assert row["Chain"].text == (each.chain_outcome or "–")
            assert (each.chain_id or "") in row["Chain"].href


def test_overview(read: Reads, conn: Connection, scope: Scope):
    """Headline, chart, costliest tools, codes and newest failures are those of the queries."""
    page, found = read("/"), queries.overview(conn, scope)
    is_headline(page, found)
    counted = found.summary
    assert page.lead.startswith(
        f"{plural(counted.failures, 'failure')} of {plural(counted.calls, 'call')} in "
    )
    is_over_time(page, "Failures over time", queries.failures_over_time(conn, scope, top=6))
    groups = {group.name: group for group in queries.chains_by(conn, scope, "tool")}
    rates = queries.rates_by_tool(conn, scope)
    costly = sorted(
        (name for name, each in counted.tools.items() if each.failures),
        key=lambda name: (
            -groups[name].calls_spent if name in groups else 0,
            -groups[name].abandoned if name in groups else 0,
            -counted.tools[name].failures,
            name,
        ),
    )[:8]
    assert page.section("Costliest tools").link("What to fix next").startswith("/fix-next?")
    (table,) = page.section("Costliest tools").tables
    are(table.rows, "Tool", costly)
    for heading, name in (
        ("Calls spent", "calls_spent"), ("Round trips", "round_trips"), ("Abandoned", "abandoned"),
    ):  # fmt: skip
        are(table.rows, heading, [getattr(groups.get(tool), name, 0) for tool in costly])
    are(table.rows, "Failures", [counted.tools[name].failures for name in costly])
    for row, name in zip(table.rows, costly, strict=True):
        each = counted.tools[name]
        shows(row["Failure rate"], rates[name].failure_rate)
        assert row["Failure rate"].text.endswith(f" of {count(each.calls)}")
    (table,) = page.section("Codes").tables
    are(table.rows, "Code", list(counted.codes)[:8])
    are(table.rows, "Failures", list(counted.codes.values())[:8])
    for row, number in zip(table.rows, list(counted.codes.values())[:8], strict=True):
        assert percent(number / counted.failures) in row["Share"].text
    newest = queries.failure_list(conn, scope, limit=8).rows
    are_failures(page.table("Failure").rows, newest)


def test_one_tool(read: Reads, conn: Connection, scope: Scope):
    """The page of a tool says of its calls what the overview says of all."""
    page, own = read("/tool?name=http_request"), scope.narrowed("tool:http_request")
    found = queries.overview(conn, own)
    is_headline(page, found)
    is_over_time(page, "Failures over time", queries.failures_over_time(conn, own, top=6))
    (table,) = page.section("Codes").tables
    are(table.rows, "Failures", list(found.summary.codes.values()))
    values = queries.values_of(conn, own, "field", limit=15)
    (table,) = page.section("Fields").tables
    are(table.rows, "Field", [each.value or "(no argument)" for each in values])
    are(table.rows, "Failures", [each.failures for each in values])
    for row, each in zip(table.rows, values, strict=True):
        shows(row["Rate"], rate(each.failures, found.summary.calls))
    are_failures(page.table("Failure").rows, queries.failure_list(conn, own, limit=8).rows)


def test_failures(read: Reads, conn: Connection, scope: Scope):
    """The list has the first page of the query, its total, and its facets."""
    page, found = read("/failures"), queries.failure_list(conn, scope)
    assert page.lead.startswith(plural(found.total, "failure"))
    are_failures(page.table("Failure").rows, found.rows)
    shown = {
        name: [each.text for each in page.listed(name).links]
        for name in ("Tool", "Code", "Audience", "Model", "Field")
    }
    for facet in queries.facets(conn, scope, limit=8).facets:
        lines = shown.get(facet.key.capitalize())
        if lines is not None:
            for line, each in zip(lines, facet.values, strict=True):
                assert line.startswith(each.value or "(none)"), facet.key
                assert line.endswith(count(each.failures)), facet.key


def test_kinds(read: Reads, conn: Connection, scope: Scope):
    """Kinds of failures are those of the query, with their shares."""
    columns = "kcols=owner,calls,share,fixed,note"
    page = read(f"/failures?group=kind&{columns}")
    found = queries.kinds(conn, scope, limit=50)
    rows = page.table("Kind").rows
    are(rows, "State", [row.state or "–" for row in found.rows])
    are(rows, "Owner", [row.owner or "–" for row in found.rows])
    are(rows, "Calls spent", [row.calls_spent for row in found.rows])
    are(rows, "Note", [row.note or "–" for row in found.rows])
    are(rows, "Failures", [row.failures for row in found.rows])
    are(rows, "Share", [percent(row.failures / found.failures) for row in found.rows])
    for row, each in zip(rows, found.rows, strict=True):
        assert row["Kind"].text.startswith(each.code or "none")
        assert each.tool in row["Kind"].text


def are_frequencies(
    rows: Sequence[Row], first: str, found: Sequence[FrequencyRow], of: int
) -> None:
    """A table of frequencies has name, failures, share, rate with interval and n, last moment."""
    are(rows, "Failures", [each.failures for each in found])
    are(rows, "Share", [percent(each.failures / of) for each in found])
    are(rows, "Rate", [percent(each.rate.value) for each in found])
    for row, each in zip(rows, found, strict=True):
        of_tool = f"{each.tool}.{each.name}" if each.name else f"{each.tool} (no argument)"
        assert row[first].text.startswith(of_tool if each.tool else each.name or "none")
        shows(row["95% interval"], each.rate)
        assert row["95% interval"].text.endswith(f"n = {count(each.rate.n)}")
        assert row["Last seen (UTC)"].moment == (
            format_time(each.last_at)[:23] + "Z" if each.last_at is not None else ""
        )


def test_codes_and_fields(read: Reads, conn: Connection, scope: Scope):
    """Chart, tables and maps are those of the queries; maps go by the failures of the tool."""
    page = read("/codes")
    is_over_time(page, "Failures over time", queries.failures_over_time(conn, scope, top=6))
    for title, first in (("Codes", "Code"), ("Fields", "Field")):
        (table,) = page.section(title).tables
        found = queries.frequency(conn, scope, "code" if first == "Code" else "field", limit=30)
        are_frequencies(table.rows, first, found.rows, found.failures)
    maps: dict[str, Literal["code", "field"]] = {"Tool by code": "code", "Tool by field": "field"}
    for title, of in maps.items():
        (table,) = page.section(title).tables
        matrix = queries.matrix(conn, scope, of, tools=12, columns=8)
        cells = {(cell.tool, cell.column): cell.failures for cell in matrix.cells}
        shown = {
            (row["Tool"].text, column): row[column].number
            for row in table.rows
            for column in table.headings[1:-1]
            if row[column].text != "·"
        }
        assert shown == cells
        totals = {each.tool: each.failures for each in matrix.tools}
        for row in table.rows:
            assert row["All"].number == totals[row["Tool"].text]
        shown_totals = [row["All"].number for row in table.rows]
        assert shown_totals == sorted(shown_totals, reverse=True)


def test_maps_say_what_they_leave_out(empty_browser: Browser):
    """Nine codes of two tools: eight are columns, the failures with the ninth are a number."""
    with write_transaction(empty_browser.engine) as conn:
        project = ensure_project(conn, "demo")
        calls = [failure(f"tool{n % 2}", code=f"code{n // 4}", field=None) for n in range(34)]
        store_events(conn, project, calls, received_at=now_us())
    section = empty_browser.page("/codes").section("Tool by code")
    assert "2 more of these counts are of other tools or codes" in section.text
    (table,) = section.tables
    assert len(table.headings) == 2 + 8


@pytest.mark.parametrize(
    ("path", "size", "name"),
    [
        ("/tools?", 50, "page"),
        pytest.param("/failures?group=kind", 50, "page", marks=pytest.mark.long),
        ("/messages?", 20, "page"),
        pytest.param("/breakdown?by=field", 30, "page", marks=pytest.mark.long),
        ("/breakdown?by=model", 30, "tools"),
        pytest.param("/codes?", 30, "fields", marks=pytest.mark.long),
    ],
)
def test_long_lists_are_read_page_by_page(empty_browser: Browser, path: str, size: int, name: str):
    """70 tools, each with a kind and a text of its own: each is on one page of the list."""
    with write_transaction(empty_browser.engine) as conn:
        project = ensure_project(conn, "demo")
        calls = [failure(f"tool{n}", session_id=f"c{n}") for n in range(70)]
        store_events(conn, project, calls, received_at=now_us())

    def named(page: Page) -> list[str]:
        rows = [row for table in page.main.tables for row in table.rows]
        texts = " ".join(cell.text for row in rows for cell in row.values())
        return sorted(set(re.findall(r"\btool\d+\b", texts)))

    page = empty_browser.page(path)
    seen = named(page)
    while following := [each.href for each in page.main.links if each.text == "Next"]:
        assert len(seen) % size == 0
        page = empty_browser.page(following[0])
        seen += named(page)
    assert sorted(seen) == sorted(f"tool{n}" for n in range(70))
    assert named(empty_browser.page(f"{path}&{name}=99")) == named(page)
    for wrong in ("0", "last"):
        refused = empty_browser.page(f"{path}&{name}={wrong}", status=422)
        assert f"Correct {name} in" in refused.text


def test_a_facet_leads_to_the_values_that_it_leaves_out(empty_browser: Browser):
    """Twelve tools, models and fields: what has no room is one click away, whatever is chosen."""
    with write_transaction(empty_browser.engine) as conn:
        project = ensure_project(conn, "demo")
        calls = [failure(f"tool{n}", model=f"model{n}", field=f"field{n}") for n in range(12)]
        store_events(conn, project, calls, received_at=now_us())
    for facet in ("tool", "model", "field"):
        link = empty_browser.page(f"/failures?q={facet}:{facet}3").main.link("and 2 more values")
        (table, *_) = empty_browser.page(link).main.tables
        assert len(table.rows) == 12
        assert all(facet in row[table.headings[0]].text for row in table.rows)


def test_tools(read: Reads, conn: Connection, scope: Scope):
    """Every tool with a call has its counts and its three rates, as the page of the tool has."""
    page = read("/tools?cols=calls,failures,rate,first_try,spent,round_trips,abandoned,recovery")
    rows = {row["Tool"].text: row for row in page.table("Tool").rows}
    counted = queries.summary(conn, scope)
    groups = {group.name: group for group in queries.chains_by(conn, scope, "tool")}
    assert rows.keys() == counted.tools.keys()
    for name, each in counted.tools.items():
        row, own = rows[name], scope.narrowed(str(parse("").toggled("tool", name)))
        assert (row["Calls"].number, row["Failures"].number) == (each.calls, each.failures)
        shows(row["Failure rate"], queries.overview(conn, own).failure_rate)
        shows(row["First-try success"], queries.overview(conn, own).first_try)
        spent = groups.get(name)  # of a tool without a chain there is none
        names = ("calls_spent", "round_trips", "abandoned")
        figures = [getattr(spent, each) for each in names] if spent else [0, 0, 0]
        assert [row[each].number for each in ("Calls spent", "Round trips", "Abandoned")] == figures
        if spent:
            shows(row["Recovery rate"], spent.recovery_rate)


def test_breakdown(read: Reads, conn: Connection, scope: Scope):
    """Every value has its calls, failures, rate and cost; every cell its rate and calls."""
    keys: tuple[BreakdownKey, ...] = ("model", "release")
    for by in keys:
        page, found = read(f"/breakdown?by={by}"), breakdown(conn, scope, by)
        (table,) = page.section(f"By {by}").tables
        are(table.rows, by.capitalize(), [each.name or "none" for each in found.groups])
        are(table.rows, "Calls", [each.calls for each in found.groups])
        are(table.rows, "Failures", [each.failures for each in found.groups])
        for row, group in zip(table.rows, found.groups, strict=True):
            shows(row["Failure rate"], group.rate)
            spent = count(group.chains.calls_spent) if group.chains else "–"
            assert row["Calls spent"].text.startswith(spent)
        cells = {(each.tool, each.name or "none"): each for each in found.cells}
        (matrix,) = page.section(f"Tool by {by}").tables
        for row in matrix.rows:
            worst = [n for (t, n), c in cells.items() if t == row["Tool"].text and c.worst]
            if "Worst" in row or worst:
                assert row["Worst"].text == (worst[0] if worst else "–")
            for name in {*matrix.headings[1:]} - {"Worst"}:
                cell = cells.get((row["Tool"].text, name))
                said = f"{percent(cell.rate.value)} of {count(cell.calls)}" if cell else "–"
                assert row[name].text == said


@pytest.mark.parametrize(
    ("by", "name"), [("code", "Code"), ("framework", "Framework"), ("message", "Message")]
)
def test_breakdown_of_failures(
    read: Reads, browser: Browser, conn: Connection, scope: Scope, by: queries.Dimension, name: str
):
    """What failures alone have is counted as everywhere, on the page and in its file."""
    page, found = read(f"/breakdown?by={by}"), queries.frequency(conn, scope, by)
    (table,) = page.section(f"By {name.lower()}").tables
    assert 0 < len(table.rows) == min(30, found.groups)
    are(table.rows, "Failures", [each.failures for each in found.rows[:30]])
    for row, each in zip(table.rows, found.rows, strict=False):
        assert row["Rate"].text == percent(each.rate.value)
        shows_interval = percent_interval(each.rate)
        assert shows_interval in row["95% interval"].text
    files = [each.href for each in page.links if each.download and ".csv" in each.href]
    assert len(browser.get(files[0]).text.splitlines()) == 1 + found.groups


def test_a_tool_shows_its_models_fixes_and_messages(read: Reads, conn: Connection, scope: Scope):
    """They are what Break down, Fix next and Messages say of the tool."""
    page, own = read("/tool?name=http_request"), scope.narrowed("tool:http_request")
    (table,) = page.section("Models").tables
    models = breakdown(conn, own, "model").groups[:5]
    are(table.rows, "Model", [each.name or "none" for each in models])
    are(table.rows, "Failures", [each.failures for each in models])
    (table,) = page.section("Fix next").tables
    fixes = costliest_fixes(conn, own, limit=5)
    are(table.rows, "Abandoned", [each.abandoned for each in fixes])
    are(table.rows, "Failures covered", [each.failures for each in fixes])
    known = {(row.field, row.remedy, row.detail): row for row in queries.fix_next(conn, own).rows}
    for each in fixes:
        same = known[each.field, each.remedy, each.detail]
        assert (each.saved, each.cost, each.failures) == (same.saved, same.cost, same.failures)
    (table,) = page.section("Messages").tables
    groups = queries.message_efficacy(conn, own)
    said = sorted(((row.failures, each.code) for each in groups for row in each.rows), reverse=True)
    shown = [(row["Failures"].number, row["Message"].text.split()[-1]) for row in table.rows]
    assert [failures for failures, _ in shown] == [failures for failures, _ in said[:5]]
    assert set(shown) <= set(said)


def test_a_tool_shows_its_phantom_arguments(read: Reads, conn: Connection, scope: Scope):
    """By argument and model: the calls that had it, and their share with interval and n."""
    found = queries.phantom_arguments(conn, scope.narrowed("tool:http_request"))
    (table,) = read("/tool?name=http_request").section("Phantom arguments").tables
    are(table.rows, "Argument", [each.argument for each in found[:10]])
    are(table.rows, "Model", [each.model or "none" for each in found[:10]])
    are(table.rows, "Calls with it", [each.calls for each in found[:10]])
    for row, each in zip(table.rows, found[:10], strict=True):
        shows(row["Share of the model's calls"], each.rate)
        assert f"n = {count(each.rate.n)}" in row["Share of the model's calls"].text


def test_a_tool_shows_its_repeated_executions(read: Reads, conn: Connection, scope: Scope):
    """By model, those of a marked tool first: calls, and their share with interval and n."""
    found = queries.repeated_executions(conn, scope.narrowed("tool:http_request"))
    section = read("/tool?name=http_request").section("Repeated execution")
    (table,) = section.tables
    are(table.rows, "Model", [each.model or "none" for each in found[:10]])
    marks = ["not idempotent" if each.idempotent is False else "not marked" for each in found]
    assert set(marks) == {"not idempotent", "not marked"}
    are(table.rows, "The tool is", marks[:10])
    are(table.rows, "Calls executed again", [each.calls for each in found[:10]])
    for row, each in zip(table.rows, found[:10], strict=True):
        shows(row["Share of the model's calls"], each.rate)
        assert f"n = {count(each.rate.n)}" in row["Share of the model's calls"].text


def are_groups(rows: Sequence[Row], found: Sequence[ChainGroup]) -> None:
    """Chains by a dimension: outcomes, recovery, first retries, repeats and time."""
    for name in (
        "Chains",
        "Calls spent",
        "Round trips",
        "Recovered",
        "Switched",
        "Abandoned",
        "Open",
    ):
        attribute = name.lower().replace(" ", "_")
        are(rows, name, [getattr(each, attribute) for each in found])
    are(rows, "First retry", [each.first_retry_fix for each in found])
    are(rows, "Same again", [each.identical_repeats for each in found])
    are(
        rows,
        "Time lost",
        [duration(each.time_lost_ms) if each.time_lost_ms else "–" for each in found],
    )
    for row, each in zip(rows, found, strict=True):
        shows(row["Recovery rate"], each.recovery_rate)


def test_round_trips_of_sampled_failures(browser: Browser):
    """The chains of the headline are those of the tables: what the stored ones stand for."""
    with read_connection(browser.engine) as conn:
        project = find_project(conn, "sampled")
        assert project is not None
        found = queries.round_trips(conn, Scope(project, parse(""), NOW))
    page = browser.page("/round-trips?project=sampled&window=all")
    assert f" in {plural(found.funnel.chains, 'chain')} " in page.lead
    assert page.section("How chains end").tables[0].column("Number")[0] == count(
        found.funnel.chains
    )


def test_round_trips(read: Reads, conn: Connection, scope: Scope):
    """Tiles, ends, distribution, groups and the list of chains are those of the queries."""
    page, found = read("/round-trips"), queries.round_trips(conn, scope)
    figures, funnel = page.figures, found.funnel
    assert figures["Calls spent"] == (
        f"{count(found.calls_spent)} {plural(found.round_trips, 'round trip')},"
        f" {decimal(found.round_trips / funnel.chains)} per chain;"
        f" {count(funnel.abandoned)} abandoned"
    )
    is_tile(figures["Recovery rate"], found.recovery_rate)
    is_tile(figures["First-retry fixes"], found.first_retry_rate)
    lost, repeats, serial = (
        sum(getattr(group, name) for group in found.by_tool)
        for name in ("time_lost_ms", "identical_repeats", "serial_discovery")
    )
    assert figures["Time lost"].startswith(duration(lost))
    assert figures["Same again"].startswith(f"{count(repeats)} ")
    assert figures["Serial discovery"].startswith(f"{count(serial)} ")
    ends = (
        funnel.chains, funnel.retried, funnel.recovered, funnel.first_retry_fix, funnel.switched,
        funnel.abandoned, funnel.open,
    )  # fmt: skip
    (table,) = page.section("How chains end").tables
    are(table.rows, "Number", ends)
    are(table.rows, "Share of all chains", [percent(each / funnel.chains) for each in ends])
    assert [name.split()[0] for name in table.column("Chains")] == [
        "Chains", "Retried", "Recovered", "Recovered", "Switched", "Abandoned", "Open",
    ]  # fmt: skip
    (table,) = page.section("Round trips per chain").tables
    are(table.rows, "Round trips", [each.round_trips for each in found.distribution])
    for name in ("recovered", "switched", "abandoned", "open"):
        are(table.rows, name, [getattr(each, name) for each in found.distribution])
    are(table.rows, "Chains", [each.chains for each in found.distribution])
    for by, groups in (("tool", found.by_tool), ("code", found.by_code), ("model", found.by_model)):
        grouped = read(f"/round-trips?by={by}&{GROUP_COLUMNS}").section("Where calls go").tables[0]
        are(grouped.rows, by.capitalize(), [each.name or "none" for each in groups])
        are_groups(grouped.rows, groups)
    every = queries.chains_by_argument(conn, scope)
    pairs = every[:30]
    where = read(f"/round-trips?by=argument&{GROUP_COLUMNS}").section("Where calls go")
    assert (f" 30 of {count(len(every))}, most calls spent" in where.text) is (len(every) > 30)
    (grouped,) = where.tables
    are(
        grouped.rows,
        "Argument",
        [
            f"{tool}.{group.name}" if group.name else f"{tool} (no argument)"
            for tool, group in pairs
        ],
    )
    are_groups(grouped.rows, [group for _, group in pairs])
    chains = queries.chain_list(conn, scope, limit=25).rows
    (table,) = page.section("Chains").tables
    for heading, name in (
        ("Tool", "tool"), ("First code", "first_code"), ("Outcome", "outcome"),
        ("Failures", "failures"), ("Calls spent", "calls_spent"), ("Round trips", "round_trips"),
    ):  # fmt: skip
        are(table.rows, heading, [getattr(each, name) for each in chains])
    for row, chain in zip(table.rows, chains, strict=True):
        assert row["First code"].href.startswith(f"/chains/{chain.chain_id}")


def test_messages(read: Reads, conn: Connection, scope: Scope):
    """Every wording has its failures, the share that the next call fixed, and answers."""
    page = read("/messages")
    groups = {(each.tool, each.code): each for each in queries.message_efficacy(conn, scope)}
    titles = [title for title in page.headings if " in " in title]
    several = {pair for pair, group in groups.items() if len(group.rows) > 1}
    assert 0 < len(titles) <= min(20, len(several))
    for title in titles:
        code, _, tool = title.partition(" in ")
        rows = groups[tool, code].rows
        marked = (groups[tool, code].best, groups[tool, code].worst)
        kept = sorted(rows, key=lambda row: (row not in marked, -row.failures))[:8]
        lines = [row for row in rows if row in kept]
        (table,) = page.section(title).tables
        are(table.rows, "Failures", [each.failures for each in lines])
        are(table.rows, "Answered", [each.answered for each in lines])
        for row, each in zip(table.rows, lines, strict=True):
            shows(row["Fixed by the next call"], each.recovery)
            assert row["Message"].text.startswith((each.message or "")[:20].strip())
    if len(titles) < min(20, len(groups)):
        (table,) = page.section("One message each").tables
        assert len(titles) + len(table.rows) == min(20, len(groups))
        for row in table.rows:
            (each,) = [
                group.rows[0]
                for (tool, code), group in groups.items()
                if row["Message"].text.endswith(f" {code} in {tool}") and len(group.rows) == 1
            ]
            assert row["Failures"].number == each.failures
            shows(row["Fixed by the next call"], each.recovery)


def test_a_page_of_fix_next_has_a_number(browser: Browser):
    """What is no number of a page is named."""
    for wrong in ("0", "last"):
        said = browser.page(f"/fix-next?project=generated&page={wrong}", status=422).text
        assert "Correct page in" in said


@pytest.mark.parametrize(
    "query",
    ["", pytest.param(FILTERED, marks=pytest.mark.long)],  # more than fit on one page
    ids=["all", "filtered"],
    indirect=True,
)
def test_every_problem_is_on_a_page_of_fix_next(read: Reads, conn: Connection, scope: Scope):
    """The pages together list what the query ranks, in its order and in one unit."""
    found = queries.fix_next(conn, scope)
    ranked = found.rows
    a_week = found.weeks is not None and ranked[0].calls / found.weeks >= 5
    last = max(1, -(-len(ranked) // 50))
    titles: list[str] = []
    for number in range(1, last + 1):
        page = read(f"/fix-next?page={number}")
        onward = [each.href for each in page.links if each.text == "Next"]
        assert [f"page={number + 1}" in each for each in onward] == [True] * (number < last)
        assert ("in the window" in page.text) != a_week
        for section in page.sections:
            rows = section.tables[0].rows if section.tables else ()
            titles += [row["What"].text for row in rows] or section.headings
    assert read("/fix-next?page=99").text == page.text
    assert titles == [row.title.replace("\u200b", "") for row in ranked]


def test_fix_next(read: Reads, conn: Connection, scope: Scope):
    """The ranking is the query's, with what each fix would save and from what that is known."""
    page, found = read("/fix-next"), queries.fix_next(conn, scope, limit=50)
    assert f"from {plural(found.failures, 'failure')} " in page.lead
    ranked = [row for row in found.rows if row.mended_by is None]
    listed = f"{plural(round(found.cost), 'call')} spent"
    covered = count(round(sum(row.cost or 0 for row in found.rows)))
    problems = f"The {len(found.rows)} problems listed here"
    assert f"{problems} account for {covered} of {listed}." in page.lead
    often = [row for row in ranked if row.failures >= 3]
    rare = [row.title.replace("\u200b", "") for row in ranked if row.failures < 3]
    if rare:  # they come last, and fifty lines are shown
        table = page.section("Seen once or twice").tables[0]
        assert [row["What"].text for row in table.rows] == rare
        cost = round(sum(row.cost or 0 for row in ranked if row.failures < 3))
        assert f"{plural(len(rare), 'problem')}, {plural(cost, 'call')} spent" in page.menus
    tables = ("Fixed", "Seen once or twice")
    cards = [card for card in page.sections if card.headings[0] not in tables]
    assert len(cards) == len(often) > 3
    for card, row in zip(cards, often, strict=True):
        assert card.headings[0] == row.title.replace("\u200b", "")
        assert any(each.text == row.tool and "/tool?" in each.href for each in card.links)
        known = row.remedy if row.remedy != "open" else "no known remedy"
        assert known in card.text or "precondition" in card.text
        assert f"{plural(row.failures, 'failure')} in {plural(row.chains, 'chain')}" in card.text
        if row.saved_since is not None:
            number = abs(round(row.saved_since))
            calls = "call" if number == 1 else "calls"
            words = f"{calls} saved" if row.saved_since >= 0 else f"more {calls}"
            assert f"{count(number)} {words} since" in card.text
            ends = sorted((row.saved_since_low or 0.0, row.saved_since_high or 0.0))
            low, high = ends if row.saved_since >= 0 else (-ends[1], -ends[0])
            assert f"(95%: {decimal(low, 1)} to {decimal(high, 1)})" in card.text
        of_saved = (row.saved_per_week, row.saved_per_week_low, row.saved_per_week_high)
        of_cost = (row.cost_per_week, row.cost_per_week_low, row.cost_per_week_high)
        per_week, least, most = of_cost if row.saved is None else of_saved
        if row.saved is not None and row.cost is not None:
            assert f"{plural(round(row.cost), 'call')} spent" in card.text
        if per_week is not None and found.weeks and ranked[0].calls / found.weeks >= 5:
            what = "spent" if row.remedy == "open" else "saved"
            assert f"{decimal(per_week, 1)} calls a week {what}" in card.text
            assert f"95%: {decimal(least, 1)} to {decimal(most, 1)}" in card.text


CohortSummary = tuple[float | None, int]


def are_metrics(
    rows: Sequence[Row], headings: tuple[str, str],
    found: Sequence[tuple[MetricName, CohortSummary, CohortSummary, str]],
) -> None:  # fmt: skip
    """Metrics in their order: value and n of both cohorts, and the verdict."""
    assert len(rows) == len(found) > 3
    for row, (metric, *cohorts, verdict) in zip(rows, found, strict=True):
        share = metric in ("failure_rate", "first_try_success", "recovery_rate")
        for heading, (value, n) in zip(headings, cohorts, strict=True):
            said = percent(value) if share else decimal(value)
            assert row[heading].text.startswith(f"{said} n = {count(n)} "), metric
        assert row["Verdict"].text.startswith(verdict)


def before_and_after(effect: Effect) -> list[tuple[MetricName, CohortSummary, CohortSummary, str]]:
    """The metrics of a comparison."""
    return [
        (each.metric, (each.before, each.n_before), (each.after, each.n_after), each.verdict)
        for each in effect.metrics
    ]


def test_a_comparison(read: Reads, conn: Connection, scope: Scope):
    """Metrics and codes of both cohorts are those of the query."""
    page = read("/compare?before=until:10d&after=since:10d")
    found = queries.comparison(
        conn, *(queries.cohort_scope(scope, text) for text in ("until:10d", "since:10d"))
    )
    (table,) = page.section("Before and after").tables
    are_metrics(table.rows, ("Before", "After"), before_and_after(found.effect))
    row, metric = table.rows[0], found.effect.metrics[0]
    assert row["Difference at the same mix"].text == points(metric.difference)
    interval = row["95% interval around no difference"].text
    assert metric.low is None or f"{points(metric.low)} to {points(metric.high)}" in interval
    (table,) = page.section("Codes").tables
    are(table.rows, "Code", [each.code for each in found.codes])
    for line, code in zip(table.rows, found.codes, strict=True):
        assert line["Before"].text == f"{count(code.before.count)} ({percent(code.before.value)})"
        assert line["After"].text == f"{count(code.after.count)} ({percent(code.after.value)})"
        assert line["Verdict"].text.startswith(code.verdict)


def test_a_change(browser: Browser):
    """The list names the changes; a change's page compares what the query compares."""
    scope = scope_of(browser.engine)
    path = next(each for each in details(browser.engine) if each.startswith("/changes/"))
    page = browser.page(f"{path}?project=generated").main
    with read_connection(browser.engine) as conn:
        changes = queries.all_changes(conn, scope)
        cohorts = parse_qs(urlsplit(page.link("Compare")).query)
        before, after = scope.narrowed(cohorts["before"][0]), scope.narrowed(cohorts["after"][0])
        found = queries.comparison(conn, before, after)
    listed = browser.page("/changes?project=generated").main.table("Change")
    are(listed.rows, "Change", [each.label for each in changes])
    are(listed.rows, "Tool", [each.tool or "all tools" for each in changes])
    are(listed.rows, "Kind", [each.kind for each in changes])
    are(
        listed.rows,
        "Source",
        ["toolfault itself" if each.is_detected else each.source for each in changes],
    )
    recorded = [each for each in changes if not each.is_detected]
    assert 0 < len(recorded) < len(changes)
    assert page.heading == recorded[0].label
    (table,) = page.section("Before and after").tables
    are_metrics(table.rows, ("Before", "After"), before_and_after(found.effect))


def test_a_change_that_marked_itself(browser: Browser):
    """Its page says who marked it and when it was first seen, and how the control fared."""
    scope = scope_of(browser.engine)
    with read_connection(browser.engine) as conn:
        found = [each for each in queries.detected_changes(conn, scope) if each.kind == "schema"]
        found += [each for each in queries.detected_changes(conn, scope) if each.kind == "model"]
        control = {
            each.event_id: queries.change_control(conn, scope, each, window=14 * DAY_US)
            for each in (found[0], found[-1])
        }
    for each in (found[0], found[-1]):
        page = browser.page(f"/changes/{each.event_id}?project=generated").main
        assert page.heading == each.label
        assert "Marked by toolfault itself: first seen" in page.text
        beside = control[each.event_id]
        assert ("For comparison, all other tools" in page.text) == (beside is not None)
        if beside is not None:
            rate = beside.metric
            figures = f"{percent(rate.before)} before and {percent(rate.after)} after"
            assert f"{figures}, {rate.verdict}" in page.text


def test_the_chart_of_a_change_shows_what_is_compared(browser: Browser):
    """Its days are those around the change, of the tool or agent that the change is about."""
    scope = scope_of(browser.engine)
    with read_connection(browser.engine) as conn:
        found = {(each.kind, each.agent): each for each in queries.all_changes(conn, scope)}
        assert any(kind == "release" and agent for kind, agent in found)
        for each in found.values():
            cohorts = queries.cohorts_of_change(scope, each, window=14 * DAY_US)
            of_all = replace(cohorts[1], query=cohorts[1].query.without("release", "model"))
            expected = sum(queries.count_failures(conn, cohort) for cohort in (cohorts[0], of_all))
            page = browser.page(f"/changes/{each.event_id}?project=generated").main
            if not expected:
                assert not page.has("Failures around the change")
                continue
            (table,) = page.section("Failures around the change").tables
            shown = [int(text.replace(",", "")) for text in table.column("Failures")]
            assert sum(shown) == expected, each.label


def test_an_experiment(read: Reads, conn: Connection, scope: Scope):
    """Arms, effect, costs and days of a trial are those of the queries."""
    page = read("/experiment?name=b&days=1")
    found = queries.experiment(conn, scope, "b")
    assert found is not None
    balance = found.balance
    (table,) = page.section("Assignment").tables
    assert [each.split()[0] for each in table.column("Arm")] == list(found.arms)
    are(table.rows, "Conversations", [balance.conversations[arm] for arm in found.arms])
    are(table.rows, "Expected", [decimal(balance.expected[arm], 1) for arm in found.arms])
    total = sum(balance.conversations.values())
    are(table.rows, "Share", [percent(balance.conversations[arm] / total) for arm in found.arms])
    (table,) = page.section("Effect").tables
    treatment = next(arm for arm in found.arms if arm != found.control)
    effects = [
        (each.metric, (each.control, each.n_control), (each.treatment, each.n_treatment),
         each.verdict)
        for each in found.effects
    ]  # fmt: skip
    are_metrics(table.rows, ("Control", treatment), effects)
    effect = found.effects[0]
    assert table.rows[0]["Difference"].text == points(effect.difference)
    for heading, interval in (("Always-valid", effect.always), ("Fixed-horizon", effect.fixed)):
        cell = next(cell for name, cell in table.rows[0].items() if name.startswith(heading))
        if interval is not None:
            assert f"{points(interval.low)} to {points(interval.high)}" in cell.text
    costs = queries.arm_costs(conn, scope, "b", queries.prices_of(conn, scope.project_id))
    (table,) = page.section("What failures cost").tables
    own = [costs[arm] for arm in found.arms if arm in costs]
    are(table.rows, "Arm", [arm for arm in found.arms if arm in costs])
    are(table.rows, "Chains", [each.chains for each in own])
    are(table.rows, "Round trips", [each.round_trips for each in own])
    are(table.rows, "Tokens lost", ["–" if c.tokens_lost is None else c.tokens_lost for c in own])
    looks = queries.experiment_looks(conn, scope, "b")
    assert looks is not None
    (table,) = page.section("Day by day").tables
    assert len(table.rows) == len(looks.looks) > 0
    for row, look in zip(table.rows, reversed(looks.looks), strict=True):
        assert row["Arm"].text == look.arm
        assert row["n of control and arm"].text == (
            f"{count(look.n_control)} and {count(look.n_treatment)}"
        )
        assert row["Difference"].text == points(look.difference)


def test_experiments(read: Reads, conn: Connection, scope: Scope):
    """The list names every trial with its arms."""
    found = queries.experiments(conn, scope)
    rows = read("/experiments").table("Experiment").rows
    are(rows, "Experiment", list(found))
    for row, arms in zip(rows, found.values(), strict=True):
        assert all(arm in row["Arms"].text for arm in arms)


def test_what_is_often_compared_stays_when_it_is_compared(browser: Browser):
    """Every preset is there beside the result of each, and the one in use is marked."""
    presets = browser.page("/compare?project=generated").tabs("Often compared")
    assert len(presets) > 1
    for preset in presets:
        shown = browser.page(preset.href).tabs("Often compared")
        assert [each.href for each in shown] == [each.href for each in presets]
        assert [each.text for each in shown if each.current] == [preset.text]


def test_live(read: Reads, conn: Connection, scope: Scope):
    """Live begins with the newest failures, each with its second, and has no window to choose."""
    page = read("/live")
    assert not page.labelled("Time window")
    rows = page.table("Failure").rows
    newest = queries.failure_list(conn, scope, limit=30).rows
    are_failures(rows, newest)
    for row, each in zip(rows, newest, strict=True):
        at = each.occurred_at
        assert at is None or row["When (UTC)"].text.endswith(format_time(at)[11:19])


def test_one_failure_and_one_chain(browser: Browser):
    """A failure has a row for each issue; a chain says its failures, round trips and calls."""
    scope = scope_of(browser.engine)
    with read_connection(browser.engine) as conn:
        event = queries.failure_list(conn, scope.narrowed("has:issue"), limit=1).rows[0].event_id
        failed = queries.failure_detail(conn, scope, event)
        chains = queries.chain_list(conn, scope.narrowed("chain:recovered"), limit=200).rows
        longest = max(chains, key=lambda row: row.calls)
        chain = queries.chain_detail(conn, scope, longest.chain_id)
    assert failed is not None
    assert chain is not None
    page = browser.page(generated(f"/failures/{event}")).main
    table = page.table("Field", "Code", "Message")
    are(table.rows, "Field", [each.field or "–" for each in failed.issues])
    are(table.rows, "Code", [each.code for each in failed.issues])
    page = browser.page(generated(f"/chains/{longest.chain_id}")).main
    assert page.lead.startswith(plural(longest.failures, "failure"))
    assert plural(longest.round_trips, "round trip") in page.lead
    told = re.findall(r"Call \d+ (succeeded|failed)", page.text)
    assert [each == "succeeded" for each in told] == [each.success for each in chain.attempts]


def test_one_conversation(browser: Browser):
    """A chain leads to its conversation, which says of each call its tool and how it went."""
    scope = scope_of(browser.engine)
    with read_connection(browser.engine) as conn:
        chain = max(queries.chain_list(conn, scope, limit=200).rows, key=lambda row: row.calls)
        found = queries.conversation_detail(conn, scope, chain.conversation)
    assert found is not None
    behind = browser.page(generated(f"/chains/{chain.chain_id}")).main
    page = browser.page(behind.link("Whole conversation")).main
    assert page.lead.startswith(plural(found.calls, "call"))
    assert len(re.findall(r"Call \d+", page.text)) == len(found.rows)
    place = 0
    for each in found.rows:
        how = "succeeded" if each.success else "failed"
        place = page.text.index(f"{each.tool} {how}", place) + 1


def test_calls_of_a_conversation_have_the_time_of_their_start(empty_browser: Browser):
    """Calls stand in the order of their starts, with its time; one beside another says so."""
    at = now_us() // DAY_US * DAY_US - DAY_US  # when the first one started: midnight
    calls = [
        failure("slow", session_id="c", at=at + 65 * SECOND_US, duration_ms=65_000.0, seq=1),
        failure("quick", session_id="c", at=at + 62 * SECOND_US, duration_ms=1_000.0, seq=2),
        success("then", session_id="c", at=at + 68 * SECOND_US, duration_ms=4_000.0, seq=3),
    ]
    with write_transaction(empty_browser.engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), calls, received_at=now_us())
    text = empty_browser.page("/conversation?name=c").main.text
    assert re.findall(r"Call (\d), [^,]*, (\d\d:\d\d)(?:, (?!took)([^,]*))?, took", text) == [
        ("1", "00:00", ""), ("2", "00:01", "before that ended"), ("3", "00:01", "2.0 s later")
    ]  # fmt: skip


def test_whatever_is_zero_is_said_to_be_nothing(browser: Browser):
    """Tables of a filter that finds nothing are left out, never filled with zeros."""
    for path in ("/failures", "/codes", "/round-trips", "/messages", "/fix-next"):
        page = browser.page(generated(f"{path}?q=tool:nobody")).main
        assert not [row for table in page.tables for row in table.rows], path


@pytest.mark.parametrize(
    ("between", "note"),
    [
        ((), "The first retry was right: the message was enough."),
        (("look",), "The first retry was right, after 1 call of other tools."),
    ],
)
def test_a_first_retry_is_right_by_the_message_or_by_another_call(
    empty_browser: Browser, between: tuple[str, ...], note: str
) -> None:
    """The page of a chain says which of both it was."""
    at = now_us() - 3_600_000_000
    calls = [failure("book", session_id="c", at=at)]
    calls += [success(name, session_id="c", at=at + 1_000_000) for name in between]
    calls += [success("book", session_id="c", at=at + 2_000_000)]
    with write_transaction(empty_browser.engine) as conn:
        store_events(conn, ensure_project(conn, "demo"), calls, received_at=now_us())
    page = empty_browser.page(f"/chains/{calls[0]['event_id']}?project=demo&window=all")
    assert note in page.text


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_past_is_that_of_the_calls_not_of_the_failures(
    empty_browser: Browser, goes_on: bool
) -> None:
    """Where calls go on and none fails, report and alert look at these days, else at the old."""
    now = now_us()
    calls = [failure(session_id="old", at=now - 40 * DAY_US)]
    calls += [success(session_id="new", at=now - 60_000_000)] if goes_on else []
    with write_transaction(empty_browser.engine) as conn:
        project = ensure_project(conn, "demo")
        store_events(conn, project, calls, received_at=now, time_policy="import")
    overview = empty_browser.page("/?project=demo&window=all")
    assert ("until=" in overview.link("Weekly report")) != goes_on
    form = empty_browser.page("/alert?project=demo&condition=failure_rate")
    assert ("the day of the newest failure" in form.text) != goes_on
