"""Reading msgspec errors, which are one sentence with a path at its end."""

from __future__ import annotations

import re

from toolfault.errors._issue import Issue
from toolfault.errors._text import plain
from toolfault.errors._words import MISSING_TEXT, ROOT, UNEXPECTED_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["read"]

_PATH = re.compile(r" - at `(\$[^`]*|key[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[(\.\.\.)\]")
_MISSING = re.compile(r"^Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"^Object contains unknown field `([^`]*)`")
_TYPE = re.compile(r"^Expected `([^`]+)`(?: of length (<=|>=|==|<|>) (\d+))?(?:, got `([^`]+)`)?")
_BOUND = re.compile(r"^Expected `([^`]+)` (<=|>=|<|>) (\S+)")
_JSON_WORDS = {
    "int": "integer",
    "float": "number",
    "decimal": "number",
    "str": "string",
    "bool": "boolean",
    "object": "object",
    "array": "array",
    "null": "null",
    "datetime": "datetime (ISO 8601)",
    "date": "date (YYYY-MM-DD)",
    "time": "time (HH:MM:SS)",
    "uuid": "UUID",
}


def read(exc: object, args: object, secret: Collection[str]) -> tuple[list[Issue], int]:
    """The one issue of a msgspec error; nothing when the text is not of that form."""
    text = plain(str(exc), 2_000)
    found = _PATH.search(text)
    loc = _steps(found.group(1)) if found else ()
    body = text[: found.start()] if found else text
    for pattern, code, message in (
        (_MISSING, "missing_field", MISSING_TEXT),
        (_UNKNOWN, "unknown_field", UNEXPECTED_TEXT),
    ):
        named = pattern.match(body)
        if named:
            return [_issue((*loc, named.group(1)), code, message, None, args, secret)], 1
    meaning, expected = _meaning(body)
    if meaning is None:
        return [], 0
    return [_issue(loc, meaning, body, expected, args, secret)], 1


def _steps(path: str) -> tuple[str | int, ...]:
    return tuple(int(index) if index else name or "..." for name, index, _ in _STEP.findall(path))


def _meaning(body: str) -> tuple[str | None, str | None]:
    """The code of the sentence *body* and what it expected."""
    if body.startswith(("JSON is malformed", "Input data was truncated")):
        return "malformed_json", None
    if body.startswith("Invalid enum value"):
        return "invalid_choice", None
    if body.startswith("Invalid"):
        return "invalid_format", _JSON_WORDS.get(_word_after_rfc(body))
    bound = _BOUND.match(body)
    if bound:
        return _too(bound.group(2)), f"{bound.group(2)} {bound.group(3)}"
    typed = _TYPE.match(body)
    if typed is None:
        return None, None
    if typed.group(2):
        return _too(typed.group(2)), f"length {typed.group(2)} {typed.group(3)}"
    if typed.group(4) is None:
        return "invalid_format", None
    return "wrong_type", _json_type(typed.group(1))


def _too(operator: str) -> str:
    return "field_too_large" if operator.startswith("<") else "field_too_small"


def _word_after_rfc(body: str) -> str:
    words = body.lower().replace("encoded ", "").split()
    return words[-1] if words else ""


def _json_type(text: str) -> str:
    return " or ".join(_JSON_WORDS.get(part.strip(), part.strip()) for part in text.split("|"))


def _issue(
    loc: tuple[str | int, ...],
    code: str,
    message: str,
    expected: str | None,
    args: object,
    secret: Collection[str],
) -> Issue:
    from toolfault.errors._received import NOTHING, raw_value
    from toolfault.errors._repr import type_and_size, type_name
    from toolfault.errors._validation import clean_message, field_label, hides_value, represented

    raw = NOTHING if code == "missing_field" or not loc else raw_value(args, loc, NOTHING)
    hidden = hides_value(None, loc, raw, secret)
    return Issue(
        field_label(loc) if loc else ROOT,
        code,
        clean_message(message, raw, hidden=hidden),
        expected=expected,
        received=represented(raw, hidden=hidden),
        received_type=None if raw is NOTHING else type_name(raw),
        type="msgspec",
        loc=loc,
        stand_in=None if raw is NOTHING else type_and_size(raw),
    )
