"""Errors of jsonschema as failures."""

from __future__ import annotations

import json

import jsonschema
import pytest

from toolfault.errors import ToolError

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "port": {"type": "integer", "maximum": 10},
        "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "password": {"type": "string", "minLength": 8},
    },
    "required": ["port", "city"],
    "additionalProperties": False,
}


def test_all_errors_of_jsonschema() -> None:
    """[H-02][H-13] A sequence of jsonschema errors is one failure with every issue."""
    args = {
        "port": 99,
        "unit": "k",
        "tags": ["ok", "x", 5],
        "password": "abc",
        "extra": 1,
        "more": 2,
    }
    errors = sorted(
        jsonschema.Draft202012Validator(SCHEMA).iter_errors(args),
        key=lambda e: str(e.absolute_path),
    )
    error = ToolError.from_validation_error("t", errors, args)

    found = {i.field: (i.code.value, i.expected, i.received) for i in error.issues}
    assert found == {
        "city": ("missing_field", None, None),
        "extra": ("unknown_field", None, "1"),
        "more": ("unknown_field", None, "2"),
        "port": ("field_too_large", "<= 10", "99"),
        "unit": ("invalid_choice", "'c' or 'f'", "'k'"),
        "tags.1": ("field_too_small", "length >= 2", "'x'"),
        "tags.2": ("wrong_type", "string", "5"),
        "password": ("field_too_small", "length >= 8", "[REDACTED]"),
    }
    assert "'abc'" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_one_error_of_jsonschema() -> None:
    """[H-02] A raised jsonschema error is read as one issue."""
    args = {"port": "x", "city": "c"}
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate(args, SCHEMA)
    error = ToolError.from_validation_error("t", caught.value, args)

    assert error.render("llm") == (
        "Error: Invalid parameter value for port: Input should be a valid integer "
        "(received str: 'x')"
    )
    assert error.cause is caught.value
