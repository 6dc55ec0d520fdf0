"""A browser window that notes what it complains about."""

from __future__ import annotations

from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, Page, Request

__all__ = ["ARGUMENTS", "DATA", "Reader"]

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
