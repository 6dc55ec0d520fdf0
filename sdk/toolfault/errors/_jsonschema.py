"""Reading jsonschema errors by their attributes (`validator`, `absolute_path`, `instance`)."""

from __future__ import annotations

from toolfault.errors._issue import Issue
from toolfault.errors._repr import safe_repr, type_and_size, type_name
from toolfault.errors._types import has
from toolfault.errors._words import MISSING_TEXT, UNEXPECTED_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from typing import Any

__all__ = ["is_schema_error", "read"]

_MOST_ISSUES = 50

KEYWORD_CODES = {
    "type": "wrong_type",
    "enum": "invalid_choice",
    "const": "invalid_choice",
    "required": "missing_field",
    "dependentRequired": "missing_field",
    "dependencies": "missing_field",
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
    "depth": "invalid_format",
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
    "multipleOf": "multiple of {}",
    "type": "{}",
}
_BOUND_WORDS = {
    "type": "Input should be a valid {}",
    "enum": "Input should be {}",
    "const": "Input should be {}",
    "maximum": "Input should be less than or equal to {}",
    "exclusiveMaximum": "Input should be less than {}",
    "minimum": "Input should be greater than or equal to {}",
    "exclusiveMinimum": "Input should be greater than {}",
    "maxLength": "String should have at most {} characters",
    "minLength": "String should have at least {} characters",
    "maxItems": "Array should have at most {} items",
    "minItems": "Array should have at least {} items",
    "maxProperties": "Object should have at most {} items",
    "minProperties": "Object should have at least {} items",
    "pattern": "String should match pattern '{}'",
    "format": "Input should be a valid {}",
    "multipleOf": "Input should be a multiple of {}",
    "uniqueItems": "Array items should be unique",
    "oneOf": "Input should match exactly one of the alternatives",
    "depth": "Input is nested too deeply",
    "None": "Input is not allowed",  # by a schema that is `false`
}
_ALTERNATIVES = frozenset({"anyOf", "oneOf"})
_FORMATS = {
    "date": "date (YYYY-MM-DD)",
    "date-time": "datetime (ISO 8601)",
    "time": "time (HH:MM:SS)",
    "duration": "duration (ISO 8601)",
    "uuid": "UUID",
    "uri": "URL",
    "email": "email address",
}
"""Format -> what is expected, in the words of the contract (3.4)."""


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
            for leaf in _leaves(error):
                issues.extend(_issues(leaf, args, secret))
    return issues[:_MOST_ISSUES], len(issues)


def _leaves(error: Any) -> list[Any]:
    """What is wrong in *error*: of alternatives, what the closest one says.

    An error without a keyword of its own stands for those in its context.
    """
    context = getattr(error, "context", None) or []
    if not context:
        return [error]
    if type(error.validator) is str:
        branches: dict[object, list[Any]] = {}
        for inner in context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        context = min(branches.values(), key=_distance)
        if _distance(context)[0]:
            return [error]
    return [leaf for inner in context for leaf in _leaves(inner)]


def _distance(branch: Sequence[Any]) -> tuple[bool, bool, int]:
    """How far a value is from an alternative: of another type, of another kind, how many errors."""
    near = [error for error in branch if len(error.relative_path) < 2]
    return (
        any(error.validator == "type" and not error.relative_path for error in near),
        any(error.validator in {"const", "enum"} for error in near),
        len(branch),
    )


def _issues(error: Any, args: object, secret: Collection[str]) -> Iterator[Issue]:
    from toolfault.errors._received import raw_value

    keyword = str(error.validator)
    loc = tuple(p if type(p) is int else str(p) for p in error.absolute_path)
    instance, wanted = error.instance, error.validator_value
    if keyword in _ALTERNATIVES and error.context:
        keyword, wanted = "type", _types_of(error.context)
    if KEYWORD_CODES.get(keyword) == "missing_field" and isinstance(instance, dict):
        yield _issue(keyword, (*loc, _missing_name(error, instance)), MISSING_TEXT)
    elif keyword in {"additionalProperties", "unevaluatedProperties"} and isinstance(
        instance, dict
    ):
        for name in _unexpected_names(error, instance):
            yield _issue(
                keyword, (*loc, name), UNEXPECTED_TEXT, raw=[instance[name]], secret=secret
            )
    else:
        yield _issue(
            keyword,
            loc,
            _words(keyword, wanted),
            expected=_expected(keyword, wanted),
            raw=[instance if args is None else raw_value(args, loc, instance)] if loc else [],
            secret=secret,
        )


def _types_of(context: Iterable[Any]) -> list[str]:
    """The types that alternatives want; null is no type to repair a value to."""
    wanted = [error.validator_value for error in context if error.validator == "type"]
    kinds = [kind for one in wanted for kind in ([one] if isinstance(one, str) else one)]
    return list(dict.fromkeys(kind for kind in kinds if kind != "null")) or ["null"]


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
        stand_in=type_and_size(value) if raw else None,
    )


def _missing_name(error: Any, instance: dict[str, object]) -> str:
    """Jsonschema yields one error per missing property and names it in the message only."""
    wanted = error.validator_value
    if isinstance(wanted, dict):  # by the property that makes them required
        wanted = [name for names in wanted.values() if isinstance(names, list) for name in names]
    absent = [name for name in wanted if name not in instance]
    for name in absent:
        if str(error.message).startswith(repr(name)):
            return str(name)
    return str(absent[0]) if absent else "(unknown)"


def _unexpected_names(error: Any, instance: dict[str, object]) -> list[str]:
    """Jsonschema yields one error for all of them and names them in the message only."""
    schema = error.schema if isinstance(error.schema, dict) else {}
    others = [name for name in instance if name not in schema.get("properties", {})]
    return [name for name in others if repr(name) in str(error.message)] or others


def _expected(keyword: str, wanted: object) -> str | None:
    if keyword in {"enum", "const"}:
        return _words_of(wanted) if keyword == "enum" else safe_repr(wanted, 200)
    if keyword == "format":
        return _FORMATS.get(str(wanted), _plain(wanted))
    template = _TEMPLATES.get(keyword)
    return template.format(_plain(wanted)) if template else None


def _words(keyword: str, wanted: object) -> str:
    template = _BOUND_WORDS.get(keyword)
    if template is None:
        return f"Input does not satisfy {keyword}"
    text = template.format(_words_of(wanted) if keyword == "enum" else _plain(wanted))
    return text[:-1] if wanted == 1 and text.endswith((" characters", " items")) else text


def _words_of(choices: object) -> str:
    from toolfault.errors._hints import listed

    return listed(choices) if isinstance(choices, (list, tuple)) else safe_repr(choices, 200)


def _plain(wanted: object) -> str:
    if isinstance(wanted, (list, tuple)):
        return " or ".join(_plain(one) for one in wanted[:10])
    return wanted if isinstance(wanted, str) else safe_repr(wanted, 64)
