"""Nine things a newcomer wants to know, on the demo, over HTTP: at most three clicks each.

A click is a link that is followed or a form that is sent, from Overview on. Links are found by what
they say. What a browser does besides (menus, drawings, copying) is tested in ``e2e``.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.reading import Page
from tests.factories import failure
from tests.golden.filling import DEMO, files_of

from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.cli.app import run

MOST = 3

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""The demo's last moment, as the recorded answers have it."""


class Newcomer:
    """Somebody who begins on Overview, follows what the page says, and counts."""

    def __init__(self, browser: Browser, project: str) -> None:
        self.browser = browser
        self.clicks = 0
        self.page: Page = browser.page(f"/?project={project}").main
        self.home = browser.page(f"/?project={project}")

    def follow(self, href: str) -> Page:
        """Follow a link of the page."""
        assert href
        self.clicks += 1
        self.page = self.browser.page(href.split("#", maxsplit=1)[0]).main
        return self.page

    def open(self, name: str) -> Page:
        """Follow the entry *name* of the navigation."""
        (entry,) = [each for each in self.home.tabs("Main") if each.text == name]
        return self.follow(entry.href)

    def save(self, page: Page, action: str) -> Page:
        """Press the button of the form of *page* that sends it to *action*, as it is filled."""
        (form,) = [each for each in page.forms if action in each.sends_to]
        self.clicks += 1
        self.page = self.browser.post(form.sends_to[action], form.fields).main
        return self.page

    def fetch(self, href: str) -> str:
        """Take a file away."""
        self.clicks += 1
        answer = self.browser.get(href)
        assert answer.status_code == 200
        return answer.text


@pytest.fixture(scope="module")
def demo(
    made_once: Callable[[str, Callable[[Path], None]], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A week of the demo, imported."""

    def make(path: Path) -> None:
        folder = tmp_path_factory.mktemp("week")
        events = files_of(DEMO, lambda: folder, folder)
        url = f"sqlite:///{path}"
        assert run(["import", str(events), "--project", "demo", "--database-url", url]) == 0

    return made_once("demo-week.db", make)


def _newcomer(path: Path, project: str, now: datetime) -> Iterator[Newcomer]:
    engine = open_engine(f"sqlite:///{path}")
    try:
        for browser in open_browser(engine, now=int(now.timestamp() * 1e6)):
            newcomer = Newcomer(browser, project)
            yield newcomer
            assert newcomer.clicks <= MOST
    finally:
        engine.dispose()


@pytest.fixture
def newcomer(demo: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """Somebody new to the demo; what they want takes three clicks at most."""
    shutil.copyfile(demo, tmp_path / "demo.db")
    yield from _newcomer(tmp_path / "demo.db", "demo", NOW)


def test_which_argument_costs_most(newcomer: Newcomer) -> None:
    """Round trips, by argument: the first row is a tool and its argument, by calls spent."""
    page = newcomer.open("Round trips")
    page = newcomer.follow(page.link("Argument"))
    rows = page.table("Argument").rows
    assert "." in rows[0]["Argument"].text
    spent = [row["Calls spent"].number for row in rows]
    assert spent[0] == max(spent) > 0


def test_whether_a_change_helped(newcomer: Newcomer) -> None:
    """Changes, the row: a verdict in a sentence."""
    page = newcomer.open("Changes")
    (row, *_) = [row for row in page.table("Change").rows if row["Change"].href]
    page = newcomer.follow(row["Change"].href)
    assert any(
        word in page.text for word in ("rate fell from", "No detectable change", "rate rose from")
    )


def test_a_csv_of_abandoned_chains_of_one_tool_last_week(newcomer: Newcomer) -> None:
    """Seven days, the number of abandoned chains of a tool, the file: exactly those chains."""
    page = newcomer.follow(newcomer.home.link("7 days"))
    row = next(row for row in page.table("Abandoned").rows if row["Abandoned"].href)
    page = newcomer.follow(row["Abandoned"].href)
    rows = list(csv.DictReader(io.StringIO(newcomer.fetch(page.link("These chains as CSV")))))
    assert {(each["tool"], each["outcome"]) for each in rows} == {(row["Tool"].text, "abandoned")}
    assert len(rows) == row["Abandoned"].number > 0
    earliest = (NOW - timedelta(days=7)).isoformat()
    assert min(each["last_at"] for each in rows) >= earliest[:19]


def test_kinds_new_since_yesterday(newcomer: Newcomer) -> None:
    """A link on Overview: only kinds that were first seen within a day, each marked."""
    page = newcomer.follow(newcomer.page.link("New kinds since a day ago"))
    yesterday = (NOW - timedelta(days=1)).isoformat()[:19]
    for row in page.table("Kind").rows if page.tables else ():
        assert "new" in row["Kind"].text
        assert row["First seen (UTC)"].moment >= yesterday


def test_which_model_is_worst_at_which_tool(newcomer: Newcomer) -> None:
    """Break down: a matrix of tools by models that names the worst of each."""
    page = newcomer.open("Break down")
    worst = [row["Worst"].text for row in page.table("Tool", "Worst").rows]
    assert any(name != "–" for name in worst)


def test_what_the_model_saw_and_did_next(newcomer: Newcomer) -> None:
    """The newest failure of Overview: the text, and the calls that followed."""
    row = newcomer.page.table("Failure", "Message").rows[0]
    said = row["Message"].text
    page = newcomer.follow(row["Failure"].href)
    assert said[:40] in page.text
    assert "What happened next" in page.headings


def test_tell_me_when_a_tool_breaks(newcomer: Newcomer) -> None:
    """The tool on Overview, "Alert me about this", Save: a rule about that tool alone."""
    row = newcomer.page.table("Tool", "Calls spent").rows[0]
    tool = row["Tool"].text
    page = newcomer.follow(row["Tool"].href)
    page = newcomer.follow(page.link("Alert me about this"))
    assert "It would" in page.section("Preview").text
    page = newcomer.save(page, "/alerts")
    (rule,) = page.table("Rule", "State").rows
    assert f"tool:{tool}" in rule["Rule"].text
    assert rule["State"].text == "quiet"


def test_the_first_own_event(empty_browser: Browser) -> None:
    """A new server gives a key by one form, and shows the failure that is sent with it."""
    made = empty_browser.post("/start", {})
    clicks = 1
    key = made.section("Your DSN").snippets[0].split("//")[1].split("@")[0]
    sent = empty_browser.client.post(
        "/v1/events",
        json={"schema_version": 1, "events": [failure("book_table")]},
        headers={"Authorization": f"Bearer {key}"},
    )
    assert sent.json()["accepted"] == 1
    page = empty_browser.page("/").main
    row = page.table("Failure", "Message").rows[0]
    page = empty_browser.page(row["Failure"].href).main
    clicks += 1
    assert "book_table" in page.heading
    assert clicks <= MOST


def test_what_to_fix_first_in_real_transcripts(shared_data: Path, tmp_path: Path) -> None:
    """Fix next: the first item is what most calls were spent on, and it leads to its failures."""
    transcripts = shared_data / "claude_code_sessions"
    if not transcripts.is_dir():
        pytest.skip("these transcripts are not there")
    path = tmp_path / "real.db"
    url = f"sqlite:///{path}"
    assert run(["import", str(transcripts), "--project", "cc", "--database-url", url]) == 0
    for newcomer in _newcomer(path, "cc", datetime.now(UTC)):
        page = newcomer.open("Fix next")
        fixes = [each for each in page.sections if "calls spent" in each.text]
        assert fixes[0].headings == ["Edit, MultiEdit and Write fail with precondition_failed"]
        assert "The problems listed here account for" in page.lead
        behind = next(each.href for each in fixes[0].links if each.href.startswith("/failures"))
        assert newcomer.follow(behind).table("Failure").rows
