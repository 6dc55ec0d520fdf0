"""The whole application in process: real database, real layers, a signed-in browser's cookies."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import Engine, event
from tests.dashboard.generated import NOW
from tests.dashboard.reading import Page

from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.access import signin
from toolfault_dashboard.access.policy import Role
from toolfault_dashboard.app import create_app

ORIGIN = "http://127.0.0.1:8321"


@dataclass
class Browser:
    """A client with the session of one role, and what a test asks of pages."""

    client: TestClient
    engine: Engine
    statements: list[str]

    def get(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Response:
        """Get *path* without following redirects."""
        return self.client.get(path, follow_redirects=False, headers=headers, params=params)

    def page(self, path: str, *, status: int = 200) -> Page:
        """Get *path*, which must answer with *status*, and read it."""
        answer = self.client.get(path)
        assert answer.status_code == status, f"{path}: {answer.status_code}\n{answer.text[:2000]}"
        return Page(answer.text)

    def post(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        status: int = 303,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send *form* to *path*, which must answer with *status*; the page where that leads."""
        answer = self.client.post(path, data=form, headers=headers, follow_redirects=False)
        assert answer.status_code == status, f"{path}: {answer.status_code}\n{answer.text[:2000]}"
        return self.page(answer.headers["location"]) if status == 303 else Page(answer.text)

    @property
    def app(self) -> FastAPI:
        """The application itself."""
        assert isinstance(self.client.app, FastAPI)
        return self.client.app

    def count(self, path: str) -> list[str]:
        """The SELECTs that one request for *path* needs."""
        self.statements.clear()
        assert self.client.get(path).status_code == 200, path
        return self.selects

    @property
    def selects(self) -> list[str]:
        """The SELECTs among the statements that were sent."""
        return [each for each in self.statements if re.match(r"\s*(SELECT|WITH)", each)]


def open_browser(
    engine: Engine,
    *,
    role: Role | None = "admin",
    now: int = NOW,
    quota: int = 0,
    trace_url: str = "",
    alert_networks: str = "",
) -> Iterator[Browser]:
    """Yield the application on *engine*, signed in as *role* (None: not at all)."""
    url = engine.url.render_as_string(hide_password=False)
    settings = Settings(
        database_url=url,
        quota_events_per_minute=quota,
        trace_url=trace_url,
        alert_networks=alert_networks,
    )
    app = create_app(settings, collector=Collector(settings, engine=engine), clock=lambda: now)
    statements: list[str] = []

    def remember(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", remember)
    try:
        with TestClient(app, base_url=ORIGIN) as client:
            if role is not None:
                token = signin.create_link(engine, now=now, name=role, role=role)
                answer = client.post("/sign-in", data={"token": token}, follow_redirects=False)
                assert answer.status_code == 303, answer.text
            yield Browser(client, engine, statements)
    finally:
        event.remove(engine, "before_cursor_execute", remember)


@pytest.fixture(scope="session")
def engine(filled_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The generated history; pages add accounts to it and nothing else.

    One for all modules of a worker: each new engine compiles every statement again.
    """
    path = tmp_path_factory.mktemp("pages") / "toolfault.db"
    shutil.copyfile(filled_sqlite, path)
    engine = open_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def _shared_browser(engine: Engine) -> Iterator[tuple[Browser, list[Any]]]:
    for browser in open_browser(engine):
        yield browser, list(browser.client.cookies.jar)


@pytest.fixture
def browser(_shared_browser: tuple[Browser, list[Any]]) -> Browser:
    """An administrator looking at the generated history, in a new window on a server of many."""
    browser, cookies = _shared_browser
    browser.client.cookies.clear()
    for each in cookies:
        browser.client.cookies.jar.set_cookie(each)
    return browser


@pytest.fixture
def own_engine(filled_sqlite: Path, tmp_path: Path) -> Iterator[Engine]:
    """A database of this test alone, with the generated history, that may be written to."""
    shutil.copyfile(filled_sqlite, tmp_path / "toolfault.db")
    engine = open_engine(f"sqlite:///{tmp_path / 'toolfault.db'}")
    yield engine
    engine.dispose()


@pytest.fixture
def own_browser(own_engine: Engine) -> Iterator[Browser]:
    """An administrator on a database of this test alone."""
    yield from open_browser(own_engine)


@pytest.fixture
def empty_browser(sqlite_url: str) -> Iterator[Browser]:
    """An administrator on a server without a project."""
    engine = open_engine(sqlite_url)
    yield from open_browser(engine)
    engine.dispose()
