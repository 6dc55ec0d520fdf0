"""Every page in a real browser: both themes, wide and narrow, with and without JavaScript.

The data are the generated history and, where they are, the real airline transcripts. Any console
error, CSP violation, failed request or uncaught exception fails the run.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.dashboard.addresses import COMPARED, LISTS
from tests.e2e.browsing import send
from tests.factories import failure
from tests.live_server import LiveServer

from toolfault_collector.clock import now_us

pytestmark = pytest.mark.browser

PAGES = (
    *LISTS,
    COMPARED,
    "/failures?group=kind",
    "/experiment?name=b",
    "/experiment?name=b&days=1",
)
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_from_the_overview_to_a_failure_to_its_chain_to_a_csv(open_reader, tmp_path: Path, script):
    """The way of a first investigation, clicked; the CSV has as many rows as the page says."""
    reader = open_reader(java_script_enabled=script)
    page = reader.go("/")
    page.get_by_role("link", name="Failures", exact=True).click()
    expect(page.locator("h1")).to_have_text("Failures")

    page.get_by_label("Query", exact=True).fill("-chain:none code:wrong_type")
    page.get_by_role("button", name="Search").click()
    said = int(
        "".join(
            each
            for each in page.locator(".lede").inner_text().split("failure")[0]
            if each.isdigit()
        )
    )
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of these failures").click()
    target = tmp_path / "failures.csv"
    download.value.save_as(target)
    with target.open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == said > 0

    page.locator("tbody a.row-link").first.click()
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()
    assert page.locator(".rendering pre").count() > 0
    page.get_by_role("link", name="Open the chain").click()
    expect(page.locator("h1")).to_contain_text("Chain of")
    assert page.locator(".timeline .step").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_page_breaks_the_accessibility_rules(open_reader, scheme: str, size: dict[str, int]):
    """No rule of axe is broken in either theme or size; no page is wider than its window."""
    reader = open_reader(color_scheme=scheme, viewport=size)
    found: dict[str, list[str]] = {}
    for path in (*PAGES, *reader.details()):
        page = reader.go(path) if "project=" not in path else reader.page
        if "project=" in path:
            page.goto(f"{reader.address}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        results = Axe().run(page)
        for rule in results.response["violations"]:
            nodes = [str(node["target"]) for node in rule["nodes"][:3]]
            found.setdefault(f"{rule['id']}: {rule['help']}", []).append(f"{path}: {nodes}")
        beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert beyond <= 0, f"{path} is {beyond} px wider than the window"
    assert found == {}


@pytest.mark.parametrize("width", [1280, 1000])
def test_headings_of_a_table_stand_beside_each_other_in_line(open_reader, width: int):
    """No heading reaches into the next one, in no choice of columns; all stand equally high."""
    every = "failures,recovery,answered,fixed,when_answered,last"
    for path in (f"/messages?cols={every}", "/messages", "/tools"):
        page = open_reader(viewport={"width": width, "height": 800}).go(path)
        drawn = page.locator("thead").first.evaluate(
            """head => [...head.querySelectorAll("th")].map(th => {
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


def test_pages_without_a_session_and_errors_are_accessible(open_reader):
    """Sign-in, not found and a query that cannot be read pass axe too."""
    reader = open_reader(complain=False)
    for path in ("/nothing", "/failures?q=tol:x"):
        assert Axe().run(reader.go(path)).response["violations"] == []
    reader.context.clear_cookies()
    assert Axe().run(reader.go("/")).response["violations"] == []


def test_the_theme_is_chosen_without_script(open_reader):
    """The theme buttons work as a form, keep the page, and last."""
    reader = open_reader(java_script_enabled=False, color_scheme="light")
    page = reader.go("/tools")
    for name in ("Dark", "Light"):
        page.get_by_role("button", name=name).click()
        expect(page.locator("html")).to_have_attribute("data-theme", name.lower())
        expect(page.locator("h1")).to_have_text("Tools")
    page.get_by_role("button", name="System").click()
    assert page.locator("html").get_attribute("data-theme") is None


@pytest.mark.parametrize("script", [True, False], ids=["script", "no-script"])
def test_a_change_is_recorded_by_the_form(open_reader, script):
    """A label and a tool are enough; the change appears in the list and has a verdict."""
    reader = open_reader(java_script_enabled=script)
    page = reader.go("/changes")
    label = f"Better hints, {'with' if script else 'without'} script"
    page.get_by_label("What was changed").fill(label)
    page.get_by_label("Tool (empty for all)").fill("search")
    page.get_by_role("button", name="Record").click()
    expect(page.get_by_role("status")).to_have_text(f"Recorded: {label}")
    page.get_by_role("link", name=label, exact=True).click()
    expect(page.locator("h1")).to_have_text(label)
    expect(page.get_by_label("Verdict")).to_contain_text("ot enough data")


def test_the_keys_work(open_reader):
    """/ goes to the query, j to the rows, ] to the older neighbour, ? shows the keys."""
    reader = open_reader()
    page = reader.go("/failures")
    page.keyboard.press("/")
    expect(page.get_by_label("Query", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tbody a.row-link").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What each audience was told")).to_be_visible()
    first = page.url
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url != first)
    page.keyboard.press("[")
    page.wait_for_url(first)
    page.keyboard.press("2")
    expect(page.locator("main h2").nth(1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Tools")


def test_the_skip_link_comes_first(open_reader):
    """The first stop of the tab key leads past the navigation."""
    page = open_reader().go("/failures")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_a_facet_narrows_the_list_and_a_chip_widens_it_again(open_reader):
    """Clicking a facet adds a condition to the address; its chip takes it away."""
    page = open_reader().go("/failures")
    before = page.locator(".lede").inner_text()
    page.locator(".facet li a").first.click()
    assert page.locator(".lede").inner_text() != before
    page.get_by_role("link", name="Remove").click()
    assert page.locator(".lede").inner_text() == before


def test_a_new_failure_appears_by_itself_unless_paused(open_reader, generated_server: LiveServer):
    """What is sent while somebody watches stands on top within seconds; paused, nothing moves."""
    reader = open_reader()
    page = reader.go("/live")
    expect(page.get_by_role("status")).to_have_text("live", timeout=20_000)
    dsn = generated_server.dsn("generated")
    send(dsn, failure("first_sight", at=now_us()))
    expect(page.locator("tbody tr").first).to_contain_text("first_sight", timeout=20_000)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("status")).to_have_text("paused")
    send(dsn, failure("second_sight", at=now_us()))
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("status")).to_have_text("live", timeout=20_000)
    expect(page.locator("tbody tr").first).to_contain_text("first_sight")
    page.get_by_role("link", name="Load again").click()
    expect(page.locator("tbody tr").first).to_contain_text("second_sight")


def test_an_injected_script_would_not_run(open_reader):
    """The policy of the page refuses inline script and style, whoever puts them there."""
    reader = open_reader(complain=False)
    page = reader.go("/")
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
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") != "rgb(1, 2, 3)"
    assert any("Content Security Policy" in each for each in reader.complaints)


def test_real_transcripts_without_times_are_shown_without_dates(
    open_reader, generated_server: LiveServer, shared_data: Path
):
    """The airline transcripts: 39 failures in 21 chains, 35 round trips, and nowhere a time."""
    generated_server.run("import", str(shared_data / "tau_bench_airline"), "--project", "airline")
    reader = open_reader()
    page = reader.page
    page.goto(f"{generated_server.address}/?project=airline")
    tiles = dict(
        zip(
            page.locator(".tile dt").all_inner_texts(),
            page.locator(".tile .value").all_inner_texts(),
            strict=True,
        )
    )
    assert (tiles["Calls"], tiles["Failures"], tiles["Round trips"]) == ("553", "39", "35")
    for path in ("/", "/failures", "/round-trips", "/codes", "/tools"):
        page.goto(f"{generated_server.address}{path}?project=airline")
        assert page.locator("main time").count() == 0, path
    page.goto(f"{generated_server.address}/failures?project=airline")
    page.locator("tbody a.row-link").first.click()
    expect(page.locator(".crumbs")).to_contain_text("no time recorded")
    assert page.locator("main time").count() == 0
