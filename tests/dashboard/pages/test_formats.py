"""Numbers, times and foreign text as pages write them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from tests.dashboard.reading import Cell, Page

from toolfault_collector.clock import parse_time
from toolfault_dashboard import formats
from toolfault_dashboard.analysis.rates import rate
from toolfault_dashboard.render import breakable, query_string

THIN = "\u202f"
NBSP = "\u00a0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1234567, "1,234,567"),
        (-1234, "\u22121,234"),
    ],
)
def test_thousands_are_set_apart(value: int, text: str):
    """Integers carry commas and a real minus sign."""
    assert formats.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0%"),
        (1.0, "100%"),
        (0.0712, "7.1%"),
        (0.00123, "0.12%"),
        (0.9999, "100%"),
        (-0.034, "\u22123.4%"),
        (-0.00001, "0.00%"),
    ],
)
def test_percentages_have_the_digits_their_size_needs(value: float | None, text: str):
    """Small shares keep two digits, large ones lose none that matter."""
    assert formats.percent(value) == text


def test_an_interval_without_data_is_empty():
    """No calls, no interval: nothing is made up."""
    assert formats.percent_interval(rate(0, 0)) == ""
    assert formats.percent_interval(rate(1, 10)) == "1.8–40.4%"


@pytest.mark.parametrize(
    ("number", "many", "text"),
    [
        (1, None, "1 failure"),
        (2, None, "2 failures"),
        (0, None, "0 failures"),
        (1, "oxen", "1 failure"),
        (3, "oxen", "3 oxen"),
    ],
)
def test_plurals_are_correct(number: int, many: str | None, text: str):
    """One is singular, everything else plural, zero too."""
    assert formats.plural(number, "failure", many).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "–"),
        (0, "0 ms"),
        (0.4, "< 1 ms"),
        (320, "320 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min"),
        (185_000, "3 min 5 s"),
        (3_600_000, "1 h"),
        (9_900_000, "2 h 45 min"),
        (172_800_000, "2 d"),
        (180_000_000, "2 d 2 h"),
    ],
)
def test_durations_use_the_unit_a_reader_thinks_in(milliseconds: float | None, text: str):
    """From milliseconds to days, no unit overflows into the next."""
    assert formats.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("attempt", "text"), [(None, ""), (1, "1"), (64, "64"), (65, "65 or later")]
)
def test_the_position_in_a_chain_is_counted_to_64(attempt: int | None, text: str):
    """What stands for all later calls says so."""
    assert formats.position(attempt) == text


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (None, "–"),
        (-0.137, f"\u221213.7{THIN}pp"),
        (0.0042, f"+0.42{THIN}pp"),
        (0.0, f"0.00{THIN}pp"),
        (-0.00001, f"0.00{THIN}pp"),
    ],
)
def test_differences_are_signed_points(difference: float | None, text: str):
    """A difference of shares says its direction, zero has none; it is not called a percentage."""
    assert formats.points(difference) == text


def test_a_name_breaks_between_its_words_and_no_number_breaks():
    """A narrow table has places to break a name at, and none within a number or a word."""
    parts = str(breakable("AskUser/wrong_type 331/11 1.5 2026-11-27")).split("<wbr>")
    assert parts == ["Ask", "User/", "wrong_", "type 331/11 1.5 2026-11-27"]


def test_a_time_says_its_zone_and_carries_its_machine_form():
    """The element holds RFC 3339 in UTC, the text says UTC."""
    cell = Cell(Page(f"<p>{formats.time_tag(1_795_301_585_123_456)}</p>").tag)
    assert cell.moment == "2026-11-21T22:53:05.123Z"
    assert cell.text == "21 Nov 2026, 22:53:05 UTC"


@pytest.mark.parametrize("value", [None, 10**30, -(10**30)])
def test_no_time_is_never_a_date(value: int | None):
    """Without a time, or with one no calendar holds, the words say so."""
    assert "no time recorded" in formats.time_tag(value)
    assert "<time" not in formats.time_tag(value)


@given(st.text())
def test_visible_text_has_no_hidden_character(text: str):
    """Whatever comes in, nothing that reorders or hides comes out, and doing it twice is once."""
    shown = formats.visible(text)
    assert not any(
        ord(each) in range(0x202A, 0x202F) or ord(each) in range(0x2066, 0x206A) or each == "\x1b"
        for each in shown
    )
    assert formats.visible(shown) == shown


@given(st.text())
def test_breakable_text_reads_the_same(text: str):
    """Places to break a line add no character to what is read."""
    soup = BeautifulSoup(f"<p>{breakable(text)}</p>", "html.parser")
    plain = BeautifulSoup(f"<p>{escape(formats.visible(text))}</p>", "html.parser")
    assert soup.get_text() == plain.get_text()
    assert {tag.name for tag in soup.find_all(True)} <= {"p", "wbr"}


def test_empty_parameters_leave_the_address():
    """Addresses hold what matters and nothing else."""
    assert query_string({"q": "a b", "window": "", "project": "x"}) == "?q=a+b&project=x"
    assert query_string({"q": ""}) == ""


def test_a_zone_ends_with_the_page_that_it_was_for():
    """Times are in the zone inside the block and in UTC after it."""
    moment = 1_795_301_585_123_456
    before = formats.time_tag(moment)
    with formats.shown_in(ZoneInfo("Asia/Tokyo"), moment):
        assert formats.clock() == "local"
        assert formats.time_tag(moment) != before
    assert formats.clock() == "UTC"
    assert formats.time_tag(moment) == before


@pytest.mark.parametrize(
    ("zone", "now", "text"),
    [
        ("UTC", "2026-12-31T23:30:00Z", "31 Dec, 22:00"),
        ("UTC", "2027-01-01T00:30:00Z", "31 Dec 2026, 22:00"),
        ("Asia/Tokyo", "2026-12-31T23:30:00Z", "1 Jan, 07:00"),
        ("Asia/Tokyo", "2026-12-31T14:30:00Z", "1 Jan 2027, 07:00"),
    ],
)
def test_a_date_names_its_year_where_that_is_not_this_one(zone: str, now: str, text: str):
    """Which year it is, and which that of a time, the reader's zone decides."""
    with formats.shown_in(ZoneInfo(zone), parse_time(now)):
        assert formats.time_tag(parse_time("2026-12-31T22:00:00Z"), "short").striptags() == text


def test_a_zone_that_leads_out_of_the_calendar_leaves_utc():
    """The last hours of year 9999 are written in UTC where the zone would reach year 10000."""
    last = 253_402_300_799_000_000
    with formats.shown_in(ZoneInfo("Pacific/Kiritimati"), last):
        assert "31 Dec 9999" in formats.time_tag(last)
