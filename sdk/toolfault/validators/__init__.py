"""Shared checks of arguments: each returns the value or raises a `ToolError` that says all.

Use them in tools, several at once with `collect`, in types with `Check`, and add your own with
`register_validator`.
"""

from __future__ import annotations

from toolfault.validators._check import Check
from toolfault.validators._diff import validate_unified_diff
from toolfault.validators._groups import Collector, collect, exactly_one, mutually_exclusive
from toolfault.validators._numbers import (
    count_tokens,
    validate_bounded_int,
    validate_bounded_number,
    validate_context_limit,
    validate_length,
)
from toolfault.validators._registry import (
    register_validator,
    registered_validators,
    validate,
    validator_named,
)
from toolfault.validators._texts import (
    validate_ascii_name,
    validate_choice,
    validate_extension,
    validate_json,
    validate_path,
    validate_pattern,
    validate_regex,
    validate_url,
)
from toolfault.validators._times import validate_date, validate_datetime, validate_time

__all__ = [
    "Check",
    "Collector",
    "collect",
    "count_tokens",
    "exactly_one",
    "mutually_exclusive",
    "register_validator",
    "registered_validators",
    "validate",
    "validate_ascii_name",
    "validate_bounded_int",
    "validate_bounded_number",
    "validate_choice",
    "validate_context_limit",
    "validate_date",
    "validate_datetime",
    "validate_extension",
    "validate_json",
    "validate_length",
    "validate_path",
    "validate_pattern",
    "validate_regex",
    "validate_time",
    "validate_unified_diff",
    "validate_url",
    "validator_named",
]

for _name, _validator in (
    ("bounded_int", validate_bounded_int),
    ("bounded_number", validate_bounded_number),
    ("length", validate_length),
    ("context_limit", validate_context_limit),
    ("choice", validate_choice),
    ("path", validate_path),
    ("extension", validate_extension),
    ("ascii_name", validate_ascii_name),
    ("unified_diff", validate_unified_diff),
    ("json", validate_json),
    ("url", validate_url),
    ("regex", validate_regex),
    ("pattern", validate_pattern),
    ("date", validate_date),
    ("time", validate_time),
    ("datetime", validate_datetime),
):
    register_validator(_name, _validator)
del _name, _validator
