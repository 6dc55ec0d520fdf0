"""Values as cells: inert in a spreadsheet, exact for a program.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@`` as a formula, and forgives
white space, quotation marks and invisible characters in front of it (OWASP "CSV injection", ASVS
1.2.10). Such a text gets an apostrophe in front; numbers are left alone.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Final

from toolfault_collector.clock import format_time
from toolfault_dashboard.queries.lists.lines import Guard

__all__ = ["ANY_FORMULA", "HARMLESS", "Cell", "guard", "guarded", "plain", "timestamp"]

Cell = str | int | float | bool | None
"""What a CSV writer takes."""

_SIGNS: Final = "=+\\-@|%＝＋－＠﹢﹣﹦﹫−"
# Characters that a reader may skip before it looks for a formula: white space and controls, quotes,
# and what shows nothing (zero-width, bidirectional marks, byte order mark, soft hyphen, fillers).
_SKIPPED: Final = (
    "\\s\x00-\x20\x7f-\xa0\xad\"'`“”„‘’«»\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
_FORMULA: Final = re.compile(f"(?:[{_SKIPPED}]*[{_SIGNS}]|[\t\r\n\x00])")
ANY_FORMULA: Final = re.compile(f"[{_SIGNS}\t\r\n\x00]")
"""What a text has somewhere that is a formula; texts without it need no closer look."""
_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
# One look at the first character settles nearly every text.
HARMLESS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_{[(</.#*"
)


def plain(value: Any) -> Cell:
    """Return *value* as a cell: booleans as true and false, lists and mappings as JSON."""
    if value is None or isinstance(value, str | int | float):
        return ("true" if value else "false") if isinstance(value, bool) else value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def guarded(value: Any) -> Cell:
    """Return *value* as a cell that no spreadsheet runs."""
    cell = plain(value)
    if not isinstance(cell, str) or not cell or cell[0] in HARMLESS:
        return cell
    if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def _listed(characters: str) -> str:
    """Return a class of characters with each of them named, as any regular expression reads it."""
    member = re.compile(f"[{characters}]")
    found = (number for number in range(1, 0x10000) if not 0xD800 <= number < 0xE000)
    return "".join(f"\\u{number:04x}" for number in found if member.match(chr(number)))


@cache
def guard() -> Guard:
    """Return the guard for a database that makes the cells itself."""
    formula = f"^([{_listed(_SKIPPED)}]*[{_listed(_SIGNS)}]|[\\u0009\\u000a\\u000d])"
    return Guard(
        harmless=f"^[{_listed(re.escape(''.join(sorted(HARMLESS))))}]",
        formula=formula,
        number=f"^{_NUMBER.pattern.replace('?:', '').replace(chr(92) + 'd', '[0-9]')}$",
    )


def timestamp(value: int | None) -> str | None:
    """Return microseconds since the epoch as RFC 3339 UTC; None stays None."""
    return None if value is None else format_time(value)
