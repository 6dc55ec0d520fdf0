"""Reading the errors of validation libraries into issues, by their shape and never by import.

pydantic 1 and 2 (anything with `.errors()`), jsonschema (one error or a sequence of them) and
msgspec are understood; any other exception becomes one issue about the arguments as a whole. The
table of pydantic holds all types of pydantic-core 2.46 to 2.50; a test enumerates those of the
installed version, so that an upgrade that adds one is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from toolfault.errors import _types
from toolfault.errors._classify import exception_text
from toolfault.errors._cleaning import (
    PLAIN_TYPES,
    as_text,
    first_line,
    is_secret_path,
    one_line,
    plain,
    redact_text,
    redaction_policy,
    safe_repr,
    secret_values,
    shown_anyway,
)
from toolfault.errors._codes import MISSING_TEXT, REDACTED, ROOT, UNEXPECTED_TEXT, ToolErrorCode
from toolfault.errors._hints import listed
from toolfault.errors._issue import Issue
from toolfault.errors._types import ABSENT, has

Loc = tuple[str | int, ...]

# What every pydantic error type means: its code, and what was expected in JSON words.

_TYPES_BY_CODE = {
    "missing_field": """missing missing_sentinel_error union_tag_not_found missing_argument
        missing_keyword_only_argument missing_positional_only_argument""",
    "unknown_field": """no_such_attribute extra_forbidden unexpected_keyword_argument
        unexpected_positional_argument""",
    "wrong_type": """json_type invalid_key model_type model_attributes_type dataclass_type
        dataclass_exact_type none_required iterable_type string_type string_sub_type dict_type
        mapping_type list_type tuple_type set_type set_item_not_hashable bool_type bool_parsing
        int_type int_parsing int_from_float float_type float_parsing bytes_type date_type time_type
        datetime_type time_delta_type frozen_set_type is_instance_of is_subclass_of callable_type
        arguments_type url_type uuid_type decimal_type decimal_parsing complex_type ellipsis_error
        fraction_type fraction_parsing named_tuple_type counter_type ordered_dict_type
        frozen_dict_type deque_type""",
    "invalid_format": """recursion_loop recursion_depth_exceeded multiple_of finite_number
        string_unicode string_pattern_mismatch string_not_ascii bytes_invalid_encoding date_parsing
        date_from_datetime_parsing date_from_datetime_inexact date_past date_future time_parsing
        datetime_parsing datetime_object_invalid datetime_from_date_parsing datetime_past
        datetime_future timezone_naive timezone_aware timezone_offset time_delta_parsing url_parsing
        url_syntax_violation url_scheme uuid_parsing uuid_version decimal_max_places
        complex_str_parsing""",
    "invalid_choice": "enum literal_error union_tag_invalid",
    "field_too_large": """less_than less_than_equal too_long string_too_long int_parsing_size
        bytes_too_long url_too_long decimal_max_digits decimal_whole_digits""",
    "field_too_small": """greater_than greater_than_equal too_short string_too_short
        bytes_too_short""",
    "malformed_json": "json_invalid",
    "invalid_input": """needs_python_object frozen_field frozen_instance get_attribute_error
        default_factory_not_called iteration_error value_error assertion_error
        multiple_argument_values""",
}

TYPE_CODES: dict[str, str] = {
    name: code for code, names in _TYPES_BY_CODE.items() for name in names.split()
}
"""pydantic error type -> code, for every type of pydantic 2."""

CONSEQUENCES = frozenset({"default_factory_not_called"})
"""Types that only follow from another error of the same call; dropped from issues and counts."""

# pydantic 1: the longest matching prefix decides.
_OLD_PREFIXES_BY_CODE = {
    "missing_field": "value_error.missing",
    "unknown_field": "value_error.extra",
    "wrong_type": "type_error",
    "invalid_format": """value_error.str value_error.date value_error.time value_error.url
        value_error.uuid value_error.email""",
    "invalid_choice": "value_error.const type_error.enum",
    "field_too_large": """value_error.number.not_le value_error.number.not_lt
        value_error.any_str.max value_error.list.max""",
    "field_too_small": """value_error.number.not_ge value_error.number.not_gt
        value_error.any_str.min value_error.list.min""",
    "malformed_json": "value_error.jsondecode",
    "invalid_input": "value_error",
}
_OLD_PREFIXES = sorted(
    ((prefix, code) for code, names in _OLD_PREFIXES_BY_CODE.items() for prefix in names.split()),
    reverse=True,  # a longer one before what it begins with
)


def code_of_type(name: str, message: str = "") -> str:
    """The code of the pydantic error type *name*; `invalid_input` for an unknown one.

    A custom error type that is itself a known code means that code.
    """
    code = TYPE_CODES.get(name)
    if code == "invalid_input" and message.startswith("Invalid JSON"):
        return "malformed_json"
    if code is not None:
        return code
    if name in ToolErrorCode._value2member_map_:
        return name
    for prefix, old_code in _OLD_PREFIXES:
        if name.startswith(prefix):
            return old_code
    return "invalid_input"


_EXPECTED = {
    "boolean": "bool_type bool_parsing type_error.bool",
    "integer": "int_type int_parsing int_from_float int_parsing_size type_error.integer",
    "number": """float_type float_parsing decimal_type decimal_parsing complex_type fraction_type
        fraction_parsing complex_str_parsing type_error.float type_error.decimal""",
    "finite number": "finite_number",
    "string": "string_type string_sub_type string_unicode bytes_type json_type type_error.str",
    "ASCII string": "string_not_ascii",
    "object": """dict_type mapping_type model_type model_attributes_type dataclass_type
        dataclass_exact_type ordered_dict_type frozen_dict_type counter_type arguments_type
        type_error.dict""",
    "array": """list_type tuple_type set_type frozen_set_type iterable_type deque_type
        named_tuple_type type_error.list type_error.tuple type_error.set""",
    "null": "none_required type_error.none.allowed",
    "date (YYYY-MM-DD)": """date_type date_parsing date_from_datetime_parsing
        date_from_datetime_inexact value_error.date""",
    "date in the past": "date_past",
    "date in the future": "date_future",
    "time (HH:MM:SS)": "time_type time_parsing value_error.time",
    "datetime (ISO 8601)": """datetime_type datetime_parsing datetime_object_invalid
        datetime_from_date_parsing value_error.datetime""",
    "datetime in the past": "datetime_past",
    "datetime in the future": "datetime_future",
    "datetime without timezone": "timezone_naive",
    "datetime with timezone": "timezone_aware",
    "duration (ISO 8601)": "time_delta_type time_delta_parsing value_error.duration",
    "URL": "url_type url_parsing url_syntax_violation value_error.url",
    "UUID": "uuid_type uuid_parsing value_error.uuid",
}
_EXPECTED_BY_TYPE = {name: text for text, names in _EXPECTED.items() for name in names.split()}

# What was expected, by a member of the error's context: template -> type and member.
_EXPECTED_OF_CONTEXT = {
    "<= {}": "less_than_equal/le value_error.number.not_le/limit_value",
    "< {}": "less_than/lt value_error.number.not_lt/limit_value",
    ">= {}": "greater_than_equal/ge value_error.number.not_ge/limit_value",
    "> {}": "greater_than/gt value_error.number.not_gt/limit_value",
    "multiple of {}": "multiple_of/multiple_of",
    "length <= {}": """too_long/max_length string_too_long/max_length bytes_too_long/max_length
        url_too_long/max_length value_error.any_str.max_length/limit_value
        value_error.list.max_items/limit_value""",
    "length >= {}": """too_short/min_length string_too_short/min_length bytes_too_short/min_length
        value_error.any_str.min_length/limit_value value_error.list.min_items/limit_value""",
    "pattern {}": "string_pattern_mismatch/pattern value_error.str.regex/pattern",
    "{}": "enum/expected literal_error/expected union_tag_invalid/expected_tags",
    "URL scheme {}": "url_scheme/expected_schemes",
    "UUID version {}": "uuid_version/expected_version",
    "at most {} digits": "decimal_max_digits/max_digits",
    "at most {} decimal places": "decimal_max_places/decimal_places",
    "at most {} digits before the point": "decimal_whole_digits/whole_digits",
    "timezone offset {}": "timezone_offset/tz_expected",
}
# type -> member of the context, template
_FROM_CONTEXT = {
    name: (member, template)
    for template, names in _EXPECTED_OF_CONTEXT.items()
    for name, _, member in (each.partition("/") for each in names.split())
}


def expected_of(name: str, context: dict[str, Any] | None) -> str | None:
    """What an error of type *name* expected, in JSON words, or None when it does not say.

    Only text and numbers of *context* are used: it may hold exceptions (`ctx["error"]`).
    """
    if context is not None and name in _FROM_CONTEXT:
        member, template = _FROM_CONTEXT[name]
        value = dict.get(context, member)
        if value is not None:
            is_plain = type(value) in (str, int, float)
            return template.format(value if is_plain else safe_repr(value, 64))
    if name not in TYPE_CODES and context is not None:
        expected = dict.get(context, "expected")
        return expected if type(expected) is str else None
    return _EXPECTED_BY_TYPE.get(name)


# What the model really sent for one error: the raw arguments, walked along the error's path.


_LONGEST_PATH = 24
_SCALARS = (str, int, float, bool, type(None))


def raw_value(args: object, loc: Loc, seen: object, *, failed: Sequence[Loc] = ()) -> object:
    """The value of *args* that an error at *loc* is about.

    Args:
        args: The arguments as the model sent them.
        loc: The path of the error; may contain labels of union branches.
        seen: The value the validation library reports, or `ABSENT`.
        failed: The paths of all errors of this validation.

    Returns:
        What was sent at *loc*; the whole value of the field for an error inside a branch of a
        union without a tag; *seen* where the path does not start in *args* (an alias, say);
        `ABSENT` when there is no value at all.
    """
    if not loc or len(loc) > _LONGEST_PATH:
        return seen
    if type(args) is dict and len(loc) == 1 and args.get(loc[0], ABSENT) is seen:
        return seen  # what nearly all errors are: the value of an argument, as it was sent
    if loc[-1] == "[key]":
        return seen
    values = _walk(args, loc)
    if not values:
        return seen
    labels = () if seen is ABSENT else _labels(args, loc, seen)
    return _of_field(args, loc, labels, seen, failed) if labels else values[-1]


def _of_field(
    args: object, loc: Loc, labels: tuple[int, ...], seen: object, failed: Sequence[Loc]
) -> object:
    """The value of the field that an error inside a branch is about.

    Every branch of a union without a tag fails, and the field is whole; of a discriminated union
    one was chosen and no other was tried: the path goes on inside.
    """
    value = args
    for place, part in enumerate(loc):
        if place not in labels:
            value = _child(value, part)
            continue
        before = tuple(loc[:place])
        tried = {path[place] for path in failed if len(path) > place and path[:place] == before}
        if tried != {part}:
            return value if place else seen
    return value


def _walk(args: object, loc: Sequence[str | int]) -> list[object]:
    """The values along *loc*, as far as it names real keys and indexes."""
    values: list[object] = []
    current = args
    for part in loc:
        current = _child(current, part)
        if current is ABSENT:
            break
        values.append(current)
    return values


def _child(value: Any, part: str | int) -> object:
    if _types.is_a(value, dict):
        return dict.get(value, part, ABSENT)
    if type(part) is int:
        if _types.is_a(value, list):
            return list.__getitem__(value, part) if 0 <= part < list.__len__(value) else ABSENT
        if _types.is_a(value, tuple):
            return tuple.__getitem__(value, part) if 0 <= part < tuple.__len__(value) else ABSENT
    return ABSENT


def _labels(args: object, loc: Sequence[str | int], seen: object) -> tuple[int, ...]:
    """The positions of branch labels in *loc*; none when all parts are real.

    A part is a label when leaving it out leads to exactly the value the library reports.
    """
    walked = _last(_walk(args, loc), len(loc))
    if _same(walked, seen) or _coerced(walked, seen):
        return ()
    for skipped in _subsets(len(loc), first=1 if walked is not ABSENT else 0):
        kept = [part for place, part in enumerate(loc) if place not in skipped]
        found = _last(_walk(args, kept), len(kept)) if kept else args
        if found is not ABSENT and (_same(found, seen) or _coerced(found, seen)):
            return skipped
    return ()


def _subsets(length: int, *, first: int) -> list[tuple[int, ...]]:
    """Which one, two or three parts of a path to try as labels, the last single ones first."""
    places = range(first, length)
    one = [(a,) for a in reversed(places)]
    two = [(a, b) for a in places for b in range(a + 1, length)]
    three = [(a, b, c) for a, b in two for c in range(b + 1, length)]
    return [*one, *two, *three][:400]


def _last(values: list[object], length: int) -> object:
    return values[-1] if len(values) == length else ABSENT


def _same(a: object, b: object) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in _SCALARS:
        return bool(a == b)
    # Parsed twice, a container is equal and not the same; its representation is safe to compare.
    return type(a) in (dict, list) and safe_repr(a, 500) == safe_repr(b, 500)


def _coerced(raw: object, seen: object) -> bool:
    """Whether *seen* is what *raw* became by coercion: `"80"` and 80, `"True"` and True."""
    if type(raw) not in _SCALARS or type(seen) not in _SCALARS:
        return False
    return str(raw)[:64].strip().lower() == str(seen)[:64].lower()


# Reading the errors of validation libraries into issues, by their shape and never by import.

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


def read_issues(
    exc: object, args: object, *, parameters: Sequence[str], secret: Set[str]
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
    exc: Any, args: object, parameters: Sequence[str], secret: Set[str]
) -> tuple[list[Issue], int]:
    if _types.module_name(type(exc)).startswith("pydantic_core"):
        found = exc.errors(include_url=False)  # the addresses of its manual are half the work
        issues = _ordinary_issues(found, args, secret)
        if issues is not None:
            return issues, len(issues)
        return _read_pydantic([_in_one_form(e) for e in found], args, parameters, secret)
    if is_schema_error(exc):
        return _read_schema_errors([exc], args, secret)
    if _types.is_any(exc, list, tuple):
        return _read_schema_errors(_types.items_of(exc), args, secret)
    if _types.has(exc, "errors"):
        return _read_pydantic(error_dicts(exc), args, parameters, secret)
    return _read_msgspec(exc, args, secret)


def _ordinary_issues(
    errors: list[dict[str, Any]], args: object, secret: Set[str]
) -> list[Issue] | None:
    """The issues where each is about one argument that was sent; None for any others.

    That is what models get wrong nearly always, and what needs no look at paths, branches, tags
    and texts of the host. All others are read by `_read_pydantic`, which says the same of these.
    """
    if type(args) is not dict or len(errors) > _MOST_ISSUES:
        return None
    issues = []
    known = redaction_policy().known_keys
    for error in errors:
        loc, name, value = error["loc"], error["type"], error.get("input", ABSENT)
        code = TYPE_CODES.get(name)
        if len(loc) != 1 or code is None or code in _SPECIAL_CODES or name in _SPECIAL_TYPES:
            return None
        if type(loc[0]) is not str or args.get(loc[0], ABSENT) is not value:
            return None
        if type(value) not in _OF_JSON or loc[0] in secret:
            return None
        if known.get(loc[0]) is not False and is_secret_path(loc):
            return None
        context = error.get("ctx")
        expected = _EXPECTED_BY_TYPE.get(name) if context is None else expected_of(name, context)
        issues.append(Issue.of_value(loc, code, error["msg"], value, expected=expected, type=name))
    return None if secret_values(args) else issues


_OF_JSON = frozenset({*PLAIN_TYPES, dict, list})
_SPECIAL_CODES = frozenset({"missing_field", "unknown_field", "invalid_input"})
_SPECIAL_TYPES = frozenset({"too_short", "too_long"})  # may be the inside of a `SecretStr`


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
    context, name = dict.get(error, "ctx"), dict.get(error, "type", "")
    form: dict[str, Any] = {
        "type": name if type(name) is str and name in TYPE_CODES else as_text(name, _LONGEST_TYPE),
        "loc": _location(dict.get(error, "loc")),
        "msg": as_text(dict.get(error, "msg", ""), 4 * _LONGEST_MESSAGE),
        "ctx": context if context is None or _types.is_a(context, dict) else None,
    }
    value = dict.get(error, "input", ABSENT)
    return form if value is ABSENT else {**form, "input": value}


def _location(loc: Any) -> tuple[str | int, ...]:
    if type(loc) is tuple and len(loc) == 1 and type(loc[0]) is str:
        return (
            loc if loc[0] in redaction_policy().clean_texts else (as_text(loc[0], _LONGEST_PART),)
        )
    is_path = loc is None or _types.is_any(loc, list, tuple)
    parts = _types.items_of(loc, _MOST_PARTS) if is_path else [loc]
    path = tuple(p if type(p) is int else as_text(p, _LONGEST_PART) for p in parts)
    return () if path == ("__root__",) else path


def _read_pydantic(
    errors: Sequence[dict[str, Any]],
    args: object,
    parameters: Sequence[str],
    secret: Set[str],
) -> tuple[list[Issue], int]:
    own = [error for error in errors if error["type"] not in CONSEQUENCES] or errors
    failed = [_named(error["loc"], parameters) for error in own]
    shown = zip(own[:_MOST_ISSUES], failed, strict=False)
    issues = [_pydantic_issue(error, loc, args, failed, secret) for error, loc in shown]
    values = secret_values(args)
    if values:
        issues = [issue.without(values) for issue in issues]
    return issues, len(own)


def _pydantic_issue(
    error: dict[str, Any], loc: Loc, args: object, failed: Sequence[Loc], secret: Set[str]
) -> Issue:
    name = error["type"]
    message = plain_message(error["msg"])
    code = code_of_type(name, message)
    tag = _missing_tag(error) if name == _NO_TAG else None
    if tag is not None:
        loc = (*loc, tag)
    raw: object = ABSENT
    if not _has_no_value(error, code):
        raw = error.get("input", ABSENT)
        if args is not None:
            raw = raw_value(args, loc, raw, failed=failed)
    hidden = hides_value(error, loc, raw, secret)
    if code == "missing_field" and name not in _NOT_ABSENT and (tag or name != _NO_TAG):
        message = MISSING_TEXT
    elif code == "unknown_field":
        message = UNEXPECTED_TEXT
    elif hidden:
        message = clean_message(message, raw, hidden=True)
    expected = expected_of(name, error["ctx"])
    return Issue.of_value(
        loc, code, message, raw, hidden=hidden, expected=expected, type=name or None
    )


def _missing_tag(error: Mapping[str, Any]) -> str | None:
    """The name of the tag that a discriminated union misses; None where a function finds tags."""
    if error["ctx"] is None:
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
    """The value one pydantic error reports, or `ABSENT` where it is not a value of the field."""
    code = code_of_type(error["type"])
    return ABSENT if _has_no_value(error, code) else error.get("input", ABSENT)


def _has_no_value(error: Mapping[str, Any], code: str) -> bool:
    """Whether an error is about no value of a field.

    For missing fields, for wrong bindings and for errors of the whole model, pydantic reports
    all arguments of the call as input, secrets included.
    """
    if not error["loc"] or _types.class_name(error.get("input")) == "ArgsKwargs":
        return True
    return code == "missing_field" and error["type"] not in _NOT_ABSENT


def hides_value(
    error: Mapping[str, Any] | None, loc: Sequence[str | int], raw: object, secret: Set[str]
) -> bool:
    """Whether the value of an error must not be shown, by its name or by its type."""
    if not secret.isdisjoint(loc):
        return True
    if is_secret_path(loc):
        return not shown_anyway(raw)
    if type(raw) not in PLAIN_TYPES and _types.class_name(raw).startswith(_SECRET_CLASSES):
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


def clean_message(message: str, raw: object, *, hidden: bool) -> str:
    """*message* without secrets, also when it repeats the hidden value itself."""
    if hidden and raw is not ABSENT:
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
    text = exception_text(exc) if _types.is_a(exc, BaseException) else ""
    return redact_text(first_line(plain(text, 4_000), _LONGEST_MESSAGE)) or "Invalid value"


# Reading jsonschema errors by their attributes (`validator`, `absolute_path`, `instance`).

# keyword that failed -> code, words, what was expected
_KEYWORDS: dict[str, tuple[str | None, str | None, str | None]] = {
    "type": ("wrong_type", "Input should be a valid {}", "{}"),
    "enum": ("invalid_choice", "Input should be {}", None),
    "const": ("invalid_choice", "Input should be {}", None),
    "required": ("missing_field", None, None),
    "dependentRequired": ("missing_field", None, None),
    "dependencies": ("missing_field", None, None),
    "additionalProperties": ("unknown_field", None, None),
    "unevaluatedProperties": ("unknown_field", None, None),
    "maximum": ("field_too_large", "Input should be less than or equal to {}", "<= {}"),
    "exclusiveMaximum": ("field_too_large", "Input should be less than {}", "< {}"),
    "maxLength": ("field_too_large", "String should have at most {} characters", "length <= {}"),
    "maxItems": ("field_too_large", "Array should have at most {} items", "length <= {}"),
    "maxProperties": ("field_too_large", "Object should have at most {} items", "length <= {}"),
    "minimum": ("field_too_small", "Input should be greater than or equal to {}", ">= {}"),
    "exclusiveMinimum": ("field_too_small", "Input should be greater than {}", "> {}"),
    "minLength": ("field_too_small", "String should have at least {} characters", "length >= {}"),
    "minItems": ("field_too_small", "Array should have at least {} items", "length >= {}"),
    "minProperties": ("field_too_small", "Object should have at least {} items", "length >= {}"),
    "pattern": ("invalid_format", "String should match pattern '{}'", "pattern {}"),
    "format": ("invalid_format", "Input should be a valid {}", None),
    "multipleOf": ("invalid_format", "Input should be a multiple of {}", "multiple of {}"),
    "uniqueItems": ("invalid_format", "Array items should be unique", None),
    "depth": ("invalid_format", "Input is nested too deeply", None),
    "oneOf": (None, "Input should match exactly one of the alternatives", None),
    "None": (None, "Input is not allowed", None),  # by a schema that is `false`
}
_OTHER_KEYWORD = (None, None, None)
KEYWORD_CODES = {name: code for name, (code, _, _) in _KEYWORDS.items() if code is not None}
"""JSON Schema keyword that failed -> code."""

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
    return has(exc, "validator") and has(exc, "absolute_path") and has(exc, "instance")


def _read_schema_errors(
    errors: Sequence[object], args: object, secret: Set[str]
) -> tuple[list[Issue], int]:
    """The issues of *errors*; one error may name several missing or unexpected fields."""
    issues: list[Issue] = []
    for error in errors:
        if is_schema_error(error):
            for leaf in _schema_leaves(error):
                issues.extend(_schema_issues(leaf, args, secret))
    return issues[:_MOST_ISSUES], len(issues)


def _schema_leaves(error: Any) -> list[Any]:
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
        context = min(branches.values(), key=_branch_distance)
        if _branch_distance(context)[0]:
            return [error]
    return [leaf for inner in context for leaf in _schema_leaves(inner)]


def _branch_distance(branch: Sequence[Any]) -> tuple[bool, bool, int]:
    """How far a value is from an alternative: of another type, of another kind, how many errors."""
    near = [error for error in branch if len(error.relative_path) < 2]
    return (
        any(error.validator == "type" and not error.relative_path for error in near),
        any(error.validator in {"const", "enum"} for error in near),
        len(branch),
    )


def _schema_issues(error: Any, args: object, secret: Set[str]) -> Iterator[Issue]:
    keyword = str(error.validator)
    loc = tuple(p if type(p) is int else str(p) for p in error.absolute_path)
    instance, wanted = error.instance, error.validator_value
    if keyword in _ALTERNATIVES and error.context:
        keyword, wanted = "type", _types_of(error.context)
    if KEYWORD_CODES.get(keyword) == "missing_field" and isinstance(instance, dict):
        yield _schema_issue(keyword, (*loc, _missing_name(error, instance)), MISSING_TEXT)
    elif keyword in {"additionalProperties", "unevaluatedProperties"} and isinstance(
        instance, dict
    ):
        for name in _unexpected_names(error, instance):
            yield _schema_issue(
                keyword, (*loc, name), UNEXPECTED_TEXT, raw=[instance[name]], secret=secret
            )
    else:
        yield _schema_issue(
            keyword,
            loc,
            _schema_words(keyword, wanted),
            expected=_schema_expected(keyword, wanted),
            raw=[instance if args is None else raw_value(args, loc, instance)] if loc else [],
            secret=secret,
        )


def _types_of(context: Iterable[Any]) -> list[str]:
    """The types that alternatives want; null is no type to repair a value to."""
    wanted = [error.validator_value for error in context if error.validator == "type"]
    kinds = [kind for one in wanted for kind in ([one] if isinstance(one, str) else one)]
    return list(dict.fromkeys(kind for kind in kinds if kind != "null")) or ["null"]


def _schema_issue(
    keyword: str,
    loc: tuple[str | int, ...],
    message: str,
    *,
    expected: str | None = None,
    raw: Sequence[object] = (),
    secret: Set[str] = frozenset(),
) -> Issue:
    value = raw[0] if raw else ABSENT
    hidden = hides_value(None, loc, value, secret)
    code = KEYWORD_CODES.get(keyword, "invalid_input")
    return Issue.of_value(
        loc, code, message, value, hidden=hidden, expected=expected, type=keyword[:128]
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


def _schema_expected(keyword: str, wanted: object) -> str | None:
    if keyword in {"enum", "const"}:
        return _choice_words(wanted) if keyword == "enum" else safe_repr(wanted, 200)
    if keyword == "format":
        return _FORMATS.get(str(wanted), _plain_schema(wanted))
    template = _KEYWORDS.get(keyword, _OTHER_KEYWORD)[2]
    return template.format(_plain_schema(wanted)) if template else None


def _schema_words(keyword: str, wanted: object) -> str:
    template = _KEYWORDS.get(keyword, _OTHER_KEYWORD)[1]
    if template is None:
        return f"Input does not satisfy {keyword}"
    text = template.format(_choice_words(wanted) if keyword == "enum" else _plain_schema(wanted))
    return text[:-1] if wanted == 1 and text.endswith((" characters", " items")) else text


def _choice_words(choices: object) -> str:
    return listed(choices) if isinstance(choices, (list, tuple)) else safe_repr(choices, 200)


def _plain_schema(wanted: object) -> str:
    if isinstance(wanted, (list, tuple)):
        return " or ".join(_plain_schema(one) for one in wanted[:10])
    return wanted if isinstance(wanted, str) else safe_repr(wanted, 64)


# Reading msgspec errors, which are one sentence with a path at its end.

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


def _read_msgspec(exc: object, args: object, secret: Set[str]) -> tuple[list[Issue], int]:
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
            return [_msgspec_issue((*loc, named.group(1)), code, message, None, args, secret)], 1
    meaning, expected = _meaning(body)
    if meaning is None:
        return [], 0
    return [_msgspec_issue(loc, meaning, body, expected, args, secret)], 1


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


def _msgspec_issue(
    loc: tuple[str | int, ...],
    code: str,
    message: str,
    expected: str | None,
    args: object,
    secret: Set[str],
) -> Issue:
    raw = ABSENT if code == "missing_field" or not loc else raw_value(args, loc, ABSENT)
    hidden = hides_value(None, loc, raw, secret)
    message = clean_message(message, raw, hidden=hidden)
    return Issue.of_value(loc, code, message, raw, hidden=hidden, expected=expected, type="msgspec")
