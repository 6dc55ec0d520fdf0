"""Every page: it answers, it agrees with the queries, and it asks the database little."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module

import pytest
from sqlalchemy import Engine
from tests.dashboard.addresses import LISTS
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import GENERATED, details, generated, scope_of, variants
from tests.factories import failure

from toolfault_collector.engine import read_connection, write_transaction
from toolfault_collector.projects import ensure_project
from toolfault_collector.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.formats import count, plural
from toolfault_dashboard.queries import deadline

MOST = 12
FACETS = import_module("toolfault_dashboard.queries.facets")  # the package has a function so named


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
    for path in details(browser.engine):
        assert len(browser.page(generated(path)).find_all("h1")) == 1


def test_no_page_asks_the_database_often(browser: Browser):
    """A page needs at most twelve statements, whatever its address asks for."""
    paths = (*LISTS, *details(browser.engine), *variants(browser.engine))
    needed = {address: len(browser.count(address)) for address in map(generated, paths)}
    assert {address: n for address, n in needed.items() if n > MOST} == {}


def test_the_overview_shows_the_figures_of_the_summary(browser: Browser):
    """Calls, failures and round trips on the overview are those of the query behind them."""
    with read_connection(browser.engine) as conn:
        counted = queries.summary(conn, scope_of(browser.engine))
    tiles = {
        tile.dt.get_text(): tile.select_one(".value").get_text(strip=True)
        for tile in browser.page(f"/?{GENERATED}").select(".tile")
    }
    assert tiles["Calls"] == count(counted.calls)
    assert tiles["Failures"] == count(counted.failures)
    assert tiles["Round trips"] == count(counted.round_trips)


def test_kinds_are_sorted_and_filtered_by_the_address(browser: Browser):
    """Tabs, sorting and facets keep each other; a row leads to as many failures as it says."""
    soup = browser.page(generated("/failures?group=kind&sort=last"))
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
    soup = browser.page(generated("/codes"))
    for by in ("code", "field"):
        cell = soup.select_one(f"[aria-labelledby=heat-{by}] td a")
        behind = browser.page(cell["href"]).select_one(".lede").get_text()
        assert behind.startswith(f"{cell.get_text()} failure"), by


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
    page = browser.page(generated("/experiment?name=b&days=1"))
    days = page.select_one("#days")
    rows = days.select("tbody tr")
    assert len(rows) == len(api["looks"]) > 0
    drawn = [look for look in api["looks"] if look["always"] and look["difference"] is not None]
    assert len(days.select("rect.whisker")) == len(drawn) > 0
    newest = [each.get_text(strip=True) for each in rows[0].find_all("td")]
    last = api["looks"][-1]
    assert newest[0] == last["arm"]
    assert newest[1] == f"{count(last['n_control'])} and {count(last['n_treatment'])}"
    other = browser.page(generated("/experiment?name=b&days=1&metric=recovery_rate"))
    assert "Recovery" in other.select_one("#days h2 .sub").get_text(strip=True).capitalize()
    assert browser.page(generated("/experiment?name=b")).select_one("#days tbody") is None


def test_an_arm_costs_what_its_chains_cost(browser: Browser):
    """Chains, round trips and tokens of an arm are those of the costs by variant, added up."""
    costs = browser.client.get("/api/v1/costs/variant", params={"project": "generated"}).json()
    page = browser.page(generated("/experiment?name=b"))
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


def test_an_outcome_leads_to_its_chains(browser: Browser):
    """The number in the table is the number of chains on the page behind it."""
    soup = browser.page(generated("/round-trips"))
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
        total = queries.count_failures(conn, scope_of(browser.engine))
    assert pages > 1
    assert len(seen) == len(set(seen)) == total
    newer = soup.select_one(".pager a[rel=prev]")
    assert browser.page(newer["href"]).select("tbody a.row-link")


def test_live_begins_with_the_newest_failures(browser: Browser):
    """Live lists the newest failures before any new one arrives."""
    with read_connection(browser.engine) as conn:
        newest = queries.failure_list(conn, scope_of(browser.engine), limit=3).rows

    links = browser.page(generated("/live")).select("#live tbody a.row-link")

    for link, row in zip(links, newest, strict=False):
        assert row.event_id in str(link["href"])
    assert len(links) >= len(newest) == 3


def test_every_link_of_every_page_leads_somewhere(browser: Browser):
    """No page links to an address that is not there, or to a query that cannot be read."""
    pages = [*(f"{path}?{GENERATED}" for path in LISTS), *details(browser.engine)]
    links: set[str] = set()
    for path in pages:
        address = path if "window=all" in path else generated(path)
        found = {a["href"] for a in browser.page(address).select("a[href^='/']")}
        # A few of each kind say what all say.
        by_kind: dict[str, list[str]] = {}
        for link in sorted(found):
            by_kind.setdefault(link.split("?")[0].rsplit("/", 1)[0], []).append(link)
        links |= {link for group in by_kind.values() for link in group[:6]}
    broken = {link: browser.get(link).status_code for link in links}
    assert {link: status for link, status in broken.items() if status not in (200, 303)} == {}


def test_a_facet_that_counts_a_part_says_so(browser: Browser, monkeypatch: pytest.MonkeyPatch):
    """Each facet that counts the newest failures alone has that under its title, and no other."""
    path = "/failures?project=generated&window=30d&q=tool%3Asearch"
    whole = browser.page(path)
    assert "newest" not in whole.select_one(".facets").get_text()
    size = 1 + len(whole.select("table.failures tbody tr")) // 2
    assert size > 5
    monkeypatch.setattr(FACETS, "EXACT_UP_TO", size)
    soup = browser.page(path)
    said = soup.select(".facet h2 .sub")
    assert {each.get_text() for each in said} == {f"of the newest {size}"}
    assert len(said) == len(soup.select(".facet")) > 5
    assert f"the newest {size} failures alone" in soup.select_one(".facets > .hint").get_text()
    for facet in soup.select(".facet"):
        counted = sum(int(each.get_text()) for each in facet.select("li .n"))
        if facet.h2.contents[0].strip() == "Code":
            assert counted == size


def test_the_arguments_of_a_tool_are_never_counted_in_part(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
):
    """Their rates are of all calls: the failures must be all of them too, whatever the filter."""
    path = "/tool?name=search&project=generated&window=all&q=model%3Agpt-5"
    whole = browser.page(path).main.get_text()
    monkeypatch.setattr(FACETS, "EXACT_UP_TO", 3)
    assert browser.page(path).main.get_text() == whole


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
        browser.page(path if "project=" in path else generated(path), status=404)


def test_another_project_is_not_reachable_by_id(browser: Browser):
    """A failure and a chain of one project are 404 in another one."""
    with read_connection(browser.engine) as conn:
        other = next(row for row in queries.projects(conn) if row.name != "generated")
    for path in details(browser.engine)[:2]:
        browser.page(f"{path}?project={other.name}", status=404)


def test_an_untimed_failure_never_shows_a_date(browser: Browser):
    """Where the source had no times the page says so, and shows no time element for it."""
    scope = scope_of(browser.engine, "time:none")
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
        path = next(each for each in details(browser.engine) if each.startswith("/changes/"))
    chart = browser.page(generated(path)).select_one("[aria-labelledby=time-title]")
    marks = chart.select("line.marker-line")
    links = chart.select("p.hint a[href^='/changes/']")
    assert len(marks) == len(links) > 0
    assert browser.page(links[0]["href"]).h1.get_text() == links[0].get_text()


@pytest.mark.parametrize("path", ["/", "/codes", "/tools", "/tool?name=http_request", "/messages"])
def test_a_number_leads_to_its_rows_under_the_same_filter(browser: Browser, path: str):
    """Links to failures keep every condition of the view: the rows are as many as was said."""
    query = "model:claude-x -code:timeout"
    soup = browser.page(generated(path) + f"&q={query}")
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


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        (
            "https://traces.example/t/{trace_id}?span={span_id}",
            "https://traces.example/t/4bf9%2F2f%3D%22?span=00f067aa",
        ),
        ("", None),
    ],
)
def test_ids_lead_to_the_trace_elsewhere(own_engine: Engine, template: str, wanted: str | None):
    """With an address for traces the ids of a failure lead there, quoted; else they are text."""
    event = failure("tool_00", trace_id='4bf9/2f="', span_id="00f067aa", at=NOW - 10**6)
    with write_transaction(own_engine) as conn:
        project_id = ensure_project(conn, "generated")
        assert store_events(conn, project_id, [event], received_at=NOW).accepted == 1
    with contextmanager(open_browser)(own_engine, trace_url=template) as browser:
        soup = browser.page(generated(f"/failures/{event['event_id']}"))
    assert "00f067aa" in soup.select_one("main").get_text()
    links = {each["href"] for each in soup.select("main a") if "traces." in each["href"]}
    assert links == ({wanted} if wanted else set())
