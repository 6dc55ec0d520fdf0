"""The sentences of a failure (contract.md 3.6). Parts are cleaned first, then composed."""

from __future__ import annotations

from toolfault.errors._policy import is_secret_key
from toolfault.errors._redact import redact_name, redact_text
from toolfault.errors._text import as_text, cut, one_line, plain
from toolfault.errors._words import FOOTER, MISSING_TEXT, REDACTED, ROOT, UNEXPECTED_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolfault.errors._issue import Issue

__all__ = [
    "MOST_BULLETS",
    "block",
    "clean_name",
    "clean_received",
    "clean_text",
    "code_sentence",
    "is_stand_in",
    "received_suffix",
    "sentence",
]

MOST_BULLETS = 20

LONGEST_SHOWN_RECEIVED = 200
_LONGEST_NAME = 256
_NEVER_SECRET_TYPES = frozenset({"int", "float", "bool", "NoneType", "Decimal"})

_CODE_WORDS = {
    "missing_field": "missing",
    "unknown_field": "not a parameter of this tool",
    "wrong_type": "wrong type",
    "invalid_format": "wrong format",
    "invalid_choice": "not one of the allowed values",
    "field_too_large": "too large",
    "field_too_small": "too small",
    "malformed_json": "not valid JSON",
    "malformed_diff": "not a valid diff",
    "not_found": "not found",
    "invalid_input": "not valid",
}


def clean_name(name: str, limit: int = _LONGEST_NAME) -> str:
    """A tool or field name fit to be shown: one line, bounded, never a credential."""
    return cut(one_line(plain(redact_name(name[: limit + 1_000]), limit)), limit)


def clean_received(
    received: object, *, field: object, received_type: str | None, limit: int
) -> str | None:
    """The representation of a received value, without secrets, at most *limit* characters."""
    if received is None:
        return None
    if received_type not in _NEVER_SECRET_TYPES and type(field) is str and _secret_field(field):
        return REDACTED
    return one_line(clean_text(received, limit))


def _secret_field(field: str) -> bool:
    return any(is_secret_key(part) for part in field.split("."))


def clean_text(value: object, limit: int) -> str:
    """Any text without secrets and control characters, at most *limit* characters."""
    return plain(redact_text(as_text(value, 4 * limit + 1_000), limit))


def received_suffix(received: str | None, received_type: str | None) -> str:
    """` (received int: 9000)`, or nothing when nothing was received."""
    if received is None:
        return ""
    received = cut(received, LONGEST_SHOWN_RECEIVED)
    if is_stand_in(received, received_type):
        return f" (received {received})"
    return (
        f" (received {received_type}: {received})" if received_type else f" (received: {received})"
    )


def is_stand_in(received: str, received_type: str | None) -> bool:
    """Whether *received* is not a value but what stands in for one: `str, 18 characters`."""
    if received_type is None:
        return False
    return received == received_type or received.startswith(f"{received_type}, ")


def sentence(issue: Issue, context: str, *, with_received: bool = True) -> str:
    """What is wrong, for a failure with this one *issue* (cleaned before)."""
    if issue.message in (MISSING_TEXT, UNEXPECTED_TEXT) and not issue.is_root:
        return f"{issue.message}: {issue.field}"
    suffix = received_suffix(issue.received, issue.received_type) if with_received else ""
    if issue.is_root:
        return f"Invalid {context}: {issue.message}{suffix}"
    return f"Invalid parameter value for {issue.field}: {issue.message}{suffix}"


def block(issues: Sequence[Issue], context: str, total: int) -> str:
    """All issues at once, one line each (cleaned before); *total* counts the unlisted too."""
    lines = [f"Invalid {context} - {total} errors:"]
    lines += [
        f"  • {issue.field}: {issue.message}{received_suffix(issue.received, issue.received_type)}"
        for issue in issues[:MOST_BULLETS]
    ]
    hidden = total - min(len(issues), MOST_BULLETS)
    if hidden > 0:
        lines.append(f"  … and {hidden} more errors")
    return "\n".join([*lines, "", FOOTER])


def code_sentence(code: str, field: str | None, context: str) -> str:
    """A sentence made from the code alone, for readers who may see no value."""
    words = _CODE_WORDS.get(code, code.replace("_", " "))
    if field is None or field == ROOT:
        return f"Invalid {context}: {words}"
    if code == "missing_field":
        return f"{MISSING_TEXT}: {field}"
    if code == "unknown_field":
        return f"{UNEXPECTED_TEXT}: {field}"
    return f"Invalid parameter value for {field}: {words}"
