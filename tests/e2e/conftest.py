"""What the end-to-end tests share: one Chromium, one server and few windows for each worker.

A window costs a second of computing and a page a third of that, so journeys take turns in the
same window: signed in as an administrator, at the address they go to first.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.conftest import MakeFile
from tests.dashboard.alerts.conftest import office, receiver, running_receiver  # noqa: F401
from tests.dashboard.conftest import copied_database, filled_sqlite, filled_template  # noqa: F401
from tests.e2e.browsing import Visit, chromium_path, cookies_of, dsn_of, launched, lived_through
from tests.live_server import LiveServer, live_server

from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.access import signin

# A page takes what the machine has left for it; an expectation that is met ends at once.
expect.set_options(timeout=60_000)

LONG_WAYS = [
    pytest.param("no-script", marks=pytest.mark.long),
    pytest.param("postgresql", marks=[pytest.mark.long, pytest.mark.postgres]),
]

# Marks a test that makes a database of its own: ``database_url``, and whether scripts run.
EACH_WAY = pytest.mark.parametrize(
    ("database_url", "script"),
    [
        ("sqlite", True),
        pytest.param("sqlite", False, marks=pytest.mark.long),
        pytest.param("postgresql", True, marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=["database_url"],
)


@pytest.fixture(scope="module", autouse=True)
def quiet_tools() -> Iterator[None]:
    """Keep thousands of expected stack traces out of the reports; restored for other modules."""
    logger = logging.getLogger("toolfault")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def _chromium_and_loop() -> Iterator[tuple[Browser, AbstractEventLoop]]:
    found = chromium_path()
    if found is None:
        pytest.skip("no Chromium here; install one or set TOOLFAULT_CHROMIUM to its path")
    with sync_playwright() as playwright:
        running = launched(playwright, found)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield running, loop
        asyncio._set_running_loop(loop)
        running.close()


@pytest.fixture(scope="module")
def chromium(_chromium_and_loop: tuple[Browser, AbstractEventLoop]) -> Iterator[Browser]:
    """The Chromium of this worker.

    Playwright's loop counts as running in this thread for as long as it is open; in the modules
    between those of a browser it must not, since they run loops of their own.
    """
    browser, loop = _chromium_and_loop
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def generated_server(
    filled_sqlite: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveServer]:
    """``toolfault serve`` on a copy of the generated history; its own projects nobody changes."""
    folder = tmp_path_factory.mktemp("dashboard")
    shutil.copyfile(filled_sqlite, folder / "toolfault.db")
    (folder / "toolfault.db").chmod(0o600)
    with live_server(folder) as running:
        yield running


@pytest.fixture(scope="session")
def postgres_server(
    request: pytest.FixtureRequest,
    filled_template: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveServer]:
    """The same on PostgreSQL."""
    url = copied_database(request, "dashboard", template=filled_template)
    with live_server(tmp_path_factory.mktemp("dashboard"), database_url=url) as running:
        yield running


def administrator(server: LiveServer) -> list[dict[str, Any]]:
    """The cookies of a new session of an administrator."""
    engine = open_engine(server.database_url)
    token = signin.create_link(engine, now=now_us(), name="admin", role="admin")
    engine.dispose()
    return cookies_of(server.address, token)


class Windows:
    """The windows of this worker: one for each way of looking at a server."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request
        self._known: dict[str, tuple[Visit, list[dict[str, Any]]]] = {}

    def opened(self, chromium: Browser, way: str) -> Visit:
        """The window of this way, with the cookies of a session and no others."""
        if way not in self._known:
            name = "postgres_server" if way.endswith("postgresql") else "generated_server"
            server: LiveServer = self._request.getfixturevalue(name)
            self._known[way] = (
                opened_window(
                    chromium, server, java_script_enabled=not way.startswith("no-script")
                ),
                administrator(server),
            )
        visit, cookies = self._known[way]
        visit.context.clear_cookies()
        visit.context.add_cookies(cookies)  # type: ignore[arg-type]
        return visit


def opened_window(chromium: Browser, server: LiveServer, **options: Any) -> Visit:
    """A new window on *server*, in UTC, that notes its complaints."""
    # Still pictures: a colour on its way to another one is neither.
    usual = {"timezone_id": "UTC", "color_scheme": "light", "reduced_motion": "reduce"}
    options = usual | options
    if options.get("java_script_enabled", True):
        options |= {"permissions": ["clipboard-read", "clipboard-write"]}
    context = chromium.new_context(accept_downloads=True, **options)
    visit = Visit(context, context.new_page(), server.address, server=server)
    visit.watch()
    return visit


@pytest.fixture(scope="session")
def windows(request: pytest.FixtureRequest, _chromium_and_loop: object) -> Windows:
    """The windows that journeys take turns in."""
    return Windows(request)


def _silent(visit: Visit) -> Iterator[Visit]:
    yield visit
    visit.page.goto("about:blank")
    complaints = visit.complaints[:]
    visit.complaints.clear()
    assert complaints == []


@pytest.fixture(params=["script", *LONG_WAYS])
def reader(request: pytest.FixtureRequest, windows: Windows, chromium: Browser) -> Iterator[Visit]:
    """A signed-in window, for what works without scripts too; it must not complain."""
    yield from _silent(windows.opened(chromium, request.param))


@pytest.fixture(params=["script", LONG_WAYS[1]])
def scripted(
    request: pytest.FixtureRequest, windows: Windows, chromium: Browser
) -> Iterator[Visit]:
    """A signed-in window, for what scripts do; it must not complain."""
    yield from _silent(windows.opened(chromium, request.param))


@pytest.fixture
def own_window(generated_server: LiveServer, chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """A function that opens a signed-in window of one test alone; none may complain."""
    visits: list[Visit] = []

    def opened(**options: Any) -> Visit:
        visit = opened_window(chromium, generated_server, **options)
        visit.context.add_cookies(administrator(generated_server))  # type: ignore[arg-type]
        visits.append(visit)
        return visit

    yield opened
    complaints = [each for visit in visits for each in visit.complaints]
    for visit in visits:
        visit.context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def last_monday(made_once: Callable[[str, MakeFile], Path]) -> float:
    """The start of this week, the same for all workers and all through a run."""

    def make(path: Path) -> None:
        today = time.time() // 86_400
        monday = (today - (today - 4) % 7) * 86_400  # day 4 of the epoch was a Monday
        path.write_text(repr(monday), encoding="utf-8")

    return float(made_once("monday", make).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def demo_database(
    made_once: Callable[[str, MakeFile], Path],
    tmp_path_factory: pytest.TempPathFactory,
    last_monday: float,
) -> Path:
    """Two weeks of the demo that end with last Monday, in ``demo``; nobody may write to this file.

    So it is made of the same calls on every day of the week.
    """

    def make(path: Path) -> None:
        with live_server(tmp_path_factory.mktemp("demo")) as server:
            lived_through(dsn_of(server, "demo"), days=14, until=last_monday)
        shutil.copyfile(server.cwd / "toolfault.db", path)

    return made_once("demo.db", make)
