"""Every page: it answers, it agrees with the queries, and it asks the database little."""

from __future__ import annotations

import csv
import io
import json

import pytest
from pyarrow import parquet
from sqlalchemy import Engine, text
from tests.dashboard.addresses import COMPARED, LISTS
from tests.dashboard.api.serving import key_of
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.projects import ensure_project
from toolfault_dashboard import queries
from toolfault_dashboard.formats import count, plural
from toolfault_dashboard.pages._ask import DAY
from toolfault_dashboard.queries import Scope, deadline
from toolfault_dashboard.search import parse

GENERATED = "project=generated&window=all"
MOST = 12


def _scope(engine: Engine, query: str = "") -> Scope:
    with read_connection(engine) as conn:
        row = queries.project_by_name(conn, "generated")
    assert row is not None
    return Scope(row.id, parse(query), NOW)


def _details(engine: Engine) -> list[str]:
    """Addresses of one failure, one chain, one tool and one change."""
    scope = _scope(engine)
    with read_connection(engine) as conn:
        failure = next(
            row for row in queries.failure_list(conn, scope, limit=200).rows if row.chain_id
        )
        chain = queries.chain_list(conn, scope, limit=1).rows[0]
        changes = queries.changes(conn, scope)
    found = [
        f"/failures/{failure.event_id}",
        f"/chains/{chain.chain_id}",
        "/tool?name=http_request",
        "/experiment?name=b",
        COMPARED,
    ]
    return found + [f"/changes/{each.event_id}" for each in changes[:1]]


@pytest.mark.parametrize("path", LISTS)
def test_every_list_page_has_one_heading_and_a_title(browser: Browser, path: str):
    """A page answers 200 with exactly one h1, a title and its navigation entry marked."""
    soup = browser.page(f"{path}?{GENERATED}")
    assert len(soup.find_all("h1")) == 1
    assert soup.title is not None
    assert "toolfault" in soup.title.get_text()
    assert len(soup.select(".nav [aria-current=page]")) == 1


def test_every_detail_page_answers(browser: Browser):
    """A failure, a chain, a tool and a change each have a page."""
    for path in _details(browser.engine):
        assert len(browser.page(_with(path)).find_all("h1")) == 1


def _with(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{GENERATED}"


def test_no_page_asks_the_database_often(browser: Browser):
    """A page needs at most twelve statements."""
    needed = {
        address: len(browser.count(address))
        for address in map(_with, (*LISTS, "/failures?group=kind", *_details(browser.engine)))
    }
    assert {address: n for address, n in needed.items() if n > MOST} == {}


def test_the_overview_shows_the_figures_of_the_summary(browser: Browser):
    """Calls, failures and round trips on the overview are those of the query behind them."""
    with read_connection(browser.engine) as conn:
        counted = queries.summary(conn, _scope(browser.engine))
    tiles = {
        tile.dt.get_text(): tile.select_one(".value").get_text(strip=True)
        for tile in browser.page(f"/?{GENERATED}").select(".tile")
    }
    assert tiles["Calls"] == count(counted.calls)
    assert tiles["Failures"] == count(counted.failures)
    assert tiles["Round trips"] == count(counted.round_trips)


@pytest.mark.parametrize(
    "query", ["", "code:wrong_type", "tool:search -code:timeout", "chain:none"]
)
def test_the_csv_of_failures_has_the_rows_that_the_page_counts(browser: Browser, query: str):
    """The CSV behind the button has as many rows as the page says failures."""
    soup = browser.page(f"/failures?{GENERATED}&q={query}")
    href = soup.select_one("a[download]")["href"]
    answer = browser.get(href)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert soup.select_one(".lede").get_text().startswith(plural(len(rows), "failure"))


TABLES = {
    "/": ("overview", "over-time", "tools", "codes", "failures"),
    "/failures": ("failures",),
    "/failures?group=kind": ("kinds",),
    "/round-trips": ("round-trips", "chains", "chain-lengths", "chain-ends"),
    "/round-trips?by=argument": ("round-trips",),
    "/codes": ("codes", "fields", "matrix", "field-matrix", "over-time"),
    "/tools": ("tools",),
    "/tool?name=http_request": ("over-time", "codes", "fields", "failures"),
    "/messages": ("messages",),
    "/fix-next": ("fix-next",),
    "/changes": ("changes",),
    COMPARED: ("comparison", "comparison-codes"),
    "/experiment?name=b": ("experiment", "experiment-costs", "over-time"),
    "/experiment?name=b&days=1": ("experiment-days",),
    "/experiments": ("experiments",),
    "/settings": ("keys", "people", "audit"),
}


@pytest.mark.parametrize("path", TABLES)
def test_every_table_is_there_as_csv_ndjson_and_parquet(browser: Browser, path: str):
    """Beside each table stand three files; they hold the same rows, and more than none."""
    with key_of(browser.engine, "generated"):  # or Settings has no table of keys
        _has_every_table(browser, path)


def test_what_is_new_since_a_change_is_a_file(own_browser: Browser):
    """The file beside the table has the kinds that the page shows, named by their arguments."""
    with write_transaction(own_browser.engine) as conn:
        conn.execute(text("UPDATE change SET occurred_at = :at"), {"at": NOW - 2 * DAY})
    (path,) = [each for each in _details(own_browser.engine) if each.startswith("/changes/")]
    soup = own_browser.page(f"{path}?project=generated")
    shown = soup.select("[aria-labelledby=new-title] tbody tr")
    assert shown
    links = [a["href"] for a in soup.select("[aria-labelledby=new-title] a[download]")]
    assert [link.split("?")[0] for link in links] == [
        f"/new-since.{suffix}" for suffix in ("csv", "ndjson", "parquet")
    ]
    rows = list(csv.DictReader(io.StringIO(own_browser.get(links[0]).text)))
    assert len(rows) >= len(shown)
    for row, line in zip(rows, shown, strict=False):
        said = line.th.get_text().replace("\u200b", "")
        assert said.startswith(" · ".join(filter(None, (row["code"], row["fields"]))))


def test_kinds_are_sorted_and_filtered_by_the_address(browser: Browser):
    """Tabs, sorting and facets keep each other; a row leads to as many failures as it says."""
    soup = browser.page(_with("/failures?group=kind&sort=last"))
    assert soup.select_one("th[aria-sort]").get_text(strip=True) == "Last seen (UTC)"
    facet = soup.select_one(".facet li a")["href"]
    assert "group=kind" in facet
    assert "sort=last" in facet
    one_by_one, by_kind = soup.select("nav[aria-label='Show failures'] a")
    assert "group" not in one_by_one["href"]
    assert by_kind["aria-current"] == "true"
    row = soup.select_one("main tbody tr")
    said = row.select_one("td.num").get_text()
    lede = browser.page(row.a["href"]).select_one(".lede").get_text()
    assert lede.startswith(f"{said} failure")
    assert row.select_one("svg.spark path")["d"]


def test_the_maps_of_codes_and_fields_lead_to_their_failures(browser: Browser):
    """A cell of either map names the number of failures behind it."""
    soup = browser.page(_with("/codes"))
    for by in ("code", "field"):
        cell = soup.select_one(f"[aria-labelledby=heat-{by}] td a")
        behind = browser.page(cell["href"]).select_one(".lede").get_text()
        assert behind.startswith(f"{cell.get_text()} failure"), by


def _has_every_table(browser: Browser, path: str) -> None:
    links = [a["href"] for a in browser.page(_with(path)).select("a[download]")]
    for name in TABLES[path]:
        numbers = []
        for suffix in ("csv", "ndjson", "parquet"):
            href = next(link for link in links if link.startswith(f"/{name}.{suffix}"))
            answer = browser.get(href)
            assert answer.status_code == 200, href
            assert f".{suffix}" in answer.headers["content-disposition"]
            # The audit log grows by each file that was taken, of itself too.
            taken = len(numbers) if name == "audit" else 0
            numbers.append(_rows(answer.content, suffix) - taken)
        assert len(set(numbers)) == 1, f"{name}: {numbers}"
        assert numbers[0] > 0, name


def _rows(content: bytes, suffix: str) -> int:
    if suffix == "parquet":
        return int(parquet.read_table(io.BytesIO(content)).num_rows)
    lines = content.decode()
    if suffix == "csv":
        return len(list(csv.DictReader(io.StringIO(lines))))
    return len([json.loads(line) for line in lines.splitlines()])


def test_the_week_is_one_click_away_for_whom_it_may_concern(engine: Engine):
    """The overview links the report; a viewer, who sees no fixes, has neither link nor file."""
    for role in ("developer", "viewer"):
        for browser in open_browser(engine, role=role):
            links = [a["href"] for a in browser.page(f"/?{GENERATED}").select("a[download]")]
            reports = [link for link in links if link.startswith("/report.html")]
            assert bool(reports) == (role == "developer")
            statuses = {browser.get(path).status_code for path in ("/report.html", "/report.md")}
            assert statuses == ({200} if role == "developer" else {403})


def test_an_experiment_day_by_day_is_what_the_api_says(browser: Browser):
    """Every look of the API is a row of the table and, where it has an interval, a bar."""
    api = browser.client.get("/api/v1/experiments/b/looks", params={"project": "generated"}).json()
    page = browser.page(_with("/experiment?name=b&days=1"))
    days = page.select_one("#days")
    rows = days.select("tbody tr")
    assert len(rows) == len(api["looks"]) > 0
    drawn = [look for look in api["looks"] if look["always"] and look["difference"] is not None]
    assert len(days.select("rect.whisker")) == len(drawn) > 0
    newest = [each.get_text(strip=True) for each in rows[0].find_all("td")]
    last = api["looks"][-1]
    assert newest[0] == last["arm"]
    assert newest[1] == f"{count(last['n_control'])} and {count(last['n_treatment'])}"
    other = browser.page(_with("/experiment?name=b&days=1&metric=recovery_rate"))
    assert "Recovery" in other.select_one("#days h2 .sub").get_text(strip=True).capitalize()
    assert browser.page(_with("/experiment?name=b")).select_one("#days tbody") is None


def test_an_arm_costs_what_its_chains_cost(browser: Browser):
    """Chains, round trips and tokens of an arm are those of the costs by variant, added up."""
    costs = browser.client.get("/api/v1/costs/variant", params={"project": "generated"}).json()
    page = browser.page(_with("/experiment?name=b"))
    rows = page.select("[aria-labelledby=costs-title] tbody tr")
    assert rows
    for row in rows:
        arm = row.th.get_text(strip=True)
        own = [each for each in costs["rows"] if f"b={arm}" in each["name"].split(",")]
        cells = [each.get_text(strip=True) for each in row.find_all("td")]
        assert cells[0] == count(sum(each["chains"] for each in own))
        assert cells[1] == count(sum(each["round_trips"] for each in own))
        told = [each["tokens_lost"] for each in own if each["tokens_lost"] is not None]
        assert cells[3] == (count(sum(told)) if told else "–")
        assert browser.page(row.a["href"])


COLUMNS = {
    "/failures": ("cols", "model,duration", ("Model", "Duration"), ()),
    "/tools": ("cols", "failures,tokens", ("Failures", "Tokens lost"), ("Calls", "Round trips")),
    "/messages": ("cols", "failures,fixed", ("Failures", "Fixed"), ("Answered",)),
    "/codes": ("cols", "first", ("First seen (UTC)",), ("Share", "Rate")),
    "/round-trips": (
        "cols",
        "abandoned,tokens,money",
        ("Abandoned", "Money lost"),
        ("Same again",),
    ),
}


@pytest.mark.parametrize("path", COLUMNS)
def test_columns_are_chosen_by_the_address(browser: Browser, path: str):
    """The address alone decides; the form writes it and keeps what else it says."""
    parameter, wanted, there, gone = COLUMNS[path]
    soup = browser.page(_with(f"{path}?{parameter}={wanted}"))
    tables = soup.select("main table")
    table = tables[{"/round-trips": 2, "/codes": 1}.get(path, 0)]  # after those of charts
    heads = [each.get_text(strip=True) for each in table.select("thead th")]
    assert set(there) <= set(heads)
    assert not set(gone) & set(heads)
    for row in table.select("tbody tr"):
        assert len(row.find_all(["td", "th"])) == len(heads)
    form = soup.select_one("details.columns form")
    fields = [(each["name"], each.get("value", "")) for each in form.select("input[type=hidden]")]
    ticked = [("col", each["value"]) for each in form.select("input[checked]")]
    assert ",".join(value for _, value in ticked) == wanted
    answer = browser.client.get(form["action"], params=[*fields, *ticked], follow_redirects=False)
    assert answer.status_code == 303
    assert f"{parameter}={wanted.replace(',', '%2C')}" in answer.headers["location"]
    none = browser.client.get(form["action"], params=fields, follow_redirects=False)
    assert browser.get(none.headers["location"]).status_code == 200
    if path != "/failures":
        assert f"{parameter}=none" in none.headers["location"]


def test_the_columns_of_two_tables_do_not_meet(browser: Browser):
    """On Round trips each table has its own; links of the page keep both."""
    soup = browser.page(_with("/round-trips?cols=abandoned&chain-cols=model,variant&by=code"))
    chains = soup.select("#chains thead th")
    assert [each.get_text(strip=True) for each in chains][-2:] == ["Model", "Variant"]
    assert len(soup.select("#chains tbody tr")[0].find_all(["td", "th"])) == len(chains)
    for tab in soup.select("#by .segmented[aria-label='Group by'] a"):
        assert "cols=abandoned" in tab["href"]
        assert "chain-cols=model" in tab["href"]
    form = soup.select_one("#chains details.columns form")
    kept = {each["name"]: each["value"] for each in form.select("input[type=hidden]")}
    assert kept["by"] == "code"
    assert kept["cols"] == "abandoned"


def test_an_outcome_leads_to_its_chains(browser: Browser):
    """The number in the table is the number of chains on the page behind it."""
    soup = browser.page(_with("/round-trips"))
    for link in soup.select("#by tbody td a")[:6]:
        behind = browser.page(link["href"].split("#")[0])
        assert (
            behind.select_one(".lede")
            .get_text()
            .startswith(
                "What failures cost: extra calls after a failure, in " + link.get_text() + " chain"
            )
        )


def test_pages_of_failures_hold_every_failure_once(browser: Browser):
    """Following "Older" to the end shows each failure exactly once, and "Newer" leads back."""
    seen: list[str] = []
    href: str | None = f"/failures?{GENERATED}"
    pages = 0
    while href:
        soup = browser.page(href)
        seen += [a["href"].split("?")[0] for a in soup.select("tbody a.row-link")]
        older = soup.select_one(".pager a[rel=next]")
        href = older["href"] if older else None
        pages += 1
    with read_connection(browser.engine) as conn:
        total = queries.count_failures(conn, _scope(browser.engine))
    assert pages > 1
    assert len(seen) == len(set(seen)) == total
    newer = soup.select_one(".pager a[rel=prev]")
    assert browser.page(newer["href"]).select("tbody a.row-link")


def test_live_begins_with_the_newest_failures(browser: Browser):
    """Live lists the newest failures before any new one arrives."""
    with read_connection(browser.engine) as conn:
        newest = queries.failure_list(conn, _scope(browser.engine), limit=3).rows

    links = browser.page(_with("/live")).select("#live tbody a.row-link")

    for link, row in zip(links, newest, strict=False):
        assert row.event_id in str(link["href"])
    assert len(links) >= len(newest) == 3


def test_every_link_of_every_page_leads_somewhere(browser: Browser):
    """No page links to an address that is not there, or to a query that cannot be read."""
    pages = [*(f"{path}?{GENERATED}" for path in LISTS), *_details(browser.engine)]
    links: set[str] = set()
    for path in pages:
        address = path if "window=all" in path else _with(path)
        found = {a["href"] for a in browser.page(address).select("a[href^='/']")}
        # A few of each kind say what all say.
        by_kind: dict[str, list[str]] = {}
        for link in sorted(found):
            by_kind.setdefault(link.split("?")[0].rsplit("/", 1)[0], []).append(link)
        links |= {link for group in by_kind.values() for link in group[:6]}
    broken = {link: browser.get(link).status_code for link in links}
    assert {link: status for link, status in broken.items() if status not in (200, 303)} == {}


def test_a_facet_count_is_what_choosing_it_leaves(browser: Browser):
    """Following a facet shows as many failures as the facet said."""
    soup = browser.page(f"/failures?{GENERATED}&q=code:wrong_type")
    lines = [
        line
        for line in soup.select(".facet li a")
        if "aria-current" not in line.attrs and "code%3Awrong_type+" in line["href"]
    ]
    assert lines
    for line in lines[:5]:
        said = line.select_one(".n").get_text(strip=True)
        lede = browser.page(line["href"]).select_one(".lede").get_text()
        assert lede.startswith((f"{said} failure",))


def test_the_filter_form_is_written_as_a_query(browser: Browser):
    """Submitting the form redirects to the address that says the same as a query."""
    answer = browser.get(
        f"/failures?form=1&{GENERATED}&tool=search&code=wrong_type,timeout&category=parameter"
    )
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert "form" not in location
    form = browser.page(location).select_one(".filters")
    assert form.select_one("#f-tool")["value"] == "search"
    assert form.select_one("#f-code")["value"] == "wrong_type,timeout"
    assert form.select_one("#f-category option[selected]").get_text() == "parameter"


def test_a_form_value_that_is_no_query_is_taken_literally(browser: Browser):
    """Spaces and quotes typed into a field of the form select that very text."""
    answer = browser.get(f"/failures?form=1&{GENERATED}&tool=book flight")
    soup = browser.page(answer.headers["location"])
    assert soup.select("tbody a.row-link")
    assert {each.get_text() for each in soup.select("tbody .under .code:first-child")} == {
        "book flight"
    }


def test_a_query_that_cannot_be_read_shows_where_and_what_was_meant(browser: Browser):
    """An unknown key is answered with 400, the column, a suggestion, and the box as it was."""
    soup = browser.page(f"/failures?{GENERATED}&q=tol:search", status=400)
    alert = soup.select_one("[role=alert]").get_text()
    assert "tool" in alert
    assert soup.select_one("#q")["value"] == "tol:search"


def test_a_cursor_of_another_list_is_refused(browser: Browser):
    """A changed cursor is answered with 400 and a sentence, not with other rows."""
    assert browser.page(f"/failures?{GENERATED}&cursor=nonsense", status=400).select_one("h1")


def test_a_page_that_takes_too_long_says_what_to_do(
    own_browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    """When the time for a page is over it is stopped, with 503 and a way to ask for less."""
    monkeypatch.setattr(deadline, "SECONDS", 0.0)
    monkeypatch.setattr(deadline, "_STEPS", 50)
    soup = own_browser.page(f"/failures?{GENERATED}", status=503)
    assert "since:7d" in soup.get_text()
    monkeypatch.undo()
    own_browser.page(f"/failures?{GENERATED}")


def test_what_does_not_exist_is_404(browser: Browser):
    """Unknown failures, chains, tools, changes, projects and pages answer 404."""
    for path in (
        "/failures/nothing",
        "/chains/nothing",
        "/changes/nothing",
        "/tool?name=nothing",
        "/nothing",
        "/failures?project=nobody",
    ):
        browser.page(path if "project=" in path else _with(path), status=404)


def test_another_project_is_not_reachable_by_id(browser: Browser):
    """A failure and a chain of one project are 404 in another one."""
    with read_connection(browser.engine) as conn:
        other = next(row for row in queries.projects(conn) if row.name != "generated")
    for path in _details(browser.engine)[:2]:
        browser.page(f"{path}?project={other.name}", status=404)


def test_an_untimed_failure_never_shows_a_date(browser: Browser):
    """Where the source had no times the page says so, and shows no time element for it."""
    scope = _scope(browser.engine, "time:none")
    with read_connection(browser.engine) as conn:
        row = queries.failure_list(conn, scope, limit=1).rows[0]
    soup = browser.page(f"/failures/{row.event_id}?{GENERATED}")
    assert "no time recorded" in soup.select_one(".crumbs").get_text()
    assert soup.select_one(".crumbs time") is None
    assert "no time recorded" in soup.select_one(".facts dd").get_text()


def test_a_new_project_shows_how_to_send_data(empty_browser: Browser):
    """Without data the overview is the first-run page; asking for a key shows a DSN that works."""
    soup = empty_browser.page("/")
    assert "first failure" in soup.h1.get_text()
    answer = empty_browser.client.post("/start", headers={"content-type": FORM})
    assert answer.status_code == 200
    from bs4 import BeautifulSoup

    dsn = BeautifulSoup(answer.text, "html.parser").select_one("#dsn").get_text()
    key = dsn.split("//")[1].split("@")[0]
    sent = empty_browser.client.post(
        "/v1/events",
        json={"schema_version": 1, "events": [EVENT]},
        headers={"authorization": f"Bearer {key}"},
    )
    assert sent.json()["accepted"] == 1
    assert "Overview" in empty_browser.page("/?window=all").h1.get_text()


FORM = "application/x-www-form-urlencoded"
EVENT = {
    "type": "tool_call",
    "event_id": "0199a1f2-0000-7000-8000-000000000001",
    "occurred_at": "2026-11-20T11:59:00Z",
    "session_id": "conv-1",
    "tool": "search",
    "success": False,
    "error": {"code": "wrong_type", "category": "parameter", "field": "limit"},
}


@pytest.mark.parametrize("path", ["/failures", "/round-trips", "/codes", "/tools", "/fix-next"])
def test_a_page_without_rows_says_what_to_try(browser: Browser, path: str):
    """First all time, then no filter; the last advice of an empty project is to send data."""
    nothing = "q=tool:nobody"
    first = browser.page(f"{path}?project=generated&window=7d&{nothing}").select_one(".empty a")
    assert first.get_text() == "Look at all time"
    then = browser.page(first["href"]).select_one(".empty a")
    assert then.get_text() == "Remove the filter"
    assert browser.page(then["href"]).select_one(".empty") is None


def test_an_empty_project_leads_to_sending_data(own_browser: Browser):
    """Where there is neither a filter nor a window to widen, the page says how to send data."""
    with write_transaction(own_browser.engine) as conn:
        ensure_project(conn, "bare")
    link = own_browser.page("/failures?project=bare").select_one(".empty a")
    assert link.get_text() == "Send data"
    assert own_browser.page(link["href"]).select_one(".ways")


@pytest.mark.parametrize(
    "path", ["/", "/codes", "/tool?name=http_request", "/experiment?name=b", "/changes"]
)
def test_every_chart_over_time_carries_the_changes(browser: Browser, path: str):
    """Each change of the window is a line in the chart and a link below it."""
    if path == "/changes":
        path = next(each for each in _details(browser.engine) if each.startswith("/changes/"))
    chart = browser.page(_with(path)).select_one("[aria-labelledby=time-title]")
    marks = chart.select("line.marker-line")
    links = chart.select("p.hint a[href^='/changes/']")
    assert len(marks) == len(links) > 0
    assert browser.page(links[0]["href"]).h1.get_text() == links[0].get_text()


@pytest.mark.parametrize("path", ["/", "/codes", "/tools", "/tool?name=http_request", "/messages"])
def test_a_number_leads_to_its_rows_under_the_same_filter(browser: Browser, path: str):
    """Links to failures keep every condition of the view: the rows are as many as was said."""
    query = "model:claude-x -code:timeout"
    soup = browser.page(_with(path) + f"&q={query}")
    found = 0
    for row in soup.select("main tbody tr"):
        link = row.select_one("th a[href^='/failures?']")
        number = row.select_one("td.num")
        if link is None or number is None:
            continue
        lede = browser.page(link["href"]).select_one(".lede").get_text()
        assert lede.startswith(plural(_whole(number.get_text()), "failure")), link["href"]
        found += 1
        if found == 5:
            break
    assert found or path == "/tools"


def _whole(text: str) -> int:
    return int("".join(each for each in text if each.isdigit()))
