"""The way through the dashboard in a browser: first investigation, looks, keys, live, policy.

Any console error, CSP violation, failed request or uncaught exception fails a journey.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, ViewportSize, expect
from tests.dashboard.addresses import COMPARED, LISTS
from tests.dashboard.generated import events
from tests.e2e.accessibility import all_violations, bring_axe, off_colours, violations
from tests.e2e.browsing import (
    Visit,
    chips,
    downloaded,
    first_failure,
    rows_of,
    said,
    send,
    stand_still,
)
from tests.factories import change, failure

from toolfault_collector.clock import SECOND_US, now_us

pytestmark = pytest.mark.browser

PAGES = (
    *LISTS,
    COMPARED,
    "/docs/reading",
    "/failures?group=kind",
    "/experiment?name=b",
    "/experiment?name=b&days=1",
)
# Made of what the others are made of too: their rules are asked in the long run.
LIKE_OTHERS = (
    "/docs", "/round-trips", "/breakdown", "/tools", "/changes", "/compare", "/experiments",
    "/experiment?name=b", "/messages", "/views", "/alerts", "/received", "/rejected",
)  # fmt: skip
# Between them they have every colour of the themes.
COLOURFUL = ("/", "/failures?group=kind", "/codes", COMPARED, "/settings")
WIDE: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}


def test_from_the_overview_to_a_failure_to_its_chain_to_a_csv(reader: Visit):
    """The way of a first investigation, clicked; the CSV has as many rows as the page says."""
    page = reader.go("/")
    page.get_by_role("link", name="Failures", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Failures")

    page.get_by_label("Query", exact=True).fill("-chain:none code:wrong_type")
    page.get_by_role("button", name="Search").click()
    chips(page, "-chain:none", "code:wrong_type")
    shown = said(page)
    assert len(downloaded(page, "these failures")) == shown > 0

    first_failure(page).click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()
    expect(page.get_by_label("Text for the model")).to_be_visible()
    page.get_by_role("link", name="Open the chain").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Chain of")
    steps = page.get_by_role("region", name="in order").get_by_role("listitem")
    assert steps.count() >= 2


def _open(visit: Visit, path: str, project: str = "generated") -> Page:
    path = path.replace("project=generated", f"project={project}")
    if "project=" not in path:
        page = visit.go(path, project)
    else:
        page = visit.page
        page.goto(f"{visit.address}{path}")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    return page


def _beyond(page: Page) -> list[str]:
    """How many pixels the page is wider than its window, in words; nothing if it is not."""
    pixels = int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
    return [f"{pixels} px too wide"] if pixels > 0 else []


@pytest.mark.slow
def test_no_page_breaks_the_accessibility_rules(own_window: Callable[..., Visit]):
    """No kind of page breaks a rule of axe, or contrast in either theme; none overflows."""
    visit = own_window()
    # Some rows of each table show what many would, and cost a tenth.
    calls = events(seed=5, conversations=12)
    own, _ = visit.project(*calls[:60], *calls[-2:])
    details = visit.details(own)
    bring_axe(visit.page)
    found: dict[str, list[str]] = {}
    for path in (*(each for each in PAGES if each not in LIKE_OTHERS), *details):
        page = _open(visit, path, own)
        broken = [*violations(page), *_beyond(page)]
        if path in COLOURFUL or path.startswith("/failures/"):
            broken += off_colours(page)
            page.emulate_media(color_scheme="dark")
            broken += [f"dark: {each}" for each in off_colours(page)]
            page.emulate_media(color_scheme="light")
        page.set_viewport_size(PHONE)
        broken += [f"phone: {each}" for each in _beyond(page)]
        if path == "/":
            page.get_by_role("button", name="Menu").click()
            broken += [f"menu: {each}" for each in (*violations(page), *off_colours(page))]
        page.set_viewport_size(WIDE)
        if broken:
            found[path] = broken
    assert found == {}


def test_the_head_of_a_long_list_stays_in_sight(scripted: Visit):
    """At the last of 45 tools, and of 45 failures, the headings are still there."""
    own, _ = scripted.project(*(failure(f"tool{n}") for n in range(45)))
    for path, label in (("/tools", "Tools"), ("/failures", "Failures, newest first")):
        table = scripted.go(path, own).get_by_role("group", name=label, exact=True)
        table.evaluate("each => { each.scrollIntoView(); each.scrollTo(0, each.scrollHeight); }")
        expect(table.get_by_role("row").last).to_be_in_viewport()
        expect(table.get_by_role("columnheader").first).to_be_in_viewport()


def test_facets_that_leave_values_out_fit_a_phone(scripted: Visit):
    """The link to the values that a facet leaves out makes no page wider, hidden words included."""
    calls = [failure(f"tool{n}", agent=f"agent{n}", model=f"model{n}") for n in range(20)]
    own, _ = scripted.project(*calls)
    scripted.page.set_viewport_size(PHONE)
    page = scripted.go("/failures", own)
    expect(page.get_by_role("link", name=re.compile("more value")).first).to_be_attached()
    beyond = _beyond(page)
    scripted.page.set_viewport_size(WIDE)
    assert beyond == []


def test_names_as_long_as_they_may_be_fit_a_phone(scripted: Visit):
    """Codes, tools and arguments of 128 letters without a break make no page wider than a phone."""
    tool, code, field = (letter * 127 for letter in "tcf")
    calls = [failure(f"{tool}{n}", code=f"{code}{n}", field=f"{field}{n}") for n in range(3)]
    own, _ = scripted.project(*calls)
    scripted.page.set_viewport_size(PHONE)
    paths = ("/", "/failures", "/failures?group=kind", "/codes", "/tools", "/messages", "/fix-next")
    beyond = {path: _beyond(scripted.go(path, own)) for path in (*paths, "/round-trips")}
    scripted.go("/tools", own)
    for one in ("/tool?", "/failures/", "/chains/", "/conversation?"):  # each leads to the next
        link = scripted.page.locator(f'a[href^="{one}"]').first.get_attribute("href")
        assert link is not None
        beyond[one] = _beyond(scripted.go(link, own))
    scripted.page.set_viewport_size(WIDE)
    assert {path: wide for path, wide in beyond.items() if wide} == {}


def test_the_first_failure_is_in_sight_on_a_phone(scripted: Visit):
    """However many values the facets have, the list begins in the upper two thirds of a phone."""
    own, _ = scripted.project(*(failure(f"tool_{n}", code=f"code_{n}") for n in range(12)))
    page = scripted.go("/failures", own)
    page.set_viewport_size(PHONE)
    top = rows_of(page, "Failures, newest first").first.bounding_box()
    page.set_viewport_size(WIDE)
    assert top is not None
    assert top["y"] < PHONE["height"] * 2 / 3


@pytest.mark.parametrize("reader", ["no-script"], indirect=True)
def test_every_page_is_two_taps_away_on_a_phone(reader: Visit):
    """Menu shows all of the navigation at once, a tap there leads on; a desktop has no Menu."""
    page = reader.go("/")
    pages = page.get_by_role("navigation", name="Main").get_by_role("link")
    names, menu = pages.all_inner_texts(), page.get_by_role("button", name="Menu")
    expect(menu).to_be_hidden()
    page.set_viewport_size(PHONE)
    expect(pages).to_have_count(0)
    menu.click()
    for name in names:
        expect(pages.filter(has_text=name)).to_be_in_viewport(ratio=1)
    pages.filter(has_text="Settings").click()
    page.set_viewport_size(WIDE)
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")


def test_changes_with_names_as_long_as_they_may_be_fit_a_phone(scripted: Visit):
    """Labels, tools, models and releases without a break stay within the window and their cell."""
    at = now_us() - 3_600 * SECOND_US
    tool, agent, model, release = (letter * 128 for letter in "tamr")
    own, _ = scripted.project(
        failure(tool, at=at, agent=agent, model="m", release="1"),
        failure(tool, at=at + 2 * SECOND_US, agent=agent, model=model, release=release),
        change("L" * 200, at=at + SECOND_US, tool=tool),
    )
    page = scripted.go("/changes", own)
    page.set_viewport_size(PHONE)
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("td .code, th a")].filter(each =>
            each.getBoundingClientRect().right
                > each.closest("td, th").getBoundingClientRect().right + 1).length"""
    )
    wide = _beyond(page)
    paths = page.eval_on_selector_all("a.row-link", "all => all.map(each => each.href)")
    for path in paths:
        page.goto(path)
        wide += _beyond(page)
    page.set_viewport_size(WIDE)
    assert len(paths) == 3
    assert (beyond, wide) == (0, [])


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_rule_of_axe_in_both_themes_and_sizes(own_window, scheme: str, size: dict[str, int]):
    """Each page, loaded in each theme and size, breaks no rule of axe."""
    visit = own_window(color_scheme=scheme, viewport=size)
    paths = (*PAGES, *visit.details())
    assert {path: bad for path in paths if (bad := all_violations(_open(visit, path)))} == {}


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.long), 1000])
def test_headings_of_a_table_stand_beside_each_other_in_line(scripted: Visit, width: int):
    """No heading reaches into the next one, in no choice of columns; all stand equally high."""
    every = "failures,recovery,answered,fixed,when_answered,last"
    scripted.page.set_viewport_size({"width": width, "height": 800})
    for path in (f"/messages?cols={every}", "/messages", "/tools"):
        page = scripted.go(path)
        drawn = page.get_by_role("table").first.evaluate(
            """table => [...table.tHead.querySelectorAll("th")].map(th => {
                const text = document.createRange();
                text.selectNodeContents(th);
                const box = th.getBoundingClientRect(), words = text.getBoundingClientRect();
                const middle = (words.top + words.bottom) / 2;
                return [words.right - box.right, box.left - words.left, middle];
            })"""
        )
        assert max(max(right, left) for right, left, _ in drawn) <= 0, path
        middles = [middle for _, _, middle in drawn]
        assert max(middles) - min(middles) < 1, path
    scripted.page.set_viewport_size(WIDE)


def test_pages_without_a_session_and_errors_are_accessible(scripted: Visit):
    """Sign-in, not found and a query that cannot be read pass axe too, and fit a phone."""
    scripted.page.set_viewport_size(PHONE)
    for path in ("/nothing", "/failures?q=tol:x"):
        assert all_violations(scripted.go(path)) + _beyond(scripted.page) == []
    scripted.context.clear_cookies()
    assert all_violations(scripted.go("/")) + _beyond(scripted.page) == []
    scripted.page.set_viewport_size(WIDE)
    scripted.refused(404, 400)


def test_the_theme_is_chosen_and_lasts(reader: Visit):
    """The theme buttons work without script too, keep the page, and colour it from then on."""
    page = reader.go("/tools")
    paper = {}
    for name in ("Dark", "Light"):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("heading", level=1)).to_have_text("Tools")
        page.reload()
        paper[name] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper["Dark"] != paper["Light"]
    page.get_by_role("button", name="System").click()
    expect(page.get_by_role("button", name="System")).to_have_attribute("aria-pressed", "true")


@pytest.mark.long
def test_a_change_is_recorded_by_the_form(reader: Visit):
    """A label and a tool are enough; the change appears in the list and has a verdict."""
    own, _ = reader.project(failure("search"))
    page = reader.go("/changes", own)
    page.get_by_label("What was changed").fill("Better hints")
    page.get_by_label("Tool (empty for all)").fill("search")
    page.get_by_role("button", name="Record").click()
    expect(page.get_by_role("status")).to_have_text("Recorded: Better hints")
    page.get_by_role("link", name="Better hints", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Better hints")
    expect(page.get_by_label("Verdict")).to_contain_text("ot enough data")


def test_the_keys_work(own_window: Callable[..., Visit]):
    """/ goes to the query, j to the rows, ] to the older neighbour, ? shows the keys."""
    visit = own_window()
    stand_still(visit.page)  # g waits a moment for t, and no longer
    page = visit.go("/failures")
    page.keyboard.press("/")
    expect(page.get_by_label("Query", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    rows = rows_of(page, "Failures, newest first")
    expect(rows.nth(1).get_by_role("link").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()
    page.wait_for_load_state()  # and with it the script that listens to keys
    first = page.url
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("[")
    page.wait_for_url(first)
    page.keyboard.press("2")
    expect(page.get_by_role("main").get_by_role("heading", level=2).nth(1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    page.get_by_role("button", name="Shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")


def test_the_skip_link_comes_first(scripted: Visit):
    """The first stop of the tab key leads past the navigation."""
    page = scripted.go("/failures")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("#main$"))


def test_a_new_failure_appears_by_itself_unless_paused(scripted: Visit):
    """What is sent while somebody watches stands on top; paused, nothing moves until it goes on."""
    own, dsn = scripted.project(failure("before"), name="live")
    page = scripted.go("/live", own)
    rows = rows_of(page, "Newest failures, newest first")
    state = page.get_by_role("main").get_by_role("status")
    expect(state).to_have_text("live")
    send(dsn, failure("first_sight", at=now_us()))
    expect(rows.first).to_contain_text("first_sight")
    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    send(dsn, failure("while_paused", at=now_us()))
    page.get_by_role("button", name="Go on").click()
    expect(state).to_have_text("live")
    send(dsn, failure("after_pause", at=now_us()))
    expect(rows.first).to_contain_text("after_pause")
    expect(rows.filter(has_text="while_paused")).to_have_count(0)
    page.get_by_role("link", name="Refresh").click()
    expect(rows.nth(1)).to_contain_text("while_paused")
    rows.first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()


def test_an_injected_script_would_not_run(scripted: Visit):
    """The policy of the page refuses inline script and style, whoever puts them there."""
    page = scripted.go("/")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const style = document.createElement("style");
            style.textContent = "h1 { color: rgb(1, 2, 3) }";
            document.head.append(style);
        }"""
    )
    assert page.evaluate("window.ran") is None
    colour = page.get_by_role("heading", level=1).evaluate("each => getComputedStyle(each).color")
    assert colour != "rgb(1, 2, 3)"
    refused = [each for each in scripted.complaints if "Content Security Policy" in each]
    assert len(refused) == 2
    scripted.complaints[:] = [each for each in scripted.complaints if each not in refused]


def test_a_page_on_paper_is_its_figures(scripted: Visit):
    """Printed, a page has figures, tables and charts on white, and no navigation or controls."""
    page = scripted.go("/")
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(media="print")
    for gone in (
        page.get_by_role("navigation", name="Main"),
        page.get_by_role("search"),
        page.get_by_role("link", name="Weekly report"),
    ):
        expect(gone).to_have_count(0)
    for there in (
        page.get_by_role("heading", level=1),
        page.get_by_role("term").filter(has_text="Failures").first,
        page.get_by_role("group", name="by code; the table below"),
        page.get_by_role("group", name="Newest failures"),
    ):
        expect(there).to_be_visible()
    card = page.get_by_role("region", name="Newest failures")
    paper = card.evaluate("each => getComputedStyle(each).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")


def test_nothing_moves_while_a_page_loads(own_window):
    """What the scripts add to a page shifts nothing that is already there (CLS 0)."""
    visit = own_window()
    visit.page.add_init_script(
        "window.shifts = []; new PerformanceObserver(list => window.shifts.push("
        "...list.getEntries().map(each => each.value))).observe("
        "{type: 'layout-shift', buffered: true})"
    )
    whole = (
        "new Promise(done => document.readyState == 'loading'"
        " ? document.addEventListener('readystatechange', () => done(), {once: true}) : done())"
    )
    painted = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    held: list[Route] = []
    page, found = visit.page, {}
    for path in ("/", "/failures", "/codes", "/live"):
        # The script comes after the first picture, as it does on a slow line.
        page.route("**/app.js*", lambda route: held.append(route))
        with page.expect_request("**/app.js*"):
            page.goto(f"{visit.address}{path}?project=generated&window=all", wait_until="commit")
        page.evaluate(whole)
        page.evaluate(painted)
        page.evaluate("window.shifts.length = 0")
        held.pop().continue_()
        page.unroute("**/app.js*")
        page.wait_for_load_state()
        if path == "/live":
            expect(page.get_by_role("status").filter(has_text="live")).to_have_text("live")
        page.evaluate(painted)
        found[path] = sum(page.evaluate("window.shifts"))
    assert {path: shift for path, shift in found.items() if shift > 0.0001} == {}
