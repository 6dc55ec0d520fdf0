"""The received value of an issue: what the model sent, found again in its arguments."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    validate_call,
)
from tests.sdk.errors.refusing import issue_of, refusal

from toolfault.coerce import coerce_int
from toolfault.errors import ToolError


class Http(BaseModel):
    follow_redirects: bool
    port: Annotated[int, BeforeValidator(coerce_int)] = Field(ge=1, le=65_535)


def test_received_is_what_the_model_sent():
    """[A10][H-09] The value before coercion is shown, not pydantic's own input."""
    issue = issue_of(Http, {"follow_redirects": True, "port": "99999"})

    assert (issue.code, issue.expected, issue.received, issue.received_type) == (
        "field_too_large",
        "<= 65535",
        "'99999'",
        "str",
    )


class Either(BaseModel):
    x: int | list[str]


def test_arguments_parsed_twice_are_still_recognised():
    """[A10] Equal containers count as the same value, though they are other objects."""
    args = {"x": {"int": 5}}
    with pytest.raises(ValidationError) as caught:
        Either.model_validate_json(json.dumps(args))
    error = ToolError.from_validation_error("t", caught.value, json.loads(json.dumps(args)))

    assert {i.received for i in error.issues} == {"{'int': 5}"}


def test_a_real_key_that_is_named_like_a_branch_is_followed():
    """[A10] Only a part that pydantic added is a label; real keys of a dict are not."""

    class Model(BaseModel):
        x: dict[str, dict[str, int]]

    issue = issue_of(Model, {"x": {"int": {"str": "no"}}})

    assert (issue.field, issue.received) == ("x.int.str", "'no'")


def test_coerced_values_inside_containers_show_the_raw_one():
    """[A10] The raw value is found below lists and dicts as well."""

    class Model(BaseModel):
        ports: list[Annotated[int, Field(le=10)]]

    assert issue_of(Model, {"ports": ["1", "99"]}).received == "'99'"


def test_a_wrong_key_of_a_dict_is_shown_itself():
    """[H-05] For an error of a key, received is the key."""

    class Model(BaseModel):
        d: dict[int, int]

    issue = issue_of(Model, {"d": {"a": 1}})
    assert (issue.received, issue.field) == ("'a'", "d.a.[key]")


def test_json_inside_a_string_is_not_indexed():
    """[A10] The path into parsed JSON shows the string the model sent."""
    from pydantic import Json

    class Model(BaseModel):
        a: Json[list[int]]

    assert issue_of(Model, {"a": '["x"]'}).received == "'[\"x\"]'"


def test_an_alias_that_is_no_key_falls_back_to_pydantics_input():
    """[A10] Where the path does not start in the arguments, pydantic knows the value."""

    class Model(BaseModel):
        model_config = ConfigDict(populate_by_name=True, loc_by_alias=True)
        follow: int = Field(alias="followRedirects")

    assert issue_of(Model, {"follow": "x"}).received == "'x'"


def test_positional_arguments_go_by_their_parameter_names():
    """[L-10][C16] Trap 4: an index becomes the name, and ArgsKwargs is never printed."""

    @validate_call
    def function(a: int, b: int = 2, *, c: int):
        return a

    error = ToolError.from_validation_error(
        "t", refusal(lambda: function("x", key="hunter2")), parameters=("a", "b", "c")
    )

    assert [(i.field, i.code, i.received) for i in error.issues] == [
        ("a", "wrong_type", "'x'"),
        ("c", "missing_field", None),
        ("key", "unknown_field", "'hunter2'"),
    ]
    assert "ArgsKwargs" not in json.dumps([error.to_llm_payload(), error.renderings()])
