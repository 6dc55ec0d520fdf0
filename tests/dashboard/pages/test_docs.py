"""The documentation in the running server: all of it, for everybody, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.dashboard.pages.conftest import Browser, open_browser

from toolfault_collector.storage.database.engine import open_engine
from toolfault_dashboard.docs import docs_names


@pytest.fixture
def stranger(sqlite_url: str) -> Iterator[Browser]:
    """Somebody without a session, on a server without data."""
    engine = open_engine(sqlite_url)
    yield from open_browser(engine, role=None)
    engine.dispose()


def test_every_link_of_the_documentation_leads_to_what_it_names(stranger: Browser):
    """Pages, sections and pictures that any page links to are there, also for a stranger."""
    names = sorted(docs_names() - {"index"})
    pages = {path: stranger.get(path) for path in ("/docs", *(f"/docs/{each}" for each in names))}
    html = {path: answer.text for path, answer in pages.items() if answer.status_code == 200}
    anchors = {path: re.findall(r' id="([^"]+)"', text) for path, text in html.items()}
    links = {
        (path, link)
        for path, text in html.items()
        for link in re.findall(r'<a href="([^"]+)"', text)
        if not link.startswith("https://")
    }
    beyond = {link for _, link in links if not link.startswith(("/docs", "#"))}

    assert pages.keys() == html.keys()
    assert len(links) > 200
    assert beyond == {"/api/v1/openapi.json"}
    for page, link in links - {("/docs/api", link) for link in beyond}:
        path, _, anchor = link.partition("#")
        assert not anchor or anchor in anchors[path or page], (page, link)
        assert (path or page) in html, (page, link)
    pictures = re.findall(r'<img src="([^"]+)"', "".join(html.values()))
    for path in (*pictures, "/docs/images/overview.png"):
        assert stranger.get(path).headers["content-type"] in ("image/png", "image/svg+xml"), path
    for path, text in html.items():
        assert text.count("<h1") == 1, path
        assert len(set(anchors[path])) == len(anchors[path]), path
        assert not re.search(r" style=|<style|<script(?! src=)|<!--|&lt;!--|\]\(|```", text), path


def test_only_pages_and_pictures_of_the_documentation_are_read(stranger: Browser):
    """Addresses that name another file, or leave the folder, are 404 however they are written."""
    for path in (
        "reading.md",
        "reference.py",
        "images",
        "examples/fastmcp.py",
        "..%2f..%2fpyproject",
        "%2e%2e/%2e%2e/app.py",
        "images/..%2freading.md",
        "images/%2fetc%2fpasswd",
        "images/%2e%2e%2f%2e%2e%2fdocs%2findex",
        "//etc/passwd",
        "reading%00",
    ):
        assert stranger.get(f"/docs/{path}").status_code == 404, path


def test_who_looks_for_instructions_is_led_to_the_documentation(empty_browser: Browser):
    """Help, the first run and the sign-in page link to it, and a reader keeps the navigation."""
    for path, wanted in (
        ("/help", {"", "/quickstart", "/statistics", "/command-line", "/api", "/troubleshooting"}),
        ("/start", {"/quickstart", "/frameworks", "/protocol", "/importing", "/otlp"}),
        ("/sign-in?token=nothing", {"", "/troubleshooting"}),
    ):
        text = empty_browser.get(path).text
        assert set(re.findall(r'href="/docs([^"]*)"', text)) == wanted, path
    assert empty_browser.page("/docs/operations").current == ["Help"]
