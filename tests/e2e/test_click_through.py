"""A person at a browser: from the overview to a failure, its chain, and a CSV that agrees."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.e2e.browsing import lived_through, signed_in
from tests.live_server import LiveServer, live_server

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with three days of the demo's history and nothing new coming in."""
    with live_server(tmp_path_factory.mktemp("click")) as running:
        lived_through(running.dsn("demo"), days=3)
        yield running


@pytest.fixture
def complaints() -> list[str]:
    """What the browser's console complained about."""
    return []


@pytest.fixture(scope="module")
def window(server: LiveServer, chromium: Browser) -> Iterator[BrowserContext]:
    """A browser that followed a printed link."""
    context = chromium.new_context(accept_downloads=True)
    link = server.run("sign-in-link", "--url", server.address).strip().splitlines()[-1]
    context.add_cookies(signed_in(chromium, link))  # type: ignore[arg-type]
    yield context
    context.close()


@pytest.fixture
def page(server: LiveServer, window: BrowserContext, complaints: list[str]) -> Iterator[Page]:
    """The overview, in a new tab."""
    page = window.new_page()
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(server.address)
    yield page
    page.close()


def count_in(text: str, noun: str) -> int:
    """The number that stands before *noun*, whatever separates its thousands."""
    match = re.search(rf"(\d[\d\s,.\u202f\u00a0]*)\s{noun}", text)
    assert match is not None, text
    return int(re.sub(r"\D", "", match.group(1)))


def test_a_reader_gets_from_the_overview_to_a_chain(page: Page, complaints: list[str]):
    """Overview, a failure of its list, the chain of that failure; the console stays silent."""
    page.locator("main table.failures").last.locator("tbody a.row-link").first.click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()

    page.get_by_role("link", name="Open the chain").click()
    expect(page).to_have_url(re.compile("/chains/"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()

    assert complaints == []


@pytest.mark.parametrize("query", ["", "tool:send_email", "code:wrong_type category:parameter"])
def test_the_csv_of_a_list_has_as_many_rows_as_the_page_says(
    page: Page, server: LiveServer, complaints: list[str], query: str, tmp_path: Path
):
    """The CSV button downloads exactly the filtered view."""
    page.goto(f"{server.address}/failures")
    box = page.get_by_label("Query", exact=True)
    box.fill(query)
    box.press("Enter")
    page.wait_for_load_state()
    said = count_in(page.locator("main").inner_text(), "failures")

    with page.expect_download() as download:
        page.locator("main a[download]").first.click()
    target = tmp_path / "failures.csv"
    download.value.save_as(target)

    with target.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == said > 0
    assert complaints == []


@pytest.mark.parametrize("path", ["/", "/failures", "/round-trips", "/codes", "/tools", "/changes"])
def test_every_page_of_the_demo_is_filled(
    page: Page, server: LiveServer, complaints: list[str], path: str
):
    """No page of the demo is empty, and none makes the browser complain."""
    page.goto(server.address + path)

    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert page.locator("main table tbody tr").count() > 0
    assert complaints == []
