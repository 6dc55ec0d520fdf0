"""Error types of pydantic and zod as error codes of protocol v1 (contract of the SDK, section 3.4).

Of pydantic's only what is not ``invalid_input`` is listed; newer types fall back to it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["PYDANTIC_CODES", "ZOD_CODES"]

_PYDANTIC: Final[Mapping[str, str]] = {
    "missing_field": "missing missing_sentinel_error union_tag_not_found missing_argument"
    " missing_keyword_only_argument missing_positional_only_argument",
    "unknown_field": "no_such_attribute extra_forbidden unexpected_keyword_argument"
    " unexpected_positional_argument",
    "wrong_type": "json_type invalid_key model_type model_attributes_type dataclass_type"
    " dataclass_exact_type none_required iterable_type string_type string_sub_type dict_type"
    " mapping_type list_type tuple_type set_type set_item_not_hashable bool_type bool_parsing"
    " int_type int_parsing int_from_float float_type float_parsing bytes_type date_type time_type"
    " datetime_type time_delta_type frozen_set_type is_instance_of is_subclass_of callable_type"
    " arguments_type url_type uuid_type decimal_type decimal_parsing complex_type ellipsis_error"
    " fraction_type fraction_parsing named_tuple_type counter_type ordered_dict_type"
    " frozen_dict_type deque_type",
    "invalid_format": "recursion_loop multiple_of finite_number string_unicode"
    " string_pattern_mismatch string_not_ascii bytes_invalid_encoding date_parsing"
    " date_from_datetime_parsing date_from_datetime_inexact date_past date_future time_parsing"
    " datetime_parsing datetime_object_invalid datetime_from_date_parsing datetime_past"
    " datetime_future timezone_naive timezone_aware timezone_offset time_delta_parsing url_parsing"
    " url_syntax_violation url_scheme uuid_parsing uuid_version decimal_max_places"
    " complex_str_parsing recursion_depth_exceeded",
    "invalid_choice": "enum literal_error union_tag_invalid",
    "field_too_large": "less_than less_than_equal too_long string_too_long int_parsing_size"
    " bytes_too_long url_too_long decimal_max_digits decimal_whole_digits",
    "field_too_small": "greater_than greater_than_equal too_short string_too_short bytes_too_short",
    "malformed_json": "json_invalid",
}
_ZOD: Final[Mapping[str, str]] = {
    "wrong_type": "invalid_type invalid_union",
    "unknown_field": "unrecognized_keys",
    "invalid_choice": "invalid_enum_value invalid_literal invalid_value"
    " invalid_union_discriminator",
    "invalid_format": "invalid_string invalid_format invalid_date not_multiple_of",
    "field_too_large": "too_big",
    "field_too_small": "too_small",
    "invalid_input": "custom",
}


def _by_type(codes: Mapping[str, str]) -> Mapping[str, str]:
    return {name: code for code, names in codes.items() for name in names.split()}


PYDANTIC_CODES: Final = _by_type(_PYDANTIC)
ZOD_CODES: Final = _by_type(_ZOD)
