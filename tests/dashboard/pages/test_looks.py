"""Small things that a page says: trends, nothing there, savings and their sign."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.dashboard.generated import NOW
from tests.dashboard.pages.conftest import Browser, open_browser
from tests.dashboard.pages.places import generated
from tests.factories import failure, success

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.writes.recording import record_change


def test_each_tool_is_drawn_over_time_with_its_peak_in_words(browser: Browser):
    """Tools whose failures have times have a drawing that says when they were most; it can go."""
    page = browser.page(generated("/tools")).main
    peaks = [text for text in page.table("By day, UTC").column("By day, UTC") if text != "–"]
    assert len(peaks) > 3
    assert peaks == page.labelled("most: ")
    assert all(peak.startswith("most: ") for peak in peaks)
    assert not browser.page(generated("/tools?cols=calls")).labelled("most: ")


def test_a_project_without_data_says_so(own_browser: Browser):
    """Where nothing was sent no page speaks of what it was asked for; with a filter they do."""
    with write_transaction(own_browser.engine) as conn:
        ensure_project(conn, "fresh")
    for path in ("/failures", "/codes", "/tools", "/round-trips", "/fix-next", "/messages"):
        page = own_browser.page(f"{path}?project=fresh").main
        assert "No call has arrived yet" in page.text, path
        assert page.link("Send data")
    filtered = own_browser.page("/failures?project=generated&q=tool:nothing&window=all").main
    assert filtered.lead.endswith(" failures over all time.")
    assert "Nothing failed like this" in filtered.text


@pytest.mark.parametrize(
    ("second", "marked"),
    [
        ("port must be at most 10, got 90", (["80"], ["90"])),
        ("timeout", ([], [])),
        ("port must be at most 10, got 80", ([], [])),
    ],
)
def test_a_chain_marks_what_changed_in_what_the_model_was_told(
    own_engine: Engine, second: str, marked: tuple[list[str], list[str]]
):
    """Of two messages that differ in a value the value alone is marked; unlike ones are not."""
    told = ("port must be at most 10, got 80", second)
    events = [
        failure(
            "tool_00", session_id="told", seq=number, at=NOW - 10**7 + number * 10**6,
            error={"renderings": {"llm": text}},
        )
        for number, text in enumerate(told)
    ]  # fmt: skip
    with write_transaction(own_engine) as conn:
        project = ensure_project(conn, "generated")
        assert store_events(conn, project, events, received_at=NOW).accepted == 2
    for browser in open_browser(own_engine):
        page = browser.page(generated(f"/chains/{events[0]['event_id']}?told=diff")).main
    found = [[each.get_text() for each in page.tag.find_all(name)] for name in ("del", "ins")]
    assert tuple(found) == marked
    assert second in page.snippets or marked[1]


def test_changes_are_shown_page_by_page(own_engine: Engine):
    """Fifty on a page, newest first; the links of the pages lead through all of them and back."""
    with write_transaction(own_engine) as conn:
        project = ensure_project(conn, "changed")
    labels = [f"change {number}" for number in range(120)]
    for number, label in enumerate(labels):
        record_change(own_engine, project, label=label, tool=None, at=NOW - 10**9 + number, now=NOW)
    found: list[list[str]] = []
    back: list[list[str]] = []
    for browser in open_browser(own_engine):
        path = "/changes?project=changed"
        for link, into in (("next", found), ("prev", back)):
            while path:
                page = browser.page(path).main
                into.append([row["Change"].text for row in page.table("Change").rows])
                here, (beside, *_) = path, [*page.tag.select(f"nav a[rel={link}]"), None]
                path = str(beside["href"]) if beside else ""
            path = here
        assert browser.page("/changes?project=changed&page=9").main.table("Change").rows
    assert found == [labels[:69:-1], labels[69:19:-1], labels[19::-1]]
    assert back == found[::-1]


def test_fix_next_quotes_what_all_failures_of_a_line_said(own_engine: Engine):
    """A text stands beside a line if each of its failures has one; their number leads to all."""
    unread = "Read the file first."
    told: dict[str, list[tuple[int, str | None, str | None]]] = {
        "Edit": [(5, unread, None)],
        "Write": [(4, unread, None)],
        "Silent": [(1, unread, None), (6, None, None)],
        "Halves": [(4, "No such pet.", "pet"), (4, None, "day")],
        "Both": [(4, "No such day.", None), (3, "No such room.", None)],
    }
    events = [
        failure(
            tool, session_id=f"{tool}-{text}-{number}", at=NOW - 10**7, field=field,
            code="precondition_failed", error={"renderings": {"llm": text} if text else {}},
        )
        for tool, groups in told.items()
        for many, text, field in groups
        for number in range(many)
    ]  # fmt: skip
    with write_transaction(own_engine) as conn:
        project = ensure_project(conn, "quoted")
        assert store_events(conn, project, events, received_at=NOW).accepted == len(events)
    for browser in open_browser(own_engine):
        page = browser.page("/fix-next?project=quoted").main
        said = [unread, "No such pet.", "No such day.", "the most frequent of 2 messages"]
        lines = {
            entry.headings[0].split(" fail")[0]: [each for each in said if each in entry.text]
            for entry in page.items
            if entry.headings
        }
        (two,) = [each.href for each in page.links if each.text == "2 messages"]
        wordings = browser.page(two).main.tables[0].column("Message")
    assert sorted(wordings) == ["No such day.", "No such room."]
    assert lines == {
        "Edit and Write": [unread], "Silent": [], "Halves.pet": ["No such pet."], "Halves.day": [],
        "Both": ["No such day.", "the most frequent of 2 messages"],
    }  # fmt: skip


def test_a_tool_says_of_a_fix_what_fix_next_says(own_engine: Engine):
    """Where models called another tool before this one worked, both pages say precondition."""
    events = [
        make(tool, session_id=f"{tool}-{number}", at=NOW - 10**7)
        for number in range(4)
        for make, tool in ((failure, "edit"), (failure, "search"))
    ]
    for tool in ("read", "edit"):
        events += [success(tool, session_id=f"edit-{number}", at=NOW) for number in range(4)]
    with write_transaction(own_engine) as conn:
        project = ensure_project(conn, "preconditions")
        assert store_events(conn, project, events, received_at=NOW).accepted == len(events)
    own = "project=preconditions&window=all"
    for browser in open_browser(own_engine):
        cards = browser.page(f"/fix-next?{own}").main.tag.select("li:has(h2)")
        lines = {
            tool: browser.page(f"/tool?{own}&name={tool}").main.section("Fix next").text
            for tool in ("edit", "search")
        }
    assert len(cards) == 2
    for tool, badge in (("edit", "precondition"), ("search", "no known remedy")):
        (card,) = [
            each.get_text() for each in cards if each.select_one(f"h2:-soup-contains({tool})")
        ]
        assert badge in card
        assert badge in lines[tool]
