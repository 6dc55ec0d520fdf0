"""Phantom arguments: names that the model sent, the tool does not have, and nobody refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator

import toolfault
from toolfault import tool
from toolfault.integrations.seen import Seen
from toolfault.integrations.seen import observe as report_seen
from toolfault.tools import CallRecord


class Person(BaseModel):
    """Something inside of the arguments."""

    name: str


class Booking(BaseModel):
    """A model that drops what it does not know, as pydantic's do."""

    day: str = Field(alias="date")
    seats: int = Field(2, validation_alias=AliasChoices("seats", "places", AliasPath("of", 0)))
    people: list[Person] = []


class Table(msgspec.Struct, rename="camel", tag="table", tag_field="kind"):
    """Msgspec drops too."""

    seat_count: int = 2


@pydantic.dataclasses.dataclass
class Room:
    """So does a dataclass of pydantic."""

    beds: int = 1


class Nothing(BaseModel):
    """A tool without arguments."""


class Open(BaseModel):
    """A model that keeps every name."""

    model_config = ConfigDict(extra="allow")
    day: str = ""


class Reshaped(BaseModel):
    """A model whose own code looks at the values first."""

    day: str = ""

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read an old name."""
        return {"day": values.get("when", "")}


class Traveller(BaseModel):
    """A value that the host's validator makes of another form."""

    people: list[Person]

    @pydantic.field_validator("people", mode="before")
    @classmethod
    def flattened(cls, values: list[dict[str, Any]]) -> list[Person]:
        """Read people in another shape."""
        return [Person(name=each["first"]) for each in values]


SCHEMA = {"type": "object", "properties": {"day": {"type": "string"}}}


@pytest.mark.parametrize(
    ("model", "arguments", "phantoms"),
    [
        (Booking, {"date": "x", "places": 1, "terrace": True, "pet": "dog"}, ("terrace", "pet")),
        (Booking, {"date": "x", "of": [3]}, ()),
        (Booking, {"date": "x", "seats": "3", "people": [{"name": "a", "b": 9}]}, ("people.*.b",)),
        (Table, {"kind": "table", "seatCount": 4, "window": True}, ("window",)),
        (Table, {"kind": "table", "seatCount": 4}, ()),
        (Room, {"beds": 2, "view": "sea"}, ("view",)),
        (Nothing, {"query": "all"}, ("query",)),
        (Open, {"day": "x", "terrace": True}, ()),
        (Reshaped, {"when": "x"}, ()),
        (Traveller, {"people": [{"first": "a"}]}, ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("coerce", [False, True])
def test_what_a_model_drops_is_named(
    model: Any, arguments: Any, phantoms: Any, coerce: bool, records: list[CallRecord]
) -> None:
    """Exactly the names that the model does not read are recorded, with their path."""

    @tool(model=model, coerce=coerce)
    def book(**fields: Any) -> str:
        return "booked"

    assert book.call(arguments).value == "booked"
    assert records[0].phantom_arguments == phantoms


def test_a_model_among_hints_and_a_failing_body(records: list[CallRecord]) -> None:
    """A model that is one argument of many drops too, and a body that fails changes nothing."""

    @tool
    def book(where: str, who: Person) -> None:
        raise RuntimeError("full")

    result = book.call(where="terrace", who={"name": "a", "title": "Dr"})
    assert result.error is not None
    assert result.error.code == "internal_error"
    assert records[0].phantom_arguments == ("who.title",)


def test_what_is_refused_or_taken_is_no_phantom(records: list[CallRecord]) -> None:
    """Hints refuse an unknown name, ``**more`` takes it: neither was ignored."""

    @dataclass
    class Day:
        day: str

    @tool
    def plain(day: str) -> None: ...

    @tool(model=Day)
    def declared(day: str) -> None: ...

    @tool
    def taking(day: str, **more: Any) -> None: ...

    outcomes = [each.call(day="x", pet="dog").success for each in (plain, declared, taking)]
    assert outcomes == [False, False, True]
    assert [each.phantom_arguments for each in records] == [(), (), ()]


@pytest.mark.parametrize(
    ("more", "phantoms"),
    [
        ({}, ("pet",)),
        ({"additionalProperties": True}, ()),
        ({"additionalProperties": {"type": "string"}}, ()),
        ({"patternProperties": {"^p": {}}}, ()),
        ({"allOf": [{"properties": {"pet": {}}}]}, ()),
    ],
)
def test_a_schema_declares_what_it_says(
    more: dict[str, Any], phantoms: Any, records: list[CallRecord]
) -> None:
    """By a schema, a tool of ours and a framework's name alike what it does not declare."""

    @tool(parameters={**SCHEMA, **more})
    def book(**fields: Any) -> None: ...

    sent = {"day": "x", "pet": "dog"}
    assert book.call(sent).success
    report_seen(lambda: Seen("some", "book", arguments=sent, schema={**SCHEMA, **more}))
    assert [each.phantom_arguments for each in records] == [phantoms, phantoms]


def test_a_framework_names_them_where_the_call_went_through(records: list[CallRecord]) -> None:
    """By its schema or its class; not where it refused the arguments."""
    sent = {"date": "x", "pet": "dog"}
    dropping = {**SCHEMA, "additionalProperties": False}  # shown to the model, and not enforced
    for seen in (
        Seen("some", "a", arguments=sent, model_class=Booking),
        Seen("some", "b", arguments=sent, schema=dropping, stage="exec", error=RuntimeError("x")),
        Seen("some", "c", arguments=sent, schema=dropping, stage="validation", told="no"),
        Seen("some", "d", arguments=sent),
        Seen("some", "e", arguments='{"day": ', schema=SCHEMA, stage="parse"),
        Seen("google_adk", "f", arguments=sent, schema=SCHEMA, stage="exec", error=RuntimeError()),
    ):
        report_seen(lambda seen=seen: seen)  # type: ignore[misc]
    named = {each.tool: each.phantom_arguments for each in records}
    assert named == {"a": ("pet",), "b": ("date", "pet"), "c": (), "d": (), "e": (), "f": ()}


def test_names_are_bounded_and_hold_no_secret(records: list[CallRecord]) -> None:
    """At most 20 names of 128 characters; a name that is a credential is hidden."""
    secret = "sk-ant-" + "a1B2" * 10

    @tool(model=Nothing)
    def ping() -> None: ...

    ping.call({secret: 1, "n" * 500: 1, **{f"x{number}": 1 for number in range(100)}})
    (record,) = records
    assert len(record.phantom_arguments) == 20
    assert max(map(len, record.phantom_arguments)) <= 128
    assert secret not in str(record.phantom_arguments)


def test_nothing_changes_for_the_model_and_the_tool(records: list[CallRecord]) -> None:
    """What the tool gets and what the model reads are what they were: the call is a success."""

    @tool(model=Booking)
    def book(day: str, seats: int, people: list[Person]) -> Any:
        return [day, seats]

    result = book.call(date="x", pet="dog")
    assert (result.value, result.success) == (["x", 2], True)
    assert "pet" not in str(result.to_tool_message("c1"))
    assert toolfault.tools.running_call() is None
