"""How a value reads on a page: numbers, rates, durations, times, plurals, foreign text.

Pure functions; ``render`` makes them template filters. Style: English, ``1,425`` and
``25.8%``, as the command line prints; a rate has as many digits as its size needs. Times are in UTC
unless a page is rendered for a reader whose zone is known (``shown_in``). A year is named where it
is not that of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Final, Protocol

from markupsafe import Markup, escape

from toolfault_collector.chains.fold import LOOK_BACK

__all__ = [
    "NO_TIME",
    "clock",
    "count",
    "day",
    "decimal",
    "duration",
    "interval",
    "percent",
    "percent_interval",
    "plural",
    "points",
    "position",
    "shown_in",
    "time_tag",
    "timestamp",
    "visible",
    "when",
]

NO_TIME: Final = "no time recorded"
_THIN: Final = "\u202f"  # narrow no-break space
_MINUS: Final = "\u2212"

# Characters that reorder, hide or fake text: controls except tab and newline, bidi controls,
# zero-width marks and tag characters. A page shows them instead of obeying them (reliability A15).
_HOSTILE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


# Of the page that is being rendered: every time on it is written by one clock, wherever it stands.
_ZONE: Final[ContextVar[tzinfo]] = ContextVar("zone", default=UTC)
_NOW: Final[ContextVar[int | None]] = ContextVar("now", default=None)


@contextmanager
def shown_in(zone: tzinfo, now: int) -> Iterator[None]:
    """Write the times of everything that is rendered in this block in *zone*, as of *now*.

    Args:
        zone: The reader's.
        now: Microseconds since the epoch; dates of its year do not name it.
    """
    zone_before, now_before = _ZONE.set(zone), _NOW.set(now)
    try:
        yield
    finally:
        _ZONE.reset(zone_before)
        _NOW.reset(now_before)


def clock() -> str:
    """Return the word that the heading of a column of times carries: ``UTC`` or ``local``."""
    return "UTC" if _ZONE.get() is UTC else "local"


class _Rate(Protocol):
    """What ``percent_interval`` needs of a rate (``analysis.Rate`` has it)."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def visible(text: str) -> str:
    """Return *text* with every hidden or reordering character written as ``⟨U+202E⟩``.

    The narrow no-break space and ordinary white space stay as they are.
    """
    if not _HOSTILE.search(text):
        return text
    return _HOSTILE.sub(_spelled, text)


def _spelled(match: re.Match[str]) -> str:
    character = match.group()
    if character in {"\u202f", "\r"}:
        return "" if character == "\r" else character
    return f"⟨U+{ord(character):04X}⟩"


def count(value: int) -> str:
    """Return an integer with commas between thousands: ``12,345``."""
    text = f"{abs(value):,}"
    return f"{_MINUS}{text}" if value < 0 else text


def decimal(value: float | None, digits: int = 2) -> str:
    """Return a number with *digits* decimals, an en dash for None."""
    if value is None:
        return "–"
    text = f"{abs(value):,.{digits}f}"
    return f"{_sign(value, text)}{text}"


def _sign(value: float, text: str) -> str:
    """Return the minus of a negative *value*, unless *text* has rounded it to zero."""
    return _MINUS if value < 0 and text.strip("0.") else ""


def percent(value: float | None) -> str:
    """Return a share as a percentage, with two digits below 1%; an en dash for None."""
    if value is None:
        return "–"
    scaled = abs(value) * 100
    digits = 0 if scaled == 0 or scaled >= 99.95 else (2 if scaled < 1 else 1)
    text = f"{scaled:.{digits}f}"
    return f"{_sign(value, text)}{text}%"


def percent_interval(rate: _Rate) -> str:
    """Return the interval of a rate: ``5.1–9.4%``; empty where there is none."""
    if rate.low is None or rate.high is None:
        return ""
    return f"{percent(rate.low).removesuffix('%')}–{percent(rate.high)}"


def points(value: float | None) -> str:
    """Return a difference of two shares in percentage points: ``−3.4 pp``; zero has no sign."""
    if value is None:
        return "–"
    scaled = abs(value) * 100
    text = f"{scaled:.{1 if scaled >= 1 else 2}f}"
    sign = _sign(value, text) or ("+" if text.strip("0.") else "")
    return f"{sign}{text}{_THIN}pp"


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Return ``low to high``, an en dash where either end is missing."""
    if low is None or high is None:
        return "–"
    return f"{decimal(low, digits)} to {decimal(high, digits)}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return number and noun: ``1 retry``, ``2 retries`` is ``plural(n, "retry", "retries")``."""
    noun = one if number == 1 else (many if many is not None else f"{one}s")
    return f"{count(number)} {noun}"


def position(attempt: int | None) -> str:
    """Return the position of a call in its chain, which is counted to `LOOK_BACK`."""
    if attempt is None:
        return ""
    return f"{attempt} or later" if attempt > LOOK_BACK else str(attempt)


def duration(milliseconds: float | None) -> str:
    """Return a length of time in the unit a reader thinks in: ``320 ms``, ``3 min 5 s``."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1:
        return "0 ms" if milliseconds == 0 else "< 1 ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d {hours % 24} h" if hours % 24 else f"{hours // 24} d"


def _moment(microseconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def timestamp(microseconds: int | None) -> str:
    """Return RFC 3339 in UTC with milliseconds, empty for None or what no calendar holds."""
    moment = None if microseconds is None else _moment(microseconds)
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def when(microseconds: int | None) -> str:
    """Return a time as a page writes it: ``21 Nov 2026, 22:43:05`` (UTC)."""
    moment = None if microseconds is None else _moment(microseconds)
    return NO_TIME if moment is None else f"{moment.day} {moment:%b %Y, %H:%M:%S}"


def day(moment: datetime, now: int | None) -> str:
    """Return a date as pages write it: ``7 Jul``, or ``7 Jul 2025`` where *now* is another year.

    Args:
        moment: In the zone that its text is for.
        now: Microseconds since the epoch; None writes every year.
    """
    current = None if now is None else _moment(now)
    if current is not None and _at(current, moment.tzinfo or UTC).year == moment.year:
        return f"{moment.day} {moment:%b}"
    return f"{moment.day} {moment:%b %Y}"


def time_tag(microseconds: int | None, style: str = "full") -> Markup:
    """Return a ``<time>`` element by the reader's clock, or the words "no time recorded".

    The machine-readable time and the tooltip are UTC, whatever the clock.

    Args:
        microseconds: Since the Unix epoch; None where the source had no times.
        style: ``full`` (date with its year, time, zone), ``short`` (day, hour and minute),
            ``seconds`` (that with its second) or ``date`` (day).
    """
    utc = None if microseconds is None else _moment(microseconds)
    if utc is None:
        return Markup('<span class="untimed">{}</span>').format(NO_TIME)
    moment = _at(utc, _ZONE.get())
    date = day(moment, _NOW.get())
    text = {
        "full": f"{moment.day} {moment:%b %Y, %H:%M:%S %Z}",
        "short": f"{date}, {moment:%H:%M}",
        "seconds": f"{date}, {moment:%H:%M:%S}",
        "date": date,
    }[style]
    machine = timestamp(microseconds)
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(machine, escape(text))


def _at(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):  # within a day of the ends of the calendar
        return moment
