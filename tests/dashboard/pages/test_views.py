"""Saved views: kept under a name, found by whom they are for, deleted by their owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import Engine
from tests.dashboard.pages.conftest import Browser, open_browser

PROJECT = "project=generated"


@pytest.fixture
def second(own_engine: Engine) -> Iterator[Browser]:
    """A viewer on the same server as ``own_browser``."""
    yield from open_browser(own_engine, role="viewer")


def _save(browser: Browser, *, status: int = 303, **form: str) -> BeautifulSoup:
    given = {"name": "mine", "page": "/failures", "query": "code:wrong_type"} | form
    answer = browser.client.post(f"/views?{PROJECT}", data=given, follow_redirects=False)
    assert answer.status_code == status, answer.text[:1000]
    return BeautifulSoup(answer.text, "html.parser")


def _names(browser: Browser, project: str = PROJECT) -> list[str]:
    soup = browser.page(f"/views?{project}")
    return [each.get_text() for each in soup.select("tbody a.row-link")]


def test_the_link_under_the_query_fills_the_form(own_browser: Browser):
    """The link leads to a form with the page, the query and its time window."""
    soup = own_browser.page(f"/failures?{PROJECT}&q=code:wrong_type&window=7d")
    link = next(a for a in soup.select(".chips a") if a.get_text() == "Save this view")
    form = own_browser.page(link["href"]).select_one("form[action^='/views?']")
    assert form.select_one("#query")["value"] == "code:wrong_type since:7d"
    assert form.select_one("#page option[selected]")["value"] == "/failures"


def test_a_saved_view_opens_what_was_saved(own_browser: Browser):
    """Following the view shows its page with its query."""
    _save(own_browser, query="code:wrong_type tool:search")
    link = own_browser.page(f"/views?{PROJECT}").select_one("tbody a.row-link")
    soup = own_browser.page(link["href"])
    assert soup.select_one("#q")["value"] == "code:wrong_type tool:search"
    assert soup.h1.get_text() == "Failures"


def test_the_same_name_is_replaced(own_browser: Browser):
    """Saving under a name again keeps one view."""
    _save(own_browser)
    _save(own_browser, query="code:timeout")
    assert _names(own_browser) == ["mine"]


def test_private_views_stay_private_and_shared_ones_do_not(own_browser: Browser, second: Browser):
    """Somebody else sees a shared view and no private one, and can delete neither."""
    _save(own_browser, name="private")
    _save(own_browser, name="shared", shared="1")
    assert _names(second) == ["shared"]
    assert second.page(f"/views?{PROJECT}").select_one("form[action^='/views/delete']") is None
    soup = own_browser.page(f"/views?{PROJECT}")
    number = soup.select_one("form[action^='/views/delete'] input")["value"]
    assert second.client.post(f"/views/delete?{PROJECT}", data={"id": number}).status_code == 404
    answer = own_browser.client.post(f"/views/delete?{PROJECT}", data={"id": number})
    assert answer.status_code == 200
    assert len(_names(own_browser)) == 1


def test_views_belong_to_their_project(own_browser: Browser):
    """Another project shows none of them."""
    _save(own_browser, shared="1")
    assert _names(own_browser, "project=other") == []


@pytest.mark.parametrize(
    "form",
    [
        {"name": ""},
        {"name": "a" * 129},
        {"page": "/settings"},
        {"page": "//evil.example"},
        {"query": "a" * 9000},
    ],
)
def test_what_cannot_be_saved_comes_back_with_a_reason(own_browser: Browser, form: dict[str, str]):
    """A name, page or query that cannot be is refused with a sentence and the form as it was."""
    assert _save(own_browser, status=422, **form).select_one("[role=alert]")
