"""Errors of pydantic as failures: messages, expectations, counts."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from tests.sdk.errors.refusing import failure, issue_of, refusal
from typing_extensions import TypedDict

from toolfault.coerce import coerce_int, coerce_json
from toolfault.errors import ToolError


class Http(BaseModel):
    follow_redirects: bool
    port: Annotated[int, BeforeValidator(coerce_int)] = Field(ge=1, le=65_535)


class StrictHttp(BaseModel):
    model_config = ConfigDict(strict=True)

    follow_redirects: bool
    port: int
    headers: Annotated[dict[str, str], BeforeValidator(coerce_json)]


def test_the_example_of_the_founding_document():
    """[A07][H-01][H-10][H-11] Three errors at once, in the order of the model."""
    args = {"follow_redirects": "true", "port": "80", "headers": "{invalid}"}
    error = failure(StrictHttp, args, context="HTTP request")

    assert error.render("llm") == (
        "Error: Invalid HTTP request - 3 errors:\n"
        "  • follow_redirects: Input should be a valid boolean (received str: 'true')\n"
        "  • port: Input should be a valid integer (received str: '80')\n"
        "  • headers: Invalid JSON: Expecting property name enclosed in double quotes "
        "(received str: '{invalid}')\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    assert error.render("user") == (
        "t: Invalid HTTP request - 3 errors (follow_redirects, port, headers)"
    )
    assert [(i.code, i.expected, i.received) for i in error.issues] == [
        ("wrong_type", "boolean", "'true'"),
        ("wrong_type", "integer", "'80'"),
        ("malformed_json", None, "'{invalid}'"),
    ]
    assert error.exception_type == "pydantic_core._pydantic_core.ValidationError"


def test_one_error_fills_the_top_level():
    """[A09][C5] Field, expected and received of the only issue are those of the failure."""
    error = failure(Http, {"follow_redirects": "maybe", "port": "80"})

    assert error.render("system") == (
        "tool=t code=wrong_type category=parameter: Invalid parameter value for follow_redirects: "
        "Input should be a valid boolean, unable to interpret input (received str: 'maybe')"
        " — field: follow_redirects — expected: boolean — received: 'maybe'"
        " — exception: pydantic_core._pydantic_core.ValidationError"
    )


class Item(BaseModel):
    port: int


class Batch(BaseModel):
    items: list[Item]


def test_nested_paths_are_dotted():
    """[A12][H-05] List indexes are part of the field; patterns group them."""
    error = failure(Batch, {"items": [{"port": 1}, {"port": "x"}, {}]})

    assert [(i.field, i.field_pattern, i.root_field) for i in error.issues] == [
        ("items.1.port", "items.*.port", "items"),
        ("items.2.port", "items.*.port", "items"),
    ]
    assert error.issues[0].received == "'x'"
    assert error.issues[1].received is None


class Range(BaseModel):
    start: int
    end: int

    @model_validator(mode="after")
    def ordered(self):
        if self.end < self.start:
            raise ValueError("end must be >= start")
        return self


def test_an_error_of_the_whole_model_shows_no_input():
    """[A13][C12] The prefix of pydantic is stripped and the arguments are not echoed."""
    error = failure(Range, {"start": 3, "end": 1})

    assert error.render("llm") == "Error: Invalid parameters: end must be >= start"
    assert (error.field, error.issues[0].field, error.issues[0].received) == (None, "(root)", None)


@pytest.mark.parametrize(
    ("text", "shown"), [("must be even", "must be even"), ("", "Invalid value")]
)
def test_prefixes_of_assertions_are_stripped(text, shown):
    """[C12] Assertion failed is stripped; an empty text says Invalid value."""

    class Model(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value):
            raise AssertionError(text)

    assert issue_of(Model, {"n": 1}).message == shown


def test_consequences_of_other_errors_do_not_count():
    """[H-05] Ruling 12: default_factory_not_called is dropped from issues and counts."""

    class Model(BaseModel):
        a: int
        b: int = Field(default_factory=lambda data: data["a"])

    error = failure(Model, {"a": "x"})

    assert [i.field for i in error.issues] == ["a"]
    assert error.issues_total == 1


def test_type_adapters_dataclasses_and_typed_dicts():
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


def test_exceptions_and_links_of_pydantic_do_not_reach_the_model():
    """[P-12] Trap 2: ctx holds exception objects and url is a link; neither is shown."""
    error = failure(Range, {"start": 3, "end": 1})

    text = json.dumps(error.to_llm_payload())
    assert "pydantic.dev" not in text
    assert "ValueError" not in text


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
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
        ("date", "x", "date (YYYY-MM-DD)"),
        ("uuid", "x", "UUID"),
        ("url", "x", "URL"),
    ],
)
def test_expected_speaks_json(annotation, value, expected):
    """[P-06] What was expected is said in JSON words."""
    import datetime
    import uuid

    from pydantic import AnyUrl

    named = {"date": datetime.date, "uuid": uuid.UUID, "url": AnyUrl}
    kind = named.get(annotation, annotation) if isinstance(annotation, str) else annotation
    exc = refusal(lambda: TypeAdapter(dict[str, kind]).validate_python({"f": value}))
    (issue,) = ToolError.from_validation_error("t", exc, {"f": value}).issues

    assert issue.expected == expected


def test_a_thousand_errors_are_counted_and_fifty_kept():
    """[H-16] The true total is told, the first fifty issues are kept."""
    args = {"items": [{"port": "x"}] * 1_000}
    error = failure(Batch, args)

    assert (error.issues_total, len(error.issues)) == (1_000, 50)
    assert error.render("llm").startswith("Error: Invalid parameters - 1000 errors:\n")


def test_frozen_dataclass_arguments_are_left_alone():
    """[P-07] The arguments of the caller are never changed."""

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        port: str

    args = {"items": [{"port": "x", "password": "y"}], "frozen": Frozen("z")}
    before = json.dumps(args["items"])
    failure(Batch, args)

    assert json.dumps(args["items"]) == before
