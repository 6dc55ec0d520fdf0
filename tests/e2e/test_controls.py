"""The controls of the pages, driven in a browser: each once, where a script has a part in it.

Completion, brush, refresh, columns, downloads, copying, comparing, experiments, settings, views.
What forms do without a script is shown in process (``tests/dashboard/pages``) and here in the
long run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.e2e.browsing import (
    Visit,
    chips,
    downloaded,
    first_failure,
    number_in,
    rows_of,
    said,
    stand_still,
)
from tests.factories import failure, success

from toolfault_collector.clock import MINUTE_US, now_us

pytestmark = pytest.mark.browser

COVERED = """each => {
  const text = document.createRange();
  text.selectNodeContents(document.getElementById(each.dataset.copy));
  const box = each.getBoundingClientRect();
  return [...text.getClientRects()].some(line => line.right > box.left && line.left < box.right
    && line.bottom > box.top && line.top < box.bottom);
}"""


def _box(page: Page) -> Locator:
    return page.get_by_label("Query", exact=True)


def test_the_box_proposes_keys_then_values(scripted: Visit):
    """Three letters and two keys of the keyboard write a condition; Enter searches for it."""
    page = scripted.go("/failures")
    _box(page).click()
    page.keyboard.type("co", delay=20)
    proposals = page.get_by_role("listbox", name="Proposals").get_by_role("option")
    expect(proposals.first).to_contain_text("conversation:")
    page.keyboard.type("d", delay=20)
    expect(proposals).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(proposals.first).to_contain_text("failure")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(_box(page)).to_have_value(re.compile(r"^code:\w+ $"))
    written = _box(page).input_value().strip()
    page.keyboard.press("Enter")
    chips(page, written)


def test_a_range_is_drawn_over_a_chart_and_a_bar_leads_to_its_failures(scripted: Visit):
    """Dragging writes since and until into the query; a click opens one bucket."""
    page = scripted.go("/?q=tool%3Asearch")
    chart = page.get_by_role("group", name="by code; the table below")
    slots = chart.locator("[data-from]")
    slots.first.scroll_into_view_if_needed()
    first, last = slots.first.bounding_box(), slots.last.bounding_box()
    begin = str(slots.first.get_attribute("data-from")).removesuffix("T00:00:00Z")
    end = str(slots.last.get_attribute("data-to")).removesuffix("T00:00:00Z")
    assert first is not None
    assert last is not None
    page.mouse.move(first["x"] + 2, first["y"] + 40)
    page.mouse.down()
    page.mouse.move(last["x"] + 2, last["y"] + 40, steps=4)
    page.mouse.up()
    page.wait_for_url(re.compile("since%3A.*until%3A"))
    chips(page, "tool:search", f"since:{begin}", f"until:{end}")
    chart.locator("a [data-from]").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Failures")
    expect(first_failure(page)).to_be_visible()


def test_a_time_range_is_typed(reader: Visit):
    """From and until become conditions of the query, and what was chosen besides stays."""
    page = reader.go("/round-trips?by=argument")
    page.get_by_text("Time range, refresh, copy").click()
    page.get_by_label("From (UTC)").fill("2026-11-01T00:00")
    page.get_by_label("Until (UTC)").fill("2026-11-19T12:30")
    page.get_by_role("button", name="Apply").click()
    chips(page, re.compile("since:2026-11-01"), re.compile("until:2026-11-19"))
    argument = page.get_by_role("link", name="Argument", exact=True)
    expect(argument).to_have_attribute("aria-current", "true")


@pytest.mark.long
def test_a_page_loads_itself_again(scripted: Visit):
    """The chosen interval stands in the address, is marked, and is taken back by a click."""
    page = scripted.go("/failures")
    page.get_by_text("Time range, refresh, copy").click()
    page.get_by_role("link", name="30 s", exact=True).click()
    page.wait_for_url(re.compile("refresh=30"))
    chosen = page.get_by_role("link", name="30 s", exact=True)
    expect(chosen).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="Off", exact=True).click()
    page.wait_for_url(lambda url: "refresh" not in url)


@pytest.mark.long
def test_columns_are_chosen_and_kept(reader: Visit):
    """Ticked columns appear, stand in the address, and stay while the list is filtered."""
    page = reader.go("/failures")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Model").check()
    page.get_by_label("Duration").check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("cols=model%2Cduration"))
    heads = page.get_by_role("group", name="Failures, newest first").get_by_role("columnheader")
    titles = ["Failure", "Message", "Model", "Duration", "Chain", "When (UTC)"]
    expect(heads).to_have_text(titles)
    page.get_by_role("region", name="Facets").get_by_role("link").first.click()
    chips(page, re.compile("Remove"))
    expect(heads).to_have_text(titles)


@pytest.mark.long
def test_failures_are_looked_at_by_kind(reader: Visit):
    """One click groups them, one sorts the groups, one opens as many failures as a group has."""
    page = reader.go("/failures")
    page.get_by_role("link", name="Grouped", exact=True).click()
    table = page.get_by_role("group", name="Kinds of failure")
    head = table.get_by_role("columnheader")
    expect(head.filter(has_text="Failures")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("link", name="Last seen (UTC)").click()
    expect(head.filter(has_text="Last seen")).to_have_attribute("aria-sort", "descending")
    assert table.get_by_role("img").count() > 0
    row = rows_of(page, "Kinds of failure").first
    many = number_in(row.get_by_role("cell").nth(3).inner_text())  # after box, state and owner
    row.get_by_role("link").click()
    expect(first_failure(page)).to_be_visible()
    assert said(page) == many


@pytest.mark.long
def test_what_the_model_was_told_is_compared_along_a_chain(reader: Visit):
    """One click marks what is new in each text against the failure before it, one takes it away."""
    calls = [failure("retry", field=name) for name in ("port", "url", "path")]
    own, _ = reader.project(*calls, success("retry"))
    page = reader.go("/round-trips", own)
    rows_of(page, "Chains, newest first").first.get_by_role("link").first.click()
    page.get_by_role("link", name="Differences", exact=True).click()
    new = page.get_by_role("insertion")
    expect(new).to_have_text(["url", "path"])
    page.get_by_role("link", name="Whole texts", exact=True).click()
    expect(new).to_have_count(0)


@pytest.mark.long
def test_two_queries_are_compared(reader: Visit):
    """Two texts give a verdict, metrics and codes; a mistake is named with its column."""
    page = reader.go("/compare")
    page.get_by_label("Before").fill("tool:search")
    page.get_by_label("After").fill("tol:http_request")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("The second query, column 1")
    reader.refused(422)
    page.get_by_label("After").fill("tool:http_request")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_label("Verdict")).to_be_visible()
    metrics = rows_of(page, "Before and after")
    expect(metrics.filter(has_text="Failure rate")).to_have_count(1)
    assert rows_of(page, "Codes in both cohorts").count() > 1
    page.get_by_role("navigation", name="Often compared").get_by_role("link").last.click()
    expect(page.get_by_label("Verdict")).to_be_visible()
    assert page.get_by_label("Before", exact=True).input_value() != "tool:search"


@pytest.mark.long
def test_an_experiment_is_looked_at_as_a_whole_and_day_by_day(reader: Visit):
    """From the list to the trial: arms, effects, days, another metric, and away with the days."""
    page = reader.go("/experiments")
    page.get_by_role("link", name="b", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("b")
    expect(rows_of(page, "Assignment")).to_have_count(2)
    expect(rows_of(page, "Effect of each arm").first).to_contain_text("ailure rate")
    expect(page.get_by_text("chi-squared")).to_be_visible()
    page.get_by_role("link", name="Show", exact=True).click()
    expect(rows_of(page, "Day by day").first).to_be_visible()
    metrics = page.get_by_role("navigation", name="Metric")
    metrics.get_by_role("link", name="Recovery", exact=True).click()
    expect(page.get_by_role("heading", name="recovery")).to_be_visible()
    page.get_by_role("link", name="Hide", exact=True).click()
    expect(rows_of(page, "Day by day")).to_have_count(0)


@pytest.mark.parametrize(
    "suffix",
    [
        "CSV",
        pytest.param("NDJSON", marks=pytest.mark.long),
        pytest.param("Parquet", marks=pytest.mark.long),
    ],
)
def test_a_table_is_downloaded_in_each_format(scripted: Visit, tmp_path: Path, suffix: str):
    """The menu beside a table opens by keyboard and hands over a file that is not empty."""
    page = scripted.go("/round-trips")
    page.get_by_text("Export chains", exact=True).press("Enter")
    with page.expect_download() as download:
        page.get_by_role("link", name=f"{suffix} of chains", exact=True).click()
    target = tmp_path / "file"
    download.value.save_as(target)
    assert target.stat().st_size > 200
    assert download.value.suggested_filename == f"toolfault-chains.{suffix.lower()}"


def test_the_weekly_report_is_one_click(scripted: Visit):
    """One click opens a page that has its own style, which the content policy allows."""
    own, _ = scripted.project(failure())
    page = scripted.go("/", own)
    page.get_by_role("link", name="Weekly report").click()
    heading = page.get_by_role("heading", name=re.compile(f"^Tool-call failures of {own}"))
    expect(heading).to_be_visible()
    figures = page.get_by_role("caption").first
    assert figures.evaluate("each => getComputedStyle(each).fontWeight") == "600"


def test_what_a_failure_holds_is_copied(own_window: Callable[..., Visit]):
    """The text of the model, the query, curl, Python and JSON each land in the clipboard."""
    visit = own_window()
    stand_still(visit.page)  # "Copied" is said for a moment
    page = visit.go("/failures?q=-chain%3Anone")
    first_failure(page).click()
    told = page.get_by_label("Text for the model").inner_text()
    page.get_by_text("Show as JSON").click()
    page.wait_for_load_state()  # and with it the script that shows the buttons
    copied = []
    buttons = page.get_by_role("button", name=re.compile("^Copy"))
    for index in range(buttons.count()):
        button = page.get_by_role("button", name=re.compile("^Cop(y|ied)")).nth(index)
        covered = button.evaluate(COVERED)
        assert not covered, "the button covers what it copies"
        button.click()
        expect(button).to_have_text(re.compile("^Copied"))
        copied.append(str(page.evaluate("navigator.clipboard.readText()")))
    (payload,) = [each for each in copied if each.startswith("{")]
    assert json.loads(payload)
    assert told in copied
    for start in (("signature:", "event:"), "curl -H", "import json"):
        assert [each for each in copied if each.startswith(start)], start


@pytest.mark.long
def test_a_view_is_saved_shared_and_deleted(reader: Visit):
    """A filtered page is saved under a name, found among the views, opened and deleted."""
    own, _ = reader.project(failure(code="timeout"))
    page = reader.go("/failures?q=code%3Atimeout", own)
    page.get_by_role("link", name="Save this view").click()
    page.get_by_label("Name").fill("Timeouts")
    page.get_by_label("Show it to everybody").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Saved: Timeouts")
    page.get_by_role("link", name="Timeouts", exact=True).click()
    chips(page, "code:timeout")
    assert said(page) == 1
    page.go_back()
    page.get_by_role("button", name="Delete Timeouts").click()
    expect(page.get_by_role("link", name="Timeouts", exact=True)).to_have_count(0)


@pytest.mark.long
def test_settings_make_and_revoke_a_key_and_write_it_down(reader: Visit):
    """A key is shown once, can be revoked, and both are listed with who did it."""
    own, _ = reader.project(failure())
    page = reader.go("/settings", own)
    page.get_by_label("What it is for").select_option("read")
    page.get_by_label("Label").fill("for the report")
    page.get_by_role("button", name="Create API key").click()
    expect(page.get_by_text(re.compile("^tf_read_[\\w-]{20,}$"))).to_be_visible()
    row = rows_of(page, "API keys").filter(has_text="for the report")
    row.get_by_role("button", name=re.compile("^Revoke")).click()
    expect(row).to_contain_text("revoked")
    expect(page.get_by_text(re.compile("^tf_read_[\\w-]{20,}$"))).to_have_count(0)
    acts = rows_of(page, "Audit log, newest first").filter(has_text=own)
    expect(acts.nth(0)).to_contain_text("key_revoked")
    expect(acts.nth(1)).to_contain_text("key_created")
    expect(acts.nth(0)).to_contain_text("admin")


@pytest.mark.long
def test_retention_and_prices_are_kept_and_mistakes_named(reader: Visit):
    """The form keeps what was typed, refuses what is no price, and an empty field takes it back."""
    own, _ = reader.project(failure())
    page = reader.go("/settings", own)
    days, prices = (
        page.get_by_label("Keep calls for (days)"),
        page.get_by_role("textbox", name="price"),
    )
    prices.fill("gpt-5")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_be_visible()
    reader.refused(422)
    for kept, price in (("36500", "gpt-5=0.01"), ("", "")):
        days.fill(kept)
        prices.fill(price)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Saved.")
        expect(days).to_have_value(kept)
        expect(prices).to_have_value(price)


def test_times_are_in_the_zone_of_the_reader_and_in_utc_where_wanted(
    own_window: Callable[..., Visit],
):
    """The browser's zone on the page, UTC under the pointer; one click turns the page to UTC."""
    page = own_window(timezone_id="Asia/Tokyo", locale="en-GB").go("/changes")
    page.wait_for_function("() => document.cookie.includes('zone=Asia/Tokyo')")
    page.reload()
    time = page.get_by_text(re.compile("^10 Nov")).first
    heads = page.get_by_role("columnheader")
    expect(time).to_have_text(re.compile("^10 Nov( 2026)?, 21:00$"))
    expect(time).to_have_attribute("title", "2026-11-10T12:00:00.000Z")
    expect(heads.first).to_have_text("When (local)")
    page.get_by_role("button", name="UTC", exact=True).click()
    expect(time).to_have_text(re.compile("^10 Nov( 2026)?, 12:00$"))
    expect(heads.first).to_have_text("When (UTC)")
    page.get_by_role("button", name="Local", exact=True).click()
    expect(time).to_have_text(re.compile("^10 Nov( 2026)?, 21:00$"))


@pytest.mark.long
def test_a_near_miss_is_added_to_fix_next_and_removed(reader: Visit):
    """One click on the failure, one on the list; the list says who added it."""
    issue = {"field": "url", "code": "wrong_type", "message": "no", "near_miss": ["strip"]}
    own, _ = reader.project(failure(error={"issues": [issue]}))
    page = reader.go("/failures?q=near_miss%3Aany", own)
    first_failure(page).click()
    page.get_by_role("button", name="Add to Fix next").first.click()
    expect(page.get_by_role("status")).to_have_text("Added to this list.")
    added = rows_of(page, "Added by hand")
    expect(added).to_have_count(1)
    expect(added).to_contain_text("admin")
    (row,) = downloaded(page, "what was added by hand")
    assert (row["field"], row["remedy"], row["added_by"]) == ("url", "strip", "admin")
    added.get_by_role("link", name="this failure").click()
    expect(page.get_by_role("region", name="What it means")).to_contain_text("added by admin")
    expect(page.get_by_role("button", name="Add to Fix next")).to_have_count(0)
    page.get_by_role("link", name="See it in Fix next").click()
    added.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_have_text("Removed from this list.")
    expect(added).to_have_count(0)


@pytest.mark.long
def test_what_a_tool_ignores_and_repeats_is_downloaded(reader: Visit):
    """The files of phantom arguments and repeated executions have the rows of their tables."""
    page = reader.go("/tool?name=http_request")
    words = {
        "model": {"": "none"},
        "idempotent": {"": "not marked", "false": "not idempotent"},
        "argument": {"'=x": "=x"},  # what a spreadsheet would compute is written as a text
    }
    for table, what, names in (
        ("Phantom arguments", "its phantom arguments", ("argument", "model", "calls")),
        ("Repeated execution", "its repeated executions", ("model", "idempotent", "calls")),
    ):
        shown = rows_of(page, table).evaluate_all(
            "all => all.map(row => [...row.cells].slice(0, 3).map(each => each.innerText.trim()))"
        )
        file = downloaded(page, what)
        assert {row["tool"] for row in file} == {"http_request"}
        expected = [
            [words.get(name, {}).get(row[name], row[name]) for name in names] for row in file
        ]
        assert shown == expected[: len(shown)] != []


@pytest.mark.long
def test_a_model_that_marked_itself_is_looked_at(reader: Visit):
    """Its change names who marked it, how other tools fared, and the kinds that are new since."""
    at = now_us() - 60 * MINUTE_US
    own, _ = reader.project(
        *(failure(tool, at=at, model="old") for tool in ("search", "pay")),
        failure("search", at=at + MINUTE_US, model="newer", code="not_found"),
        failure("pay", at=at + 2 * MINUTE_US, model="old"),
    )
    page = reader.go("/changes", own)
    changes = rows_of(page, "Changes, newest first")
    expect(changes).to_have_count(1)
    expect(changes).to_contain_text("toolfault itself")
    (row,) = downloaded(page, "these changes")
    assert (row["kind"], row["source"]) == ("model", "toolfault")
    changes.get_by_role("link", name=re.compile("^Before and after")).click()
    expect(page.get_by_text("Marked by toolfault itself: first seen")).to_be_visible()
    expect(
        page.get_by_text("For comparison, all other tools (1 call before, 1 after)")
    ).to_be_visible()
    new = rows_of(page, "New since the change")
    expect(new).to_have_count(1)
    (row,) = downloaded(page, "what is new since the change")
    assert row["failures"] == "1"
    new.get_by_role("link", name="not_found").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Failures")
    assert said(page) == 1
