"""By whose clock a page writes its times: the reader's zone where it is known, else UTC."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine
from tests.cases import long_cases
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import generated

from toolfault_collector.clock import DAY_US

CHANGES = "/changes?project=generated"  # a change at noon, 10 November 2026, UTC


def _shown(browser: Browser, path: str = CHANGES, **cookies: str) -> tuple[str, str]:
    """Return the first time of a page and the heading above it."""
    browser.client.cookies.update(cookies)
    try:
        table = browser.page(path).table("Change")
    finally:
        for name in cookies:
            browser.client.cookies.delete(name)
    heading = table.headings[0]
    when = table.rows[0][heading]
    assert when.moment == "2026-11-10T12:00:00.000Z"
    return when.text.replace(" 2026", ""), heading  # from 2027 on the page names the year


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("Europe/Berlin", "10 Nov, 13:00"),
        ("America/New_York", "10 Nov, 07:00"),
        ("America/Argentina/Buenos_Aires", "10 Nov, 09:00"),
    ],
)
def test_times_are_written_in_the_zone_that_the_browser_names(
    browser: Browser, zone: str, text: str
):
    """The zone's clock on the page and in the heading; UTC for machines and in the tooltip."""
    assert _shown(browser, zone=zone) == (text, "When (local)")


@pytest.mark.parametrize(
    "zone",
    ["", "UTC", "Etc/UTC", "Nowhere/City", "../../etc/passwd", "/etc/passwd", "Europe", "a" * 300],
)
def test_a_zone_that_is_none_leaves_utc(browser: Browser, zone: str):
    """Anybody can send a cookie: what names no zone changes nothing and opens no file."""
    assert _shown(browser, zone=zone) == ("10 Nov, 12:00", "When (UTC)")


def test_a_reader_may_prefer_utc_and_change_their_mind(browser: Browser):
    """The form sets the clock and takes it back; it is offered where a zone is known."""
    assert not browser.page(CHANGES).forms_to("/clock")
    browser.client.cookies.set("zone", "Asia/Tokyo")
    assert browser.page(CHANGES).form("/clock").pressed == ("true", "false")
    answer = browser.client.post(
        "/clock", data={"clock": "utc", "next": CHANGES}, follow_redirects=False
    )
    assert answer.headers["location"] == CHANGES
    assert _shown(browser, zone="Asia/Tokyo") == ("10 Nov, 12:00", "When (UTC)")
    browser.client.post("/clock", data={"clock": "local", "next": CHANGES})
    assert _shown(browser, zone="Asia/Tokyo")[1] == "When (local)"


def test_the_clock_of_one_page_is_not_that_of_the_next(browser: Browser):
    """A page for one zone leaves nothing behind for a reader of another one."""
    _shown(browser, zone="Asia/Tokyo")
    assert _shown(browser)[1] == "When (UTC)"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        *long_cases("/failures?group=kind", "/codes", "/tools"),
    ],
)
def test_a_page_of_next_year_names_the_year_of_every_date(engine: Engine, path: str):
    """In tables, on the axes of charts and in the words for what is drawn; this year none does."""
    for now in (NOW, NOW + 90 * DAY_US):
        with contextmanager(open_browser)(engine, now=now) as browser:
            page = browser.page(generated(path)).main
        said = "\n".join([page.text, *page.labelled("most:")])
        dates = re.findall(r"\b\d{1,2} (?:Oct|Nov)(?: \d{4})?", said)
        assert {date.endswith(" 2026") for date in dates} == {now != NOW}, dates
