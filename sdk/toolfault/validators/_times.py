"""Dates and times in the forms of ISO 8601."""

from __future__ import annotations

import re

from toolfault.errors._types import is_a
from toolfault.validators._raise import fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["validate_date", "validate_datetime", "validate_time"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}$", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+\-]\d{2}:\d{2})?$", re.ASCII)
_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+\-]\d{2}:\d{2})?$", re.ASCII
)
_FRACTION = re.compile(r"\.(\d{1,6})")


def validate_date(*, tool: str, field: str, value: object) -> str:
    """*value*, a calendar day as `YYYY-MM-DD`.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    from datetime import date

    return _checked(
        tool, field, value, _DATE, read=date.fromisoformat, expected="date (YYYY-MM-DD)"
    )


def validate_time(*, tool: str, field: str, value: object) -> str:
    """*value*, a time of day as `HH:MM[:SS[.ffffff]]`, with an optional UTC offset.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    from datetime import time

    return _checked(tool, field, value, _TIME, read=time.fromisoformat, expected="time (HH:MM:SS)")


def validate_datetime(*, tool: str, field: str, value: object, with_offset: bool = False) -> str:
    """*value*, a date and time as `YYYY-MM-DDTHH:MM:SS`, with an optional UTC offset.

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: What was sent.
        with_offset: Whether the offset (`Z`, `+02:00`) is required, as in RFC 3339.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    from datetime import datetime

    text = _checked(
        tool, field, value, _DATETIME, read=datetime.fromisoformat, expected="datetime (ISO 8601)"
    )
    if with_offset and not (text.endswith("Z") or re.search(r"[+\-]\d{2}:\d{2}$", text)):
        raise fail(
            tool,
            field,
            value,
            "invalid_format",
            f"{field} must have a UTC offset (Z or +00:00)",
            expected="datetime with timezone",
        )
    return text


def _checked(
    tool: str,
    field: str,
    value: object,
    pattern: re.Pattern[str],
    *,
    read: Callable[[str], object],
    expected: str,
) -> str:
    if not is_a(value, str):
        raise fail(tool, field, value, "wrong_type", f"{field} must be a string", expected=expected)
    try:
        _read(value, pattern, read)
    except ValueError as exc:
        raise fail(
            tool, field, value, "invalid_format", f"{field} must be a {expected}", expected=expected
        ) from exc
    return value


def _read(value: str, pattern: re.Pattern[str], read: Callable[[str], object]) -> None:
    if pattern.match(value) is None:
        raise ValueError("not of this form")
    # Python 3.10 reads neither `Z` nor fractions of other than three or six digits.
    plain = _FRACTION.sub(lambda m: "." + m[1].ljust(6, "0"), value)
    read(plain.replace("Z", "+00:00"))
