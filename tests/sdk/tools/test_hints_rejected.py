"""Validation from type hints: what is rejected, and in which words."""
# ruff: noqa: UP045 - the older spellings are among what is tested

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import annotated_types as at
import msgspec
import pytest
from pydantic import Field
from tests.sdk.tools.hinted import Color, Model, Options, Ordered, Point, Struct, Tree, check, short

from toolfault.coerce import LLMInt, LLMJson

REJECTED: list[tuple[Any, Any, list[Any]]] = [
    (int, "80", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (int, True, [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        int,
        2.5,
        [
            (
                (),
                "wrong_type",
                "Input should be a valid integer, got a number with a fractional part",
                "integer",
            )
        ],
    ),
    (int, float("nan"), [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (float, True, [((), "wrong_type", "Input should be a valid number", "number")]),
    (bool, "true", [((), "wrong_type", "Input should be a valid boolean", "boolean")]),
    (bool, 1, [((), "wrong_type", "Input should be a valid boolean", "boolean")]),
    (str, 1, [((), "wrong_type", "Input should be a valid string", "string")]),
    (None, 0, [((), "wrong_type", "Input should be None", "null")]),
    (list[int], "x", [((), "wrong_type", "Input should be a valid list", "array")]),
    (
        list[int],
        [1, "x", None],
        [
            ((1,), "wrong_type", "Input should be a valid integer", "integer"),
            ((2,), "wrong_type", "Input should be a valid integer", "integer"),
        ],
    ),
    (set[Any], [[1]], [((), "wrong_type", "Set items should be hashable", "array")]),
    (
        tuple[int, str],
        [1],
        [((), "field_too_small", "Tuple should have exactly 2 items, not 1", "length 2")],
    ),
    (dict[str, int], [], [((), "wrong_type", "Input should be a valid dictionary", "object")]),
    (
        dict[int, int],
        {"a": 1},
        [(("a",), "wrong_type", "Input should be a valid integer", "integer")],
    ),
    (
        Literal["a", "b", "c"],
        "d",
        [((), "invalid_choice", "Input should be 'a', 'b' or 'c'", "'a', 'b' or 'c'")],
    ),
    (Literal[1], True, [((), "invalid_choice", "Input should be 1", "1")]),
    (Color, "Red", [((), "invalid_choice", "Input should be 'red' or 'blue'", "'red' or 'blue'")]),
    (
        Color,
        ["red"],
        [((), "invalid_choice", "Input should be 'red' or 'blue'", "'red' or 'blue'")],
    ),
    (Optional[int], "x", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        int | list[str],
        "x",
        [((), "wrong_type", "Input should be a valid integer or array", "integer or array")],
    ),
    (int | list[str], [1], [((0,), "wrong_type", "Input should be a valid string", "string")]),
    (
        Point,
        {"x": "1", "z": 2},
        [
            (("x",), "wrong_type", "Input should be a valid integer", "integer"),
            (("z",), "unknown_field", "Unexpected parameter", None),
        ],
    ),
    (Point, {}, [(("x",), "missing_field", "Missing required parameter", None)]),
    (Point, 3, [((), "wrong_type", "Input should be a valid dictionary", "object")]),
    (Ordered, {"start": 3, "end": 1}, [((), "invalid_input", "end must be >= start", None)]),
    (
        Tree,
        {"value": 1, "children": [{"value": "2"}, {}]},
        [
            (("children", 0, "value"), "wrong_type", "Input should be a valid integer", "integer"),
            (("children", 1, "value"), "missing_field", "Missing required parameter", None),
        ],
    ),
    (
        Options,
        {"limit": "3", "x": 1},
        [
            (("limit",), "wrong_type", "Input should be a valid integer", "integer"),
            (("x",), "unknown_field", "Unexpected parameter", None),
        ],
    ),
    (
        Annotated[int, at.Ge(1), at.Le(10)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[int, at.Interval(gt=0, lt=10)],
        10,
        [((), "field_too_large", "Input should be less than 10", "< 10")],
    ),
    (
        Annotated[float, at.Gt(0)],
        float("nan"),
        [((), "field_too_small", "Input should be greater than 0", "> 0")],
    ),
    (
        Annotated[int | None, at.Ge(1)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[int, at.MultipleOf(5)],
        7,
        [((), "invalid_format", "Input should be a multiple of 5", "multiple of 5")],
    ),
    (
        Annotated[str, at.MinLen(8)],
        "abc",
        [((), "field_too_small", "String should have at least 8 characters", "length >= 8")],
    ),
    (
        Annotated[str, at.Len(1, 1)],
        "ab",
        [((), "field_too_large", "String should have at most 1 character", "length <= 1")],
    ),
    (
        Annotated[list[int], at.MaxLen(1)],
        [1, 2],
        [
            (
                (),
                "field_too_large",
                "List should have at most 1 item after validation, not 2",
                "length <= 1",
            )
        ],
    ),
    (
        Annotated[str, msgspec.Meta(pattern="^a+$")],
        "b",
        [((), "invalid_format", "String should match pattern '^a+$'", "pattern ^a+$")],
    ),
    (
        Annotated[int, Field(ge=1)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[str, at.Predicate(str.islower)],
        "A",
        [((), "invalid_input", "Invalid value", None)],
    ),
    (
        dt.date,
        "31.1.24",
        [((), "invalid_format", "Input should be a valid date", "date (YYYY-MM-DD)")],
    ),
    (UUID, "x", [((), "invalid_format", "Input should be a valid UUID", "UUID")]),
    (UUID, 3, [((), "wrong_type", "Input should be a valid UUID", "UUID")]),
    (LLMInt, "80x", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        LLMJson,
        "{bad}",
        [
            (
                (),
                "malformed_json",
                "Invalid JSON: Expecting property name enclosed in double quotes",
                None,
            )
        ],
    ),
]


@pytest.mark.parametrize(("annotation", "value", "wrong"), REJECTED, ids=short)
def test_what_is_rejected(annotation: Any, value: Any, wrong: list[Any]) -> None:
    """[P-14] Every mistake is named with path, code, sentence and what would have been right."""
    assert check(annotation, value)[1] == wrong


@pytest.mark.parametrize(
    ("annotation", "value", "path", "code"),
    [
        (Struct, {"name": 3}, ("name",), "wrong_type"),
        (Struct, {}, (), "missing_field"),
        (list[Model], [{"name": "a", "size": 0}], (0, "size"), "field_too_small"),
        (dict[str, Model], {"k": {}}, ("k", "name"), "missing_field"),
    ],
)
def test_foreign_models_inside_hints(
    annotation: Any, value: Any, path: tuple[Any, ...], code: str
) -> None:
    """A class with its own validation reports below the place where it stands."""
    [found] = check(annotation, value)[1]

    assert found[1] == code
    assert found[0][: len(path)] == path


def test_bounds_of_a_union_bind_what_they_can_be_compared_with() -> None:
    """A bound of numbers says nothing of texts, nor one of lengths of numbers."""
    annotation = Annotated[int | str | list[int], at.Ge(2), at.MaxLen(3)]

    assert [check(annotation, value)[1] for value in (2, "abc", [1], [1, 2, 3])] == [[]] * 4
    codes = [check(annotation, value)[1][0][1] for value in (1, "abcd", [1, 2, 3, 4])]
    assert codes == ["field_too_small", "field_too_large", "field_too_large"]


def test_a_cycle_ends_in_an_issue() -> None:
    """A value that contains itself is refused, not followed."""
    tree: dict[str, Any] = {"value": 1}
    tree["children"] = [tree]

    [(loc, code, message, _)] = check(Tree, tree)[1]

    assert (code, message) == ("invalid_format", "Input is nested too deeply")
    assert len(loc) < 100
