"""The received value of an issue: what the model sent, found again in its arguments."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from tests.sdk.errors.refusing import failure, issue_of

from toolfault.errors import ToolError


class Either(BaseModel):
    x: int | list[str]


def test_arguments_parsed_twice_are_still_recognised() -> None:
    """[A10] Equal containers count as the same value, though they are other objects."""
    args = {"x": {"int": 5}}
    with pytest.raises(ValidationError) as caught:
        Either.model_validate_json(json.dumps(args))
    error = ToolError.from_validation_error("t", caught.value, json.loads(json.dumps(args)))

    assert {i.received for i in error.issues} == {"{'int': 5}"}


def test_a_real_key_that_is_named_like_a_branch_is_followed() -> None:
    """[A10] Only a part that pydantic added is a label; real keys of a dict are not."""

    class Model(BaseModel):
        x: dict[str, dict[str, int]]

    issue = issue_of(Model, {"x": {"int": {"str": "no"}}})

    assert (issue.field, issue.received) == ("x.int.str", "'no'")


def test_coerced_values_inside_containers_show_the_raw_one() -> None:
    """[A10] The raw value is found below lists and dicts as well."""

    class Model(BaseModel):
        ports: list[Annotated[int, Field(le=10)]]

    assert issue_of(Model, {"ports": ["1", "99"]}).received == "'99'"


def test_a_wrong_key_of_a_dict_is_shown_itself() -> None:
    """[H-05] For an error of a key, received is the key."""

    class Model(BaseModel):
        d: dict[int, int]

    issue = issue_of(Model, {"d": {"a": 1}})
    assert (issue.received, issue.field) == ("'a'", "d.a.[key]")


def test_json_inside_a_string_is_not_indexed() -> None:
    """[A10] The path into parsed JSON shows the string the model sent."""
    from pydantic import Json

    class Model(BaseModel):
        a: Json[list[int]]

    assert issue_of(Model, {"a": '["x"]'}).received == "'[\"x\"]'"


def test_an_alias_that_is_no_key_falls_back_to_pydantics_input() -> None:
    """[A10] Where the path does not start in the arguments, pydantic knows the value."""

    class Model(BaseModel):
        model_config = ConfigDict(populate_by_name=True, loc_by_alias=True)
        follow: int = Field(alias="followRedirects")

    assert issue_of(Model, {"follow": "x"}).received == "'x'"


def test_a_message_that_repeats_a_secret_value_is_cleaned() -> None:
    """[C16] A validator of the host may quote the value; a secret one is taken out."""

    class Model(BaseModel):
        password: str

        @field_validator("password")
        @classmethod
        def check(cls, value):
            raise ValueError(f"too simple: {value}")

    error = failure(Model, {"password": "kitten"})
    assert "kitten" not in json.dumps([error.to_llm_payload(), error.renderings()])


def test_a_message_that_repeats_another_fields_secret_is_cleaned() -> None:
    """[C16] A validator that compares fields may quote a secret of another field."""

    class Model(BaseModel):
        password: str
        again: str

        @model_validator(mode="after")
        def check(self):
            raise ValueError(f"{self.again} is not {self.password}")

    error = failure(Model, {"password": "kitten", "again": "mitten"})
    assert error.issues[0].message == "mitten is not [REDACTED]"


def test_a_card_number_is_hidden_also_as_a_number() -> None:
    """Digits that are an account's are a secret, with or without quotes around them."""

    class Payment(BaseModel):
        card: str
        cards: list[str]

    number = 4111_1111_1111_1111
    received = {
        issue.received for issue in failure(Payment, {"card": number, "cards": [number]}).issues
    }
    assert received == {"[REDACTED]"}


def test_named_secret_fields_are_hidden() -> None:
    """[C16] The caller can name further fields that are secret."""
    error = failure(Either, {"x": "swordfish"}, secret_fields={"x"})

    assert {i.received for i in error.issues} == {"[REDACTED]"}
