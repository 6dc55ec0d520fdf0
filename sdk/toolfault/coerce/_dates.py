"""Reading a calendar day from the forms models write it in."""

from __future__ import annotations

import re
from datetime import date, datetime

__all__ = ["day_of"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_YEAR_FIRST = re.compile(r"(\d{4})[/.\-](\d{1,2})[/.\-](\d{1,2})$", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})$", re.ASCII)
_DAY_MONTH = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th)?[ \-]([A-Za-z]{3,9})\.?,?[ \-](\d{4})$", re.ASCII
)
_MONTH_DAY = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})$", re.ASCII)


def day_of(text: str) -> date | None:
    """The day that *text* means, or None when it is not certain."""
    for pattern in (_YEAR_FIRST, _COMPACT):
        match = pattern.match(text)
        if match:
            return _day(int(match[1]), int(match[2]), int(match[3]))
    match = _DAY_MONTH.match(text)
    if match:
        return _day(int(match[3]), _MONTHS.get(match[2].lower(), 0), int(match[1]))
    match = _MONTH_DAY.match(text)
    if match:
        return _day(int(match[3]), _MONTHS.get(match[1].lower(), 0), int(match[2]))
    if len(text) > 10 and text[10] in "T ":
        try:
            # Python 3.10 does not read the `Z` of ISO 8601.
            return datetime.fromisoformat(text.replace("Z", "+00:00")).date()
        except ValueError:
            return None
    return None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
