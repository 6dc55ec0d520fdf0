"""Saved views: kept under a name, found by whom they are for, deleted by their owner."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.reading import Page

PROJECT = "project=generated"


@pytest.fixture
def second(own_engine: Engine) -> Iterator[Browser]:
    """A viewer on the same server as ``own_browser``."""
    yield from open_browser(own_engine, role="viewer")


def _save(browser: Browser, *, status: int = 303, **form: str) -> Page:
    given = {"name": "mine", "page": "/failures", "query": "code:wrong_type"} | form
    return browser.post(f"/views?{PROJECT}", given, status=status)


def _names(browser: Browser, project: str = PROJECT) -> list[str]:
    tables = browser.page(f"/views?{project}").tables
    return tables[0].column(tables[0].headings[0]) if tables else []


def test_the_link_under_the_query_fills_the_form(own_browser: Browser):
    """The link leads to a form with the page, the query and its time window."""
    page = own_browser.page(f"/failures?{PROJECT}&q=code:wrong_type&window=7d")
    form = own_browser.page(page.link("Save this view")).form("/views")
    assert form.fields["query"] == "code:wrong_type since:7d"
    assert form.fields["page"] == "/failures"


def test_a_saved_view_opens_what_was_saved(own_browser: Browser):
    """Following the view shows its page with its query."""
    _save(own_browser, query="code:wrong_type tool:search")
    page = own_browser.page(own_browser.page(f"/views?{PROJECT}").link("mine"))
    assert page.field("Query") == "code:wrong_type tool:search"
    assert page.heading == "Failures"


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
    assert not second.page(f"/views?{PROJECT}").forms_to("/views/delete")
    number = own_browser.page(f"/views?{PROJECT}").form("/views/delete").fields["id"]
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
    assert _save(own_browser, status=422, **form).role("alert")
