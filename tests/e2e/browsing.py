"""What whoever drives a browser needs: the browser, a session, data, a window that complains.

Tests and ``benchmarks/pages`` share it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, Request, expect

__all__ = ["DATA", "Reader", "chromium_path", "launched", "lived_through", "send", "signed_in"]

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


def chromium_path() -> str | None:
    """Where the Chromium of this machine is; None without one."""
    names = ("chromium", "chromium-browser", "google-chrome")
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
    expect(page.locator("h1")).to_be_visible()
    cookies = context.cookies()
    context.close()
    return cookies  # type: ignore[return-value]


def lived_through(dsn: str, *, days: int, seed: int = 7) -> None:
    """Send the last *days* of the demo's agents; they run in a thread, beside playwright's loop."""
    from toolfault_dashboard.demo.history import live_through

    history = live_through(dsn=dsn, seed=seed, until=time.time(), days=days)
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(asyncio.run, history).result()


def send(dsn: str, *events: dict[str, Any]) -> None:
    """Send events as any sender would."""
    key, address = dsn.removeprefix("http://").split("@")
    request = urllib.request.Request(
        f"http://{address}/v1/events",
        data=json.dumps({"schema_version": 1, "events": events}).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["accepted"] == len(events)


@dataclass
class Reader:
    """A browser window, and what it complained about."""

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

    def _console(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.complaints.append(message.text)  # type: ignore[attr-defined]

    def go(self, path: str) -> Page:
        """Open *path* of the generated project."""
        joint = "&" if "?" in path else "?"
        self.page.goto(f"{self.address}{path}{joint}{DATA}")
        return self.page

    def details(self) -> list[str]:
        """Paths of a failure, a chain, a tool and a change."""
        found = []
        for path, where in (
            ("/failures?q=-chain:none", "tbody a.row-link"),
            ("/round-trips", "#chains a.row-link"),
            ("/tools", "tbody a.row-link"),
            ("/changes", "tbody a.row-link"),
        ):
            href = self.go(path).locator(where).first.get_attribute("href")
            assert href is not None
            found.append(href)
        return found
