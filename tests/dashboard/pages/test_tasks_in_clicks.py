"""Nine things a newcomer wants to know, on the demo, over HTTP: at most three clicks each.

A click is a link that is followed or a form that is sent, from Overview on. Links are found by what
they say. What a browser does besides (menus, drawings, copying) is tested in ``e2e``; the same on
real transcripts in ``tests/transcripts/test_tasks.py``.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.newcomers import MOST, Newcomer, find_new_kinds, newcomer_to
from tests.factories import failure
from tests.golden.filling import DEMO, files_of

from toolfault_dashboard.cli.app import run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""The demo's last moment, as the recorded answers have it."""


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


@pytest.fixture
def newcomer(demo: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """Somebody new to the demo; what they want takes three clicks at most."""
    shutil.copyfile(demo, tmp_path / "demo.db")
    yield from newcomer_to("demo", tmp_path / "demo.db", NOW)


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


def test_kinds_new_since_yesterday(demo: Path, tmp_path: Path) -> None:
    """A link on Overview: exactly the kinds that were first seen within a day, each marked new."""
    shutil.copyfile(demo, tmp_path / "demo.db")
    # The demo's newest kind came two days before its end.
    for newcomer in newcomer_to("demo", tmp_path / "demo.db", NOW - timedelta(days=1)):
        assert find_new_kinds(newcomer).tables


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
