"""What a reader does beside an investigation, in a browser: each journey once.

Mistakes in a query, the form of filters, pages of a list, sorting, maps, the parts of a failure,
the sides of a change, people and their roles, projects, signing in and out, what was rejected.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.browsing import (
    Visit,
    chips,
    first_failure,
    number_in,
    rows_of,
    said,
    send,
    signed_in,
)
from tests.factories import failure

from toolfault_collector.clock import now_us

pytestmark = pytest.mark.browser


def _heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def _leads_to_its_rows(page: Page, link: Locator) -> None:
    """Follow *link*: the page behind it says the number that the link said."""
    # As it is written: what is below the first screen is drawn when the reader comes near.
    many = number_in(link.text_content() or "")
    link.click()
    expect(_heading(page)).to_have_text("Failures")
    assert said(page) == many > 0


def _hrefs(page: Page, table: str) -> list[str]:
    links = rows_of(page, table).get_by_role("link").filter(has_text=re.compile("_"))
    return [str(each) for each in links.evaluate_all("all => all.map(a => a.pathname)")]


@pytest.mark.long
def test_a_mistake_is_named_under_the_box(reader: Visit):
    """The query stays in the box, below it stand what is wrong, where, and what was meant."""
    page = reader.go("/failures")
    box = page.get_by_label("Query", exact=True)
    box.fill("tool:search cod:timeout")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("Did you mean code?")
    expect(box).to_have_value("tool:search cod:timeout")
    above, below = box.bounding_box(), page.get_by_role("alert").bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] > above["y"]
    reader.refused(400)
    box.fill("tool:search code:timeout")
    page.get_by_role("button", name="Search").click()
    chips(page, "tool:search", "code:timeout")
    page.get_by_role("link", name="Clear").click()
    chips(page)
    page.get_by_role("link", name="How to write a query").click()
    expect(_heading(page)).to_have_text("Help")


@pytest.mark.long
def test_a_facet_narrows_and_its_chip_or_the_way_back_widens(reader: Visit):
    """A facet has as many failures as it says; chip and way back are the state before."""
    page = reader.go("/failures")
    before = said(page)
    facet = page.get_by_role("region", name="Facets").get_by_role("link").first
    many = number_in(facet.inner_text().splitlines()[-1])
    facet.click()
    chips(page, re.compile("Remove"))
    assert said(page) == many < before
    page.go_back()
    chips(page)
    assert said(page) == before
    page.go_forward()
    page.get_by_role("link", name="Remove").click()
    chips(page)
    assert said(page) == before


def test_failures_are_filtered_by_a_form(reader: Visit):
    """Fields and choices of the form become one query in the address."""
    page = reader.go("/failures")
    page.get_by_text("Filters").click()
    page.get_by_label("Tool", exact=True).fill("search")
    page.get_by_role("combobox", name="Category").select_option("parameter")
    page.get_by_label("Outcome of the chain").select_option("recovered")
    page.get_by_role("button", name="Apply").first.click()
    chips(page, "tool:search", "category:parameter", "chain:recovered")


@pytest.mark.long
def test_a_list_is_read_page_by_page(reader: Visit):
    """Older and Newer of failures lead on and back to the same rows."""
    page = reader.go("/failures")
    first = _hrefs(page, "Failures, newest first")
    page.get_by_role("link", name="Older").click()
    page.wait_for_url(re.compile("cursor="))
    expect(first_failure(page)).to_be_visible()
    second = _hrefs(page, "Failures, newest first")
    assert second
    assert not set(first) & set(second)
    page.get_by_role("link", name="Newer").click()
    page.wait_for_load_state()
    assert _hrefs(page, "Failures, newest first") == first


@pytest.mark.long
def test_tools_are_sorted_and_lead_to_their_failures(reader: Visit):
    """A heading sorts, a ticked column appears, a number leads to the rows behind it."""
    page = reader.go("/tools")
    table = page.get_by_role("group", name="Tools")
    table.get_by_role("link", name="Calls", exact=True).click()
    heads = table.get_by_role("columnheader")
    calls = heads.filter(has_text=re.compile("^Calls(?! spent)"))
    expect(calls).to_have_attribute("aria-sort", "descending")
    rows = rows_of(page, "Tools")
    numbers = [number_in(each.get_by_role("cell").first.inner_text()) for each in rows.all()]
    assert numbers == sorted(numbers, reverse=True)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Tokens lost").check()
    page.get_by_role("button", name="Show").click()
    expect(table.get_by_role("link", name="Tokens lost")).to_be_visible()
    expect(calls).to_have_attribute("aria-sort", "descending")
    _leads_to_its_rows(page, rows.first.get_by_role("cell").nth(1).get_by_role("link"))


@pytest.mark.long
def test_a_cell_of_either_map_leads_to_its_failures(reader: Visit):
    """The number in a cell is the number of failures behind it, also below the first screen."""
    for name in ("Failures by tool and code", "Failures by tool and field"):
        page = reader.go("/codes")
        cells = rows_of(page, name).get_by_role("cell")
        _leads_to_its_rows(page, cells.get_by_role("link").first)


def test_a_click_on_a_row_follows_its_first_link(scripted: Visit):
    """On failures, kinds and chains; other links of a row work, and text can be selected."""
    for path, table, cell in (
        ("/failures?q=-chain%3Anone", "Failures, newest first", 0),
        ("/failures?group=kind", "Kinds of failure", 1),  # the first one chooses the kind
        ("/round-trips", "Chains, newest first", 0),
    ):
        page = scripted.go(path)
        row = rows_of(page, table).first
        target = row.get_by_role("link").first.get_attribute("href")
        row.get_by_role("cell").nth(cell).click()
        page.wait_for_url(f"{scripted.address}{target}")
    page = scripted.go("/failures?q=-chain%3Anone")
    row = rows_of(page, "Failures, newest first").first
    text = row.get_by_role("cell").first
    box = text.get_by_text(re.compile(r"\w")).first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 1, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 8, steps=3)
    page.mouse.up()
    assert page.evaluate("String(getSelection())") in text.inner_text()
    assert page.evaluate("String(getSelection())")
    row.get_by_role("link", name=re.compile("^Chain, ")).click()
    expect(_heading(page)).to_contain_text("Chain of")


@pytest.mark.long
def test_a_message_leads_to_the_failures_that_said_it(reader: Visit):
    """The wording is a link to its failures, as many as its row counts."""
    page = reader.go("/messages")
    table = page.get_by_role("group", name=re.compile("^Messages of")).first
    row = table.get_by_role("row").nth(1)
    many = number_in(row.get_by_role("cell").first.inner_text())
    row.get_by_role("link").first.click()
    expect(_heading(page)).to_have_text("Failures")
    assert said(page) == many


@pytest.mark.long
def test_a_fix_leads_to_its_evidence(reader: Visit):
    """What to fix says how, names its saving and leads to the failures that it is made of."""
    page = reader.go("/fix-next")
    how = page.get_by_role("main").get_by_role("group").filter(has_text="How").first
    how.get_by_text("How", exact=True).click()
    kinds = re.compile("^(SDK|pydantic|JSON schema|description|message)$")
    expect(how.get_by_text(kinds).first).to_be_visible()
    first = page.get_by_role("main").get_by_role("listitem").first
    expect(first).to_contain_text("round trip")
    first.get_by_role("link", name=re.compile("failures?$")).click()
    expect(_heading(page)).to_have_text("Failures")
    expect(first_failure(page)).to_be_visible()


@pytest.mark.long
def test_the_parts_of_a_failure(reader: Visit):
    """Three texts with what each hides, issues, meaning, trace, chain and its kind."""
    trace = f"{now_us():032x}"
    same: dict[str, Any] = {"trace_id": trace, "span_id": "00f067aa0ba902b7"}
    own, _ = reader.project(failure("parts_tool"), failure("parts_tool", error=None, **same))
    page = reader.go("/failures?q=chain%3Aopen", own)
    first_failure(page).click()
    for title, text in (
        ("user", "The tool could not be used."),
        ("model", "Invalid parameters: url - Input should be a valid string"),
        ("system", "parts_tool: wrong_type at url"),
    ):
        told = page.get_by_label(re.compile(f"^Text for .*{title}|^Text for .*log"))
        expect(told.filter(has_text=text)).to_have_count(1)
    expect(page.get_by_text(re.compile("^This text leaves out: "))).not_to_have_count(0)
    issues = rows_of(page, "Issues").get_by_role("rowheader")
    expect(issues).to_have_text("url")
    expect(page.get_by_role("heading", name="What it means")).to_be_visible()
    # No template is set on this server: the ids are there as texts.
    expect(page.get_by_role("region", name="Facts")).to_contain_text(trace)
    similar = page.get_by_role("link", name=re.compile("failures? of the same kind"))
    _leads_to_its_rows(page, similar)
    chips(page, re.compile("Remove signature:"))
    page.go_back()
    page.get_by_role("link", name="Open the chain").click()
    steps = page.get_by_role("region", name="2 calls in order")
    steps.get_by_role("listitem").first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()


@pytest.mark.long
def test_a_change_is_looked_at_from_all_sides(reader: Visit):
    """The chart it is marked on, the method, other spans, the rows, the same by code."""
    page = reader.go("/")
    page.get_by_role("link", name="coerce booleans").first.click()
    expect(_heading(page)).to_have_text("coerce booleans")
    page.get_by_text("How this was computed").click()
    expect(page.get_by_text("it does not prove a cause")).to_be_visible()
    page.get_by_role("link", name="7 days", exact=True).click()
    page.wait_for_url(re.compile("sides=7d"))
    here = page.url
    _leads_to_its_rows(page, page.get_by_role("link", name=re.compile("failures? before")))
    page.goto(here)
    page.get_by_role("link", name="Compare by code").click()
    expect(page.get_by_label("Before", exact=True)).to_have_value(re.compile("until:"))
    expect(page.get_by_label("After", exact=True)).to_have_value(re.compile("since:"))
    expect(page.get_by_role("group", name="Codes in both cohorts")).to_be_visible()


@pytest.mark.long
def test_people_come_get_a_role_and_go(reader: Visit, chromium: Browser):
    """An invited viewer signs in, sees the shared view but not the private one, and is let go."""
    own, _ = reader.project(failure(code="timeout"))
    for name, shared in (("private", False), ("shared", True)):
        page = reader.go("/views", own)
        page.get_by_label("Name").fill(name)
        page.get_by_role("textbox", name="Query", exact=True).fill("code:timeout")
        page.get_by_label("Show it to everybody").set_checked(shared)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("status")).to_have_text(f"Saved: {name}")
    guest = f"guest of {own}"
    page = reader.go("/settings", own)
    page.get_by_label("Name", exact=True).fill(guest)
    page.get_by_label("Role (of a new account)").select_option("viewer")
    page.get_by_role("button", name="Make a sign-in link").click()
    link = page.get_by_text(re.compile(r"^http\S+/sign-in\?token=\S+$")).inner_text().strip()
    context = chromium.new_context()
    context.add_cookies(signed_in(chromium, link))  # type: ignore[arg-type]
    theirs = Visit(context, context.new_page(), reader.address, server=reader.server)
    theirs.go("/views", own)
    expect(theirs.page.get_by_role("link", name="shared", exact=True)).to_be_visible()
    expect(theirs.page.get_by_role("link", name="private", exact=True)).to_have_count(0)
    theirs.go("/fix-next", own)
    expect(_heading(theirs.page)).not_to_have_text("Fix next")
    for wanted in ("developer", "none"):
        page = reader.go("/settings", own)
        page.get_by_label(f"Role of {guest}", exact=True).select_option(wanted)
        page.get_by_role("button", name=f"Change role of {guest}").click()
        expect(page.get_by_role("status")).to_be_visible()
        # Whoever's role is changed signs in again.
        theirs.go("/fix-next", own)
        expect(_heading(theirs.page)).to_contain_text("Sign in")
    context.close()


def test_projects_are_switched(reader: Visit):
    """The switch leads to the other project's overview, Settings to the settings of each."""
    own, _ = reader.project(failure("far_tool"))
    page = reader.go("/tools")
    page.get_by_text("Project: generated").click()
    page.get_by_role("link", name=own, exact=True).click()
    expect(_heading(page)).to_have_text("Overview")
    expect(rows_of(page, "Newest failures").first).to_contain_text("far_tool")
    page = reader.go("/settings", own)
    page.get_by_role("group", name="Projects").get_by_role("link", name="generated").click()
    expect(page.get_by_text("of the project generated")).to_be_visible()


@pytest.mark.long
def test_what_was_rejected_is_shown_as_it_came(reader: Visit):
    """An event that could not be stored stands on its page with its code and, opened, its text."""
    own, dsn = reader.project(failure())
    send(dsn, {"type": "tool_call", "event_id": "no id", "tool": "bad_tool"}, accepted=0)
    page = reader.go("/rejected", own)
    row = rows_of(page, "Rejected events, newest first").first
    row.get_by_text("As it came, redacted").click()
    expect(row.get_by_text("bad_tool")).to_be_visible()


def test_signing_out_ends_the_session(reader: Visit, chromium: Browser):
    """A printed link and its button let in; after the other button nothing is shown any more."""
    link = reader.server.run("sign-in-link", "--url", reader.address).split()[-1]
    reader.context.clear_cookies()
    page = reader.page
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    expect(_heading(page)).to_have_text("Overview")
    reader.go("/failures")
    expect(_heading(page)).to_have_text("Failures")
    page.get_by_role("button", name="Sign out").click()
    expect(_heading(page)).to_contain_text("Sign")
    reader.go("/failures")
    expect(_heading(page)).not_to_have_text("Failures")
