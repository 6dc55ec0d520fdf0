"""Which code an error of a validation library gets."""

from __future__ import annotations

from pydantic import (
    BaseModel,
    field_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_core._pydantic_core import list_all_errors
from tests.sdk.errors.refusing import issue_of

from toolfault.errors import ToolErrorCode
from toolfault.formatting import PYDANTIC_CODES, code_of_type


def test_every_error_type_of_the_installed_pydantic_is_mapped() -> None:
    """[H-13] Ruling 3: an upgrade of pydantic that adds a type is noticed here."""
    codes = {code.value for code in ToolErrorCode}
    names = [error["type"] for error in list_all_errors()]

    assert len(names) > 100
    assert [name for name in names if PYDANTIC_CODES.get(name) not in codes] == []


def test_types_outside_the_table_have_a_code_too() -> None:
    """[H-13] Newer, custom and pydantic 1 types are mapped; unknown ones are invalid_input."""
    for name, code in [
        ("ellipsis_error", "wrong_type"),
        ("fraction_parsing", "wrong_type"),
        ("recursion_depth_exceeded", "invalid_format"),
        ("named_tuple_type", "wrong_type"),
        ("never_heard_of", "invalid_input"),
        ("malformed_diff", "malformed_diff"),
        ("not_found", "not_found"),
        ("value_error.missing", "missing_field"),
        ("type_error.integer", "wrong_type"),
        ("value_error.number.not_le", "field_too_large"),
        ("value_error.any_str.min_length", "field_too_small"),
        ("value_error.extra", "unknown_field"),
        ("value_error.jsondecode", "malformed_json"),
    ]:
        assert code_of_type(name) == code


def test_a_value_error_about_json_is_malformed_json() -> None:
    """[H-10] The text decides for value errors that start with Invalid JSON."""
    assert code_of_type("value_error", "Invalid JSON: Expecting value") == "malformed_json"
    assert code_of_type("value_error", "no good") == "invalid_input"


def test_custom_error_types_can_name_a_code() -> None:
    """[P-17] PydanticCustomError with the name of a code means that code."""

    class Model(BaseModel):
        diff: str

        @field_validator("diff")
        @classmethod
        def check(cls, value):
            raise PydanticCustomError("malformed_diff", "no hunk", {"expected": "a unified diff"})

    issue = issue_of(Model, {"diff": "x"})
    assert (issue.code, issue.message, issue.expected) == (
        "malformed_diff",
        "no hunk",
        "a unified diff",
    )
