"""What the end-to-end tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.dashboard.conftest import ENGINES, copied_database
from tests.dashboard.generated import fill
from tests.e2e.browsing import Reader, chromium_path, launched, signed_in
from tests.live_server import LiveServer, live_server

from toolfault_collector.engine import open_engine
from toolfault_collector.schema import prepare


@pytest.fixture(scope="module", autouse=True)
def quiet_tools() -> Iterator[None]:
    """Keep thousands of expected stack traces out of the reports; restored for other modules."""
    logger = logging.getLogger("toolfault")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The Chromium of this machine."""
    found = chromium_path()
    if found is None:
        pytest.skip("no Chromium here; install one or set TOOLFAULT_CHROMIUM to its path")
    with sync_playwright() as playwright:
        running = launched(playwright, found)
        yield running
        running.close()


@pytest.fixture(scope="module", params=ENGINES)
def generated_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """``toolfault serve`` on a database that was filled through the collector, on each engine."""
    folder = tmp_path_factory.mktemp("dashboard")
    url = f"sqlite:///{folder / 'toolfault.db'}"
    if request.param == "postgresql":
        url = copied_database(request, "dashboard")
    engine = open_engine(url)
    prepare(engine, migrate=True)
    fill(engine)
    engine.dispose()
    with live_server(folder, database_url=url) as running:
        yield running


@pytest.fixture(scope="module")
def session(generated_server: LiveServer, chromium: Browser) -> list[dict[str, Any]]:
    """The cookies of a browser that followed a sign-in link and pressed its button."""
    link = generated_server.run("sign-in-link", "--url", generated_server.address).split()[-1]
    return signed_in(chromium, link)


@pytest.fixture
def open_reader(
    generated_server: LiveServer, chromium: Browser, session: list[dict[str, Any]]
) -> Iterator[object]:
    """A function that opens a window; at the end none may have complained."""
    readers: list[Reader] = []

    def opened(*, complain: bool = True, **options: object) -> Reader:
        options = {"timezone_id": "UTC"} | options
        context = chromium.new_context(accept_downloads=True, **options)  # type: ignore[arg-type]
        context.add_cookies(session)  # type: ignore[arg-type]
        reader = Reader(context, context.new_page(), generated_server.address)
        reader.watch()
        if complain:
            readers.append(reader)
        return reader

    yield opened
    complaints = [each for reader in readers for each in reader.complaints]
    for reader in readers:
        reader.context.close()
    assert complaints == []
