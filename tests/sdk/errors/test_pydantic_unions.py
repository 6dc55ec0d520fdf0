"""Errors inside unions, plain and tagged."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import (
    BaseModel,
    Field,
)
from tests.sdk.errors.refusing import failure, issue_of


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")


class Either(BaseModel):
    x: int | list[str]


@pytest.mark.parametrize("value", [{"int": 5}, {"list[str]": 5}, "y", [{"int": 1}]])
def test_a_union_shows_the_whole_value_of_the_field(value):
    """[H-05] Ruling 4: a branch label is never followed into the value."""
    for issue in failure(Either, {"x": value}).issues:
        if len(issue.loc) == 2:
            assert issue.received == repr(value)


def test_a_union_counts_as_one_field():
    """[H-05] All branches stay in the message; the root field is one."""
    error = failure(Either, {"x": {}})

    assert len(error.issues) == 2
    assert {i.root_field for i in error.issues} == {"x"}


def test_a_tagged_union_shows_the_whole_value_of_the_field():
    """[H-05] Ruling 4: inside a branch, too, received is the field's value."""
    pet = {"kind": "cat", "cat": 7, "lives": "x"}
    issue = issue_of(Owner, {"pet": pet})

    assert issue.field == "pet.cat.lives"
    assert issue.received == repr(pet)


def test_an_invalid_tag():
    """[P-06] Ruling 5: the user reads a sentence made from the code, not the tag."""
    error = failure(Owner, {"pet": {"kind": "bird"}})

    assert (error.code, error.expected) == ("invalid_choice", "'cat', 'dog'")
    assert "bird" in error.render("llm")
    assert error.render("user") == (
        "t: Invalid parameter value for pet: not one of the allowed values"
    )


def test_a_missing_tag():
    """[H-06] union_tag_not_found says what the given value lacks."""
    error = failure(Owner, {"pet": {"lives": 9}})

    assert error.code == "missing_field"
    assert error.render("llm") == (
        "Error: Invalid parameter value for pet: Unable to extract tag using discriminator 'kind' "
        "(received dict: {'lives': 9})"
    )
