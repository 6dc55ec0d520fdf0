"""Errors of msgspec as failures."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import pytest

from toolfault.errors import ToolError


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    port: Annotated[int, msgspec.Meta(le=10)]
    unit: Literal["c", "f"] = "c"
    name: Annotated[str, msgspec.Meta(min_length=2)] = "ab"


class Outer(msgspec.Struct):
    items: list[Inner]


def test_errors_of_msgspec() -> None:
    """[H-02][H-13] The sentence of msgspec is read into field, code and expectation."""
    cases: list[tuple[object, str, str, str | None, str | None]] = [
        ({"port": "x"}, "items.0.port", "wrong_type", "integer", "'x'"),
        ({"port": 99}, "items.0.port", "field_too_large", "<= 10", "99"),
        ({}, "items.0.port", "missing_field", None, None),
        ({"port": 1, "z": 2}, "items.0.z", "unknown_field", None, "2"),
        ({"port": 1, "unit": "k"}, "items.0.unit", "invalid_choice", None, "'k'"),
        ({"port": 1, "name": "a"}, "items.0.name", "field_too_small", "length >= 2", "'a'"),
        (5, "items.0", "wrong_type", "object", "5"),
    ]
    for item, *told in cases:
        args = {"items": [item]}
        with pytest.raises(msgspec.ValidationError) as caught:
            msgspec.convert(args, Outer)
        error = ToolError.from_validation_error("t", caught.value, args)

        assert [error.field, error.code, error.expected, error.received] == told


def test_broken_json_of_msgspec() -> None:
    """[H-10] A decode error is malformed_json about the arguments as a whole."""
    with pytest.raises(msgspec.DecodeError) as caught:
        msgspec.json.decode(b"{bad", type=Outer)
    error = ToolError.from_validation_error("t", caught.value)

    assert (error.code, error.issues[0].field) == ("malformed_json", "(root)")
