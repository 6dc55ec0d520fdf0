"""Checks of Python types that JSON can only write as strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolfault.tools._checks._findings import Check, Findings, Loc

__all__ = ["FormatCheck", "python_format"]

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")  # RFC 9562


def _date(text: str) -> Any:
    from datetime import date

    return date.fromisoformat(text)


def _datetime(text: str) -> Any:
    from datetime import datetime

    # Python 3.10 reads no "Z" (RFC 3339); an offset means the same everywhere.
    return datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


def _time(text: str) -> Any:
    from datetime import time

    return time.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "Zz" else text)


def _uuid(text: str) -> Any:
    if not _UUID.match(text):
        raise ValueError(text)
    from uuid import UUID

    return UUID(text)


def _path(text: str) -> Any:
    if not text or "\0" in text:
        raise ValueError(text)
    from pathlib import Path

    return Path(text)


def _decimal(text: str) -> Any:
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def _bytes(text: str) -> Any:
    return text.encode("utf-8", "strict")


# format -> (parser raising ValueError, words, expected)
_FORMATS: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "date": (_date, "date", "date (YYYY-MM-DD)"),
    "date-time": (_datetime, "datetime", "datetime (ISO 8601)"),
    "time": (_time, "time", "time (HH:MM:SS)"),
    "uuid": (_uuid, "UUID", "UUID"),
    "path": (_path, "path", "path"),
    "decimal": (_decimal, "decimal number", "decimal number"),
    "binary": (_bytes, "bytes", "string"),
}

# Looked up by module and name, so that nobody pays for importing what no tool uses.
_PYTHON_TYPES = {
    ("datetime", "date"): "date",
    ("datetime", "datetime"): "date-time",
    ("datetime", "time"): "time",
    ("uuid", "UUID"): "uuid",
    ("pathlib", "Path"): "path",
    ("pathlib", "PurePath"): "path",
    ("pathlib._local", "Path"): "path",
    ("pathlib._local", "PurePath"): "path",
    ("decimal", "Decimal"): "decimal",
    ("builtins", "bytes"): "binary",
}


class FormatCheck(Check):
    """A string in a given format."""

    __slots__ = ("_expected", "_format", "_parse", "_target", "_words")
    kind = "string"

    def __init__(self, name: str, *, target: type) -> None:
        """Take the format's name and the Python type to convert to."""
        self._parse, words, self._expected = _FORMATS[name]
        self._words = f"Input should be a valid {words}"
        self._format = name
        self._target = target

    def check(self, value: Any, loc: Loc, findings: Findings) -> Any:
        """Parse the string; a value of the target type passes unchanged."""
        kind = type(value)
        if issubclass(kind, self._target):
            return value
        if self._format == "decimal" and kind in (int, float):
            value = str(value)
        elif not issubclass(kind, str):
            findings.add(loc, "wrong_type", self._words, expected=self._expected, value=value)
            return value
        try:
            return self._parse(value)
        except (ValueError, OverflowError):
            findings.add(loc, "invalid_format", self._words, expected=self._expected, value=value)
            return value

    def schema(self) -> dict[str, Any]:
        """Return string with its format."""
        return {"type": "string", "format": self._format}


def python_format(kind: type) -> FormatCheck | None:
    """Return the check of a Python type that JSON writes as a string; None for other types."""
    name = _PYTHON_TYPES.get((kind.__module__, kind.__qualname__))
    return None if name is None else FormatCheck(name, target=kind)
