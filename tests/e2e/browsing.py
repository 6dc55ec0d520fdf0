"""What whoever drives a browser needs: the browser, a session, data, a window that complains.

Tests and ``benchmarks/pages`` share it.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import shutil
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Request,
    expect,
)
from tests.live_server import LiveServer
from tests.running import new_key

__all__ = [
    "DATA", "Reader", "Visit", "chips", "chromium_path", "cookies_of", "downloaded", "dsn_of",
    "first_failure", "launched", "lived_through", "number_in", "rows_of", "said", "send",
    "signed_in",
]  # fmt: skip

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DATA = "project=generated&window=all"
_projects = count(1)


def chromium_path() -> str | None:
    """Where the Chromium of this machine is; None without one.

    The headless shell comes first: it has no windows of its own to draw and takes half the time.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("TOOLFAULT_CHROMIUM") or next(
        (path for name in names if (path := shutil.which(name))), None
    )


def launched(playwright: Playwright, path: str) -> Browser:
    """Start the Chromium at *path*, without a window and without talking to anybody."""
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)


def signed_in(browser: Browser, link: str) -> list[dict[str, Any]]:
    """Follow a sign-in link, press its button and return the cookies."""
    context = browser.new_context(timezone_id="UTC")  # whatever that of this machine is
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    cookies = context.cookies()
    context.close()
    return [dict(each) for each in cookies]


def cookies_of(address: str, token: str) -> list[dict[str, Any]]:
    """The cookies of an account whose sign-in link has *token*, without driving a browser."""
    answer = httpx2.post(f"{address}/sign-in", data={"token": token}, trust_env=False)
    assert answer.status_code == 303, answer.text
    return [{"name": each.name, "value": each.value, "url": address} for each in answer.cookies.jar]


def lived_through(dsn: str, *, days: int, seed: int = 7, until: float | None = None) -> None:
    """Send the last *days* of the demo's agents; they run in a thread, beside playwright's loop."""
    from toolfault_demo.history import live_through

    end = time.time() if until is None else until
    history = live_through(dsn=dsn, seed=seed, until=end, days=days)
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, history).result()


def dsn_of(server: LiveServer, project: str) -> str:
    """A DSN with a new ingest key of *project*, which is made if there is none."""
    key = new_key(server.database_url, project=project)
    return server.address.replace("http://", f"http://{key}@")


def send(dsn: str, *events: dict[str, Any], accepted: int | None = None) -> None:
    """Send events as any sender would; all are accepted unless the test says otherwise."""
    key, address = dsn.removeprefix("http://").split("@")
    request = urllib.request.Request(
        f"http://{address}/v1/events",
        data=json.dumps({"schema_version": 1, "events": events}).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        wanted = len(events) if accepted is None else accepted
        assert json.load(answer)["accepted"] == wanted


def number_in(text: str) -> int:
    """The first number of *text*, whatever separates its thousands."""
    found = re.search(r"\d[\d\s,.\u202f\u00a0]*", text)
    assert found is not None, text
    return int(re.sub(r"\D", "", found[0]))


def said(page: Page, noun: str = "failure") -> int:
    """How many of *noun* the sentence under the heading says there are."""
    sentence = page.get_by_role("main").get_by_text(re.compile(rf"\d\s+{noun}s?\b")).first
    return number_in(sentence.inner_text())


def rows_of(page: Page, table: str) -> Locator:
    """The rows of the table of this name, without its headings."""
    group = page.get_by_role("group", name=table, exact=True)
    return group.get_by_role("row").filter(has=page.get_by_role("cell"))


def first_failure(page: Page, table: str = "Failures, newest first") -> Locator:
    """The link to the first failure of a list."""
    return rows_of(page, table).first.get_by_role("link").first


def downloaded(page: Page, what: str) -> list[dict[str, str]]:
    """The rows of the CSV that the menu "Export *what*" hands over."""
    page.get_by_text(f"Export {what}", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name=f"CSV of {what}", exact=True).click()
    with download.value.path().open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stand_still(page: Page) -> None:
    """Let the time of this window's pages pass only when it is told to."""
    page.clock.install(time=0)
    page.clock.pause_at(1_000)


def chips(page: Page, *conditions: str | re.Pattern[str]) -> None:
    """Expect exactly these conditions under the query box."""
    found = page.get_by_role("search").get_by_role("link", name=re.compile("^Remove "))
    expect(found).to_have_count(len(conditions))
    for place, condition in enumerate(conditions):
        name = f"Remove {condition}" if isinstance(condition, str) else condition
        expect(found.nth(place)).to_have_accessible_name(name)


@dataclass
class Reader:
    """A browser window on a server, and what it complained about."""

    context: BrowserContext
    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note console errors, exceptions, and requests that failed."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("dialog", lambda each: self.complaints.append(f"dialog: {each.message}"))

    def _failed(self, request: Request) -> None:
        # Leaving a page ends what it was still loading; that is no failure.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.url}: {request.failure}")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def go(self, path: str, project: str = "generated") -> Page:
        """Open *path* of a project, the generated one by default, over all time."""
        joint = "&" if "?" in path else "?"
        self.page.goto(f"{self.address}{path}{joint}project={quote(project)}&window=all")
        return self.page

    def refused(self, *statuses: int) -> None:
        """Take back the complaints about pages that were meant to answer with *statuses*."""
        for status in statuses:
            ending = f"responded with a status of {status}"
            meant = [each for each in self.complaints if ending in each]
            assert meant, (status, self.complaints)
            self.complaints.remove(meant[0])


@dataclass
class Visit(Reader):
    """A window on the server with the generated history, and ways to write to that server."""

    server: LiveServer = field(kw_only=True)

    def project(self, *events: dict[str, Any], name: str = "own") -> tuple[str, str]:
        """A new project with *events*: its name and its DSN."""
        own = f"{name}-{next(_projects)}"
        dsn = dsn_of(self.server, own)
        if events:
            send(dsn, *events)
        return own, dsn

    def details(self, project: str = "generated") -> list[str]:
        """Paths of a failure, a chain, a tool and a change."""
        found = []
        for path, table in (
            ("/failures?q=-chain:none", "Failures, newest first"),
            ("/round-trips", "Chains, newest first"),
            ("/tools", "Tools"),
            ("/changes", "Changes, newest first"),
        ):
            rows = rows_of(self.go(path, project), table)
            href = rows.first.get_by_role("link").first.get_attribute("href")
            assert href is not None
            found.append(href)
        return found
