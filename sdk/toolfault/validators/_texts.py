"""Texts: choices, paths, extensions, names, JSON, URLs and patterns."""

from __future__ import annotations

import re
from enum import Enum

from toolfault.errors import ToolError
from toolfault.errors._types import is_a
from toolfault.validators._raise import fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    V = TypeVar("V")

__all__ = [
    "validate_ascii_name",
    "validate_choice",
    "validate_extension",
    "validate_json",
    "validate_path",
    "validate_pattern",
    "validate_regex",
    "validate_url",
]

_MOST_CHOICES = 1_000
_LONGEST_REGEX = 1_000
_FORBIDDEN_IN_PATH = frozenset('<>"|?*')
_SCALARS = (str, int, float, bool, type(None))


def _text(tool: str, field: str, value: object) -> str:
    if not is_a(value, str):
        raise fail(tool, field, value, "wrong_type", f"{field} must be a string", expected="string")
    return value


def validate_choice(
    *, tool: str, field: str, value: V, choices: Iterable[object], suggest: bool = False
) -> V:
    """*value*, one of *choices* (of the same type: True is not 1).

    Args:
        tool: The tool, for the error.
        field: The argument, for the error.
        value: What was sent.
        choices: The allowed values, or an `Enum` class (its values).
        suggest: Whether the model reads `Did you mean '...'?`; else the suggestion only waits
            in the error's `suggestion`.

    Raises:
        ToolError: `invalid_choice`.
    """
    from toolfault.errors import did_you_mean, listed

    allowed = [getattr(choice, "value", choice) for choice in choices][:_MOST_CHOICES]
    plain = value.value if is_a(value, Enum) else value
    if type(plain) in _SCALARS and any(type(c) is type(plain) and c == plain for c in allowed):
        return value
    words = listed(allowed) or "no value at all"
    suggestion = did_you_mean(value, [c for c in allowed if isinstance(c, str)])
    raise fail(
        tool,
        field,
        value,
        "invalid_choice",
        f"{field} must be {words}" if len(allowed) < 2 else f"{field} must be one of {words}",
        expected=words,
        suggestion=suggestion,
        derived_hint=suggestion if suggest else None,
    )


def validate_path(*, tool: str, field: str, path: object = None, value: object = None) -> str:
    """*path*, a file path of plain characters (also given as *value*).

    Not empty, ASCII, without control characters and without `< > " | ? *`; the reason is in
    `retry_context` (contract.md 2.1.8).

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value if path is None else path)
    reason = _path_reason(text)
    if reason is None:
        return text
    code, words = reason
    raise fail(
        tool,
        field,
        text,
        "invalid_format",
        f"{field} {words}",
        expected="path",
        retry_context={"reason": code},
    )


def _path_reason(text: str) -> tuple[str, str] | None:
    if not text.strip():
        return "empty", "must not be empty"
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        return "control_characters", "must not contain control characters"
    if not text.isascii():
        return "non_ascii", "must contain ASCII characters only"
    if not _FORBIDDEN_IN_PATH.isdisjoint(text):
        return "invalid_characters", 'must not contain any of < > " | ? *'
    return None


def validate_extension(*, tool: str, field: str, value: object, allowed: Sequence[str]) -> str:
    """*value*, a file name or path with one of the *allowed* extensions.

    Case and a leading dot do not matter; `*` or `any` allows every extension.

    Raises:
        ToolError: `wrong_type` or `invalid_choice`.
    """
    text = _text(tool, field, value)
    wanted = [extension.lower().lstrip(".") for extension in allowed]
    if "*" in wanted or "any" in wanted:
        return text
    name = re.split(r"[/\\]", text)[-1].lower()
    if any(name.endswith(f".{extension}") for extension in wanted):
        return text
    from toolfault.errors import listed

    words = listed(f".{extension}" for extension in wanted)
    raise fail(
        tool,
        field,
        text,
        "invalid_choice",
        f"{field} must have the extension {words}",
        expected=f"extension {words}",
    )


def validate_ascii_name(*, tool: str, field: str, value: object) -> str:
    """*value*, a name of ASCII letters, digits, `_`, `-` and `.` that starts with no dot.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value)
    if re.fullmatch(r"[A-Za-z0-9_\-][A-Za-z0-9_.\-]*", text) is None:
        raise fail(
            tool,
            field,
            text,
            "invalid_format",
            f"{field} must be a name of ASCII letters, digits, '_', '-' and '.'",
            expected="name",
        )
    return text


def validate_json(*, tool: str, field: str, value: object) -> str:
    """*value*, a text that holds JSON (RFC 8259: no NaN, no infinities).

    Raises:
        ToolError: `wrong_type` or `malformed_json`.
    """
    import json

    text = _text(tool, field, value)
    try:
        json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        raise _bad_json(tool, field, text, str(exc)) from exc
    except (ValueError, RecursionError) as exc:
        raise _bad_json(tool, field, text, str(exc)[:100] or "nested too deep") from exc
    return text


def _no_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


def _bad_json(tool: str, field: str, text: str, reason: str) -> ToolError:
    return fail(
        tool,
        field,
        text,
        "malformed_json",
        f"{field} must be valid JSON: {reason}",
        expected="JSON",
        snippet=text,
    )


def validate_url(
    *, tool: str, field: str, value: object, schemes: Sequence[str] = ("http", "https")
) -> str:
    """*value*, an absolute URL with one of *schemes* and a host (RFC 3986).

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    from urllib.parse import urlsplit

    text = _text(tool, field, value)
    words = " or ".join(schemes)
    problem = ""
    try:
        parts = urlsplit(text)
        if parts.scheme.lower() not in schemes:
            problem = f"must be a URL with the scheme {words}"
        elif not parts.hostname or (parts.port is not None and parts.port == 0):
            problem = "must be a URL with a host"
    except ValueError:
        problem = "must be a valid URL"
    if not problem and any(c.isspace() or not c.isprintable() for c in text):
        problem = "must be a URL without spaces or control characters"
    if problem:
        raise fail(
            tool, field, text, "invalid_format", f"{field} {problem}", expected=f"URL ({words})"
        )
    return text


def validate_regex(*, tool: str, field: str, value: object) -> str:
    """*value*, a text that is itself a regular expression of Python's `re`.

    Raises:
        ToolError: `wrong_type`, `field_too_large` beyond 1,000 characters, `invalid_format`.
    """
    text = _text(tool, field, value)
    if len(text) > _LONGEST_REGEX:
        bound = f"length <= {_LONGEST_REGEX}"
        raise fail(
            tool, field, text, "field_too_large", f"{field} must have a {bound}", expected=bound
        )
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as exc:
        raise fail(
            tool,
            field,
            text,
            "invalid_format",
            f"{field} must be a regular expression: {_regex_reason(exc)}",
            expected="regular expression",
        ) from exc
    return text


def _regex_reason(exc: Exception) -> str:
    """What is wrong with a regular expression and where, without quoting from it.

    Parts of a value are found in no text, so this one, which is sent as it is, must hold none.
    """
    if not isinstance(exc, re.error):
        return str(exc)
    words = re.split(r" (?=[\\?'])|(?<=range) ", exc.msg, maxsplit=1)[0]
    return words if exc.pos is None else f"{words} at position {exc.pos}"


def validate_pattern(*, tool: str, field: str, value: object, pattern: str) -> str:
    """*value*, a text in which the regular expression *pattern* is found.

    Raises:
        ToolError: `wrong_type` or `invalid_format`.
    """
    text = _text(tool, field, value)
    if re.search(pattern, text) is None:
        raise fail(
            tool,
            field,
            text,
            "invalid_format",
            f"{field} must match the pattern {pattern}",
            expected=f"pattern {pattern}",
        )
    return text
