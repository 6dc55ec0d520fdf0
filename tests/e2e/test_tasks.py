"""Tasks of a new user in a browser: the clicks that docs/tour.md writes down.

Those that need no script are done in process (``tests/dashboard/pages/test_tasks_in_clicks.py``)
and here, on the two weeks that `make demo` begins with, in the long run.
"""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.browsing import Visit, dsn_of, first_failure, lived_through, rows_of, send
from tests.e2e.conftest import administrator, opened_window
from tests.factories import change, failure
from tests.live_server import LiveServer, live_server

from toolfault_collector.clock import MINUTE_US, now_us

pytestmark = pytest.mark.browser

TOUR = Path(__file__).resolve().parents[2] / "docs" / "tour.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with the two weeks that `make demo` begins with."""
    with live_server(tmp_path_factory.mktemp("tasks")) as running:
        lived_through(dsn_of(running, "demo"), days=14)
        yield running


@pytest.fixture(scope="module")
def window(demo: LiveServer, chromium: Browser) -> Iterator[Visit]:
    """A signed-in window on the demo."""
    visit = opened_window(chromium, demo)
    visit.context.add_cookies(administrator(demo))  # type: ignore[arg-type]
    yield visit
    visit.context.close()


class Person:
    """Somebody who only clicks, and how often."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, target: Locator) -> None:
        """Click once."""
        target.click()
        self.clicks += 1

    def link(self, name: str, *, role: Literal["main", "navigation"] = "main") -> None:
        """Click the link of this name, on the page or in the navigation."""
        within = self.page.get_by_role(role, name="Main" if role == "navigation" else None)
        self.click(within.get_by_role("link", name=name, exact=True))


@pytest.fixture
def person(window: Visit) -> Iterator[Person]:
    """On the overview; nothing may make the browser complain."""
    window.page.goto(f"{window.address}/?project=demo")
    expect(window.page.get_by_role("heading", level=1)).to_have_text("Overview")
    yield Person(window.page)
    complaints = window.complaints[:]
    window.complaints.clear()
    assert complaints == []


def _written(task: str) -> int:
    """The number of clicks that the tour promises."""
    (row,) = [line for line in TOUR.read_text("utf-8").splitlines() if line.startswith(f"| {task}")]
    return int(row.split("|")[2])


@pytest.mark.long
def test_which_argument_of_which_tool_costs_most(person: Person):
    """The first row names argument and tool, with the calls that it cost."""
    person.link("Round trips", role="navigation")
    person.link("Argument")
    row = rows_of(person.page, "Chains by argument").first
    expect(row.get_by_role("rowheader")).to_contain_text(".")
    assert int(row.get_by_role("cell").nth(1).inner_text().replace(",", "")) > 0
    assert person.clicks == _written("Which argument")


@pytest.mark.long
def test_whether_the_improvement_helped_and_how_sure_that_is(person: Person):
    """Verdict, difference and interval stand on top of the page of the change."""
    person.link("Changes", role="navigation")
    person.link("Coerce values and report all issues in http_request")
    verdict = person.page.get_by_label("Verdict")
    expect(verdict).to_contain_text("improved")
    expect(verdict).to_contain_text(re.compile(r"95% interval .* to .*pp"))
    assert person.clicks == _written("Did the demo")


@pytest.mark.long
def test_a_csv_of_the_abandoned_chains_of_one_tool_last_week(person: Person, tmp_path: Path):
    """The file holds that tool's abandoned chains of seven days and nothing else."""
    page = person.page
    person.link("7 days")
    number = page.get_by_role("link", name=re.compile(r"^\S+ abandoned of ")).first
    row = rows_of(page, "Costliest tools").filter(has=number).first
    tool = row.get_by_role("rowheader").inner_text().replace("\u200b", "").strip()
    said = int(number.inner_text().replace(",", ""))
    person.click(number)
    with page.expect_download() as download:
        person.link("These chains as CSV")
    target = tmp_path / "chains.csv"
    download.value.save_as(target)
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(each["tool"], each["outcome"]) for each in rows} == {(tool, "abandoned")}
    assert len(rows) == said
    week = time.time() - 8 * 86_400
    assert all(each["started_at"] > time.strftime("%Y-%m-%d", time.gmtime(week)) for each in rows)
    assert person.clicks == _written("A CSV")


@pytest.mark.long
def test_tell_me_when_search_breaks(person: Person):
    """From a tool to a rule about it alone, with what it would have said: nothing is typed."""
    page = person.page
    tool = rows_of(page, "Costliest tools").first.get_by_role("rowheader")
    name = tool.inner_text().replace("\u200b", "").strip()
    person.click(tool.get_by_role("link"))
    person.link("Alert me about this")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("It would")
    person.click(page.get_by_role("button", name="Save the alert"))
    expect(page.get_by_role("status")).to_contain_text("The rule is saved")
    expect(rows_of(page, "Rules").first).to_contain_text(f"tool:{name}")
    assert person.clicks == _written("Tell me when")


def test_is_this_one_fixed_for_good(scripted: Visit):
    """The page of a failure says what fixed its kind, and whether it came back since."""
    person, hour, now = Person(scripted.page), 60 * MINUTE_US, now_us()
    page = person.page
    fix = change(label="new schema", at=now - 2 * hour)
    own, dsn = scripted.project(failure(at=now - 3 * hour), fix)
    kind = page.get_by_role("region", name="Its kind")

    def look() -> None:
        scripted.go("/", own)
        person.clicks = 0
        person.click(first_failure(page, "Newest failures"))

    look()
    page.get_by_label("Fixed by the change").select_option(index=1)
    page.get_by_role("button", name="Fixed", exact=True).click()
    expect(page.get_by_role("status")).to_be_visible()
    look()
    expect(kind).to_contain_text("by “new schema”")
    expect(kind.get_by_text("fixed", exact=True)).to_be_visible()
    send(dsn, failure(at=now - hour))
    look()
    expect(kind.get_by_text("regressed", exact=True)).to_be_visible()
    assert person.clicks == _written("Is this one fixed")


def test_give_this_to_my_coding_agent(scripted: Visit):
    """The patch of what costs most is in the clipboard, ready for an agent that edits code."""
    page = scripted.go("/")
    person = Person(page)
    person.link("Fix next", role="navigation")
    first = page.get_by_role("main").get_by_role("listitem")
    first = first.filter(has=page.get_by_text("How", exact=True)).first
    person.click(first.get_by_text("How", exact=True))
    person.click(first.get_by_role("button", name=re.compile("^Copy")).first)
    expect(first.get_by_role("button", name=re.compile("^Copied")).first).to_be_visible()
    copied = str(page.evaluate("navigator.clipboard.readText()")).strip()
    patch = first.get_by_text(copied, exact=True).first  # all that stands there, as it is shown
    assert copied == patch.inner_text().strip() != ""
    assert person.clicks == _written("Give this")


@pytest.mark.long
def test_no_page_of_the_demo_is_empty(person: Person):
    """Every list has rows for whoever looks at the demo first."""
    page = person.page
    for name in ("Overview", "Failures", "Round trips", "Codes and fields", "Tools", "Changes"):
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page.get_by_role("main").get_by_role("rowheader").first).to_be_visible()
