"""Errors inside unions, plain and tagged."""

from __future__ import annotations

from typing import Literal

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


def test_a_union_shows_the_whole_value_of_the_field() -> None:
    """[H-05] Ruling 4: a branch label is never followed into the value; the field is one."""
    for value in [{"int": 5}, {"list[str]": 5}, "y", [{"int": 1}]]:
        issues = failure(Either, {"x": value}).issues
        whole = [issue.received for issue in issues if len(issue.loc) == 2]
        assert whole
        assert set(whole) == {repr(value)}
        assert {issue.root_field for issue in issues} == {"x"}


def test_a_tagged_union_shows_the_whole_value_of_the_field() -> None:
    """[H-05] Ruling 4: inside a branch, too, its label is never followed into the value."""
    pet = {"kind": "cat", "cat": 7, "lives": "x"}
    issue = issue_of(Owner, {"pet": pet})

    assert (issue.field, issue.received) == ("pet.cat.lives", repr(pet))


def test_an_invalid_tag() -> None:
    """[P-06] Ruling 5: the user reads a sentence made from the code, not the tag."""
    error = failure(Owner, {"pet": {"kind": "bird"}})

    assert (error.code, error.expected) == ("invalid_choice", "'cat', 'dog'")
    assert "bird" in error.render("llm")
    assert error.render("user") == (
        "t: Invalid parameter value for pet: not one of the allowed values"
    )


def test_a_missing_tag() -> None:
    """[H-06] union_tag_not_found says what the given value lacks."""
    error = failure(Owner, {"pet": {"lives": 9}})

    assert error.code == "missing_field"
    assert error.render("llm") == (
        "Error: Invalid parameter value for pet: Unable to extract tag using discriminator 'kind' "
        "(received dict: {'lives': 9})"
    )
