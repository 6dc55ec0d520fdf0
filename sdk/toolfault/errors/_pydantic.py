"""What every pydantic error type means: its code, and what was expected in JSON words.

The table holds all types of pydantic-core 2.46 to 2.50; a test enumerates those of the installed
version, so that an upgrade that adds one is noticed. pydantic itself is never imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["CONSEQUENCES", "TYPE_CODES", "code_of_type", "expected_of"]

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
_OLD_PREFIXES = (
    ("value_error.missing", "missing_field"),
    ("value_error.extra", "unknown_field"),
    ("value_error.jsondecode", "malformed_json"),
    ("value_error.const", "invalid_choice"),
    ("type_error.enum", "invalid_choice"),
    ("value_error.number.not_le", "field_too_large"),
    ("value_error.number.not_lt", "field_too_large"),
    ("value_error.number.not_ge", "field_too_small"),
    ("value_error.number.not_gt", "field_too_small"),
    ("value_error.any_str.max", "field_too_large"),
    ("value_error.list.max", "field_too_large"),
    ("value_error.any_str.min", "field_too_small"),
    ("value_error.list.min", "field_too_small"),
    ("value_error.str", "invalid_format"),
    ("value_error.date", "invalid_format"),
    ("value_error.time", "invalid_format"),
    ("value_error.url", "invalid_format"),
    ("value_error.uuid", "invalid_format"),
    ("value_error.email", "invalid_format"),
    ("type_error.none.not_allowed", "wrong_type"),
    ("type_error", "wrong_type"),
    ("value_error", "invalid_input"),
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
    from toolfault.errors._codes import ToolErrorCode

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

# type -> (context key, template); the first key present in the error's context is used.
_FROM_CONTEXT: dict[str, tuple[tuple[str, str], ...]] = {
    "less_than_equal": (("le", "<= {}"),),
    "less_than": (("lt", "< {}"),),
    "greater_than_equal": (("ge", ">= {}"),),
    "greater_than": (("gt", "> {}"),),
    "multiple_of": (("multiple_of", "multiple of {}"),),
    "too_long": (("max_length", "length <= {}"),),
    "string_too_long": (("max_length", "length <= {}"),),
    "bytes_too_long": (("max_length", "length <= {}"),),
    "url_too_long": (("max_length", "length <= {}"),),
    "too_short": (("min_length", "length >= {}"),),
    "string_too_short": (("min_length", "length >= {}"),),
    "bytes_too_short": (("min_length", "length >= {}"),),
    "string_pattern_mismatch": (("pattern", "pattern {}"),),
    "enum": (("expected", "{}"),),
    "literal_error": (("expected", "{}"),),
    "union_tag_invalid": (("expected_tags", "{}"),),
    "url_scheme": (("expected_schemes", "URL scheme {}"),),
    "uuid_version": (("expected_version", "UUID version {}"),),
    "decimal_max_digits": (("max_digits", "at most {} digits"),),
    "decimal_max_places": (("decimal_places", "at most {} decimal places"),),
    "decimal_whole_digits": (("whole_digits", "at most {} digits before the point"),),
    "timezone_offset": (("tz_expected", "timezone offset {}"),),
    "value_error.number.not_le": (("limit_value", "<= {}"),),
    "value_error.number.not_lt": (("limit_value", "< {}"),),
    "value_error.number.not_ge": (("limit_value", ">= {}"),),
    "value_error.number.not_gt": (("limit_value", "> {}"),),
    "value_error.any_str.max_length": (("limit_value", "length <= {}"),),
    "value_error.any_str.min_length": (("limit_value", "length >= {}"),),
    "value_error.list.max_items": (("limit_value", "length <= {}"),),
    "value_error.list.min_items": (("limit_value", "length >= {}"),),
    "value_error.str.regex": (("pattern", "pattern {}"),),
}


def expected_of(name: str, context: dict[str, Any] | None) -> str | None:
    """What an error of type *name* expected, in JSON words, or None when it does not say.

    Only text and numbers of *context* are used: it may hold exceptions (`ctx["error"]`).
    """
    for key, template in _FROM_CONTEXT.get(name, ()):
        value = None if context is None else dict.get(context, key)
        if type(value) in (str, int, float):
            return template.format(value)
        if value is not None:
            from toolfault.errors._repr import safe_repr

            return template.format(safe_repr(value, 64))
    if name not in TYPE_CODES and context is not None:
        expected = dict.get(context, "expected")
        return expected if type(expected) is str else None
    return _EXPECTED_BY_TYPE.get(name)
