"""Every page: it answers, it leads where it says, and it asks the database little."""

from __future__ import annotations

import csv
import io
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
from httpx2 import Response
from sqlalchemy import Engine
from tests.cases import long_cases
from tests.dashboard.addresses import LISTS
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import GENERATED, details, generated, scope_of, variants
from tests.dashboard.reading import Page
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US
from toolfault_collector.storage.database.engine import (
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.store import store_events
from toolfault_dashboard import queries
from toolfault_dashboard.cli.app import run
from toolfault_dashboard.formats import plural

FIRST_LOAD = 100_000  # bytes over the wire: the page and all its files
MOST = 8
MOST_OF = {
    "/tool": 18,
    "/fix-next": 14,
    "/failures/": 12,
    "/changes/": 14,
    "/experiment": 14,
    "/settings": 10,
}
"""Pages that need more; the name of one ends with a slash where an id follows."""


@pytest.fixture(scope="module")
def engine(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The generated history of which nobody asked anything yet: here statements are counted."""
    path = tmp_path_factory.mktemp("loaded") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def loaded(engine: Engine) -> Mapping[str, tuple[Response, Sequence[str]]]:
    """Every list and a page of each detail, loaded once: the answer and the SELECTs it needed."""
    found: dict[str, tuple[Response, Sequence[str]]] = {}
    for browser in open_browser(engine):
        for path in map(generated, (*LISTS, *details(engine))):
            browser.statements.clear()
            found[path] = browser.get(path), browser.selects
    return found


@pytest.fixture(scope="module")
def pages(loaded: Mapping[str, tuple[Response, Sequence[str]]]) -> Mapping[str, Page]:
    """The same, read."""
    assert {answer.status_code for answer, _ in loaded.values()} == {200}
    return {path: Page(answer.text) for path, (answer, _) in loaded.items()}


@pytest.mark.parametrize("path", LISTS)
def test_every_list_page_has_one_heading_and_a_title(
    browser: Browser,
    loaded: Mapping[str, tuple[Response, Sequence[str]]],
    pages: Mapping[str, Page],
    path: str,
):
    """A page has exactly one h1, a title and its navigation entry marked; it loads 100 KB."""
    answer, _ = loaded[generated(path)]
    page = pages[generated(path)]
    assert page.heading
    assert "toolfault" in page.title
    assert len([each for each in page.tabs("Main") if each.current]) == 1
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', answer.text)
    assert len(files) >= 3
    received = (answer, *map(browser.get, files))
    assert sum(each.num_bytes_downloaded for each in received) <= FIRST_LOAD


def test_every_detail_page_answers(engine: Engine, pages: Mapping[str, Page]):
    """A failure, a chain, a tool, an experiment, a comparison and a change each have a page."""
    for path in details(engine):
        assert pages[generated(path)].heading


def test_what_a_term_means_is_one_pointer_away(pages: Mapping[str, Page]):
    """Badges and columns with a name of their own explain it, by the words of Help."""
    known = {*pages[generated("/help")].section("Words").figures.values()}
    said = {words for page in pages.values() for _, words in page.main.badges}
    assert len(said) > 10
    assert said <= known
    columns = pages[generated("/round-trips")].main.table("First code").meanings
    assert {"First code", "Outcome", "Round trips", "Remarkable"} <= set(columns)
    assert set(columns.values()) <= known


@pytest.mark.parametrize("path", ["/fix-next", "/start", "/experiments"])
def test_every_snippet_can_be_copied(pages: Mapping[str, Page], path: str):
    """Each piece of code has a button of its own, which copies that piece."""
    page = pages[generated(path)].main
    assert page.snippets
    assert sorted(page.copied) == sorted(page.snippets)


@pytest.mark.parametrize(
    ("page", "query"),
    [
        ("/failures?q=-category:parameter&", "-category:parameter"),
        ("/tool?name=search&", "tool:search"),
    ],
)
def test_the_copied_command_lists_the_failures_of_the_page(
    own_browser: Browser, capfd: pytest.CaptureFixture[str], page: str, query: str
):
    """Of its project and of the tool that it is about; a negated condition is no option."""
    asked = "project=generated&window=all"
    snippets = own_browser.page(f"{page}{asked}").main.snippets
    (command,) = [each for each in snippets if each.startswith("toolfault errors")]
    url = own_browser.engine.url.render_as_string(hide_password=False)
    _, name, *rest = shlex.split(command)
    capfd.readouterr()  # what the requests logged
    assert run([name, "--database-url", url, *rest]) == 0
    told = capfd.readouterr().out, own_browser.get(f"/failures.csv?{asked}&q={query}").text
    listed, shown = (
        [row["event_id"] for row in csv.DictReader(io.StringIO(text))] for text in told
    )
    assert listed == shown != []


def test_a_long_message_is_cut_and_opens_in_full(own_browser: Browser):
    """A text of many words has all of it behind "Whole text", without a script; a short one not."""
    long = "Write the port as a number, since nothing else can be understood. " * 5 + "End."
    texts = {"long_winded": long, "short_spoken": "Write the port as a number."}
    events = [
        failure(tool, at=NOW - 10**6, error={"renderings": {"llm": said}})
        for tool, said in texts.items()
    ]
    with write_transaction(own_browser.engine) as conn:
        project_id = ensure_project(conn, "wordy")
        assert store_events(conn, project_id, events, received_at=NOW).accepted == len(events)
    page = own_browser.page("/messages?project=wordy&window=all").main
    assert page.section("One message each").snippets == [long]
    (opened,) = [words for words in page.menus if words.startswith("Whole text")]
    assert opened.endswith("...")


def _kind(address: str) -> str:
    """The page of *address*, without what it asks for."""
    path = address.partition("?")[0]
    return path if path.count("/") < 2 else path[: path.index("/", 1) + 1]


def _too_many(needed: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """The SELECTs of those addresses that need more than they may."""
    return {
        address: sent
        for address, sent in needed.items()
        if len(sent) > MOST_OF.get(_kind(address), MOST)
    }


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_no_page_asks_the_database_often(
    browser: Browser, loaded: Mapping[str, tuple[Response, Sequence[str]]], every: int
):
    """A page needs at most eight SELECTs, whatever its address asks for; a few need some more.

    All of a request count, those for its session and its project too. The history is one that is
    counted at once: of a large one each day that is not known yet is a statement of its own.
    """
    assert _too_many({path: selects for path, (_, selects) in loaded.items()}) == {}
    more = map(generated, variants(browser.engine)[::every])
    assert _too_many({path: browser.count(path) for path in more}) == {}


@pytest.mark.postgres
@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_every_page_and_a_file_on_postgres(filled_postgres: str, browser: Browser, every: int):
    """On PostgreSQL every page answers with few statements, and list and file are SQLite's."""
    engine = open_engine(filled_postgres)
    with contextmanager(open_browser)(engine) as other:
        paths = map(generated, (*LISTS, *details(engine))[::every])
        assert _too_many({path: other.count(path) for path in paths}) == {}
        # PostgreSQL itself refuses this character.
        assert other.get(generated("/conversation?name=a%00b")).status_code == 404
        for path in ("/failures", "/tools", "/failures?group=kind"):
            shown, expected = other.page(generated(path)).main, browser.page(generated(path)).main
            assert [table.rows[0].keys() for table in shown.tables]
            assert shown.lead == expected.lead
            assert shown.tables[0].column(shown.tables[0].headings[0]) == (
                expected.tables[0].column(expected.tables[0].headings[0])
            )
        file = "/failures.csv?project=generated&window=all"
        assert other.get(file).text == browser.get(file).text
    engine.dispose()


def test_kinds_are_sorted_and_filtered_by_the_address(browser: Browser):
    """Tabs, sorting and facets keep each other; a row leads to as many failures as it says."""
    page = browser.page(generated("/failures?group=kind&sort=last"))
    table = page.table("Kind")
    assert table.sorted_by == "Last seen (UTC)"
    facet = page.listed("Code").links[0].href
    assert "group=kind" in facet
    assert "sort=last" in facet
    one_by_one, by_kind = page.tabs("Show failures")
    assert "group" not in one_by_one.href
    assert by_kind.current
    row = table.rows[0]
    behind = browser.page(row["Kind"].href)
    assert behind.lead.startswith(plural(row["Failures"].number, "failure"))
    assert row["By day, UTC"].text.startswith("most: ")


def test_the_maps_of_codes_and_fields_lead_to_their_failures(
    browser: Browser, pages: Mapping[str, Page]
):
    """A cell of either map names the number of failures behind it."""
    page = pages[generated("/codes")]
    for title in ("Tool by code", "Tool by field"):
        (table,) = page.section(title).tables
        cell = next(cell for cell in list(table.rows[0].values())[1:] if cell.href)
        assert browser.page(cell.href).lead.startswith(plural(cell.number, "failure")), title


def test_the_week_is_one_click_away_for_whom_it_may_concern(engine: Engine):
    """The overview links the report; a viewer, who sees no fixes, has neither link nor file."""
    for browser in open_browser(engine, role="developer"):
        links = [each.href for each in browser.page(f"/?{GENERATED}").links]
        assert [each for each in links if each.startswith("/report.html")]
        assert {browser.get(path).status_code for path in ("/report.html", "/report.md")} == {200}
        assert browser.get("/report.html?until=0001-01-01").status_code == 422
    for browser in open_browser(engine, role="viewer"):
        links = [each.href for each in browser.page(f"/?{GENERATED}").links]
        assert not [each for each in links if each.startswith("/report.html")]
        assert {browser.get(path).status_code for path in ("/report.html", "/report.md")} == {403}


def test_the_week_leads_to_its_rows(browser: Browser):
    """A code, a tool or a new kind of the report leads to as many failures as stand beside it."""
    week = Page(browser.get(generated("/report.html?q=-model:claude-x")).text)
    followed = 0
    for first in ("code", "tool", "signature"):
        for row in week.table(first, "failures").rows[:1]:
            behind = browser.page(row[first].href.removeprefix("http://127.0.0.1:8321"))
            assert behind.lead.startswith(f"{plural(row['failures'].number, 'failure')} "), first
            followed += 1
    assert followed == 3
    markdown = browser.get(generated("/report.md")).text
    assert "](<http://127.0.0.1:8321/failures?project=generated&q=" in markdown


def test_an_outcome_leads_to_its_chains(browser: Browser, pages: Mapping[str, Page]):
    """The number in the table is the number of chains on the page behind it."""
    (table,) = pages[generated("/round-trips")].section("Where calls go").tables
    followed = 0
    for row in table.rows[:1]:
        for outcome in ("Recovered", "Switched", "Abandoned"):
            if row[outcome].href:
                behind = browser.page(row[outcome].href.split("#")[0])
                assert f"in {plural(row[outcome].number, 'chain')} " in behind.lead + " "
                followed += 1
    assert followed == 3


def test_pages_of_failures_hold_every_failure_once(browser: Browser):
    """Following "Older" to the end shows each failure exactly once, and "Newer" leads back."""
    seen: list[str] = []
    newer = ""
    href = f"/failures?{GENERATED}&q=tool:search"
    pages = 0
    while href:
        page = browser.page(href)
        seen += [row["Failure"].href.split("?")[0] for row in page.table("Failure").rows]
        ways = {each.text: each.href for each in page.tabs("Pages")}
        href, newer = ways.get("Older", ""), ways.get("Newer", "")
        pages += 1
    with read_connection(browser.engine) as conn:
        total = queries.count_failures(conn, scope_of(browser.engine, "tool:search"))
    assert pages > 2
    assert len(seen) == len(set(seen)) == total
    before = browser.page(newer).table("Failure").rows
    assert before[-1]["Failure"].href.split("?")[0] in seen[: -len(page.table("Failure").rows)]


def test_every_link_of_every_page_leads_somewhere(browser: Browser, pages: Mapping[str, Page]):
    """No page links to an address that is not there, or to a query that cannot be read."""
    links: set[str] = set()
    for page in pages.values():
        # One of each kind says what all say.
        by_kind: dict[str, list[str]] = defaultdict(list)
        for link in sorted({each.href for each in page.links}):
            if link.startswith("/"):
                by_kind[link.split("?")[0].rsplit("/", 1)[0]].append(link)
        links |= {link for group in by_kind.values() for link in group[:1]}
    broken = {link: browser.get(link).status_code for link in links}
    assert {link: status for link, status in broken.items() if status not in (200, 303)} == {}


def test_a_facet_count_is_what_choosing_it_leaves(browser: Browser):
    """Following a facet shows as many failures as the facet said."""
    page = browser.page(f"/failures?{GENERATED}&q=code:wrong_type")
    for title in ("Tool", "Model", "Field"):
        line = next(each for each in page.listed(title).links if not each.current)
        behind = browser.page(line.href)
        said = behind.lead.split()[0]
        assert line.text.endswith(said), (title, line)
        assert f"{behind.lead}".startswith(f"{said} failure")


def test_the_filter_form_is_written_as_a_query(browser: Browser):
    """Submitting the form redirects to the address that says the same as a query."""
    answer = browser.get(
        f"/failures?form=1&{GENERATED}&tool=search&code=wrong_type,timeout&category=parameter"
    )
    assert answer.status_code == 303
    location = answer.headers["location"]
    assert "form" not in location
    fields = next(
        form.fields
        for form in browser.page(location).forms_to("/failures", "get")
        if "form" in form.fields
    )
    assert fields["tool"] == "search"
    assert fields["code"] == "wrong_type,timeout"
    assert fields["category"] == "parameter"


def test_a_form_value_that_is_no_query_is_taken_literally(browser: Browser):
    """Spaces and quotes typed into a field of the form select that very text."""
    answer = browser.get(f"/failures?form=1&{GENERATED}&tool=book flight")
    rows = browser.page(answer.headers["location"]).table("Failure").rows
    assert rows
    assert all(" book flight" in row["Failure"].text for row in rows)


def test_a_query_that_cannot_be_read_shows_where_and_what_was_meant(browser: Browser):
    """An unknown key is answered with 400, the column, a suggestion, and the box as it was."""
    page = browser.page(f"/failures?{GENERATED}&q=tol:search", status=400)
    assert "Did you mean tool?" in page.role("alert")
    assert "Column 1." in page.text
    assert page.field("Query") == "tol:search"


def test_a_cursor_of_another_list_is_refused(browser: Browser):
    """A changed cursor is answered with 400 and a sentence, not with other rows."""
    assert browser.page(f"/failures?{GENERATED}&cursor=nonsense", status=400).heading


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


def test_an_untimed_failure_never_shows_a_date(browser: Browser):
    """Where the source had no times the page says so, and shows no time element for it."""
    scope = scope_of(browser.engine, "time:none")
    with read_connection(browser.engine) as conn:
        row = queries.failure_list(conn, scope, limit=1).rows[0]
    page = browser.page(f"/failures/{row.event_id}?{GENERATED}").main
    assert page.figures["When"] == "no time recorded"
    (place,) = [each for each in page.items if each.text == "no time recorded"]
    assert place.count("time") == 0


EVENT = {
    "type": "tool_call",
    "event_id": "0199a1f2-0000-7000-8000-000000000001",
    "occurred_at": "2026-11-20T11:59:00Z",
    "session_id": "conv-1",
    "tool": "search",
    "success": False,
    "error": {"code": "wrong_type", "category": "parameter", "field": "limit"},
}


def test_a_new_project_shows_how_to_send_data(empty_browser: Browser):
    """Without data the overview is the first-run page; asking for a key shows a DSN that works."""
    assert "first failure" in empty_browser.page("/").heading
    dsn = empty_browser.post("/start", {}).section("Your DSN").snippets[0]
    key = dsn.split("//")[1].split("@")[0]
    sent = empty_browser.client.post(
        "/v1/events",
        json={"schema_version": 1, "events": [EVENT]},
        headers={"authorization": f"Bearer {key}"},
    )
    assert sent.json()["accepted"] == 1
    assert empty_browser.page("/?window=all").heading == "Overview"


def test_a_new_key_is_shown_once_and_a_reload_makes_no_other(empty_browser: Browser):
    """The form leads to a page that holds the key; loading it again shows and makes none."""
    made = empty_browser.post("/start", {})
    key = made.section("Your DSN").snippets[0].split("//")[1].split("@")[0]
    assert key.startswith("tf_ingest_")
    assert key not in empty_browser.page("/start").text
    assert len(empty_browser.page("/settings").table("Key", "Last used (UTC)").rows) == 1


def test_nobody_else_makes_a_page_show_a_key(empty_browser: Browser):
    """A cookie that this session did not sign shows nothing."""
    name = next(iter(empty_browser.client.cookies))
    empty_browser.client.cookies.set(f"{name}_key", "tf_ingest_of_somebody.else", path="/start")
    assert "tf_ingest_of_somebody" not in empty_browser.page("/start").text


@pytest.mark.parametrize(
    "path",
    [
        "/failures",
        "/fix-next",
        *long_cases("/round-trips", "/codes", "/tools"),
    ],
)
def test_a_page_without_rows_says_what_to_try(browser: Browser, path: str):
    """First all time, then no filter; a filter or a window that is gone shows rows again."""
    first = browser.page(f"{path}?project=generated&window=7d&q=tool:nobody").main
    then = browser.page(first.link("Look at all time")).main
    assert "Look at all time" not in then.text
    after = browser.page(then.link("Remove the filter")).main
    assert "Remove the filter" not in after.text


def test_an_imported_failure_has_one_text(own_browser: Browser):
    """What the importer made of a text was told to nobody; its code is marked with the rule."""
    sent = {**failure("Edit", code="precondition_failed"), "derived_by": "not_read"}
    with write_transaction(own_browser.engine) as conn:
        project = ensure_project(conn, "imported")
        store_events(conn, project, [sent], received_at=NOW, time_policy="import")
    page = own_browser.page(f"/failures/{sent['event_id']}?project=imported").main
    texts = sent["error"]["renderings"]
    assert texts["llm"] in page.text
    assert texts["user"] not in page.text.split("Copy as")[0]
    assert texts["system"] not in page.text.split("Copy as")[0]
    assert "code derived by rule: not_read" in page.text
    assert "A code of the sender's own" not in page.text


def test_a_failure_of_a_span_does_not_say_who_was_told(own_browser: Browser):
    """A span holds one text, which the model may have read or not; the code has its rule."""
    sent = {**failure("pay"), "derived_by": "connection", "trace_id": "a" * 32, "span_id": "b" * 16}
    with write_transaction(own_browser.engine) as conn:
        project = ensure_project(conn, "spans")
        store_events(conn, project, [sent], received_at=NOW, time_policy="import")
    page = own_browser.page(f"/failures/{sent['event_id']}?project=spans").main
    assert "What the span says" in page.text
    assert sent["error"]["renderings"]["llm"] in page.text
    assert "not who was told it" in page.text
    assert "as the transcript has it" not in page.text
    assert "code derived by rule: connection" in page.text


def test_an_empty_project_leads_to_sending_data(own_browser: Browser):
    """Where there is neither a filter nor a window to widen, the page says how to send data."""
    with write_transaction(own_browser.engine) as conn:
        ensure_project(conn, "bare")
    link = own_browser.page("/failures?project=bare").main.link("Send data")
    assert "2. Over HTTP" in own_browser.page(link).headings


def test_a_history_longer_than_an_axis_says_what_is_left_out(own_browser: Browser):
    """A chart names the failures before it, the file has them, and the API refuses such steps."""
    with write_transaction(own_browser.engine) as conn:
        project = ensure_project(conn, "long")
        sent = [failure(at=NOW - year * 365 * DAY_US) for year in (50, 30, 1)]
        sent.append(success(at=NOW - DAY_US))
        store_events(conn, project, sent, received_at=NOW, time_policy="import")
    asked = "project=long&window=all"
    chart = own_browser.page(f"/?{asked}").section("Failures over time")
    assert "2 failures before the first week are not drawn" in chart.text
    rows = list(csv.DictReader(io.StringIO(own_browser.get(f"/over-time.csv?{asked}").text)))
    assert sum(int(row["failures"]) for row in rows) == 3
    assert [float(row["failure_rate"]) for row in rows] == [1.0] * 3 + [0.0]
    for more, instead in (("week", "Ask for a shorter"), ("hour&q=since:400d", "with bucket=day")):
        path = f"/api/v1/failures-over-time?project=long&bucket={more}"
        refused = own_browser.get(path)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_parameter")
        assert instead in refused.json()["detail"]


@pytest.mark.parametrize(
    "path", ["/?", "/codes", "/tool?name=http_request", "/experiment?name=b", "/changes/"]
)
def test_every_chart_over_time_carries_the_changes(pages: Mapping[str, Page], path: str):
    """Each change of the window is named in the chart and is a link below it."""
    page = next(pages[each] for each in pages if each.startswith(path))
    chart = page.section(next(each for each in page.headings if each.startswith("Failures ")))
    links = [each for each in chart.links if each.href.startswith("/changes/")]
    bars = next(each for each in chart.tag.find_all("svg") if each.find("line") and each.find("a"))
    assert len(links) == len(bars.find_all("line", class_="marker-line")) > 0
    assert {each.text for each in links} == {"coerce booleans"}
    (own,) = [each for each in pages if each.startswith("/changes/")]
    assert pages[own].heading == "coerce booleans"
    assert own.partition("?")[0] in {each.href.partition("?")[0] for each in links}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/messages",
        *long_cases("/codes", "/tools", "/tool?name=http_request"),
    ],
)
def test_a_number_leads_to_its_rows_under_the_same_filter(browser: Browser, path: str):
    """Links to failures keep every condition of the view: the rows are as many as was said."""
    page = browser.page(generated(path) + "&q=model:claude-x -code:timeout").main
    found = 0
    for table in page.tables:
        if "Failures" not in table.headings:
            continue
        for row in table.rows[:2] if found < 8 else ():
            first = row[table.headings[0]].href
            link = row["Failures"].href or (first if first.startswith("/failures?") else "")
            if link:
                expected = plural(row["Failures"].number, "failure")
                assert browser.page(link).lead.startswith(expected), link
                found += 1
    assert found > 1


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
        page = browser.page(generated(f"/failures/{event['event_id']}")).main
    assert "00f067aa" in page.text
    links = {each.href for each in page.links if "traces." in each.href}
    assert links == ({wanted} if wanted else set())


@pytest.mark.parametrize(
    ("parts", "withheld"),
    [
        ({"received": "str, 4 characters", "received_type": "str"}, True),
        ({"received": "int", "received_type": "int"}, True),
        ({"snippet": "str, 9 characters"}, True),
        ({"received": "'four'", "received_type": "str"}, False),
        ({"received_type": "str"}, False),
    ],
    ids=["size", "type", "snippet", "recorded", "unknown"],
)
def test_a_page_says_where_values_were_not_recorded(
    own_engine: Engine, parts: dict[str, str], withheld: bool
):
    """Only there, with what records them."""
    issue = {"code": "wrong_type", "field": "url"} | (parts if "snippet" not in parts else {})
    event = failure(error={"issues": [issue], **parts}, at=NOW - 10**6)
    with write_transaction(own_engine) as conn:
        project_id = ensure_project(conn, "generated")
        assert store_events(conn, project_id, [event], received_at=NOW).accepted == 1
    with contextmanager(open_browser)(own_engine) as browser:
        page = browser.client.get(generated(f"/failures/{event['event_id']}")).text
        assert ("toolfault.init(capture_values=True)" in page) == withheld


@pytest.mark.parametrize("name", ["nobody", "..", "a\0b", "x" * 300])
def test_a_conversation_that_is_not_there(browser: Browser, name: str):
    """Any name that no conversation has, whatever is in it, is answered with 404."""
    address = generated("/conversation?" + urlencode({"name": name}))
    assert browser.get(address).status_code == 404
