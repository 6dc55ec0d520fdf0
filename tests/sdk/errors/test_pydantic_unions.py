"""Errors inside unions, plain and tagged."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    Discriminator,
    Field,
    Tag,
)
from tests.sdk.errors.refusing import failure, issue_of


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(le=9)


class Rfid(BaseModel):
    kind: Literal["rfid"]
    n: int


class Tattoo(BaseModel):
    kind: Literal["tattoo"]


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str | list[str]
    chip: Rfid | Tattoo | None = Field(default=None, discriminator="kind")


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


def test_a_tagged_union_shows_what_was_sent_for_the_leaf() -> None:
    """[H-05] Ruling 4: the label of the branch that the tag chose is skipped, the path goes on."""
    cases: list[tuple[dict[str, object], str]] = [
        ({"kind": "cat", "lives": "x"}, "'x'"),
        ({"kind": "cat", "cat": 7, "lives": "x"}, "'x'"),
        ({"kind": "cat", "lives": {"n": [1]}}, "{'n': [1]}"),
        ({"kind": "cat", "lives": "99"}, "'99'"),
    ]
    for pet, received in cases:
        issue = issue_of(Owner, {"pet": pet})
        assert (issue.field, issue.received) == ("pet.cat.lives", received)
    chips = issue_of(
        Owner, {"pet": {"kind": "dog", "bark": "a", "chip": {"kind": "rfid", "n": "x"}}}
    )
    assert (chips.field, chips.received) == ("pet.dog.chip.rfid.n", "'x'")


def test_a_union_inside_a_tagged_one_shows_the_whole_value_of_its_field() -> None:
    """[H-05] Ruling 4 for each union on the way by itself."""
    pets = {"kind": "dog", "bark": [5]}
    issues = failure(Owner, {"pet": pets}).issues
    assert {issue.received for issue in issues} == {"[5]"}


def test_an_invalid_tag() -> None:
    """[P-06] Ruling 5: the user reads a sentence made from the code, not the tag."""
    error = failure(Owner, {"pet": {"kind": "bird"}})

    assert (error.code, error.expected) == ("invalid_choice", "'cat', 'dog'")
    assert "bird" in error.render("llm")
    assert error.render("user") == (
        "t: Invalid parameter value for pet: not one of the allowed values"
    )


def test_a_missing_tag() -> None:
    """[H-06] Ruling 4: an absent tag is a missing field without a value."""
    error = failure(Owner, {"pet": {"lives": 9}})

    assert (error.code, error.received, error.received_type) == ("missing_field", None, None)
    assert error.render("llm") == "Error: Missing required parameter: pet.kind"


def test_a_missing_tag_goes_by_the_name_that_is_sent() -> None:
    """[H-06] Ruling 4: of a tag with an alias the model reads the alias."""

    class Circle(BaseModel):
        kind: Literal["circle"] = Field(alias="shapeKind")

    class Square(BaseModel):
        kind: Literal["square"] = Field(alias="shapeKind")

    class Drawing(BaseModel):
        shape: Circle | Square = Field(discriminator="kind")

    issue = issue_of(Drawing, {"shape": {"radius": 1}})
    assert (issue.field, issue.code, issue.received) == ("shape.shapeKind", "missing_field", None)


class Called(BaseModel):
    """A discriminated union whose tags, found by a function, are no values of the object."""

    pet: Annotated[
        Annotated[Cat, Tag("feline")] | Annotated[Dog, Tag("canine")],
        Discriminator(lambda pet: "feline" if "lives" in pet else None),
    ]


def test_a_branch_that_a_function_chose_shows_what_was_sent_for_the_leaf() -> None:
    """[H-05] Ruling 4: the label need not occur among the arguments."""
    issue = issue_of(Called, {"pet": {"kind": "cat", "lives": "x"}})
    assert (issue.field, issue.received) == ("pet.feline.lives", "'x'")


def test_a_tag_that_a_function_did_not_find() -> None:
    """[H-06] Where no name of a tag is known, pydantic's words say what is missing; no value."""
    error = failure(Called, {"pet": {"bark": "CANARY"}})
    assert (error.code, error.field, error.received) == ("missing_field", "pet", None)
    assert "Unable to extract tag" in error.render("llm")
    assert "CANARY" not in str(error.renderings())
