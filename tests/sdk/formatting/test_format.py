"""`format_validation_errors`, byte for byte."""

from __future__ import annotations

import json
from typing import Annotated

import jsonschema
import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from toolfault.coerce import coerce_bool, coerce_int, coerce_json
from toolfault.errors import ToolError
from toolfault.formatting import format_validation_errors


class HttpRequest(BaseModel):
    """The strict model of the founding document."""

    model_config = ConfigDict(strict=True)

    follow_redirects: bool
    port: int
    headers: Annotated[dict[str, str], BeforeValidator(coerce_json)]


class Coercing(BaseModel):
    """The same with its coercers."""

    follow_redirects: Annotated[bool, BeforeValidator(coerce_bool)]
    port: Annotated[int, BeforeValidator(coerce_int)]
    headers: Annotated[dict[str, str], BeforeValidator(coerce_json)]


ARGS = {"follow_redirects": "true", "port": "80", "headers": "{invalid}"}


def refusal(model, args):
    with pytest.raises(ValidationError) as caught:
        model(**args)
    return caught.value


def test_the_example_of_the_founding_document_byte_for_byte():
    """[H-01][H-04][H-10][H-11][A07] The seed's block is reproduced exactly."""
    text = format_validation_errors(refusal(HttpRequest, ARGS), "HTTP request")

    assert text == (
        "Invalid HTTP request - 3 errors:\n"
        "  • follow_redirects: Input should be a valid boolean (received str: 'true')\n"
        "  • port: Input should be a valid integer (received str: '80')\n"
        "  • headers: Invalid JSON: Expecting property name enclosed in double quotes "
        "(received str: '{invalid}')\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )


def test_the_failure_says_the_same_with_a_prefix():
    """[A07][H-12] The pipeline and the helper share one layout."""
    exc = refusal(HttpRequest, ARGS)
    error = ToolError.from_validation_error("http_request", exc, ARGS, "HTTP request")

    assert error.render("llm") == f"Error: {format_validation_errors(exc, 'HTTP request')}"


def test_one_error_is_one_line():
    """[H-03][A09] No type name, no footer, and the value in parentheses."""
    exc = refusal(HttpRequest, {"follow_redirects": "maybe", "port": 80, "headers": {}})

    assert format_validation_errors(exc, "HTTP request") == (
        "Invalid HTTP request: follow_redirects - Input should be a valid boolean "
        "(received: 'maybe')"
    )


def test_coercers_leave_one_error():
    """[H-09][C12] With its coercers the model refuses the headers alone."""
    exc = refusal(Coercing, ARGS)

    assert format_validation_errors(exc) == (
        "Invalid parameters: headers - Invalid JSON: Expecting property name enclosed in double "
        "quotes (received: '{invalid}')"
    )


def test_missing_fields_show_no_input():
    """[H-06][A11][C16] pydantic's input of a missing field is all arguments: never printed."""

    class Login(BaseModel):
        user: str
        password: str = Field(min_length=8)

    text = format_validation_errors(refusal(Login, {"password": "abc"}))

    assert text.splitlines()[1:3] == [
        "  • user: Field required (received unknown: 'N/A')",
        "  • password: String should have at least 8 characters (received str: [REDACTED])",
    ]
    alone = format_validation_errors(refusal(Login, {"password": "abcdefgh"}))
    assert alone == "Invalid parameters: user - Field required (received: 'N/A')"


class Errors:
    """Anything with .errors()."""

    def __init__(self, *found):
        self.found = list(found)

    def errors(self):
        return self.found


ONE = {"loc": ("a",), "msg": "field required", "type": "value_error.missing"}


def test_errors_without_input_are_unknown():
    """[H-06][C13] Neither form raises KeyError when there is no input."""
    assert format_validation_errors(Errors(ONE)) == (
        "Invalid parameters: a - field required (received: 'N/A')"
    )
    assert format_validation_errors(Errors(ONE, ONE)).splitlines()[1] == (
        "  • a: field required (received unknown: 'N/A')"
    )


def test_paths_are_dotted_and_in_order():
    """[H-05] loc is joined with dots, indexes included, in the order given."""
    errors = [
        {"loc": ("items", 1, "port"), "msg": "m", "type": "int_type", "input": n} for n in range(3)
    ]
    lines = format_validation_errors(Errors(*errors)).splitlines()

    assert lines[0] == "Invalid parameters - 3 errors:"
    assert lines[1:4] == [f"  • items.1.port: m (received int: {n})" for n in range(3)]


def test_the_count_is_what_errors_returns():
    """[H-05] Ruling 12: the helper counts consequences too."""
    consequence = {"loc": ("b",), "msg": "not called", "type": "default_factory_not_called"}

    assert format_validation_errors(Errors(ONE, consequence)).startswith(
        "Invalid parameters - 2 errors:"
    )


def test_a_thousand_errors_are_twenty_bullets():
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


@pytest.mark.parametrize("prefix", ["Value error, ", "Assertion failed, "])
def test_prefixes_of_pydantic_are_stripped(prefix):
    """[C12] The prefixes are stripped in both forms."""
    error = {"loc": ("a",), "msg": f"{prefix}no", "type": "value_error", "input": 1}

    assert format_validation_errors(Errors(error)) == "Invalid parameters: a - no (received: 1)"


def test_errors_of_the_whole_model_are_named_root():
    """[H-06] An empty path is (root), and the model's input is not shown."""
    error = {"loc": (), "msg": "end < start", "type": "value_error", "input": {"password": "x"}}

    assert format_validation_errors(Errors(error)) == (
        "Invalid parameters: (root) - end < start (received: 'N/A')"
    )


def test_secrets_are_redacted_by_key_and_by_shape():
    """[C16] Values and messages are clean."""
    found = [
        {"loc": ("api_key",), "msg": "m", "type": "string_type", "input": "abc"},
        {"loc": ("note",), "msg": "bad sk-abcdef123456", "type": "x", "input": {"token": "abc"}},
    ]
    text = format_validation_errors(Errors(*found))

    assert "  • api_key: m (received str: [REDACTED])" in text
    assert "  • note: bad [REDACTED] (received dict: {'token': '[REDACTED]'})" in text


def test_other_libraries_have_the_same_layout():
    """[H-13] There is one formatter for every library."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    errors = list(jsonschema.Draft202012Validator(schema).iter_errors({"a": "x", "b": 1}))

    assert format_validation_errors(errors) == (
        "Invalid parameters - 2 errors:\n"
        "  • a: Input should be of type integer (received str: 'x')\n"
        "  • b: Input should be of type string (received int: 1)\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert format_validation_errors(ValueError("odd")) == (
        "Invalid parameters: (root) - odd (received: 'N/A')"
    )


def test_a_custom_error_of_pydantic_is_formatted_as_any_other():
    """[P-17] Custom error types keep their own words."""

    class Model(BaseModel):
        n: Annotated[int, BeforeValidator(_refuse)]

    assert format_validation_errors(refusal(Model, {"n": 1})) == (
        "Invalid parameters: n - not today (received: 1)"
    )


def _refuse(value):
    raise PydanticCustomError("closed", "not today")


@pytest.mark.parametrize(
    "error",
    [Errors(), Errors(None), Errors({}), Errors({"loc": 5, "msg": 5}), object(), None, 5, "text"],
)
def test_strange_objects_do_not_raise(error):
    """[H-02] Any object gives a text."""
    assert format_validation_errors(error).startswith("Invalid parameters")


def test_control_characters_cannot_forge_a_line():
    """[L-16] Trap 11: names and context stay on their line."""
    error = {"loc": ("a\n  • b: fine",), "msg": "m", "type": "t", "input": "x\n  • c"}
    text = format_validation_errors(Errors(error), "x\nERROR")

    assert "\n" not in text
    json.dumps(text)
