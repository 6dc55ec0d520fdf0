"""Every control of the pages, driven in a browser on both engines.

Completion, brush, time range, refresh, columns, downloads, copying, comparing, experiments,
settings, views, the first run. What works without JavaScript is driven without it too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browsing import Reader, send
from tests.factories import failure
from tests.live_server import LiveServer

from toolfault_collector.clock import now_us
from toolfault_dashboard.analysis.metrics import METRICS

pytestmark = pytest.mark.browser

SCRIPTS = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])


def _box(page: Page):
    return page.get_by_label("Query", exact=True)


def test_the_box_proposes_keys_then_values(open_reader):
    """Three letters and two keys of the keyboard write a condition; Enter searches for it."""
    page = open_reader().go("/failures")
    _box(page).click()
    page.keyboard.type("co", delay=20)
    proposals = page.get_by_role("listbox", name="Proposals").get_by_role("option")
    expect(proposals.first).to_contain_text("conversation:")
    page.keyboard.type("d", delay=20)
    expect(proposals).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(proposals.first).to_contain_text("failure")
    value = proposals.first.locator(".code").inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(_box(page)).to_have_value(f"code:{value} ")
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_text(f"code:{value}")


def test_a_range_is_drawn_over_a_chart_and_a_bar_leads_to_its_failures(open_reader):
    """Dragging writes since and until into the query; a click opens one bucket."""
    reader = open_reader()
    page = reader.go("/tools")
    page.goto(f"{reader.address}/?project=generated&q=tool%3Asearch&window=all")
    slots = page.locator(".bar-slot[data-from]")
    slots.first.scroll_into_view_if_needed()
    first, last = slots.first.bounding_box(), slots.last.bounding_box()
    begin = str(slots.first.get_attribute("data-from")).removesuffix("T00:00:00Z")
    end = str(slots.last.get_attribute("data-to")).removesuffix("T00:00:00Z")
    assert first is not None
    assert last is not None
    page.mouse.move(first["x"] + 2, first["y"] + 40)
    page.mouse.down()
    page.mouse.move(last["x"] + 2, last["y"] + 40, steps=4)
    expect(page.locator(".brush")).to_have_count(1)
    page.mouse.up()
    page.wait_for_url(re.compile("since%3A.*until%3A"))
    expect(page.locator(".chip")).to_have_text(["tool:search", f"since:{begin}", f"until:{end}"])
    page.locator(".chart a").first.locator(".bar-slot").click()
    page.wait_for_url(re.compile("/failures"))
    expect(page.locator("tbody a.row-link").first).to_be_visible()


@SCRIPTS
def test_a_time_range_is_typed(open_reader, script):
    """From and until become conditions of the query, with or without JavaScript."""
    reader = open_reader(java_script_enabled=script)
    page = reader.go("/round-trips?by=argument")
    page.locator("details.tools summary").click()
    page.get_by_label("From (UTC)").fill("2026-11-01T00:00")
    page.get_by_label("Until (UTC)").fill("2026-11-19T12:30")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".chip")).to_have_text(
        [re.compile("since:2026-11-01"), re.compile("until:2026-11-19")]
    )
    expect(page.get_by_role("link", name="Argument", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_a_page_loads_itself_again(open_reader):
    """The chosen interval stands in the address; with script the page carries it, else a header."""
    reader = open_reader()
    page = reader.go("/failures")
    page.locator("details.tools summary").click()
    page.get_by_role("link", name="30 s", exact=True).click()
    page.wait_for_url(re.compile("refresh=30"))
    expect(page.locator("body")).to_have_attribute("data-refresh", "30")
    page.get_by_role("link", name="Off", exact=True).click()
    page.wait_for_url(lambda url: "refresh" not in url)
    plain = open_reader(java_script_enabled=False).go("/failures?refresh=60")
    assert plain.locator("meta[http-equiv=refresh]").get_attribute("content") == "60"


@SCRIPTS
def test_columns_are_chosen_and_kept(open_reader, script):
    """Ticked columns appear, stand in the address, and stay while the list is filtered."""
    page = open_reader(java_script_enabled=script).go("/failures")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Model").check()
    page.get_by_label("Duration").check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("cols=model%2Cduration"))
    heads = page.locator("table.failures thead th")
    expect(heads).to_have_text(
        ["Failure", "What was said", "Model", "Duration", "Chain", "When (UTC)"]
    )
    page.locator(".facet li a").first.click()
    expect(heads).to_have_count(6)


@SCRIPTS
def test_failures_are_looked_at_by_kind(open_reader, script):
    """One click groups them, one sorts the groups, one opens the failures of a group."""
    page = open_reader(java_script_enabled=script).go("/failures")
    page.get_by_role("link", name="By kind", exact=True).click()
    expect(page.locator("thead th").nth(1)).to_have_attribute("aria-sort", "descending")
    page.get_by_role("link", name="Last seen (UTC)").click()
    expect(page.locator("thead th").last).to_have_attribute("aria-sort", "descending")
    assert page.locator("svg.spark").count() > 0
    row = page.locator("tbody tr").first
    said = row.locator("td").first.inner_text()
    row.locator("a.row-link").click()
    expect(page.locator(".lede")).to_contain_text(f"{said} failure")
    expect(page.locator("table.failures")).to_be_visible()


@SCRIPTS
def test_what_the_model_was_told_is_compared_along_a_chain(open_reader, script):
    """One click marks what is new in each text against the failure before it, one takes it away."""
    page = open_reader(java_script_enabled=script).go("/round-trips")
    chains = page.locator("#chains tbody tr")
    several = chains.filter(has=page.locator("td.num:nth-child(6)", has_text=re.compile("^[3-9]$")))
    several.first.locator("a.row-link").click()
    page.get_by_role("link", name="Differences", exact=True).click()
    expect(page.locator(".told ins").first).to_be_visible()
    page.get_by_role("link", name="Whole texts", exact=True).click()
    expect(page.locator(".told ins")).to_have_count(0)


@SCRIPTS
def test_two_queries_are_compared(open_reader, script):
    """Two texts give a verdict, metrics and codes; a mistake is named with its column."""
    page = open_reader(java_script_enabled=script, complain=False).go("/compare")
    page.get_by_label("Before").fill("tool:search")
    page.get_by_label("After").fill("tol:http_request")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("The second query, column 1")
    page.get_by_label("After").fill("tool:http_request")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_label("Verdict")).to_be_visible()
    assert page.get_by_role("group", name="Before and after", exact=True).locator(
        "tbody tr"
    ).count() == len(METRICS)
    assert page.get_by_role("group", name="Codes on both sides").locator("tbody tr").count() > 1


@SCRIPTS
def test_an_experiment_shows_assignment_effect_and_how_long_still(open_reader, script):
    """From the list to the trial: arms with their shares, both intervals for every metric."""
    page = open_reader(java_script_enabled=script).go("/experiments")
    page.get_by_role("link", name="b", exact=True).click()
    expect(page.locator("h1")).to_have_text("b")
    arms = page.get_by_role("group", name="Assignment").locator("tbody tr")
    expect(arms).to_have_count(2)
    effects = page.get_by_role("group", name="Effect of each arm").locator("tbody tr")
    expect(effects).to_have_count(len(METRICS))
    assert effects.first.locator(".effect-cell svg").count() == 2
    expect(page.get_by_text("chi-squared")).to_be_visible()


@pytest.mark.parametrize("suffix", ["CSV", "NDJSON", "Parquet"])
def test_a_table_is_downloaded_in_each_format(open_reader, tmp_path: Path, suffix: str):
    """The button beside a table hands over a file that is not empty."""
    page = open_reader().go("/round-trips")
    with page.expect_download() as download:
        page.get_by_role("link", name=f"{suffix} of chains", exact=True).click()
    target = tmp_path / "file"
    download.value.save_as(target)
    assert target.stat().st_size > 200
    assert download.value.suggested_filename == f"toolfault-chains.{suffix.lower()}"


def test_the_weekly_report_is_one_click(open_reader, tmp_path: Path):
    """One click, one self-contained page."""
    page = open_reader().go("/")
    with page.expect_download() as download:
        page.get_by_role("link", name="Weekly report").click()
    target = tmp_path / "week.html"
    download.value.save_as(target)
    assert "<h1>Tool-call failures of generated" in target.read_text(encoding="utf-8")


def test_what_a_failure_holds_is_copied(open_reader):
    """The text of the model, the query, curl, Python and JSON each land in the clipboard."""
    reader: Reader = open_reader(permissions=["clipboard-read", "clipboard-write"])
    page = reader.go("/failures?q=-chain%3Anone")
    page.locator("tbody a.row-link").first.click()
    page.get_by_text("Show as JSON").click()
    told = page.locator("#text-llm")
    for source, starts in (
        ("text-llm", told.inner_text()[:10] if told.count() else ""),
        ("copy-query", ("signature:", "event:")),
        ("copy-curl", "curl -H"),
        ("copy-python", "import json"),
        ("payload", "{"),
    ):
        button = page.locator(f"[data-copy={source}]")
        if not button.count():
            continue
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith(starts), source
        if source == "payload":
            json.loads(page.evaluate("navigator.clipboard.readText()"))


@SCRIPTS
def test_a_view_is_saved_shared_and_deleted(open_reader, script):
    """A filtered page is saved under a name, found among the views, opened and deleted."""
    page = open_reader(java_script_enabled=script).go("/failures?q=code%3Atimeout")
    page.get_by_role("link", name="Save this view").click()
    name = f"Timeouts {script}"
    page.get_by_label("Name").fill(name)
    page.get_by_label("Show it to everybody").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text(f"Saved: {name}")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator(".chip").first).to_have_text("code:timeout")
    page.go_back()
    page.get_by_role("button", name=f"Delete {name}").click()
    expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)


@SCRIPTS
def test_settings_make_and_revoke_a_key_and_write_it_down(open_reader, script):
    """A key is shown once, can be revoked, and both are listed with who did it."""
    page = open_reader(java_script_enabled=script).go("/settings")
    label = f"label {script}"
    page.get_by_label("What it is for").select_option("read")
    page.get_by_label("Label").fill(label)
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#secret")).to_have_text(re.compile("^tf_read_"))
    row = page.get_by_role("group", name="Keys").locator("tr", has_text=label)
    row.get_by_role("button", name=re.compile("^Revoke")).click()
    expect(page.get_by_role("group", name="Keys").locator("tr", has_text=label)).to_contain_text(
        "revoked"
    )
    done = page.get_by_role("group", name="Audit log, newest first").locator("tbody tr")
    expect(done.nth(0)).to_contain_text("key_revoked")
    expect(done.nth(1)).to_contain_text("key_created")


def test_an_empty_project_turns_into_the_dashboard_by_itself(
    open_reader, generated_server: LiveServer
):
    """Three ways with the real DSN; the first event brings the overview without a click."""
    name = f"fresh-{now_us()}"
    dsn = generated_server.dsn(name)
    page = open_reader().page
    page.goto(f"{generated_server.address}/?project={name}")
    expect(page.locator(".ways .card")).to_have_count(3)
    assert page.locator("[data-await]").count() == 1
    send(dsn, failure("first_tool", at=now_us()))
    expect(page.locator("h1")).to_have_text("Overview", timeout=20_000)
    expect(page.locator(".tile .value").first).to_have_text("1")


def test_times_are_in_the_zone_of_the_reader_and_in_utc_where_wanted(open_reader):
    """The browser's zone on the page, UTC under the pointer; one click turns the page to UTC."""
    page = open_reader(timezone_id="Asia/Tokyo", locale="en-GB").go("/changes")
    page.wait_for_function("() => document.cookie.includes('zone=Asia/Tokyo')")
    page.reload()
    time = page.locator("tbody time").first
    expect(time).to_have_text("10 Nov 2026, 21:00:00 JST")
    expect(time).to_have_attribute("title", "2026-11-10T12:00:00.000Z")
    expect(page.locator("thead th").first).to_have_text("When (local)")
    page.get_by_role("button", name="UTC", exact=True).click()
    expect(time).to_have_text("10 Nov 2026, 12:00:00 UTC")
    expect(page.locator("thead th").first).to_have_text("When (UTC)")
    page.get_by_role("button", name="Local", exact=True).click()
    expect(time).to_have_text("10 Nov 2026, 21:00:00 JST")


@SCRIPTS
def test_a_near_miss_is_added_to_fix_next_and_removed(open_reader, script):
    """One click on the failure, one on the list; the list says who added it."""
    page = open_reader(java_script_enabled=script).go("/failures?q=near_miss%3Aany")
    page.locator("tbody a.row-link").first.click()
    page.get_by_role("button", name="Add to Fix next").first.click()
    expect(page.get_by_role("status")).to_have_text("Added to this list.")
    added = page.get_by_role("group", name="Added by hand").locator("tbody tr")
    expect(added).to_have_count(1)
    expect(added).to_contain_text("admin")
    added.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status")).to_have_text("Removed from this list.")
    expect(added).to_have_count(0)


@SCRIPTS
def test_retention_and_prices_are_changed(open_reader, script):
    """The form keeps what was typed, says what it will do, and an empty field takes it back."""
    page = open_reader(java_script_enabled=script).go("/settings")
    for days in ("36500", ""):
        page.get_by_label("Keep calls for (days)").fill(days)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Saved.")
        expect(page.get_by_label("Keep calls for (days)")).to_have_value(days)


@SCRIPTS
def test_an_experiment_is_shown_day_by_day(open_reader, script):
    """One click shows the days, another one a different metric; each has a table."""
    page = open_reader(java_script_enabled=script).go("/experiment?name=b")
    page.locator("#days").get_by_role("link", name="Show").click()
    rows = page.get_by_role("group", name="Day by day").locator("tbody tr")
    expect(rows.first).to_be_visible()
    expect(page.locator("#days rect.whisker").first).to_be_attached()
    page.locator("#days").get_by_role("link", name="Recovery", exact=True).click()
    expect(page.locator("#days h2")).to_contain_text("recovery")
    page.locator("#days").get_by_role("link", name="Hide").click()
    expect(rows).to_have_count(0)


def test_a_page_on_paper_is_its_figures(open_reader):
    """Printed, a page has figures, tables and charts, and neither navigation nor controls."""
    page = open_reader().go("/")
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(media="print")
    for gone in (".side", "form.query", ".downloads", "details > summary", ".actions"):
        expect(page.locator(gone).first).to_be_hidden()
    for there in ("h1", ".tiles", ".chart", "table.failures"):
        expect(page.locator(there).first).to_be_visible()
    paper = page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


def test_nothing_moves_while_a_page_loads(open_reader):
    """What the scripts add to a page shifts nothing that is already there (CLS 0)."""
    reader = open_reader()
    reader.page.add_init_script(
        "window.shifts = []; new PerformanceObserver(list => window.shifts.push("
        "...list.getEntries().map(each => each.value))).observe("
        "{type: 'layout-shift', buffered: true})"
    )
    found = {}
    for path in ("/", "/failures", "/round-trips", "/codes", "/live", "/experiment?name=b"):
        page = reader.go(path)
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        found[path] = sum(page.evaluate("window.shifts"))
    assert {path: shift for path, shift in found.items() if shift > 0.01} == {}
