"""Deciding about kinds of failure in a browser: by keyboard, and without a script."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browsing import Visit, downloaded, first_failure, rows_of, send
from tests.factories import change, failure

from toolfault_collector.clock import DAY_US, now_us

pytestmark = pytest.mark.browser

WITHOUT_SCRIPT = pytest.mark.parametrize(
    "reader",
    [
        "no-script",
        pytest.param("no-script-postgresql", marks=[pytest.mark.long, pytest.mark.postgres]),
    ],
    indirect=True,
)


def _kinds(visit: Visit) -> tuple[Page, str]:
    """A list of three kinds: three times, twice and once."""
    codes = ["wrong_type"] * 3 + ["missing_field"] * 2 + ["not_found"]
    own, _ = visit.project(*(failure(code=code) for code in codes), change(label="new schema"))
    return visit.go("/failures?group=kind", own), own


def _states(page: Page, *expected: str) -> None:
    for place, state in enumerate(expected):
        row = rows_of(page, "Kinds of failure").nth(place)
        expect(row.get_by_text(state, exact=True)).to_be_visible()


def test_kinds_are_decided_about_by_keyboard(scripted: Visit):
    """J and k move, x chooses; a, f and i decide about what is chosen, or about this row."""
    page, _ = _kinds(scripted)
    _states(page, "new", "new", "new")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_have_text("1 kind changed.")
    _states(page, "acknowledged", "new", "new")

    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("checkbox", name="Choose", checked=True)).to_have_count(2)
    page.keyboard.press("i")
    expect(page.get_by_role("status")).to_have_text("2 kinds changed.")
    _states(page, "ignored", "ignored", "new")

    for key in ("j", "j", "j", "k"):
        page.keyboard.press(key)
    page.get_by_label("Fixed by the change").select_option(index=1)
    page.get_by_role("link", name="missing_field", exact=True).focus()
    page.keyboard.press("f")
    expect(page.get_by_role("status")).to_have_text("1 kind changed.")
    _states(page, "ignored", "fixed", "new")

    page.keyboard.press("?")
    keys = page.get_by_role("dialog")
    expect(keys).to_contain_text("Acknowledge, fixed, ignore")


@pytest.mark.long
@WITHOUT_SCRIPT
def test_kinds_are_decided_about_without_a_script(reader: Visit):
    """Boxes, lists and buttons of the list; then state, owner and note on a failure's page."""
    page, own = _kinds(reader)
    rows = rows_of(page, "Kinds of failure")
    rows.nth(0).get_by_role("checkbox").check()
    rows.nth(2).get_by_role("checkbox").check()
    page.get_by_label("Ignore until").select_option("for 7 days")
    page.get_by_role("button", name="Ignore").click()
    expect(page.get_by_role("status")).to_have_text("2 kinds changed.")
    _states(page, "ignored", "new", "ignored")
    rows.nth(1).get_by_role("checkbox").check()
    page.get_by_role("textbox", name="Owner").fill("ana")
    page.get_by_role("button", name="Set owner").click()
    _states(page, "ignored", "open", "ignored")
    expect(rows.nth(1)).to_contain_text("ana")

    page = reader.go("/fix-next", own)
    page.get_by_role("link", name="Left out: 2 kinds that somebody ignores").click()
    expect(page.get_by_text("state:ignored").first).to_be_visible()

    page = reader.go("/failures?q=state:ignored", own)
    first_failure(page).click()
    card = page.get_by_role("region", name="Its kind")
    expect(card.get_by_text("Ignored until").first).to_be_visible()
    card.get_by_role("button", name="Reopen").click()
    card.get_by_role("textbox", name="Note").fill("Asked the makers.")
    card.get_by_role("button", name="Save owner and note").click()
    expect(card.get_by_text("1 kind changed.")).to_be_visible()
    expect(card.get_by_text("open", exact=True)).to_be_visible()
    expect(card.get_by_role("textbox", name="Note")).to_have_value("Asked the makers.")


@pytest.mark.long
def test_kinds_are_sorted_shown_in_other_columns_and_only_new_ones(reader: Visit):
    """Heads sort, columns and the new ones are chosen."""
    at = now_us() - 3 * DAY_US
    own, _ = reader.project(failure(at=at), failure(at=at + 1), failure(code="not_found"))
    page = reader.go("/failures?group=kind", own)
    rows, table = rows_of(page, "Kinds of failure"), page.get_by_role("group", name="Kinds of")
    for head in ("First seen", "Last seen", "Calls spent", "Failures"):
        column = table.get_by_role("columnheader").filter(has_text=head)
        column.get_by_role("link").click()
        expect(column).to_have_attribute("aria-sort", "descending")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="Note", exact=True).check()
    page.get_by_role("checkbox", name="Owner", exact=True).uncheck()
    page.get_by_role("button", name="Show").click()
    expect(table.get_by_role("columnheader").filter(has_text="Note")).to_have_count(1)
    expect(table.get_by_role("columnheader").filter(has_text="Owner")).to_have_count(0)
    page.get_by_role("link", name="New in the last day").click()
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="All kinds, not only new ones").click()
    expect(rows).to_have_count(2)


def test_settings_say_how_long_a_kind_is_new(reader: Visit):
    """One that came three days ago is new for a week and not for two days."""
    own, _ = reader.project(failure(at=now_us() - 3 * DAY_US), failure(code="not_found"))
    page = reader.go("/failures?group=kind", own)
    _states(page, "new", "new")
    page = reader.go("/settings", own)
    page.get_by_label("A kind is new for (days)").fill("2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Saved.")
    page = reader.go("/failures?group=kind", own)
    rows = rows_of(page, "Kinds of failure")
    expect(rows.get_by_text("open", exact=True)).to_have_count(1)
    expect(rows.get_by_text("new", exact=True)).to_have_count(1)


def test_a_kind_is_ignored_until_so_many_failures_more(reader: Visit):
    """Nine leave it ignored; the tenth brings it back, and nothing says any more that it is not."""
    own, dsn = reader.project(failure())
    page = reader.go("/failures?group=kind", own)
    rows_of(page, "Kinds of failure").get_by_role("checkbox").check()
    page.get_by_label("Ignore until").select_option("until 10 more failures")
    page.get_by_role("button", name="Ignore").click()
    _states(page, "ignored")
    send(dsn, *(failure(at=now_us()) for _ in range(9)))
    page = reader.go("/failures", own)
    first_failure(page).click()
    card = page.get_by_role("region", name="Its kind")
    expect(card.get_by_text("ignored", exact=True)).to_be_visible()
    expect(card).to_contain_text("Ignored until 10 failures have come since that was decided.")
    send(dsn, failure(at=now_us()))
    page.reload()
    expect(card.get_by_text("open", exact=True)).to_be_visible()
    expect(card).not_to_contain_text("Ignored until")
    card.get_by_text("History", exact=True).click()
    expect(card.get_by_role("listitem")).to_contain_text("admin: state ignored")
    card.get_by_label("Ignore until").select_option("for 30 days")
    card.get_by_role("button", name="Ignore").click()
    expect(card).to_contain_text("Ignored until")


def test_kinds_are_read_and_decided_about_page_by_page(reader: Visit):
    """What is decided on the second page leads back to it; the file has the kinds of all pages.

    Fix next is read page by page as well.
    """
    own, _ = reader.project(*(failure(code=f"code_{number:02}") for number in range(53)))
    page = reader.go("/failures?group=kind", own)
    rows, pages = rows_of(page, "Kinds of failure"), page.get_by_role("navigation", name="Pages")
    expect(pages).to_contain_text("50 of 53 kinds")
    pages.get_by_role("link", name="Next").click()
    expect(rows).to_have_count(3)
    rows.nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status")).to_have_text("1 kind changed.")
    expect(rows).to_have_count(3)
    _states(page, "new", "acknowledged", "new")
    pages.get_by_role("link", name="Previous").click()
    expect(rows).to_have_count(50)
    expect(page.get_by_role("status")).to_have_count(0)
    states = [row["state"] for row in downloaded(page, "these kinds")]
    assert (len(states), states.count("acknowledged")) == (53, 1)
    page = reader.go("/fix-next", own)
    expect(pages).to_contain_text("50 of 53 problems")
    pages.get_by_role("link", name="Next").click()
    expect(pages).to_contain_text("3 of 53 problems")
    assert len(downloaded(page, "this list")) == 53
