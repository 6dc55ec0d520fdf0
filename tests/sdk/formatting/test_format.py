"""`format_validation_errors`, byte for byte."""

from __future__ import annotations

import json
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from toolfault.formatting import format_validation_errors


def refusal(model, args):
    with pytest.raises(ValidationError) as caught:
        model(**args)
    return caught.value


class Errors:
    """Anything with .errors()."""

    def __init__(self, *found):
        self.found = list(found)

    def errors(self):
        return self.found


ONE = {"loc": ("a",), "msg": "field required", "type": "value_error.missing"}


def test_errors_without_input_are_unknown() -> None:
    """[H-06][C13] Neither form raises KeyError when there is no input."""
    assert format_validation_errors(Errors(ONE)) == (
        "Invalid parameters: a - field required (received: 'N/A')"
    )
    assert format_validation_errors(Errors(ONE, ONE)).splitlines()[1] == (
        "  • a: field required (received unknown: 'N/A')"
    )


def test_a_missing_field_alone_shows_no_input() -> None:
    """[H-06][C16] pydantic's input of a missing field is all arguments: never printed."""

    class Login(BaseModel):
        user: str
        password: str

    assert format_validation_errors(refusal(Login, {"password": "abcdefgh"})) == (
        "Invalid parameters: user - Field required (received: 'N/A')"
    )


def test_paths_are_dotted_and_in_order() -> None:
    """[H-05] loc is joined with dots, indexes included, in the order given."""
    errors = [
        {"loc": ("items", 1, "port"), "msg": "m", "type": "int_type", "input": n} for n in range(3)
    ]
    lines = format_validation_errors(Errors(*errors)).splitlines()

    assert lines[0] == "Invalid parameters - 3 errors:"
    assert lines[1:4] == [f"  • items.1.port: m (received int: {n})" for n in range(3)]


def test_the_count_is_what_errors_returns() -> None:
    """[H-05] Ruling 12: the helper counts consequences too."""
    consequence = {"loc": ("b",), "msg": "not called", "type": "default_factory_not_called"}

    assert format_validation_errors(Errors(ONE, consequence)).startswith(
        "Invalid parameters - 2 errors:"
    )


def test_a_thousand_errors_are_twenty_bullets() -> None:
    """[H-16] The header tells the true total; the text stays short."""
    many = [
        {"loc": ("f", n), "msg": "m", "type": "int_type", "input": "x" * 9_999}
        for n in range(1_000)
    ]
    text = format_validation_errors(Errors(*many))
    lines = text.splitlines()

    assert lines[0] == "Invalid parameters - 1000 errors:"
    assert lines[21] == "  … and 980 more errors"
    assert lines[22:] == ["", "Please fix all errors and retry with correct types."]
    assert not text.endswith("\n")
    assert len(text) < 6_000


def test_prefixes_of_pydantic_are_stripped() -> None:
    """[C12] The prefixes are stripped in both forms."""
    for prefix in ["Value error, ", "Assertion failed, "]:
        error = {"loc": ("a",), "msg": f"{prefix}no", "type": "value_error", "input": 1}

        assert format_validation_errors(Errors(error)) == "Invalid parameters: a - no (received: 1)"


def test_errors_of_the_whole_model_are_named_root() -> None:
    """[H-06] An empty path is (root), and the model's input is not shown."""
    error = {"loc": (), "msg": "end < start", "type": "value_error", "input": {"password": "x"}}

    assert format_validation_errors(Errors(error)) == (
        "Invalid parameters: (root) - end < start (received: 'N/A')"
    )


def test_secrets_are_redacted_by_key_and_by_shape() -> None:
    """[C16] Values and messages are clean."""
    found = [
        {"loc": ("api_key",), "msg": "m", "type": "string_type", "input": "abc"},
        {"loc": ("note",), "msg": "bad sk-abcdef123456", "type": "x", "input": {"token": "abc"}},
    ]
    text = format_validation_errors(Errors(*found))

    assert "  • api_key: m (received str: [REDACTED])" in text
    assert "  • note: bad [REDACTED] (received dict: {'token': '[REDACTED]'})" in text


def test_other_libraries_have_the_same_layout() -> None:
    """[H-13] There is one formatter for every library."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors({"a": "x", "b": 1}))

    assert format_validation_errors(errors) == (
        "Invalid parameters - 2 errors:\n"
        "  • a: Input should be a valid integer (received str: 'x')\n"
        "  • b: Input should be a valid string (received int: 1)\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert format_validation_errors(ValueError("odd")) == (
        "Invalid parameters: (root) - odd (received: 'N/A')"
    )


def test_a_custom_error_of_pydantic_is_formatted_as_any_other() -> None:
    """[P-17] Custom error types keep their own words."""

    class Model(BaseModel):
        n: Annotated[int, BeforeValidator(_refuse)]

    assert format_validation_errors(refusal(Model, {"n": 1})) == (
        "Invalid parameters: n - not today (received: 1)"
    )


def _refuse(value):
    raise PydanticCustomError("closed", "not today")


def test_strange_objects_do_not_raise() -> None:
    """[H-02] Any object gives a text."""
    strange: list[Any] = [
        Errors(),
        Errors(None),
        Errors({}),
        Errors({"loc": 5, "msg": 5}),
        object(),
        None,
        5,
        "text",
    ]
    for error in strange:
        assert format_validation_errors(error).startswith("Invalid parameters")


def test_control_characters_cannot_forge_a_line() -> None:
    """[L-16] Trap 11: names and context stay on their line."""
    error = {"loc": ("a\n  • b: fine",), "msg": "m", "type": "t", "input": "x\n  • c"}
    text = format_validation_errors(Errors(error), "x\nERROR")

    assert "\n" not in text
    json.dumps(text)
