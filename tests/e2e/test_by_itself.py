"""What a page does by itself, in a browser: it follows its own counting, turns, loads again.

Counting takes long here because the server has no patience at all and cuts the smallest window
into days; whatever else of it is what runs anywhere, in this process so that its patience can be
given back to it.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine
from tests.dashboard.conftest import ENGINES, copied_database
from tests.dashboard.generated import NOW, fill
from tests.e2e.browsing import Reader, send, signed_in
from tests.factories import failure
from tests.live_server import LiveServer

from toolfault_collector.clock import now_us
from toolfault_collector.collector import Collector
from toolfault_collector.engine import open_engine
from toolfault_collector.schema import prepare
from toolfault_collector.settings import Settings
from toolfault_dashboard import signin
from toolfault_dashboard.app import create_app
from toolfault_dashboard.pages import _waits
from toolfault_dashboard.queries import deadline, parts

pytestmark = pytest.mark.browser

SCRIPTS = pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
COUNTED = "/failures?project=generated&q=-code%3Anot_found&group=kind&window=7d"
SAID_503 = re.compile("the server responded with a status of 503")

Opened = Callable[..., Reader]


@pytest.fixture(scope="module", params=ENGINES)
def history(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """The generated history, which nobody writes to but who signs in."""
    url = f"sqlite:///{tmp_path_factory.mktemp('by-itself') / 'toolfault.db'}"
    if request.param == "postgresql":
        url = copied_database(request, "by_itself")
    engine = open_engine(url)
    prepare(engine, migrate=True)
    fill(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def server(history: Engine) -> Iterator[str]:
    """The address of the generated history, served by this process over HTTP."""
    url = history.url.render_as_string(hide_password=False)
    settings = Settings(database_url=url)
    app = create_app(settings, collector=Collector(settings, engine=history), clock=lambda: NOW)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()


@pytest.fixture
def opened(server: str, history: Engine, chromium: Browser) -> Iterator[Opened]:
    """A function that opens a signed-in window on that server; at the end none may complain."""
    token = signin.create_link(history, now=NOW, name="admin", role="admin")
    cookies = signed_in(chromium, f"{server}/sign-in?token={token}")
    readers: list[Reader] = []

    def open_window(**options: object) -> Reader:
        context = chromium.new_context(timezone_id="UTC", **options)  # type: ignore[arg-type]
        context.add_cookies(cookies)  # type: ignore[arg-type]
        reader = Reader(context, context.new_page(), server)
        reader.watch()
        readers.append(reader)
        return reader

    yield open_window
    complaints = [each for reader in readers for each in reader.complaints]
    for reader in readers:
        reader.context.close()
    assert complaints == []


def _steps(page: Page) -> list[int]:
    """Note the status of every page that comes."""
    found: list[int] = []

    def note(answer: object) -> None:
        if answer.request.is_navigation_request():  # type: ignore[attr-defined]
            found.append(answer.status)  # type: ignore[attr-defined]

    page.on("response", note)
    return found


def _stand_still(page: Page) -> None:
    """Let the time of the pages pass only when it is told to."""
    page.clock.install(time=0)
    page.clock.pause_at(1_000)


@pytest.fixture
def impatient(history: Engine, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the server know nothing and say after every day how far it is."""
    monkeypatch.setattr(parts, "MANY", 0)
    monkeypatch.setattr(_waits, "SECONDS", 0.0)
    parts._ANSWERS.pop(history, None)
    return monkeypatch


@SCRIPTS
def test_a_page_that_counts_follows_by_itself(
    opened: Opened, server: str, impatient: pytest.MonkeyPatch, script: bool
):
    """Nobody touches it: it ends at what was asked, and the way back skips its steps."""
    page = opened(java_script_enabled=script).page
    page.goto(f"{server}/help?project=generated")
    statuses = _steps(page)
    page.goto(f"{server}{COUNTED}", wait_until="commit")
    expect(page.locator("h1")).to_have_text("Failures", timeout=60_000)
    assert page.url == f"{server}{COUNTED}"
    assert statuses.count(202) == len(statuses) - 1 > 5
    assert statuses[-1] == 200
    expect(page.locator("#q")).to_have_value("-code:not_found")
    expect(page.locator("tbody a.row-link").first).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Help")


def test_nobody_who_types_is_interrupted_by_the_counting(
    opened: Opened, server: str, impatient: pytest.MonkeyPatch
):
    """Who asks for less meanwhile writes it in peace; what was left empty-handed goes on."""
    page = opened().page
    _stand_still(page)
    page.goto(f"{server}{COUNTED}")
    page.locator("#q").focus()
    statuses = _steps(page)
    page.clock.run_for(5_000)
    page.locator("#q").fill("tool:search")
    page.clock.run_for(5_000)
    assert statuses == []
    expect(page.locator("#q")).to_have_value("tool:search")
    page.locator("#q").blur()
    page.clock.run_for(5_000)
    expect(page.locator("#q")).to_have_value("-code:not_found")
    assert statuses[0] == 202


def test_who_leaves_a_page_that_counts_is_not_called_back(
    opened: Opened, server: str, impatient: pytest.MonkeyPatch
):
    """The navigation works while it counts, and where it leads stays."""
    page = opened().page
    _stand_still(page)
    page.goto(f"{server}{COUNTED}")
    expect(page.locator("h1")).to_have_text("Counting")
    expect(page.locator("progress")).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Settings").click()
    expect(page.locator("h1")).to_have_text("Settings")
    statuses = _steps(page)
    page.clock.run_for(10_000)
    assert statuses == []


@SCRIPTS
def test_a_page_that_took_too_long_leads_on(
    opened: Opened, history: Engine, server: str, monkeypatch: pytest.MonkeyPatch, script: bool
):
    """The query stands in its box, a click asks it of a day, and a shorter one can be written."""
    if history.dialect.name == "postgresql":
        pytest.skip("PostgreSQL counts its time by statement; 0 is without end there")
    monkeypatch.setattr(parts, "MANY", 2**62)
    monkeypatch.setattr(deadline, "SECONDS", 0.0)
    monkeypatch.setattr(deadline, "_STEPS", 50)
    reader = opened(java_script_enabled=script)
    page = reader.page
    page.goto(f"{server}/failures?project=generated&q=code%3Awrong_type&window=30d")
    expect(page.locator("h1")).to_have_text("This takes too long")
    expect(page.locator("#q")).to_have_value("code:wrong_type")
    page.locator("#q").fill("code:wrong_type tool:search")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("search"))
    expect(page.locator("h1")).to_have_text("This takes too long")
    expect(page.locator(".chip")).to_have_text(["code:wrong_type", "tool:search"])
    offers = page.get_by_role("region", name="What was asked").get_by_role("link")
    expect(offers).to_have_text(
        ["The same in the last 24 hours", "The same in the last 7 days", "Ask again"]
    )
    week = offers.nth(1).get_attribute("href")
    monkeypatch.undo()
    offers.first.click()
    expect(page.locator(".lede")).to_contain_text("in the last 24 hours")
    expect(page.locator(".chip")).to_have_text(["code:wrong_type", "tool:search"])
    page.goto(f"{server}{week}")
    expect(page.locator(".lede")).to_contain_text("in the last 7 days")
    said = [reader.complaints.pop(), reader.complaints.pop()]
    assert all(SAID_503.search(each) for each in said)


def _new_project(server: LiveServer, page: Page) -> tuple[str, str]:
    """Make a key for a project without data on its page; return the project and its DSN."""
    name = f"first-{now_us()}"
    server.dsn(name)
    page.goto(f"{server.address}/?project={name}")
    page.get_by_role("button", name="Create a key and show the DSN").click()
    return name, page.locator("#dsn").inner_text().strip()


def test_a_copied_key_lets_the_first_event_turn_the_page(open_reader, generated_server: LiveServer):
    """Whoever took the DSN, alone or within an example, is led on by the first event."""
    context = open_reader().context
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    for copied in ("dsn", "sdk", "http"):
        page = context.new_page()
        page.clock.install()
        _, dsn = _new_project(generated_server, page)
        page.locator(f"[data-copy={copied}]").click()
        key = dsn.removeprefix("http://").partition("@")[0]
        assert key in page.evaluate("navigator.clipboard.readText()")
        send(dsn, failure("first_tool", at=now_us()))
        page.clock.run_for(4_000)
        expect(page.locator("h1")).to_have_text("Overview")
        expect(page.locator("table.failures tbody tr").first).to_contain_text("first_tool")


@pytest.mark.parametrize("copied", ["", "import"])
def test_a_key_that_nobody_took_stays_until_it_is_left(
    open_reader, generated_server: LiveServer, copied: str
):
    """The first event is said and leads on by a click; the key, shown this once, still stands."""
    page = open_reader().page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.clock.install()
    name, dsn = _new_project(generated_server, page)
    if copied:
        page.locator(f"[data-copy={copied}]").click()
        expect(page.locator(f"[data-copy={copied}]")).to_have_text("Copied")
    send(dsn, failure("first_tool", at=now_us()))
    page.clock.run_for(4_000)
    expect(page.get_by_role("status")).to_contain_text("The first event has arrived.")
    page.clock.run_for(20_000)
    expect(page.locator("#dsn")).to_have_text(dsn)
    page.get_by_role("link", name="Look at the overview").click()
    expect(page.locator("h1")).to_have_text("Overview")
    expect(page).to_have_url(re.compile(name))


def test_a_chosen_interval_shows_what_came_meanwhile(open_reader, generated_server: LiveServer):
    """Half a minute later the new failure stands on top; while somebody types, nothing moves."""
    page = open_reader().page
    page.clock.install()
    dsn = generated_server.dsn("generated")
    page.goto(f"{generated_server.address}/failures?project=generated&window=24h&refresh=30")
    send(dsn, failure("came_meanwhile", at=now_us()))
    page.locator("#q").fill("tool:a")
    page.clock.run_for(40_000)
    expect(page.locator("#q")).to_have_value("tool:a")
    assert page.locator("tbody").get_by_text("came_meanwhile").count() == 0
    page.locator("#q").blur()
    page.clock.run_for(30_000)
    expect(page.locator("tbody tr").first).to_contain_text("came_meanwhile")
    expect(page).to_have_url(re.compile("refresh=30"))
    expect(page.locator("body")).to_have_attribute("data-refresh", "30")


def test_live_paused_shows_nothing_new_and_goes_on_with_what_comes_then(
    open_reader, generated_server: LiveServer
):
    """Paused, the page listens no more; the button goes on, and each row leads to its failure."""
    page = open_reader().go("/live")
    state = page.get_by_role("status")
    expect(state).to_have_text("live", timeout=20_000)
    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    dsn = generated_server.dsn("generated")
    send(dsn, failure("while_paused", at=now_us()))
    page.get_by_role("button", name="Go on").click()
    expect(state).to_have_text("live", timeout=20_000)
    send(dsn, failure("after_pause", at=now_us()))
    expect(page.locator("tbody tr").first).to_contain_text("after_pause", timeout=20_000)
    assert page.get_by_text("while_paused").count() == 0
    page.locator("tbody tr").first.locator("a.row-link").click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()
