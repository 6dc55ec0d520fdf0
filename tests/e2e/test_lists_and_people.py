"""What a reader does beside an investigation, in a browser on both engines, script on and off.

Mistakes in a query, the form of filters, pages of a list, sorting, maps, the parts of a failure,
the sides of a change, comparisons that are often made, people and their roles, projects, signing
out, what was rejected.
"""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.browsing import Reader, send, signed_in
from tests.factories import failure
from tests.live_server import LiveServer

from toolfault_collector.clock import now_us

pytestmark = pytest.mark.browser

SCRIPTS = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])


def _number(text: str) -> int:
    """The first number of *text*, whatever separates its thousands."""
    found = re.search(r"\d[\d\s\u202f\u00a0]*", text)
    assert found is not None, text
    return int(re.sub(r"\D", "", found[0]))


def _leads_to_its_rows(page: Page, link: Locator) -> None:
    """Follow *link*: the page behind it says the number that the link said."""
    # As it is written: what is below the first screen is drawn when the reader comes near.
    said = _number(link.text_content() or "")
    link.click()
    expect(page.locator("h1")).to_have_text("Failures")
    assert _number(page.locator(".lede").inner_text()) == said > 0


def test_what_is_laid_out_later_is_there_soon(open_reader):
    """Cards below the first screen are drawn without anybody scrolling, one after the other."""
    page = open_reader(java_script_enabled=True).go("/codes")
    expect(page.locator(".later")).to_have_count(0)
    cells = page.get_by_role("group", name="Failures by tool and field", exact=True)
    assert cells.inner_text()


@SCRIPTS
def test_a_mistake_is_named_under_the_box(open_reader, script):
    """The query stays in the box, below it stand what is wrong, where, and what was meant."""
    page = open_reader(java_script_enabled=script, complain=False).go("/failures")
    box = page.get_by_label("Query", exact=True)
    box.fill("tool:search cod:timeout")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("Did you mean code?")
    expect(box).to_have_value("tool:search cod:timeout")
    above, below = box.bounding_box(), page.get_by_role("alert").bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] > above["y"]
    box.fill("tool:search code:timeout")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".chip")).to_have_text(["tool:search", "code:timeout"])
    page.get_by_role("link", name="Clear").click()
    expect(page.locator(".chip")).to_have_count(0)


@SCRIPTS
def test_a_facet_narrows_and_the_way_back_widens(open_reader, script):
    """A facet has as many failures as it says; the browser's way back is the state before."""
    page = open_reader(java_script_enabled=script).go("/failures")
    before = page.locator(".lede").inner_text()
    facet = page.locator(".facet li a").first
    said = _number(facet.locator(".n").inner_text())
    facet.click()
    expect(page.locator(".chip")).to_have_count(1)
    assert _number(page.locator(".lede").inner_text()) == said
    page.go_back()
    expect(page.locator(".lede")).to_have_text(before)


@SCRIPTS
def test_failures_are_filtered_by_a_form(open_reader, script):
    """Fields and choices of the form become one query in the address."""
    page = open_reader(java_script_enabled=script).go("/failures")
    page.get_by_text("Filter by form").click()
    page.get_by_label("Tool", exact=True).fill("search")
    page.locator("form").get_by_role("combobox", name="Category").select_option("parameter")
    page.get_by_label("Outcome of the chain").select_option("recovered")
    page.locator("details.filters").get_by_role("button", name="Apply").click()
    expect(page.locator(".chip")).to_have_text(
        ["tool:search", "category:parameter", "chain:recovered"]
    )


@SCRIPTS
def test_a_list_is_read_page_by_page(open_reader, script):
    """Older and Newer of failures and of chains lead on and back to the same rows."""
    reader = open_reader(java_script_enabled=script)
    for path, rows in (("/failures", "table.failures"), ("/round-trips", "#chains table")):
        page = reader.go(path)
        links = page.locator(rows).last.locator("tbody a.row-link")
        first = links.evaluate_all("each => each.map(link => link.href.split('?')[0])")
        page.get_by_role("link", name="Older").click()
        page.wait_for_url(re.compile("cursor="))
        assert links.first.get_attribute("href") is not None
        second = links.evaluate_all("each => each.map(link => link.href.split('?')[0])")
        assert not set(first) & set(second), path
        page.get_by_role("link", name="Newer").click()
        page.wait_for_load_state()
        again = links.evaluate_all("each => each.map(link => link.href.split('?')[0])")
        assert again == first, path


@SCRIPTS
def test_tools_are_sorted_and_lead_to_their_failures(open_reader, script):
    """A heading sorts, a ticked column appears, a number leads to the rows behind it."""
    page = open_reader(java_script_enabled=script).go("/tools")
    table = page.get_by_role("group", name="Tools")
    table.get_by_role("link", name="Calls", exact=True).click()
    expect(table.locator("th[aria-sort]")).to_have_text("Calls")
    numbers = [_number(each) for each in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Tokens lost").check()
    page.get_by_role("button", name="Show").click()
    expect(table.get_by_role("link", name="Tokens lost")).to_be_visible()
    expect(table.locator("th[aria-sort]")).to_have_text("Calls")
    _leads_to_its_rows(page, table.locator("tbody td:nth-child(3) a").first)


@SCRIPTS
def test_a_cell_of_either_map_leads_to_its_failures(open_reader, script):
    """The number in a cell is the number of failures behind it."""
    for name in ("Failures by tool and code", "Failures by tool and field"):
        page = open_reader(java_script_enabled=script).go("/codes")
        _leads_to_its_rows(page, page.get_by_role("group", name=name).locator("tbody td a").first)


@SCRIPTS
def test_a_message_leads_to_the_failures_that_said_it(open_reader, script):
    """The wording is a link to its failures, as many as its row counts."""
    page = open_reader(java_script_enabled=script).go("/messages")
    row = page.locator("table.wordings tbody tr").first
    said = _number(row.locator("td[data-label=Failures]").inner_text())
    row.locator("a.row-link").click()
    assert _number(page.locator(".lede").inner_text()) == said


@SCRIPTS
def test_a_fix_leads_to_its_evidence(open_reader, script):
    """What to fix names its saving and leads to the failures that it is made of."""
    page = open_reader(java_script_enabled=script).go("/fix-next")
    page.locator("main a.row-link, main .fix a").first.click()
    expect(page.locator("h1")).to_have_text("Failures")
    expect(page.locator("table.failures tbody tr").first).to_be_visible()


@SCRIPTS
def test_the_parts_of_a_failure(open_reader, generated_server: LiveServer, script):
    """Three texts with what each hides, issues, meaning, chain, trace as it was sent, its kind."""
    trace = f"{now_us():032x}"
    dsn = generated_server.dsn("generated")
    same = {"trace_id": trace, "span_id": "00f067aa0ba902b7", "session_id": f"parts-{trace}"}
    send(dsn, failure("parts_tool", at=now_us(), **same), failure("parts_tool", at=now_us()))
    page = open_reader(java_script_enabled=script).go(f"/failures?q=conversation%3Aparts-{trace}")
    page.locator("tbody a.row-link").first.click()
    expect(page.locator(".rendering h3")).to_have_count(3)
    expect(page.locator(".rendering pre")).to_have_text(
        [
            "The tool could not be used.",
            "Invalid parameters: url - Input should be a valid string",
            "parts_tool: wrong_type at url",
        ]
    )
    assert page.locator(".hidden-list").count() >= 1
    expect(page.get_by_role("group", name="Issues").locator("tbody th")).to_have_text("url")
    expect(page.locator("#meaning-title")).to_be_visible()
    # No template is set on this server: the ids are there as texts.
    expect(page.locator("#facts-title").locator("xpath=../..")).to_contain_text(trace)
    similar = page.get_by_role("link", name=re.compile("failures? of the same kind"))
    said = _number(similar.inner_text())
    similar.click()
    expect(page.locator(".chip").first).to_contain_text("signature:")
    assert _number(page.locator(".lede").inner_text()) == said >= 2


@SCRIPTS
def test_a_step_of_the_chain_is_one_click_away(open_reader, script):
    """The strip of a failure leads to the other calls of its chain, marked with their attempt."""
    page = open_reader(java_script_enabled=script).go("/failures?q=chain%3Arecovered")
    page.locator("tbody a.row-link").first.click()
    steps = page.locator("section[aria-labelledby=chain-title] .timeline .step")
    assert steps.count() >= 2
    page.get_by_role("link", name="Open the chain").click()
    expect(page.locator("h1")).to_contain_text("Chain of")
    page.locator(".timeline .step a").first.click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()


@SCRIPTS
def test_a_change_is_looked_at_from_all_sides(open_reader, script):
    """The marker on the chart, the method, other spans, the rows, the same by code."""
    page = open_reader(java_script_enabled=script).go("/changes")
    page.locator("tbody a.row-link").first.click()
    expect(page.locator("h1")).to_have_text("coerce booleans")
    assert page.locator("line.marker-line").count() >= 1
    page.get_by_text("How this was computed").click()
    expect(page.get_by_text("it does not prove a cause")).to_be_visible()
    page.get_by_role("link", name="7 days", exact=True).click()
    page.wait_for_url(re.compile("sides=7d"))
    page.get_by_role("link", name="30 days", exact=True).click()
    page.wait_for_url(re.compile("sides=30d"))
    here = page.url
    _leads_to_its_rows(page, page.get_by_role("link", name=re.compile("failures? before")))
    page.goto(here)
    page.get_by_role("link", name="Compare by code").click()
    expect(page.get_by_label("Before", exact=True)).to_have_value(re.compile("until:"))
    expect(page.get_by_label("After", exact=True)).to_have_value(re.compile("since:"))
    expect(page.get_by_role("group", name="Codes on both sides")).to_be_visible()


@SCRIPTS
def test_changes_are_marked_on_every_chart_over_time(open_reader, script):
    """Overview, a tool and a trial show the recorded changes, and lead to them."""
    reader = open_reader(java_script_enabled=script)
    for path in ("/", "/tool?name=http_request", "/experiment?name=b"):
        page = reader.go(path)
        assert page.locator("line.marker-line").count() >= 1, path
        page.get_by_role("link", name="coerce booleans").first.click()
        expect(page.locator("h1")).to_have_text("coerce booleans")


@SCRIPTS
def test_what_is_often_compared_is_one_click(open_reader, script):
    """The first of the proposals fills both sides and gives a verdict."""
    page = open_reader(java_script_enabled=script).go("/compare")
    page.get_by_role("navigation", name="Often compared").get_by_role("link").last.click()
    expect(page.get_by_label("Verdict")).to_be_visible()
    assert page.get_by_label("Before", exact=True).input_value()


@SCRIPTS
def test_people_come_get_a_role_and_go(
    open_reader, generated_server: LiveServer, chromium: Browser, script
):
    """An invited viewer signs in, sees the shared view but not the private one, and is let go."""
    page = open_reader(java_script_enabled=script).go("/failures?q=code%3Atimeout")
    views = {f"private {script}": False, f"shared {script}": True}
    for name, shared in views.items():
        page.goto(f"{generated_server.address}/views?project=generated")
        page.get_by_label("Name").fill(name)
        page.get_by_label("Query", exact=True).fill("code:timeout")
        page.get_by_label("Show it to everybody").set_checked(shared)
        page.get_by_role("button", name="Save").click()
    name = f"guest-{'with' if script else 'without'}"
    page.goto(f"{generated_server.address}/settings?project=generated")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Role (of a new account)").select_option("viewer")
    page.get_by_role("button", name="Make a sign-in link").click()
    link = page.locator("#secret").inner_text().strip()
    guest = chromium.new_context()
    guest.add_cookies(signed_in(chromium, link))  # type: ignore[arg-type]
    theirs = guest.new_page()
    theirs.goto(f"{generated_server.address}/views?project=generated")
    for view, shared in views.items():
        expect(theirs.get_by_role("link", name=view, exact=True)).to_have_count(int(shared))
    assert theirs.goto(f"{generated_server.address}/fix-next?project=generated").status == 403  # type: ignore[union-attr]
    page.goto(f"{generated_server.address}/settings?project=generated")
    role = page.get_by_label(f"Role of {name}", exact=True)
    for wanted, status in (("developer", 200), ("none", 401)):
        role.select_option(wanted)
        page.get_by_role("button", name=f"Change role of {name}").click()
        expect(page.get_by_role("status")).to_be_visible()
        answer = theirs.goto(f"{generated_server.address}/fix-next?project=generated")
        assert answer is not None
        assert answer.status == status or "sign-in" in theirs.url
    guest.close()


@SCRIPTS
def test_prices_are_kept_and_mistakes_named(open_reader, script):
    """A price table is saved and taken back; what is none is refused with what to write."""
    page = open_reader(java_script_enabled=script, complain=False).go("/settings")
    prices = page.locator("#token_prices, input.mono[name*=price]").first
    prices.fill("gpt-5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_be_visible()
    for text in ("gpt-5=0.01", ""):
        prices.fill(text)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Saved.")
        expect(prices).to_have_value(text)


@SCRIPTS
def test_projects_are_switched(open_reader, generated_server: LiveServer, script):
    """The switch leads to the other project's overview, Settings to the settings of each."""
    dsn = generated_server.dsn("elsewhere")
    send(dsn, failure("far_tool", at=now_us()))
    page = open_reader(java_script_enabled=script).go("/tools")
    page.locator(".project-switch summary").click()
    page.get_by_role("link", name="elsewhere", exact=True).click()
    expect(page.locator("h1")).to_have_text("Overview")
    expect(page.locator("table.failures tbody tr").first).to_contain_text("far_tool")
    page.goto(f"{generated_server.address}/settings?project=elsewhere")
    page.get_by_role("group", name="Projects").get_by_role("link", name="generated").click()
    expect(page.get_by_text("of the project generated")).to_be_visible()


@SCRIPTS
def test_what_was_rejected_is_shown_as_it_came(open_reader, generated_server: LiveServer, script):
    """An event that could not be stored stands on its page with its code and, opened, its text."""
    key, address = generated_server.dsn("generated").removeprefix("http://").split("@")
    event = {"type": "tool_call", "event_id": "no id", "tool": f"bad_{script}"}
    request = urllib.request.Request(
        f"http://{address}/v1/events",
        data=json.dumps({"schema_version": 1, "events": [event]}).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["accepted"] == 0
    page = open_reader(java_script_enabled=script).go("/rejected")
    row = page.get_by_role("group", name="Rejected events, newest first").locator("tbody tr").first
    row.get_by_text("As it came, redacted").click()
    expect(row.locator("pre")).to_contain_text(f"bad_{script}")


def test_the_keys_are_shown_by_a_button_and_the_theme_by_another(open_reader):
    """What the keyboard does, the pointer does too."""
    page = open_reader(color_scheme="light").go("/")
    page.get_by_role("button", name=re.compile("^Keys")).click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("h1")).to_have_text("Overview")


@SCRIPTS
def test_help_explains_every_key_and_word(open_reader, script):
    """The page of help is a click away from every query box; its keys and words are lists."""
    page = open_reader(java_script_enabled=script).go("/failures")
    page.get_by_role("link", name="How to write a query").click()
    expect(page.locator("h1")).to_have_text("Help")
    assert page.get_by_role("group", name="Keys of the query language").locator("tr").count() > 20
    assert page.locator("dl.facts dt").count() > 30


@SCRIPTS
def test_signing_out_ends_the_session(
    open_reader, generated_server: LiveServer, chromium: Browser, script
):
    """After the button nothing is shown any more, also not by the way back."""
    link = generated_server.run("sign-in-link", "--url", generated_server.address).split()[-1]
    cookies = signed_in(chromium, link)
    reader: Reader = open_reader(java_script_enabled=script, complain=False)
    reader.context.clear_cookies()
    reader.context.add_cookies(cookies)  # type: ignore[arg-type]
    page = reader.go("/failures")
    expect(page.locator("h1")).to_have_text("Failures")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_contain_text("Sign")
    page.goto(f"{generated_server.address}/failures?project=generated")
    expect(page.locator("h1")).not_to_have_text("Failures")
