"""Errors of pydantic as failures: messages, expectations, counts."""

from __future__ import annotations

import dataclasses
import datetime
import json
import uuid
from typing import Annotated, Any, Literal

from pydantic import (
    AnyUrl,
    BaseModel,
    Field,
    TypeAdapter,
    create_model,
    field_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from tests.sdk.errors.refusing import failure, issue_of, refusal
from typing_extensions import TypedDict

from toolfault.errors import ToolError


class Item(BaseModel):
    port: int


class Batch(BaseModel):
    items: list[Item]


def test_prefixes_of_assertions_are_stripped() -> None:
    """[C12] Assertion failed is stripped; an empty text says Invalid value."""

    class Model(BaseModel):
        text: str

        @field_validator("text")
        @classmethod
        def check(cls, value: str) -> str:
            raise AssertionError(value)

    for text, shown in [("must be even", "must be even"), ("", "Invalid value")]:
        assert issue_of(Model, {"text": text}).message == shown


def test_consequences_of_other_errors_do_not_count() -> None:
    """[H-05] Ruling 12: default_factory_not_called is dropped from issues and counts."""

    class Model(BaseModel):
        a: int
        b: int = Field(default_factory=lambda data: data["a"])

    error = failure(Model, {"a": "x"})

    assert [i.field for i in error.issues] == ["a"]
    assert error.issues_total == 1


def test_type_adapters_dataclasses_and_typed_dicts() -> None:
    """[H-02] Everything pydantic validates has the same errors."""

    class Movie(TypedDict):
        year: int

    @pydantic_dataclass
    class Point:
        x: int

    adapter = TypeAdapter(list[Movie])
    args: Any = [{"year": 1}, {"year": "x"}]
    error = ToolError.from_validation_error(
        "t", refusal(lambda: adapter.validate_python(args)), args
    )
    assert (error.field, error.received) == ("1.year", "'x'")
    assert failure(Point, {"x": "y"}).field == "x"
    root = ToolError.from_validation_error(
        "t", refusal(lambda: TypeAdapter(int).validate_python("x"))
    )
    assert (root.issues[0].field, root.issues[0].received) == ("(root)", None)


def test_expected_speaks_json() -> None:
    """[P-06] What was expected is said in JSON words."""
    cases: list[tuple[Any, object, str]] = [
        (bool, "x", "boolean"),
        (int, "x", "integer"),
        (float, "x", "number"),
        (str, 1, "string"),
        (dict, 1, "object"),
        (list, 1, "array"),
        (None, 1, "null"),
        (Annotated[int, Field(lt=5)], 7, "< 5"),
        (Annotated[int, Field(ge=5)], 3, ">= 5"),
        (Annotated[int, Field(gt=5)], 3, "> 5"),
        (Annotated[list, Field(max_length=1)], [1, 2], "length <= 1"),
        (Annotated[str, Field(max_length=4)], "12345", "length <= 4"),
        (Annotated[str, Field(pattern="^a+$")], "b", "pattern ^a+$"),
        (Annotated[int, Field(multiple_of=5)], 3, "multiple of 5"),
        (Literal["a", "b"], "c", "'a' or 'b'"),
        (datetime.date, "x", "date (YYYY-MM-DD)"),
        (uuid.UUID, "x", "UUID"),
        (AnyUrl, "x", "URL"),
    ]
    for annotation, value, expected in cases:
        model = create_model("Model", f=(annotation, ...))

        assert issue_of(model, {"f": value}).expected == expected


def test_a_thousand_errors_are_counted_and_fifty_kept() -> None:
    """[H-16] The true total is told, the first fifty issues are kept."""
    args = {"items": [{"port": "x"}] * 1_000}
    error = failure(Batch, args)

    assert (error.issues_total, len(error.issues)) == (1_000, 50)
    assert error.render("llm").startswith("Error: Invalid parameters - 1000 errors:\n")


def test_frozen_dataclass_arguments_are_left_alone() -> None:
    """[P-07] The arguments of the caller are never changed."""

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        port: str

    args = {"items": [{"port": "x", "password": "y"}], "frozen": Frozen("z")}
    before = json.dumps(args["items"])
    failure(Batch, args)

    assert json.dumps(args["items"]) == before
