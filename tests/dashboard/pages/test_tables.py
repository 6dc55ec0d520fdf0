"""Every table of every page: its files hold what it shows, and its columns are the reader's."""

from __future__ import annotations

import csv
import io
import json
import uuid
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from pyarrow import parquet
from sqlalchemy import text
from tests.cases import long_cases
from tests.dashboard.addresses import COMPARED
from tests.dashboard.api.serving import key_of
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import GENERATED, details, generated

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import DAY_US, SECOND_US, format_time
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.formats import plural


@pytest.mark.parametrize(
    "query",
    [
        "tool:search -code:timeout",
        *long_cases("", "code:wrong_type"),
        "chain:none",
    ],
)
def test_the_csv_of_failures_has_the_rows_that_the_page_counts(browser: Browser, query: str):
    """The CSV behind the button has as many rows as the page says failures."""
    page = browser.page(f"/failures?{GENERATED}&q={query}")
    answer = browser.get(page.files[0])
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert page.lead.startswith(plural(len(rows), "failure"))


TABLES = {
    "/": ("overview", "over-time", "tools", "codes", "failures"),
    "/failures": ("failures",),
    "/failures?group=kind": ("kinds",),
    "/round-trips": (
        *("round-trips", "chains", "chain-lengths", "chain-ends", "conversation-rungs"),
    ),
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


# That each file has the rows of its table, the recorded answers show (tests/golden).
_TAKEN = ("/round-trips", "/settings")


@pytest.mark.parametrize(
    "path",
    [pytest.param(each, marks=() if each in _TAKEN else pytest.mark.long) for each in TABLES],
)
def test_every_table_is_there_as_csv_ndjson_and_parquet(browser: Browser, path: str):
    """Beside each table a menu has three files; they hold the same rows, and more than none."""
    with key_of(browser.engine, "generated"):  # or Settings has no table of keys
        _has_every_table(browser, path)


def test_what_is_new_since_a_change_is_a_file(own_browser: Browser):
    """The file beside the table has the kinds that the page shows, named by their arguments."""
    with write_transaction(own_browser.engine) as conn:
        conn.execute(text("UPDATE change SET occurred_at = :at"), {"at": NOW - 2 * DAY_US})
    (path,) = [each for each in details(own_browser.engine) if each.startswith("/changes/")]
    section = own_browser.page(f"{path}?project=generated").section("New since the change")
    shown, links = section.tables[0].column("Kind"), section.files
    assert shown
    assert [link.split("?")[0] for link in links] == [
        f"/new-since.{suffix}" for suffix in ("csv", "ndjson", "parquet")
    ]
    rows = list(csv.DictReader(io.StringIO(own_browser.get(links[0]).text)))
    assert len(rows) >= len(shown)
    for row, said in zip(rows, shown, strict=False):
        assert said.startswith(" · ".join(filter(None, (row["code"], row["fields"]))))


def _has_every_table(browser: Browser, path: str) -> None:
    page = browser.page(generated(path))
    links = page.files
    menus = [files for words, files in page.menus.items() if words.startswith("Export ")]
    assert [[each.text.split()[0] for each in files] for files in menus] == (
        [["CSV", "NDJSON", "Parquet"]] * len(menus)
    )
    offered = [each.href for files in menus for each in files]
    assert [each for each in links if not each.startswith("/report.html")] == offered
    for name in TABLES[path]:
        numbers: list[int] = []
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


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(each, marks=() if each in ("/failures", "/tools") else pytest.mark.long)
        for each in COLUMNS
    ],
)
def test_columns_are_chosen_by_the_address(browser: Browser, path: str):
    """The address alone decides; the form writes it and keeps what else it says."""
    parameter, wanted, there, gone = COLUMNS[path]
    page = browser.page(generated(f"{path}?{parameter}={wanted}")).main
    table = page.table(*there)
    assert not set(gone) & set(table.headings)
    assert table.rows
    form = next(each for each in page.forms_to(path, "get") if each.buttons == ("Show",))
    assert ",".join(value for _, value in form.ticked) == wanted
    sent = urlencode([*form.fields.items(), *form.ticked])
    answer = browser.get(f"{form.action}?{sent}")
    assert answer.status_code == 303
    assert f"{parameter}={wanted.replace(',', '%2C')}" in answer.headers["location"]
    none = browser.get(form.action, params=form.fields)
    assert browser.get(none.headers["location"]).status_code == 200
    if path != "/failures":
        assert f"{parameter}=none" in none.headers["location"]


def test_the_columns_of_two_tables_do_not_meet(browser: Browser):
    """On Round trips each table has its own; links of the page keep both."""
    page = browser.page(
        generated("/round-trips?cols=abandoned&chain-cols=model,variant&by=code")
    ).main
    chains = page.section("Chains")
    assert chains.tables[0].headings[-2:] == ("Model", "Variant")
    assert chains.tables[0].rows
    for tab in page.tabs("Group by"):
        assert "cols=abandoned" in tab.href
        assert "chain-cols=model" in tab.href
    form = next(each for each in chains.forms if each.buttons == ("Show",))
    assert form.fields["by"] == "code"
    assert form.fields["cols"] == "abandoned"


def test_many_tools_are_on_pages_that_follow_each_other(sqlite_url: str) -> None:
    """Each tool is on exactly one page, in the order of the address; the file has them all."""
    engine = open_engine(sqlite_url)
    events = [
        {
            "type": "tool_call",
            "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))),
            "occurred_at": format_time(NOW - number * SECOND_US),
            "tool": f"server__tool_{number:03}",
            "success": True,
        }
        for number in range(120)
    ]
    with write_transaction(engine) as conn:
        project = ensure_project(conn, "p")
        store_events(conn, project, events, received_at=NOW, time_policy="import")
    with contextmanager(open_browser)(engine) as browser:
        names: list[str] = []
        address = "/tools?sort=-name"
        while address:
            page = browser.page(address).main
            names += page.table("Tool").column("Tool")
            assert page.lead.startswith("120 tools ")
            address = next((link.href for link in page.links if link.text == "Next"), "")
        file = browser.get(page.files[0]).text
        beyond = browser.page("/tools?page=99").main.table("Tool").rows
    engine.dispose()
    assert names == [f"server__tool_{number:03}" for number in reversed(range(120))]
    assert len(file.splitlines()) == 121
    assert len(beyond) == 20
