"""Somebody who wants to know something, and counts what it takes them to find out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from tests.dashboard.naive import Tables, load
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.reading import Page

from toolfault_collector.admin.projects import find_project
from toolfault_collector.storage.database.engine import open_engine, read_connection

__all__ = ["MOST", "Newcomer", "find_new_kinds", "microseconds", "newcomer_to"]

MOST = 3
"""Clicks that any of the tasks may take: links that are followed and forms that are sent."""


class Newcomer:
    """Somebody who begins on Overview, follows what the page says, and counts."""

    def __init__(self, browser: Browser, project: str, now: datetime) -> None:
        self.browser = browser
        self.project = project
        self.now = now
        self.clicks = 0
        self.home = browser.page(f"/?project={project}")
        self.page: Page = self.home.main

    def follow(self, href: str) -> Page:
        """Follow a link of the page."""
        assert href
        self.clicks += 1
        self.page = self.browser.page(href.split("#", maxsplit=1)[0]).main
        return self.page

    def open(self, name: str) -> Page:
        """Follow the entry *name* of the navigation."""
        (entry,) = [each for each in self.home.tabs("Main") if each.text == name]
        return self.follow(entry.href)

    def save(self, page: Page, action: str) -> Page:
        """Press the button of the form of *page* that sends it to *action*, as it is filled."""
        (form,) = [each for each in page.forms if action in each.sends_to]
        self.clicks += 1
        self.page = self.browser.post(form.sends_to[action], form.fields).main
        return self.page

    def press(self, page: Page, action: str) -> Page:
        """Press the button of the form of *page* for *action*."""
        form = page.form(action)
        self.clicks += 1
        self.page = self.browser.post(form.action, form.fields).main
        return self.page

    @property
    def rows(self) -> Tables:
        """Every row of the project, read by no code of the product."""
        return _rows(self.browser.engine, self.project, microseconds(self.now))

    def fetch(self, href: str) -> str:
        """Take a file away."""
        self.clicks += 1
        answer = self.browser.get(href)
        assert answer.status_code == 200
        return answer.text


@lru_cache(maxsize=4)
def _rows(engine: Engine, project: str, now: int) -> Tables:
    with read_connection(engine) as conn:
        found = find_project(conn, project)
        assert found is not None
        return load(conn, found, now)


def newcomer_to(project: str, path: Path, now: datetime) -> Iterator[Newcomer]:
    """Yield somebody new to *project* of the database *path*; three clicks must be enough."""
    engine = open_engine(f"sqlite:///{path}")
    try:
        for browser in open_browser(engine, now=microseconds(now)):
            newcomer = Newcomer(browser, project, now)
            yield newcomer
            assert newcomer.clicks <= MOST
    finally:
        engine.dispose()


def find_new_kinds(newcomer: Newcomer) -> Page:
    """Follow Overview to the kinds of failure new since yesterday, which must be those of the rows.

    They are counted again: a kind is new if its first failure of all time is of the last day.
    """
    page = newcomer.follow(newcomer.page.link("New kinds in the last day"))
    yesterday = newcomer.now - timedelta(days=1)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for each in newcomer.rows.calls:
        if not each["success"] and each["time_source"] != "none":
            kinds.setdefault(each["fingerprint"], []).append(each)
    new = sorted(
        (rows[0]["code"], rows[0]["tool"].split()[0], len(rows))
        for rows in kinds.values()
        if min(row["occurred_at"] for row in rows) >= microseconds(yesterday)
    )
    shown = page.table("Kind", "First seen (UTC)").rows if page.tables else ()
    named = [(*row["Kind"].text.split()[:2], row["Failures"].number) for row in shown]
    assert sorted(named) == new
    for row in shown:
        assert row["State"].text == "new"
        assert row["First seen (UTC)"].moment >= yesterday.isoformat()[:19]
    return page


def microseconds(moment: datetime) -> int:
    """Return *moment* as the product stores times."""
    return round(moment.timestamp() * 1e6)
