"""Phantom arguments: names that the model sent, the tool does not have, and nobody refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pydantic
import pydantic_core
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

import toolfault
from toolfault import tool
from toolfault.integrations.seen import Call, Seen
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


class Host(BaseModel):
    """A value that a validator of the host reads first."""

    guests: list[Person] = []
    cook: Annotated[Person | None, pydantic.BeforeValidator(lambda _: {"name": "a"})] = None
    waiter: Person | None = None

    @pydantic.field_validator("guests", mode="wrap")
    @classmethod
    def all_named(cls, values: Any, validate: Any) -> Any:
        """Read another member."""
        return validate([{"name": each["name"] + each.get("last", "")} for each in values])


class Made(BaseModel):
    """A model that makes itself of other names."""

    day: str

    def __init__(self, **given: Any) -> None:
        super().__init__(day=given["when"])


class Shaped(BaseModel):
    """A model with a schema of its own making."""

    day: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Read an old name."""
        schema, day = handler(source), lambda values: {"day": values["when"]}
        return pydantic_core.core_schema.no_info_before_validator_function(day, schema)


class Read(BaseModel):
    """A model that reads values in a way of its own."""

    day: str = ""

    @classmethod
    def model_validate(cls, obj: Any, **how: Any) -> Any:
        """Read an old name."""
        return super().model_validate({"day": obj["when"]}, **how)


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
        (Host, {"guests": [{"name": "a", "last": "b"}]}, ()),
        (Host, {"cook": {"name": "a", "b": 1}, "waiter": {"name": "a", "b": 1}}, ("waiter.b",)),
        (Made, {"when": "x"}, ()),
        (Shaped, {"when": "x"}, ()),
        (Read, {"when": "x"}, ()),
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

    @tool(parameters=SCHEMA)
    def taking_by_schema(**fields: Any) -> None: ...

    @tool(parameters=SCHEMA)
    def having(day: str, pet: str) -> None: ...

    tools = (plain, declared, taking, taking_by_schema, having)
    assert [each.call(day="x", pet="dog").success for each in tools] == [False, False, *[True] * 3]
    assert [each.phantom_arguments for each in records] == [()] * 5


@pytest.mark.parametrize(
    ("more", "phantoms"),
    [
        ({}, ("pet",)),
        ({"additionalProperties": True}, ()),
        ({"additionalProperties": {"type": "string"}}, ()),
        ({"patternProperties": {"^p": {}}}, ()),
        ({"allOf": [{"properties": {"pet": {}}}]}, ()),
        ({"dependencies": {"day": {"properties": {"pet": {}}}}}, ()),
        ({"propertyNames": {"maxLength": 9}}, ()),
        ({"unevaluatedProperties": True}, ()),
        ({"unevaluatedProperties": False}, ("pet",)),
        ({"required": ["pet"]}, ()),
    ],
)
def test_a_schema_declares_what_it_says(
    more: dict[str, Any], phantoms: Any, records: list[CallRecord]
) -> None:
    """By the schema that a framework shows to the model, what it does not declare is named."""
    sent = {"day": "x", "pet": "dog"}
    report_seen(lambda: Seen("some", "book", arguments=sent, schema={**SCHEMA, **more}))
    assert records[0].phantom_arguments == phantoms


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


def test_a_tool_of_ours_in_a_framework_says_itself_what_it_takes(
    records: list[CallRecord],
) -> None:
    """What came to it is its own word; what the framework dropped before it is told by that."""

    @tool(parameters=SCHEMA)
    def taking(**fields: Any) -> None: ...

    for handed in ({"day": "x", "pet": "dog"}, {"day": "x"}):
        sent = {"day": "x", "pet": "dog"}
        seen = Seen("some", "taking", arguments=sent, schema=SCHEMA)
        with Call(lambda seen=seen: seen) as call:  # type: ignore[misc]
            taking.call(handed)
            call.ended()
    assert [each.phantom_arguments for each in records] == [(), ("pet",)]


@pytest.mark.parametrize("by", ["model", "class", "schema"])
def test_names_are_bounded_and_hold_no_secret(by: str, records: list[CallRecord]) -> None:
    """At most 20 names of 128 characters and a sign of the rest; a credential is hidden."""
    secret = "sk-ant-" + "a1B2" * 10
    sent = {secret: 1, "n" * 1_000_000: 1, **{f"x{number}": 1 for number in range(10_000)}}

    @tool(model=Nothing)
    def ping() -> None: ...

    if by == "model":
        ping.call(sent)
    else:
        told: Any = {"model_class": Nothing} if by == "class" else {"schema": SCHEMA}
        report_seen(lambda: Seen("some", "ping", arguments=sent, **told))
    (record,) = records
    assert record.phantom_arguments[-2:] == ("x17", "…")
    assert len(record.phantom_arguments) == 21
    assert max(map(len, record.phantom_arguments)) <= 128
    assert secret not in str(record.phantom_arguments)


class Seats(TypedDict):
    """An object whose names are declared."""

    window: Person
    number: int


class Plan(BaseModel):
    """Objects whose keys are data, and one whose are not."""

    guests: dict[str, Person] = {}
    ages: dict[str, int] = {}
    seats: Seats | None = None


@pytest.mark.parametrize("by", ["model", "hints"])
def test_a_key_that_is_data_is_in_no_name(by: str, records: list[CallRecord]) -> None:
    """What is left out or repaired below such a key is counted by field; the key does not leave."""
    host, guests = "ann@example.org", {f"{n}@example.org": {"name": "a", "b": 1} for n in range(30)}
    sent = {"guests": guests, "ages": {host: "7"}}

    @tool(model=Plan)
    def by_model(**fields: Any) -> None: ...

    @tool(coerce=True)
    def by_hints(guests: dict[str, Person], ages: dict[str, int]) -> None: ...

    called = by_model if by == "model" else by_hints
    assert called.call(sent).success
    (record,) = records
    assert record.phantom_arguments == ("guests.*.b",)
    assert {each.field for each in record.coercions} == {"ages.*"}


def test_a_declared_key_is_named(records: list[CallRecord]) -> None:
    """The names of a TypedDict are no data."""

    @tool(model=Plan)
    def plan(**fields: Any) -> None: ...

    assert plan.call({"seats": {"window": {"name": "a", "b": 1}, "number": "3"}}).success
    (record,) = records
    assert record.phantom_arguments == ("seats.window.b",)
    assert [each.field for each in record.coercions] == ["seats.number"]


class Tree(BaseModel):
    """A model of any depth."""

    more: list[Tree] = []


def test_a_name_counts_once_however_often_it_comes(records: list[CallRecord]) -> None:
    """Many objects with one name leave room for the others; paths are bounded as well."""

    @tool(model=Tree)
    def walk(**fields: Any) -> None: ...

    def of(name: str) -> dict[str, Any]:
        return {"more": [], name: 1}

    long = "n" * 128
    walk.call({"more": [*[of("b")] * 30, of("c"), {"more": [{"more": [of(long)]}]}]})
    walk.call({"more": [of(str(place)) for place in range(30)]})
    short, many = records
    assert short.phantom_arguments == ("more.*.b", "more.*.c", f"more.*.more.*.more.*.{long}")
    assert len(many.phantom_arguments) == 21
    assert many.phantom_arguments[-1] == "…"


def test_nothing_changes_for_the_model_and_the_tool(records: list[CallRecord]) -> None:
    """What the tool gets and what the model reads are what they were: the call is a success."""

    @tool(model=Booking)
    def book(day: str, seats: int, people: list[Person]) -> Any:
        return [day, seats]

    result = book.call(date="x", pet="dog")
    assert (result.value, result.success) == (["x", 2], True)
    assert "pet" not in str(result.to_tool_message("c1"))
    assert toolfault.tools.running_call() is None
