"""Reading the errors of validation libraries into issues, by their shape and never by import.

pydantic 1 and 2 (anything with `.errors()`), jsonschema (one error or a sequence of them) and
msgspec are understood; any other exception becomes one issue about the arguments as a whole.
"""

from __future__ import annotations

from toolfault.errors import _types
from toolfault.errors._issue import Issue
from toolfault.errors._policy import hidden_in, is_secret_key, secret_values, shown_anyway
from toolfault.errors._pydantic import CONSEQUENCES, code_of_type, expected_of
from toolfault.errors._received import NOTHING, raw_value
from toolfault.errors._redact import redact_text
from toolfault.errors._repr import redacted_repr, safe_repr, type_and_size, type_name
from toolfault.errors._text import as_text, first_line, one_line, plain
from toolfault.errors._words import MISSING_TEXT, REDACTED, ROOT, UNEXPECTED_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from toolfault.errors._received import Loc

__all__ = [
    "clean_message",
    "error_dicts",
    "field_label",
    "hides_value",
    "is_validation_error",
    "plain_message",
    "read_issues",
    "received_of",
    "represented",
    "wanted_types",
]

FREE_TEXT = "text"
"""The type of an issue that is the text of an exception."""
_MOST_ISSUES = 50
_LONGEST_MESSAGE = 500
_LONGEST_TYPE = 128
_LONGEST_PART = 256
_MOST_PARTS = 64
_PREFIXES = ("Value error, ", "Assertion failed, ")
# Missing in name only: the field is there, and pydantic's own words say what it lacks.
_NOT_ABSENT = frozenset({"missing_sentinel_error"})
_NO_TAG = "union_tag_not_found"
_SECRET_CLASSES = ("Secret",)


def is_validation_error(exc: object) -> bool:
    """Whether *exc* is an error of a validation library this module can read."""
    if not _types.is_a(exc, BaseException):
        return False
    for base in _types.mro(type(exc)):
        root = _types.module_name(base).partition(".")[0]
        if base.__name__ in {"ValidationError", "DecodeError"} and root in _LIBRARIES:
            return True
    return False


_LIBRARIES = frozenset({"pydantic", "pydantic_core", "msgspec", "jsonschema", "toolfault"})


def read_issues(
    exc: object, args: object, *, parameters: Sequence[str], secret: Collection[str]
) -> tuple[list[Issue], int]:
    """The first issues of *exc* (at most 50) and how many there are; at least one."""
    try:
        issues, total = _read(exc, args, parameters, secret)
    except Exception:  # noqa: BLE001 - a strange library must not hide the failure itself
        issues, total = [], 0
    if not issues:
        return [Issue(ROOT, "invalid_input", _text_of(exc), type=FREE_TEXT)], 1
    return issues, total


def _read(
    exc: Any, args: object, parameters: Sequence[str], secret: Collection[str]
) -> tuple[list[Issue], int]:
    from toolfault.errors import _jsonschema, _msgspec

    if _jsonschema.is_schema_error(exc):
        return _jsonschema.read([exc], args, secret)
    if _types.is_any(exc, list, tuple):
        return _jsonschema.read(_types.items_of(exc), args, secret)
    if _types.has(exc, "errors"):
        return _read_pydantic(error_dicts(exc), args, parameters, secret)
    return _msgspec.read(exc, args, secret)


def error_dicts(exc: Any) -> list[dict[str, Any]]:
    """`exc.errors()` in one form: text `type` and `msg`, a tuple `loc`, a dict `ctx`.

    `input` stays as it is, and stays away where it was.
    """
    found = _types.items_of(exc.errors())
    return [_in_one_form(error) for error in found if _types.is_a(error, dict)]


def wanted_types(exc: Any) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    """Where an error of pydantic wants another type, and the JSON word for it."""
    if not _types.has(exc, "errors"):
        return ()
    found = ((error["loc"], expected_of(error["type"], error["ctx"])) for error in error_dicts(exc))
    return tuple((loc, wanted) for loc, wanted in found if wanted is not None)


def _in_one_form(error: dict[str, Any]) -> dict[str, Any]:
    context = dict.get(error, "ctx")
    form: dict[str, Any] = {
        "type": as_text(dict.get(error, "type", ""), _LONGEST_TYPE),
        "loc": _location(dict.get(error, "loc")),
        "msg": as_text(dict.get(error, "msg", ""), 4 * _LONGEST_MESSAGE),
        "ctx": context if _types.is_a(context, dict) else None,
    }
    value = dict.get(error, "input", NOTHING)
    return form if value is NOTHING else {**form, "input": value}


def _location(loc: Any) -> tuple[str | int, ...]:
    is_path = loc is None or _types.is_any(loc, list, tuple)
    parts = _types.items_of(loc, _MOST_PARTS) if is_path else [loc]
    path = tuple(p if type(p) is int else as_text(p, _LONGEST_PART) for p in parts)
    return () if path == ("__root__",) else path


def _read_pydantic(
    errors: Sequence[dict[str, Any]],
    args: object,
    parameters: Sequence[str],
    secret: Collection[str],
) -> tuple[list[Issue], int]:
    own = [error for error in errors if error["type"] not in CONSEQUENCES] or errors
    failed = [_named(error["loc"], parameters) for error in own]
    shown = zip(own[:_MOST_ISSUES], failed, strict=False)
    issues = [_issue(error, loc, args, failed, secret) for error, loc in shown]
    values = secret_values(args)
    if values:
        issues = [hidden_in(issue, values) for issue in issues]
    return issues, len(own)


def _issue(
    error: dict[str, Any], loc: Loc, args: object, failed: Sequence[Loc], secret: Collection[str]
) -> Issue:
    name = error["type"]
    message = plain_message(error["msg"])
    code = code_of_type(name, message)
    tag = _missing_tag(error)
    if tag is not None:
        loc = (*loc, tag)
    raw = received_of(error)
    if args is not None and not _has_no_value(error):
        raw = raw_value(args, loc, raw, failed=failed)
    hidden = hides_value(error, loc, raw, secret)
    if code == "missing_field" and name not in _NOT_ABSENT and (tag or name != _NO_TAG):
        message = MISSING_TEXT
    elif code == "unknown_field":
        message = UNEXPECTED_TEXT
    return Issue(
        field_label(loc),
        code,
        clean_message(message, raw, hidden=hidden),
        expected=expected_of(name, error["ctx"]),
        received=represented(raw, hidden=hidden),
        received_type=None if raw is NOTHING else type_name(raw),
        type=name or None,
        loc=loc,
        stand_in=None if raw is NOTHING else type_and_size(raw),
    )


def _missing_tag(error: Mapping[str, Any]) -> str | None:
    """The name of the tag that a discriminated union misses; None where a function finds tags."""
    if error["type"] != _NO_TAG or error["ctx"] is None:
        return None
    named = as_text(dict.get(error["ctx"], "discriminator"), _LONGEST_PART)
    last = named.rpartition(" | ")[2]  # an alias
    name = last[1:-1]
    return name if name and last == f"'{name}'" and "'" not in name else None


def _named(loc: Loc, parameters: Sequence[str]) -> Loc:
    """*loc*, with a positional argument by the name of its parameter."""
    if loc and type(loc[0]) is int and 0 <= loc[0] < len(parameters):
        return (parameters[loc[0]], *loc[1:])
    return loc


def field_label(loc: Sequence[str | int]) -> str:
    """The dotted path of *loc*, or `(root)` for the arguments as a whole."""
    return one_line(plain(".".join(str(part) for part in loc), 256)) or ROOT


def received_of(error: Mapping[str, Any]) -> object:
    """The value one pydantic error reports, or `NOTHING` where it is not a value of the field."""
    return NOTHING if _has_no_value(error) else error.get("input", NOTHING)


def _has_no_value(error: Mapping[str, Any]) -> bool:
    """Whether an error is about no value of a field.

    For missing fields, for wrong bindings and for errors of the whole model, pydantic reports
    all arguments of the call as input, secrets included.
    """
    if not error["loc"] or _types.class_name(error.get("input")) == "ArgsKwargs":
        return True
    return code_of_type(error["type"]) == "missing_field" and error["type"] not in _NOT_ABSENT


def hides_value(
    error: Mapping[str, Any] | None, loc: Sequence[str | int], raw: object, secret: Collection[str]
) -> bool:
    """Whether the value of an error must not be shown, by its name or by its type."""
    if any(part in secret for part in loc):
        return True
    if any(is_secret_key(part) for part in loc):
        return not shown_anyway(raw)
    if _types.class_name(raw).startswith(_SECRET_CLASSES):
        return True
    # The length of a text is checked as `string_too_short`; as `too_short` "after validation" of
    # a "Value" only when it is the inside of a `SecretStr`, whose clear value then is the input.
    return (
        error is not None
        and error["type"] in {"too_short", "too_long"}
        and error["ctx"] is not None
        and dict.get(error["ctx"], "field_type") == "Value"
        and _types.is_any(raw, str, bytes)
    )


def represented(raw: object, *, hidden: bool) -> str | None:
    """The redacted representation of a raw value, or None when there is none."""
    if raw is NOTHING:
        return None
    return REDACTED if hidden else redacted_repr(raw)


def clean_message(message: str, raw: object, *, hidden: bool) -> str:
    """*message* without secrets, also when it repeats the hidden value itself."""
    if hidden and raw is not NOTHING:
        shown = str.__str__(raw) if _types.is_a(raw, str) else safe_repr(raw, 500)
        if len(shown) > 2:
            message = message.replace(shown, REDACTED)
    return redact_text(message, _LONGEST_MESSAGE)


def plain_message(message: str) -> str:
    """*message* without pydantic's `Value error, ` and `Assertion failed, `."""
    for prefix in _PREFIXES:
        if message.startswith(prefix):
            message = message[len(prefix) :]
            break
    return message.strip() or "Invalid value"


def _text_of(exc: object) -> str:
    from toolfault.errors._classify import exception_text

    text = exception_text(exc) if _types.is_a(exc, BaseException) else ""
    return redact_text(first_line(plain(text, 4_000), _LONGEST_MESSAGE)) or "Invalid value"
