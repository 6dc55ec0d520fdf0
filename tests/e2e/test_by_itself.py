"""What a page does by itself, in a browser: it follows its own counting, turns, loads again.

Counting takes long here because the server has no time budget at all and cuts the smallest window
into days; it runs in this process so that its budget can be given back to it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from fastapi import Request
from playwright.sync_api import Browser, Page, Response, expect
from sqlalchemy import Engine
from tests.cases import long_cases
from tests.dashboard.generated import NOW
from tests.e2e.browsing import Reader, Visit, cookies_of, rows_of, send, stand_still
from tests.factories import failure
from tests.live_server import served

from toolfault_collector.clock import now_us
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.access import signin
from toolfault_dashboard.app import create_app
from toolfault_dashboard.queries.counting import segments

pytestmark = pytest.mark.browser

ASKED = "-code:not_found since:3d"  # some steps to each question, not all that a week would take
COUNTED = f"/failures?{urlencode({'project': 'generated', 'q': ASKED, 'group': 'kind'})}"


class Impatient:
    """Lets a page say after every day how far it is, however often that was."""

    def time_budget(self, request: Request) -> float | None:
        """No time at all for a page, all the time for a file."""
        return 0.0 if "text/html" in request.headers.get("accept", "") else None

    def again(self, request: Request) -> None:
        """Nobody counts how often."""

    def over(self, request: Request) -> None:
        """Nor when it ends."""


@pytest.fixture
def engine(filled_sqlite: Path, tmp_path: Path) -> Iterator[Engine]:
    """A database of this test alone with the generated history, about which nothing is known."""
    shutil.copyfile(filled_sqlite, tmp_path / "toolfault.db")
    engine = open_engine(f"sqlite:///{tmp_path / 'toolfault.db'}")
    yield engine
    engine.dispose()


@pytest.fixture
def server(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server without a time budget, which counts every window in segments."""
    monkeypatch.setattr(segments, "MANY", 0)
    settings = Settings(database_url=engine.url.render_as_string(hide_password=False))
    app = create_app(settings, collector=Collector(settings, engine=engine), clock=lambda: NOW)
    app.state.services = replace(app.state.services, waits=Impatient())
    with served(app) as address:
        yield address


@pytest.fixture
def opened(server: str, engine: Engine, chromium: Browser) -> Iterator[Callable[..., Reader]]:
    """A function that opens a signed-in window on that server; at the end none may complain."""
    token = signin.create_link(engine, now=NOW, name="admin", role="admin")
    cookies = cookies_of(server, token)
    readers: list[Reader] = []

    def open_window(*, java_script_enabled: bool = True) -> Reader:
        context = chromium.new_context(timezone_id="UTC", java_script_enabled=java_script_enabled)
        context.add_cookies(cookies)  # type: ignore[arg-type]
        reader = Reader(context, context.new_page(), server)
        reader.watch()
        readers.append(reader)
        return reader

    yield open_window
    # What the browser says of a page that is left comes before its window is closed.
    for reader in readers:
        reader.page.goto("about:blank")
    complaints = [each for reader in readers for each in reader.complaints]
    for reader in readers:
        reader.context.close()
    assert complaints == []


def _steps(page: Page) -> list[int]:
    """Note the status of every page that comes."""
    found: list[int] = []

    def note(answer: Response) -> None:
        if answer.request.is_navigation_request():
            found.append(answer.status)

    page.on("response", note)
    return found


@pytest.mark.parametrize(
    "script", [True, pytest.param(False, marks=pytest.mark.long)], ids=["script", "no-script"]
)
def test_a_page_that_counts_follows_by_itself(
    opened: Callable[..., Reader], server: str, script: bool
):
    """Nobody touches it: it ends at what was asked, and the way back skips its steps."""
    page = opened(java_script_enabled=script).page
    page.goto(f"{server}/help?project=generated")
    statuses = _steps(page)
    page.goto(f"{server}{COUNTED}", wait_until="commit")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Failures")
    assert page.url == f"{server}{COUNTED}"
    assert statuses.count(202) == len(statuses) - 1 > 5
    assert statuses[-1] == 200
    expect(page.get_by_label("Query", exact=True)).to_have_value(ASKED)
    expect(rows_of(page, "Kinds of failure").first).to_be_visible()
    page.go_back()
    expect(heading).to_have_text("Help")


def test_nobody_who_types_is_interrupted_by_the_counting(
    opened: Callable[..., Reader], server: str
):
    """Who asks for less meanwhile writes it in peace; what was left empty-handed goes on."""
    page = opened().page
    stand_still(page)
    page.goto(f"{server}{COUNTED}")
    box = page.get_by_label("Query", exact=True)
    box.focus()
    statuses = _steps(page)
    page.clock.run_for(5_000)
    box.fill("tool:search")
    page.clock.run_for(5_000)
    assert statuses == []
    expect(box).to_have_value("tool:search")
    box.blur()
    page.clock.run_for(5_000)
    expect(box).to_have_value(ASKED)
    assert statuses[0] == 202


def test_who_leaves_a_page_that_counts_is_not_called_back(
    opened: Callable[..., Reader], server: str
):
    """The navigation works while it counts, and where it leads stays."""
    page = opened().page
    stand_still(page)
    page.goto(f"{server}{COUNTED}")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Counting")
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Settings").click()
    expect(heading).to_have_text("Settings")
    statuses = _steps(page)
    page.clock.run_for(10_000)
    assert statuses == []


@pytest.fixture
def fresh(own_window: Callable[..., Visit]) -> tuple[Visit, str, str]:
    """A window, whose clock is ours, on a project without data, its name and its shown DSN."""
    visit = own_window()
    name, _ = visit.project(name="first")
    visit.page.clock.install()
    page = visit.go("/", name)
    page.get_by_role("button", name="Create a key and show the DSN").click()
    shown = page.get_by_role("region", name="Your DSN").get_by_text(re.compile(r"^http\S+@\S+$"))
    return visit, name, shown.inner_text().strip()


@pytest.mark.parametrize("place", [0, *long_cases(1, 2)])
def test_a_copied_key_lets_the_first_event_turn_the_page(fresh: tuple[Visit, str, str], place: int):
    """Whoever took the DSN, alone or within an example, is led on by the first event."""
    page, dsn = fresh[0].page, fresh[2]
    page.get_by_role("button", name="Copy").nth(place).click()
    key = dsn.removeprefix("http://").partition("@")[0]
    assert key in page.evaluate("navigator.clipboard.readText()")
    send(dsn, failure("first_tool", at=now_us()))
    page.clock.run_for(4_000)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(rows_of(page, "Newest failures").first).to_contain_text("first_tool")


@pytest.mark.parametrize("place", [3, pytest.param(None, marks=pytest.mark.long)])
def test_a_key_that_nobody_took_stays_until_it_is_left(
    fresh: tuple[Visit, str, str], place: int | None
):
    """The first event is said and leads on by a click; the key, shown this once, still stands."""
    page, name, dsn = fresh[0].page, fresh[1], fresh[2]
    if place is not None:  # the example of an import, which has no key in it
        page.get_by_role("button", name="Copy").nth(place).click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert "toolfault import" in page.evaluate("navigator.clipboard.readText()")
    send(dsn, failure("first_tool", at=now_us()))
    page.clock.run_for(4_000)
    expect(page.get_by_role("status")).to_contain_text("The first event has arrived.")
    page.clock.run_for(20_000)
    expect(page.get_by_text(dsn, exact=True)).to_be_visible()
    page.get_by_role("link", name="Look at the overview").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(page).to_have_url(re.compile(name))


def test_an_empty_project_turns_into_the_dashboard_by_itself(own_window: Callable[..., Visit]):
    """Three ways to send data; the first event brings the overview without a click."""
    visit = own_window()
    name, dsn = visit.project(name="fresh")
    visit.page.clock.install()
    page = visit.go("/", name)
    for way in ("1. From your agent", "2. Over HTTP", "3. From history you have"):
        expect(page.get_by_role("heading", name=way)).to_be_visible()
    send(dsn, failure("first_tool", at=now_us()))
    page.clock.run_for(4_000)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    expect(rows_of(page, "Newest failures").first).to_contain_text("first_tool")


def test_a_chosen_interval_shows_what_came_meanwhile(own_window: Callable[..., Visit]):
    """Half a minute later the new failure stands on top; while somebody types, nothing moves."""
    visit = own_window()
    own, dsn = visit.project(failure())
    visit.page.clock.install()
    page = visit.go("/failures?refresh=30", own)
    send(dsn, failure("came_meanwhile", at=now_us()))
    box = page.get_by_label("Query", exact=True)
    box.fill("tool:a")
    page.clock.run_for(40_000)
    expect(box).to_have_value("tool:a")
    rows = rows_of(page, "Failures, newest first")
    expect(rows.filter(has_text="came_meanwhile")).to_have_count(0)
    box.blur()
    page.clock.run_for(30_000)
    expect(rows.first).to_contain_text("came_meanwhile")
    expect(page).to_have_url(re.compile("refresh=30"))
