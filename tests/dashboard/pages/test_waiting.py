"""What a reader sees while something large is counted, and when it takes too long."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from bs4 import Tag
from httpx2 import Response
from sqlalchemy import Engine, event, update
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import generated
from tests.dashboard.reading import Page

from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import quarter_version
from toolfault_dashboard.pages.shared import waits
from toolfault_dashboard.queries.counting import deadline, segments, time_budget

pytestmark = pytest.mark.slow

PAGES = (
    "/?window=7d",
    pytest.param("/", marks=pytest.mark.long),
    pytest.param("/round-trips?by=argument", marks=pytest.mark.long),
    pytest.param("/codes?cols=first,last", marks=pytest.mark.long),
    pytest.param("/compare?before=until:7d&after=since:7d", marks=pytest.mark.long),
    pytest.param("/messages", marks=pytest.mark.long),
    pytest.param("/fix-next", marks=pytest.mark.long),
    pytest.param("/experiment?name=b", marks=pytest.mark.long),
)
_WEEK = "project=generated&window=7d"
STEPS = re.compile(r"Question (\d+) of this page(?:: (\d+) of (\d+) days? counted)?\.")


class _Hurried:
    """A clock on which two seconds pass whenever somebody looks."""

    def __init__(self) -> None:
        self._ticks = count(step=2.0)

    def monotonic(self) -> float:
        """The seconds that have passed."""
        return next(self._ticks)


@pytest.fixture
def impatient(own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A reader of a server that knows nothing yet, for whom every day takes too long."""
    with write_transaction(own_engine) as conn:  # as of a project with a hundred million calls
        conn.execute(update(quarter_version).values(version=quarter_version.c.version * 100_000))
    monkeypatch.setattr(time_budget, "time", _Hurried())
    yield from open_browser(own_engine)


def _forget(browser: Browser) -> None:
    segments.keep_at_most(browser.engine, segments.MOST_ROWS)


def _opened(browser: Browser, path: str) -> Response:
    """Get *path* as a browser does, which asks for a page."""
    return browser.get(path, headers={"Accept": "text/html,*/*;q=0.8"})


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_how_far_it_is_until_it_is_what_it_always_was(impatient: Browser, path: str):
    """No step knows less than the one before; at the end stands what counting at once shows."""
    told: list[tuple[int, int]] = []
    while (answer := _opened(impatient, generated(path))).status_code == 202:
        page = Page(answer.text)
        assert page.heading == "Counting"
        assert '<meta http-equiv="refresh" content="0">' in answer.text
        found = STEPS.search(page.main.text)
        assert found is not None
        question, done, of = found.groups()
        bar = page.tag.find("progress")
        assert isinstance(bar, Tag)
        assert (bar.get("value"), bar.get("max")) == (done, of)
        told.append((int(question), int(done or 0)))
        assert len(told) < 400
    assert answer.status_code == 200
    assert told == sorted(told)
    assert len(set(told)) > 5
    _forget(impatient)
    at_once = impatient.get(generated(path))
    assert at_once.status_code == 200
    assert Page(at_once.text).main.text == Page(answer.text).main.text


def test_files_and_programs_wait_for_the_whole_answer(impatient: Browser):
    """Half an answer is none: what is no page of a browser is counted to its end."""
    for path in ("/codes.csv", "/fix-next.ndjson", "/report.html", "/api/v1/failures"):
        _forget(impatient)
        assert _opened(impatient, f"{path}?{_WEEK}").status_code == 200, path
    _forget(impatient)
    assert impatient.get(f"/fix-next?{_WEEK}").status_code == 200


def test_what_is_forgotten_as_fast_as_it_is_counted_comes_nevertheless(
    impatient: Browser, monkeypatch: pytest.MonkeyPatch
):
    """A reader is put off a bounded number of times, even if nothing stays known."""
    monkeypatch.setattr(waits, "MOST_TIMES", 20)
    statuses: list[int] = []
    while 200 not in statuses and len(statuses) < 100:
        _forget(impatient)
        statuses.append(_opened(impatient, f"/tools?cols=calls&{_WEEK}").status_code)
    assert statuses == [202] * 20 + [200]
    _forget(impatient)
    assert _opened(impatient, f"/tools?cols=calls&{_WEEK}").status_code == 202


class _Watchful(sqlite3.Connection):
    """Looks at the clock often enough for a small history."""

    def set_progress_handler(self, progress_handler: Any, /, n: int) -> None:
        """Call the handler after few instructions."""
        super().set_progress_handler(progress_handler, min(n, 50))


@pytest.fixture
def stopped(own_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A reader of a database on which every page takes too long."""

    def connect(_dialect: object, _record: object, _args: object, how: dict[str, Any]) -> None:
        how["factory"] = _Watchful

    event.listen(own_engine, "do_connect", connect)
    own_engine.dispose()
    monkeypatch.setattr(deadline, "SECONDS", 0.0)
    yield from open_browser(own_engine)


def test_a_page_that_takes_too_long_keeps_the_question_and_offers_less(
    stopped: Browser, monkeypatch: pytest.MonkeyPatch
):
    """The query stays in its box; a click asks the same of a week, a day, or once more."""
    path = "/failures?project=generated&q=tool:search+code:wrong_type&group=kind&window=90d"
    soup = stopped.page(f"{path}&cursor=x", status=503)
    assert soup.field("Query") == "tool:search code:wrong_type"
    asked = soup.section("What was asked")
    assert "tool:search code:wrong_type in the last 90 days, in the project generated." in (
        asked.text
    )
    links = {each.text: each.href for each in asked.links}
    assert list(links) == ["The same in the last 24 hours", "The same in the last 7 days",
                           "Ask again"]  # fmt: skip
    monkeypatch.undo()
    for time in ("in the last 24 hours", "in the last 7 days"):
        assert time in stopped.page(links[f"The same {time}"]).lead
    assert "kind" in links["The same in the last 7 days"]


def test_no_longer_time_is_offered_than_was_asked_for(stopped: Browser):
    """Of a week a day is less; moments in the query give way to either; a day is the least."""
    offered = {
        asked: [
            each.text
            for each in stopped.page(f"/codes?project=generated&{asked}", status=503)
            .section("What was asked")
            .links
        ]
        for asked in ("window=7d", "window=24h", "q=since:20d+tool:search")
    }
    day, week, again = "The same in the last 24 hours", "The same in the last 7 days", "Ask again"
    assert offered == {
        "window=7d": [day, again],
        "window=24h": [again],
        "q=since:20d+tool:search": [day, week, again],
    }


def test_what_has_no_query_box_is_named_by_its_address(stopped: Browser):
    """A comparison that takes too long is named, and parameters of any name do no harm."""
    path = "/compare?project=generated&before=tool:search&after=tool:http_request&action=x&path=y"
    soup = stopped.page(path, status=503)
    said = soup.section("What was asked").text
    assert "/compare?" in said
    assert "before=tool:search" in said  # as somebody wrote it, not as an address has to
    soup = stopped.page("/codes?project=generated&action=x&path=y&q=(", status=503)
    assert soup.heading
    answer = stopped.get("/codes.csv?project=generated")
    assert answer.headers["content-type"].startswith("application/problem+json")
