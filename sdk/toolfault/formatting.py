"""All validation errors of one call as one text: `format_validation_errors`.

The table from pydantic's error types to codes is `PYDANTIC_CODES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolfault.errors._cleaning import clean_text, cut, one_line, redacted_repr, type_name
from toolfault.errors._codes import FOOTER, REDACTED
from toolfault.errors._foreign import TYPE_CODES as PYDANTIC_CODES
from toolfault.errors._foreign import (
    clean_message,
    code_of_type,
    error_dicts,
    field_label,
    hides_value,
    plain_message,
    read_issues,
    received_of,
)
from toolfault.errors._types import ABSENT, has

__all__ = ["PYDANTIC_CODES", "code_of_type", "format_validation_errors"]

_MOST_BULLETS = 20
_LONGEST_MESSAGE = 500
_LONGEST_RECEIVED = 200
_NOTHING_RECEIVED = ("unknown", "'N/A'")


def format_validation_errors(error: object, context: str = "parameters") -> str:
    """Every error of *error* at once, in words a model can act on.

    One error is one line, `Invalid {context}: {field} - {msg} (received: {value})`; several are
    a headed list that ends in a request to fix them all. At most 20 are listed; the header always
    tells the true number, which is `len(error.errors())`. Values are redacted and bounded.

    Args:
        error: A pydantic `ValidationError`, anything else with `.errors()`, or an error of
            jsonschema or msgspec.
        context: What was validated, in words (`HTTP request`).

    Returns:
        The text, without a final line break.
    """
    context = one_line(clean_text(context, 100))
    lines = _lines(error)
    if len(lines) == 1:
        field, message, _, received = lines[0]
        return f"Invalid {context}: {field} - {message} (received: {received})"
    shown = [
        f"  • {field}: {message} (received {type_name}: {received})"
        for field, message, type_name, received in lines[:_MOST_BULLETS]
    ]
    if len(lines) > _MOST_BULLETS:
        shown.append(f"  … and {len(lines) - _MOST_BULLETS} more errors")
    return "\n".join([f"Invalid {context} - {len(lines)} errors:", *shown, "", FOOTER])


def _lines(error: object) -> Sequence[tuple[str, str, str, str]]:
    """(field, message, type of the value, value) of each error; only listed ones in full."""
    try:
        found = error_dicts(error) if has(error, "errors") else []
        lines = [_line(one) for one in found[:_MOST_BULLETS]]
    except Exception:  # noqa: BLE001 - a strange library must not hide the failure itself
        found, lines = [], []
    if lines:
        return [*lines, *[lines[0]] * (len(found) - len(lines))]
    return _lines_of_issues(error)


def _line(error: Mapping[str, Any]) -> tuple[str, str, str, str]:
    loc = error["loc"]
    value = received_of(error)
    hidden = hides_value(error, loc, value, frozenset())
    message = clean_message(plain_message(error["msg"]), value, hidden=hidden)
    if value is ABSENT:
        return (field_label(loc), message, *_NOTHING_RECEIVED)
    received = cut(REDACTED if hidden else redacted_repr(value), _LONGEST_RECEIVED)
    return field_label(loc), message, type_name(value), received


def _lines_of_issues(error: object) -> list[tuple[str, str, str, str]]:
    issues, total = read_issues(error, None, parameters=(), secret=frozenset())
    lines = [
        (
            issue.field,
            issue.message,
            issue.received_type or _NOTHING_RECEIVED[0],
            cut(issue.received or _NOTHING_RECEIVED[1], _LONGEST_RECEIVED),
        )
        for issue in issues
    ]
    return [*lines, *[lines[0]] * (total - len(lines))]
