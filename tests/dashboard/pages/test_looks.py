"""Small things that a page says: trends, nothing there, savings and their sign."""

from __future__ import annotations

import pytest
from tests.dashboard.pages.conftest import Browser
from tests.dashboard.pages.places import generated

from toolfault_collector.engine import write_transaction
from toolfault_collector.projects import ensure_project
from toolfault_dashboard.pages.fix_next import _since
from toolfault_dashboard.queries.fix_next import FixRow


def test_each_tool_is_drawn_over_time_with_its_peak_in_words(browser: Browser):
    """Tools whose failures have times have a drawing that says when they were most; it can go."""
    soup = browser.page(generated("/tools"))
    drawn = [row.select_one("svg.spark") for row in soup.select("tbody tr")]
    assert sum(each is not None for each in drawn) > 3
    for each in filter(None, drawn):
        assert each["aria-label"].startswith("most: ")
        assert each["aria-label"] == each.title.get_text()
        assert each.path["d"]
    assert not browser.page(generated("/tools?cols=calls")).select("svg.spark")


def test_a_project_without_data_says_so(own_browser: Browser):
    """Where nothing was sent no page speaks of what it was asked for; with a filter they do."""
    with write_transaction(own_browser.engine) as conn:
        ensure_project(conn, "fresh")
    for path, said in (("/failures", "Nothing has failed yet."), ("/codes", "has failed yet."),
                       ("/tools", "Nothing has been called yet.")):  # fmt: skip
        page = own_browser.page(f"{path}?project=fresh")
        assert said in page.select_one(".empty").get_text()
        assert page.select_one(".empty a.btn").get_text() == "Send data"
    filtered = own_browser.page("/failures?project=generated&q=tool:nothing&window=all")
    assert filtered.select_one(".lede").get_text().endswith(" failures over all time.")
    assert "Nothing failed like this" in filtered.select_one(".empty").get_text()


@pytest.mark.parametrize(
    ("saved", "low", "high", "said"),
    [
        (46.0, 25.3, 66.0, "46 round trips saved since “x” (95%: 25.3 to 66.0)"),
        (-9.0, -15.5, -2.5, "9 round trips more since “x” (95%: 2.5 to 15.5)"),
        (1.0, -6.1, 8.1, "1 round trip saved since “x” (95%: \u22126.1 to 8.1)"),
        (-1.0, -8.1, 6.1, "1 round trip more since “x” (95%: \u22126.1 to 8.1)"),
    ],
)
def test_an_interval_is_of_the_number_beside_it(saved: float, low: float, high: float, said: str):
    """What was lost since a change is said as more, with the interval of how many more."""
    row = FixRow(
        tool="t", field="", remedy="", detail="", title="", code="", round_trips=1.0, failures=1,
        chains=1, per_week=None, low=None, high=None, estimated=False, query="", last_at=None,
        mended_by=None, changed_by="x", saved_since=saved, saved_since_low=low,
        saved_since_high=high,
    )  # fmt: skip
    assert _since(row, " since “x”") == said
