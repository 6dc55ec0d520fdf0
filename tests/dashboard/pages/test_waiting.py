"""What a reader sees while something large is counted, and when it takes too long."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup
from httpx2 import Response
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.places import generated

from toolfault_dashboard.pages import _waits
from toolfault_dashboard.queries import deadline, parts

PAGES = (
    "/",
    "/failures",
    "/round-trips?by=argument",
    "/codes?cols=first,last",
    "/messages",
    "/fix-next",
    "/compare?before=until:7d&after=since:7d",
    "/experiment?name=b",
)
STEPS = re.compile(r"Question (\d+) of this page(?:: (\d+) of (\d+) days? counted)?\.")


@pytest.fixture
def impatient(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """A reader of a server that knows nothing yet and says after every day how far it is."""
    monkeypatch.setattr(parts, "MANY", 0)
    monkeypatch.setattr(_waits, "SECONDS", 0.0)
    parts._ANSWERS.pop(browser.engine, None)
    return browser


def _opened(browser: Browser, path: str) -> Response:
    """Get *path* as a browser does, which asks for a page."""
    return browser.get(path, headers={"Accept": "text/html,*/*;q=0.8"})


def _main(answer: Response) -> str:
    return BeautifulSoup(answer.text, "html.parser").main.get_text()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_how_far_it_is_until_it_is_what_it_always_was(impatient: Browser, path: str):
    """No step knows less than the one before; at the end stands what counting at once shows."""
    told: list[tuple[int, int]] = []
    while (answer := _opened(impatient, generated(path))).status_code == 202:
        soup = BeautifulSoup(answer.text, "html.parser")
        assert soup.h1.get_text() == "Counting"
        assert soup.select_one("main [data-again]")
        assert soup.select_one("noscript meta[http-equiv=refresh]")["content"] == "0"
        question, done, of = STEPS.search(soup.main.get_text()).groups()
        bar = soup.select_one("progress")
        assert (bar.get("value"), bar.get("max")) == (done, of)
        told.append((int(question), int(done or 0)))
        assert len(told) < 400
    assert answer.status_code == 200
    assert told == sorted(told)
    assert len(set(told)) > 5
    parts._ANSWERS.pop(impatient.engine, None)
    at_once = impatient.get(generated(path))
    assert at_once.status_code == 200
    assert _main(at_once) == _main(answer)


def test_files_and_programs_wait_for_the_whole_answer(impatient: Browser):
    """Half an answer is none: what is no page of a browser is counted to its end."""
    for path in ("/codes.csv", "/fix-next.ndjson", "/report.html", "/api/v1/failures"):
        parts._ANSWERS.pop(impatient.engine, None)
        assert _opened(impatient, generated(path)).status_code == 200, path
    parts._ANSWERS.pop(impatient.engine, None)
    assert impatient.get(generated("/fix-next")).status_code == 200


def test_what_is_forgotten_as_fast_as_it_is_counted_comes_nevertheless(
    impatient: Browser, monkeypatch: pytest.MonkeyPatch
):
    """A reader is put off a bounded number of times, even if nothing stays known."""
    monkeypatch.setattr(_waits, "MOST_TIMES", 3)
    statuses = []
    for _ in range(5):
        parts._ANSWERS.pop(impatient.engine, None)
        statuses.append(_opened(impatient, generated("/codes")).status_code)
    assert statuses == [202, 202, 202, 200, 202]


@pytest.fixture
def stopped(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """A reader of a database on which every page takes too long."""
    monkeypatch.setattr(parts, "MANY", 2**62)
    monkeypatch.setattr(deadline, "SECONDS", 0.0)
    monkeypatch.setattr(deadline, "_STEPS", 50)
    if browser.engine.dialect.name == "postgresql":
        pytest.skip("PostgreSQL counts its time by statement; 0 is without end there")
    return browser


def test_a_page_that_takes_too_long_keeps_the_question_and_offers_less(
    stopped: Browser, monkeypatch: pytest.MonkeyPatch
):
    """The query stays in its box; a click asks the same of a week, a day, or once more."""
    path = "/failures?project=generated&q=tool:search+code:wrong_type&group=kind&window=90d"
    soup = stopped.page(f"{path}&cursor=x", status=503)
    assert soup.select_one("#q")["value"] == "tool:search code:wrong_type"
    assert [chip.get_text() for chip in soup.select(".chip")] == ["tool:search", "code:wrong_type"]
    asked = soup.select_one("[aria-labelledby=less-title]")
    assert asked.p.get_text() == (
        "tool:search code:wrong_type in the last 90 days, in the project generated."
    )
    links = {a.get_text(): a["href"] for a in asked.select("a.btn")}
    assert list(links) == ["The same in the last 24 hours", "The same in the last 7 days",
                           "Ask again"]  # fmt: skip
    monkeypatch.undo()
    lede = {label: stopped.page(href).select_one(".lede") for label, href in links.items()
            if label != "Ask again"}  # fmt: skip
    assert "in the last 24 hours" in lede["The same in the last 24 hours"].get_text()
    assert "in the last 7 days" in lede["The same in the last 7 days"].get_text()
    assert "kind" in links["The same in the last 7 days"]


def test_no_longer_time_is_offered_than_was_asked_for(stopped: Browser):
    """Of a week a day is less; moments in the query give way to either; a day is the least."""
    offered = {
        asked: [
            a.get_text()
            for a in stopped.page(f"/codes?project=generated&{asked}", status=503).select(
                "[aria-labelledby=less-title] a.btn"
            )
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
    said = soup.select_one("[aria-labelledby=less-title] p").get_text()
    assert "/compare?" in said
    assert "before=tool:search" in said  # as somebody wrote it, not as an address has to
    soup = stopped.page("/codes?project=generated&action=x&path=y&q=(", status=503)
    assert soup.h1
    answer = stopped.get("/codes.csv?project=generated")
    assert answer.headers["content-type"].startswith("application/problem+json")
