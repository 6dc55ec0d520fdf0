"""Nine things a newcomer wants to know, over HTTP: at most three clicks each.

A click is a link that is followed or a form that is sent, from Overview on. Links are found by what
they say. What a browser does besides (menus, drawings, copying) is tested in ``e2e``, on the demo;
the same on real transcripts in ``tests/transcripts/test_tasks.py``.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.dashboard.generated import NOW as NOW_US
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.newcomers import MOST, Newcomer, find_new_kinds, newcomer_to
from tests.factories import failure

NOW = datetime.fromtimestamp(NOW_US / 1_000_000, UTC)


@pytest.fixture
def newcomer(filled_sqlite: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """Somebody new to the generated history; what they want takes three clicks at most."""
    shutil.copyfile(filled_sqlite, tmp_path / "toolfault.db")
    yield from newcomer_to("generated", tmp_path / "toolfault.db", NOW)


def test_which_argument_costs_most(newcomer: Newcomer) -> None:
    """Round trips, by argument: the first row is a tool and its argument, by calls spent."""
    page = newcomer.open("Round trips")
    page = newcomer.follow(page.link("Argument"))
    rows = page.table("Argument").rows
    assert all(
        "." in each or "(no argument)" in each for each in page.table("Argument").column("Argument")
    )
    assert any("." in row["Argument"].text for row in rows)
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
    assert min(each["last_at"] for each in rows if each["last_at"]) >= earliest[:19]


def test_kinds_new_since_yesterday(newcomer: Newcomer) -> None:
    """A link on Overview: exactly the kinds that were first seen within a day, each marked new."""
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
