"""Making an alert in a browser: from a tool to a rule, with its preview.

The forms are sent in process (``tests/dashboard/pages/test_alerts.py``), and what fires is sent in
``tests/dashboard/alerts``: the journeys of people through both are in the long run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tests.dashboard.alerts.conftest import Office
from tests.e2e.accessibility import off_colours, violations
from tests.e2e.browsing import Reader, Visit, chips, cookies_of, downloaded, rows_of, said
from tests.e2e.conftest import EACH_WAY
from tests.factories import failure
from tests.live_server import served

from toolfault_collector.runtime import Collector
from toolfault_dashboard.access import signin
from toolfault_dashboard.alerts.channels import signature
from toolfault_dashboard.app import create_app

pytestmark = pytest.mark.browser


WIDE: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}
BEYOND = """() => [innerWidth, document.documentElement.scrollWidth - innerWidth,
  ...[...document.querySelectorAll("td:not(:has(.visually-hidden))")].filter(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    return text.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1;
  }).map(cell => cell.innerText)]"""


def _fits(page: Page) -> list[str]:
    """The rules of axe that the page breaks; whether it, or a cell of it, is too narrow."""
    broken = [*violations(page), *off_colours(page)]
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        width, pixels, *cells = page.evaluate(BEYOND)
        broken += [f"{width}: {text}" for text in cells]
        broken += [f"{width}: {pixels} px too wide"] if pixels > 0 else []
    return broken


def test_tell_me_when_this_tool_breaks(reader: Visit, request: pytest.FixtureRequest) -> None:
    """From the page of a tool: the form knows it, previews another condition, and is saved."""
    scripted = request.node.callspec.params["reader"] != "no-script"
    own, _ = reader.project(failure("search"), failure("search", code="not_found"))
    page = reader.go("/tool?name=search", own)
    page.get_by_role("link", name="Alert me about this").click()
    expect(page.get_by_label("Only calls that match")).to_have_value("tool:search")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("It would")
    page.get_by_label("Alert me when").select_option("user_failures")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_contain_text("kind")
    name = f"people needed, {request.node.callspec.id}"
    page.get_by_label("Name (optional)").fill(name)
    if scripted:
        assert _fits(page) == []
    page.get_by_role("button", name="Save the alert").click()
    expect(page.get_by_role("status")).to_contain_text("The rule is saved")
    row = rows_of(page, "Rules").filter(has_text=name)
    expect(row).to_contain_text("tool:search")
    if scripted:
        assert _fits(page) == []
    row.get_by_role("button", name=re.compile("^Snooze")).click()
    expect(rows_of(page, "Rules").filter(has_text=name)).to_contain_text("snoozed until")
    row.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.get_by_role("status")).to_contain_text("The rule is removed")


@pytest.mark.long
def test_a_channel_is_added_tested_and_removed(scripted: Visit) -> None:
    """Its address is asked for and never shown; a private one is refused with what to do.

    A name as long as it may be, without a break, fits the pages that show it.
    """
    name = "h" * 128
    page = scripted.go("/settings")
    page.get_by_label("Name of the channel").fill(name)
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("http://127.0.0.1:1/secret-path")
    page.get_by_role("button", name="Add the channel").click()
    expect(page.get_by_role("alert")).to_contain_text("TOOLFAULT_ALERT_NETWORKS")
    scripted.refused(422)
    page.get_by_label("Name of the channel").fill(name)
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("https://no-such-host.invalid/secret-path")
    page.get_by_role("button", name="Add the channel").click()
    expect(page.get_by_role("status").first).to_contain_text("whsec_")
    row = rows_of(page, "Channels").filter(has_text=name)
    row.get_by_role("button", name=re.compile("^Send a test")).click()
    expect(page.get_by_role("alert")).to_contain_text("It could not be reached")
    scripted.refused(422)
    expect(rows_of(page, "Channels").filter(has_text=name)).to_contain_text("fails")
    assert "secret-path" not in page.content()
    assert _fits(page) == []
    assert _fits(scripted.go("/alerts")) == []
    scripted.go("/settings")
    row.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.get_by_role("status")).to_contain_text("The channel is removed")


@pytest.mark.long
def test_a_rule_is_written_changed_and_snoozed(reader: Visit) -> None:
    """Every field of the form is kept and shown again; a snooze is chosen and ended."""
    own, _ = reader.project(failure("search"))
    page = reader.go("/alert", own)
    page.get_by_role("link", name="Add a channel").click()
    page.get_by_label("Name of the channel").fill("hook")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("https://no-such-host.invalid/path")
    page.get_by_role("button", name="Add the channel").click()
    page = reader.go("/failures?q=tool:search", own)
    page.get_by_role("link", name="Alert me about this").click()
    typed = {
        "Threshold (%)": "35",
        "Only where n is at least": "7",
        "Only calls that match (a query; empty for all)": "tool:search -code:timeout",
        "Name (optional)": "search breaks",
        "Quiet hours": "22:00-07:00",
        "Time zone": "Europe/Berlin",
    }
    for label, text in typed.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_label("In the last").select_option("6h")
    page.get_by_label("Send to").select_option("hook")
    page.get_by_role("button", name="Save the alert").click()
    row = rows_of(page, "Rules").filter(has_text="search breaks")
    row.get_by_role("link", name="search breaks").click()
    for label, text in typed.items():
        expect(page.get_by_label(label, exact=True)).to_have_value(text)
    expect(page.get_by_label("In the last")).to_have_value("6h")
    chosen = page.get_by_label("Send to").get_by_role("option", selected=True)
    expect(chosen).to_have_text("hook")
    page.get_by_label("Threshold (%)").fill("45")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(row).to_contain_text("45")
    row.get_by_label(re.compile("^Snooze")).first.select_option("7 days")
    row.get_by_role("button", name=re.compile("^Snooze")).click()
    expect(row).to_contain_text("snoozed")
    row.get_by_label(re.compile("^Snooze")).first.select_option("end it")
    row.get_by_role("button", name=re.compile("^Snooze")).click()
    expect(page.get_by_role("status")).to_have_text("The rule speaks again.")
    expect(row).not_to_contain_text("snoozed")
    row.get_by_role("link", name="tool:search").click()
    chips(page, "tool:search", "-code:timeout")


@pytest.mark.long
def test_a_digest_is_asked_for(reader: Visit) -> None:
    """It has a rhythm in place of a threshold, and is listed with what it sends and how often."""
    own, _ = reader.project(failure("search"))
    page = reader.go("/alerts", own)
    page.get_by_role("link", name="New alert").first.click()
    page.get_by_label("Alert me when").select_option("digest")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_contain_text("something to tell")
    expect(page.get_by_label("Threshold")).to_have_count(0)
    page.get_by_label("How often").select_option("every day")
    page.get_by_role("button", name="Save the alert").click()
    expect(rows_of(page, "Rules")).to_contain_text("Every day")


@pytest.fixture
def there(office: Office, chromium: Browser, script: bool) -> Iterator[Reader]:
    """A signed-in window on a server of the office, which has its clock; it must not complain."""
    url = office.engine.url.render_as_string(hide_password=False)
    settings = office.settings.model_copy(update={"database_url": url})
    collector = Collector(settings, engine=office.engine)
    with served(create_app(settings, collector=collector, clock=lambda: office.now)) as address:
        token = signin.create_link(office.engine, now=office.now, name="admin", role="admin")
        context = chromium.new_context(timezone_id="UTC", java_script_enabled=script)
        context.add_cookies(cookies_of(address, token))  # type: ignore[arg-type]
        reader = Reader(context, context.new_page(), address)
        reader.watch()
        yield reader
        context.close()
    assert reader.complaints == []


@pytest.mark.long
@EACH_WAY
def test_what_fires_arrives_signed_and_is_listed(
    there: Reader,
    office: Office,
    script: bool,
) -> None:
    """The test and the alert reach the receiver; the history says so, and what failed is retried.

    The files of channels, rules and history have the rows of their tables.
    """
    receiver, service = office.receiver, office.service()
    page = there.go("/alerts", "demo")
    page.get_by_role("link", name="Add a channel").click()
    page.get_by_label("Name of the channel").fill("hook")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_role("button", name="Add the channel").click()
    secret = page.get_by_text(re.compile("^whsec_")).inner_text().strip()
    channel = rows_of(page, "Channels")
    expect(channel).to_contain_text("not used yet")
    channel.get_by_role("button", name="Send a test to hook").click()
    expect(page.get_by_role("status")).to_have_text("The test is sent.")
    expect(channel).to_contain_text("works")
    (test,) = receiver.deliveries
    assert test.document["type"] == "alert.test"
    stamp = int(test.headers["webhook-timestamp"])
    assert test.headers["webhook-signature"] == signature(secret, test.id, stamp, test.body)

    there.go("/alert?condition=new_kind&name=anything+new", "demo")
    page.get_by_role("button", name="Save the alert").click()
    expect(page.get_by_role("status")).to_contain_text("The rule is saved")
    for code, status in (("wrong_type", 204), ("not_found", 503)):
        receiver.status = status
        office.later(1)
        office.calls(failed=1, succeeded=0, code=code)
        service.run_once()
    assert [each.document["type"] for each in receiver.deliveries[1:]] == ["alert.firing"] * 2
    page.reload()
    told = rows_of(page, "History, newest first")
    expect(told).to_have_count(2)
    expect(told.nth(0)).to_contain_text("hook: 1 attempt failed, tried again")
    expect(told.nth(0)).to_contain_text("It answered with status 503.")
    expect(told.nth(1)).to_contain_text("sent to hook")
    expect(rows_of(page, "Rules")).to_contain_text("firing")
    (rule,) = downloaded(page, "these rules")
    assert (rule["name"], rule["firing"]) == ("anything new", "2")
    history = downloaded(page, "the history")
    titles = told.get_by_role("rowheader").all_inner_texts()
    assert [each["title"] for each in history] == [each.replace("\u200b", "") for each in titles]
    if script:
        assert _fits(page) == []

    failing = page.get_by_text("could not be reached last time")
    failing.get_by_role("link", name="Settings").click()
    expect(channel).to_contain_text("1 message waiting")
    (line,) = downloaded(page, "channels")
    assert (line["name"], line["failures"], line["waiting"]) == ("hook", "1", "1")
    receiver.status = 204
    channel.get_by_role("button", name="Send a test to hook").click()
    expect(channel).to_contain_text("works")
    service.run_once()
    there.go("/alerts", "demo")
    expect(told.filter(has_text="sent to hook")).to_have_count(2)
    told.nth(0).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Failures")
    assert said(page) == 1
