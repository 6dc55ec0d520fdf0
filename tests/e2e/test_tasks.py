"""Three tasks of a new user on the demo, with the clicks that docs/tour.md writes down."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.browsing import lived_through, signed_in
from tests.live_server import LiveServer, live_server

pytestmark = pytest.mark.browser

TOUR = Path(__file__).resolve().parents[2] / "docs" / "tour.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with the two weeks that `make demo` begins with."""
    with live_server(tmp_path_factory.mktemp("tasks")) as running:
        lived_through(running.dsn("demo"), days=14)
        yield running


class Person:
    """Somebody who only clicks, and how often."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, target: Locator) -> None:
        """Click once."""
        target.click()
        self.clicks += 1

    def link(self, name: str, *, within: str = "main") -> None:
        """Click the link of this name."""
        self.click(self.page.locator(within).get_by_role("link", name=name, exact=True))


@pytest.fixture
def person(demo: LiveServer, chromium: Browser) -> Iterator[Person]:
    """Signed in, on the overview."""
    context = chromium.new_context(accept_downloads=True)
    link = demo.run("sign-in-link", "--url", demo.address).split()[-1]
    context.add_cookies(signed_in(chromium, link))  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(demo.address)
    expect(page.locator("h1")).to_have_text("Overview")
    yield Person(page)
    context.close()


def _written(task: str) -> int:
    """The number of clicks that the tour promises."""
    (row,) = [line for line in TOUR.read_text("utf-8").splitlines() if line.startswith(f"| {task}")]
    return int(row.split("|")[2])


def test_which_argument_of_which_tool_costs_most(person: Person):
    """The first row names argument and tool, with its round trips."""
    person.link("Round trips", within=".nav")
    person.link("Argument")
    row = person.page.get_by_role("group", name="Chains by argument").locator("tbody tr").first
    expect(row.locator("th")).to_contain_text(" of ")
    assert int(row.locator("td").nth(1).inner_text().replace("\u202f", "")) > 0
    assert person.clicks == _written("Which argument")


def test_whether_the_improvement_helped_and_how_sure_that_is(person: Person):
    """Verdict, difference and interval stand on top of the page of the change."""
    person.link("Changes", within=".nav")
    person.link("Coerce values and report all issues in http_request")
    verdict = person.page.get_by_label("Verdict")
    expect(verdict).to_contain_text("improved")
    expect(verdict).to_contain_text(re.compile(r"95% interval .* to .*pp"))
    assert person.clicks == _written("Did the demo")


def test_a_csv_of_the_abandoned_chains_of_one_tool_last_week(person: Person, tmp_path: Path):
    """The file holds that tool's abandoned chains of seven days and nothing else."""
    page = person.page
    person.link("Round trips", within=".nav")
    person.link("7 days")
    number = page.locator("#by tbody td a[aria-label*=' abandoned of ']").first
    row = number.locator("xpath=ancestor::tr")
    tool = row.locator("th").inner_text().replace("\u200b", "").strip()
    said = int(number.inner_text().replace("\u202f", ""))
    person.click(number)
    with page.expect_download() as download:
        person.link("CSV of chains")
    target = tmp_path / "chains.csv"
    download.value.save_as(target)
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(each["tool"], each["outcome"]) for each in rows} == {(tool, "abandoned")}
    assert len(rows) == said
    week = time.time() - 8 * 86_400
    assert all(each["started_at"] > time.strftime("%Y-%m-%d", time.gmtime(week)) for each in rows)
    assert person.clicks == _written("A CSV")
