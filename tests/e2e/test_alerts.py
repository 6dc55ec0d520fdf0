"""Making an alert in a browser: from a tool to a rule, with its preview, on both engines."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.e2e.browsing import Visit, rows_of
from tests.factories import failure

pytestmark = pytest.mark.browser


def _fits(page: Page) -> list[str]:
    """The rules of axe that the page breaks, and whether it is wider than its window."""
    options = {"resultTypes": ["violations"]}
    found: list[Any] = Axe().run(page, options=options).response["violations"]
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [rule["id"] for rule in found] + ([f"{wide} px too wide"] if wide > 0 else [])


@pytest.mark.parametrize(
    "reader",
    [
        "script",
        "no-script",
        pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=True,
)
def test_tell_me_when_this_tool_breaks(reader: Visit, request: pytest.FixtureRequest) -> None:
    """From the page of a tool: the form knows it, previews another condition, and is saved."""
    scripted = request.node.callspec.params["reader"] != "no-script"
    page = reader.go("/tool?name=search")
    page.get_by_role("link", name="Alert me about this").click()
    expect(page.get_by_label("Only calls that match")).to_have_value("tool:search")
    expect(page.get_by_role("region", name="Preview")).to_contain_text("It would")
    page.get_by_label("Alert me when").select_option("user_failures")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_contain_text("kind")
    name = f"people needed, {request.node.callspec.id}"
    page.get_by_label("Name (if empty, what it watches)").fill(name)
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


def test_a_channel_is_added_tested_and_removed(scripted: Visit) -> None:
    """Its address is asked for and never shown; a private one is refused with what to do."""
    page = scripted.go("/settings")
    page.get_by_label("Name of the channel").fill("hook")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("http://127.0.0.1:1/secret-path")
    page.get_by_role("button", name="Add the channel").click()
    expect(page.get_by_role("alert")).to_contain_text("TOOLFAULT_ALERT_NETWORKS")
    scripted.refused(422)
    page.get_by_label("Name of the channel").fill("hook")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("https://no-such-host.invalid/secret-path")
    page.get_by_role("button", name="Add the channel").click()
    expect(page.get_by_role("status").first).to_contain_text("whsec_")
    row = rows_of(page, "Channels").filter(has_text="hook")
    row.get_by_role("button", name=re.compile("^Send a test")).click()
    expect(page.get_by_role("alert")).to_contain_text("It could not be reached")
    scripted.refused(422)
    expect(rows_of(page, "Channels").filter(has_text="hook")).to_contain_text("fails")
    assert "secret-path" not in page.content()
    assert _fits(page) == []
    row.get_by_role("button", name=re.compile("^Remove")).click()
    expect(page.get_by_role("status")).to_contain_text("The channel is removed")


def test_a_rule_is_written_changed_and_snoozed(reader: Visit) -> None:
    """Every field of the form is kept and shown again; a snooze is chosen and ended."""
    own, _ = reader.project(failure("search"))
    page = reader.go("/settings", own)
    page.get_by_label("Name of the channel").fill("hook")
    page.get_by_label("Type").select_option("webhook")
    page.get_by_label("Address").fill("https://no-such-host.invalid/path")
    page.get_by_role("button", name="Add the channel").click()
    page = reader.go("/alerts", own)
    page.get_by_role("link", name="New alert").first.click()
    typed = {
        "Threshold (%)": "35",
        "Only where n is at least": "7",
        "Only calls that match (a query; empty for all)": "tool:search",
        "Name (if empty, what it watches)": "search breaks",
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
    expect(page.get_by_label("Send to").locator("option:checked")).to_have_text("hook")
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
