"""Reading jsonschema errors by their attributes (`validator`, `absolute_path`, `instance`)."""

from __future__ import annotations

from toolfault.errors._issue import Issue
from toolfault.errors._repr import safe_repr, type_name
from toolfault.errors._types import has
from toolfault.errors._words import MISSING_TEXT, UNEXPECTED_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

__all__ = ["is_schema_error", "read"]

_MOST_ISSUES = 50

KEYWORD_CODES = {
    "type": "wrong_type",
    "enum": "invalid_choice",
    "const": "invalid_choice",
    "required": "missing_field",
    "dependentRequired": "missing_field",
    "additionalProperties": "unknown_field",
    "unevaluatedProperties": "unknown_field",
    "maximum": "field_too_large",
    "exclusiveMaximum": "field_too_large",
    "maxLength": "field_too_large",
    "maxItems": "field_too_large",
    "maxProperties": "field_too_large",
    "minimum": "field_too_small",
    "exclusiveMinimum": "field_too_small",
    "minLength": "field_too_small",
    "minItems": "field_too_small",
    "minProperties": "field_too_small",
    "pattern": "invalid_format",
    "format": "invalid_format",
    "multipleOf": "invalid_format",
    "uniqueItems": "invalid_format",
}
"""JSON Schema keyword that failed -> code."""

_TEMPLATES = {
    "maximum": "<= {}",
    "exclusiveMaximum": "< {}",
    "maxLength": "length <= {}",
    "maxItems": "length <= {}",
    "maxProperties": "length <= {}",
    "minimum": ">= {}",
    "exclusiveMinimum": "> {}",
    "minLength": "length >= {}",
    "minItems": "length >= {}",
    "minProperties": "length >= {}",
    "pattern": "pattern {}",
    "format": "{}",
    "multipleOf": "multiple of {}",
    "type": "{}",
}
_BOUND_WORDS = {
    "type": "Input should be of type {}",
    "enum": "Input should be one of {}",
    "const": "Input should be {}",
    "maximum": "Input should be less than or equal to {}",
    "exclusiveMaximum": "Input should be less than {}",
    "minimum": "Input should be greater than or equal to {}",
    "exclusiveMinimum": "Input should be greater than {}",
    "maxLength": "String should have at most {} characters",
    "minLength": "String should have at least {} characters",
    "maxItems": "Array should have at most {} items",
    "minItems": "Array should have at least {} items",
    "maxProperties": "Object should have at most {} properties",
    "minProperties": "Object should have at least {} properties",
    "pattern": "String should match pattern '{}'",
    "format": "Input should be a valid {}",
    "multipleOf": "Input should be a multiple of {}",
    "uniqueItems": "Array items should be unique",
}


def is_schema_error(exc: object) -> bool:
    """Whether *exc* has the attributes of a jsonschema error."""
    return all(has(exc, name) for name in ("validator", "absolute_path", "instance"))


def read(
    errors: Sequence[object], args: object, secret: Collection[str]
) -> tuple[list[Issue], int]:
    """The issues of *errors*; one error may name several missing or unexpected fields."""
    issues: list[Issue] = []
    for error in errors:
        if is_schema_error(error):
            issues.extend(_issues(error, secret))
    return issues[:_MOST_ISSUES], len(issues)


def _issues(error: object, secret: Collection[str]) -> Iterator[Issue]:
    keyword = str(error.validator)  # type: ignore[attr-defined]
    loc = tuple(p if type(p) is int else str(p) for p in error.absolute_path)  # type: ignore[attr-defined]
    instance = error.instance  # type: ignore[attr-defined]
    if keyword == "required" and isinstance(instance, dict):
        name = _missing_name(error, instance)
        yield _issue(keyword, (*loc, name), MISSING_TEXT)
    elif keyword in {"additionalProperties", "unevaluatedProperties"} and isinstance(
        instance, dict
    ):
        for name in _unexpected_names(error, instance):
            yield _issue(
                keyword, (*loc, name), UNEXPECTED_TEXT, raw=[instance[name]], secret=secret
            )
    else:
        wanted = error.validator_value  # type: ignore[attr-defined]
        yield _issue(
            keyword,
            loc,
            _words(keyword, wanted),
            expected=_expected(keyword, wanted),
            raw=[instance] if loc else [],
            secret=secret,
        )


def _issue(
    keyword: str,
    loc: tuple[str | int, ...],
    message: str,
    *,
    expected: str | None = None,
    raw: Sequence[object] = (),
    secret: Collection[str] = (),
) -> Issue:
    from toolfault.errors._received import NOTHING
    from toolfault.errors._validation import field_label, hides_value, represented

    value = raw[0] if raw else NOTHING
    hidden = hides_value(None, loc, value, secret)
    return Issue(
        field_label(loc),
        KEYWORD_CODES.get(keyword, "invalid_input"),
        message,
        expected=expected,
        received=represented(value, hidden=hidden),
        received_type=type_name(value) if raw else None,
        type=keyword[:128],
        loc=loc,
    )


def _missing_name(error: object, instance: dict[str, object]) -> str:
    """Jsonschema yields one error per missing property and names it in the message only."""
    message = str(error.message)  # type: ignore[attr-defined]
    absent = [n for n in error.validator_value if n not in instance]  # type: ignore[attr-defined]
    for name in absent:
        if message.startswith(repr(name)):
            return str(name)
    return str(absent[0]) if absent else "(unknown)"


def _unexpected_names(error: object, instance: dict[str, object]) -> list[str]:
    schema = getattr(error, "schema", None)
    known = schema.get("properties", {}) if isinstance(schema, dict) else {}
    return [name for name in instance if isinstance(name, str) and name not in known]


def _expected(keyword: str, wanted: object) -> str | None:
    if keyword in {"enum", "const"}:
        return _words_of(wanted) if keyword == "enum" else safe_repr(wanted, 200)
    template = _TEMPLATES.get(keyword)
    return template.format(_plain(wanted)) if template else None


def _words(keyword: str, wanted: object) -> str:
    template = _BOUND_WORDS.get(keyword)
    if template is None:
        return f"Input does not satisfy {keyword}"
    return template.format(_words_of(wanted) if keyword == "enum" else _plain(wanted))


def _words_of(choices: object) -> str:
    from toolfault.errors._hints import listed

    return listed(choices) if isinstance(choices, (list, tuple)) else safe_repr(choices, 200)


def _plain(wanted: object) -> str:
    if isinstance(wanted, (list, tuple)):
        return " or ".join(_plain(one) for one in wanted[:10])
    return wanted if isinstance(wanted, str) else safe_repr(wanted, 64)
