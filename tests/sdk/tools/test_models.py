"""Tools validated by a model of the host: pydantic, msgspec, dataclass, TypedDict."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr, TypeAdapter

from toolfault import ConfigError, tool
from toolfault.coerce import LLMBool, LLMDate, LLMInt, LLMJson
from toolfault.tools import CallRecord


class PydanticRequest(BaseModel):
    """Fields as pydantic has them."""

    model_config = ConfigDict(extra="forbid")

    url: str
    port: int = Field(default=443, ge=1, le=65535)


class StructRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The same for msgspec."""

    url: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 443


class Small:
    """Marks the upper bound for the plain classes."""

    ge = 1
    le = 65535


@dataclass
class DataRequest:
    """The same without any library."""

    url: str
    port: Annotated[int, Small()] = 443


class DictRequest(TypedDict):
    """The same as a dict."""

    url: str
    port: Annotated[int, Small()]


@pydantic.dataclasses.dataclass(config=ConfigDict(extra="forbid"))
class PydanticData:
    """The same as a pydantic dataclass."""

    url: str
    port: int = Field(default=443, ge=1, le=65535)


MODELS = [
    PydanticRequest,
    StructRequest,
    DataRequest,
    DictRequest,
    PydanticData,
    TypeAdapter(PydanticRequest),
    TypeAdapter(PydanticData),
]


def fetcher(model: Any, **options: Any) -> Any:
    """A tool that is validated by ``model`` and returns what reached it."""

    @tool(model=model, **options)
    def fetch(url: str, port: int = 0) -> Any:
        return [url, port]

    return fetch


@pytest.mark.parametrize("model", MODELS)
def test_the_fields_reach_the_function(model: Any) -> None:
    """Whatever the model is, its fields arrive as keyword arguments."""
    assert fetcher(model).call({"url": "a", "port": 80}).value == ["a", 80]


@pytest.mark.parametrize("model", MODELS)
def test_all_issues_at_once(model: Any) -> None:
    """[H-01] Both mistakes are named, also where the library stops at the first one."""
    error = fetcher(model).call({"url": 1, "port": 0}).error

    assert error is not None
    assert [(issue.field, issue.code.value) for issue in error.issues] == [
        ("url", "wrong_type"),
        ("port", "field_too_small"),
    ]


@pytest.mark.parametrize("model", MODELS[:5])
def test_a_missing_field(model: Any) -> None:
    """[H-06][L-04] The founding sentence, whoever notices."""
    result = fetcher(model).call({"port": 1})

    assert result.message == "Error: Missing required parameter: url"


class Leg(msgspec.Struct, rename="camel", tag=True, forbid_unknown_fields=True):
    """A struct with other names on the wire, and one field more."""

    flight_number: int
    seat_row: int = 0


class Trip(msgspec.Struct, kw_only=True):
    """A struct whose required field follows an optional one."""

    note: str = ""
    legs: list[Leg]


def test_a_struct_by_the_names_it_is_sent_under() -> None:
    """Renamed, keyword-only and tagged structs: all issues, and no invented ones."""

    @tool(model=Trip)
    def book(**fields: Any) -> Any:
        return fields["legs"]

    sent = {"legs": [{"type": "Leg", "flightNumber": 7}], "unknown": 1}
    assert book.call(sent).value == [Leg(7)]
    error = book.call({"note": 3, "legs": [{"type": "Leg", "seatRow": "a"}]}).error
    assert error is not None
    assert [(issue.field, issue.code.value) for issue in error.issues] == [
        ("note", "wrong_type"),
        ("legs.0.flightNumber", "missing_field"),
        ("legs.0.seatRow", "wrong_type"),
    ]


def test_defaults_of_the_model_apply() -> None:
    """A field the model fills itself reaches the function, not the function's own default."""
    assert fetcher(PydanticRequest).call(url="a").value == ["a", 443]


def test_a_function_may_take_the_model_itself() -> None:
    """One parameter annotated with the model gets the validated model."""

    @tool(model=PydanticRequest)
    def fetch(request: PydanticRequest) -> int:
        return request.port

    assert fetch.call(url="a", port=8).value == 8


def test_a_function_may_take_anything() -> None:
    """``**fields`` gets all fields of the model."""

    @tool(model=PydanticRequest)
    def fetch(**fields: Any) -> Any:
        return fields

    assert fetch.call(url="a").value == {"url": "a", "port": 443}


def test_aliases_and_extra_fields() -> None:
    """The model sends the alias, the function gets the name; extra fields come along."""

    class Aliased(BaseModel):
        model_config = ConfigDict(extra="allow")

        source: str = Field(alias="from")

    @tool(model=Aliased)
    def move(**fields: Any) -> Any:
        return fields

    assert move.call({"from": "a", "more": 1}).value == {"source": "a", "more": 1}
    error = move.call({}).error
    assert error is not None
    assert error.field == "from"


def test_a_root_model() -> None:
    """A root model hands over what it holds."""

    @tool(model=RootModel[dict[str, int]])
    def add(**numbers: int) -> int:
        return sum(numbers.values())

    assert add.call(a=1, b=2).value == 3
    assert not add.call(a="x").success


def test_pydantic_one() -> None:
    """[H-06] Models of pydantic 1 work, and their errors without an input too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        v1 = pytest.importorskip("pydantic.v1")

        class Old(v1.BaseModel):  # type: ignore[misc,name-defined]
            url: str
            port: int = 443

    assert fetcher(Old).call(url="a").value == ["a", 443]
    error = fetcher(Old).call(url="a", port="x").error
    assert error is not None
    assert (error.field, error.code) == ("port", "wrong_type")


def test_a_type_error_in_a_validator_is_a_bug_of_the_validator() -> None:
    """[T03] It is internal, of phase validation, although it happens before the handler."""

    class Broken(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            return value + "a"  # type: ignore[operator]

    @tool(model=Broken)
    def f(n: int) -> int:
        return n

    result = f.call(n=1)

    assert result.message == "An unexpected error occurred while executing this tool"
    assert result.error is not None
    assert (result.error.category.value, result.error.phase) == ("internal", "validation")


def test_a_secret_type_is_never_shown() -> None:
    """[T06] The length error of a SecretStr carries the clear value; nobody sees it."""

    class Login(BaseModel):
        pin: SecretStr = Field(min_length=8)

    @tool(model=Login)
    def login(pin: SecretStr) -> None: ...

    result = login.call(pin="hunter2")

    assert result.error is not None
    assert "hunter2" not in f"{result.error.renderings()}{result.to_dict()}"


def test_a_discriminated_union_shows_what_was_sent() -> None:
    """Of a wrong tag received is the whole field; inside the branch it is what was sent there."""

    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int = Field(strict=True)

    class Dog(BaseModel):
        kind: Literal["dog"]

    class Zoo(BaseModel):
        animal: Cat | Dog = Field(discriminator="kind")

    @tool(model=Zoo)
    def keep(animal: Any) -> None: ...

    error = keep.call(animal={"kind": "cow"}).error
    assert error is not None
    assert error.code == "invalid_choice"
    assert error.received == "{'kind': 'cow'}"
    assert "cow" not in error.render("user")
    inside = keep.call(animal={"kind": "cat", "lives": "9"}).error
    assert inside is not None
    assert (inside.received, inside.issues[0].near_miss) == ("'9'", ("int_from_string",))


def repairs(records: list[CallRecord]) -> list[tuple[str, str, str]]:
    """The repairs of the only call."""
    [record] = records
    return [(each.field, each.from_type, each.to_type) for each in record.coercions]


def test_what_a_lax_model_changes_is_recorded(records: list[CallRecord]) -> None:
    """[C3] Pydantic repairs silently; the record says what and where, without values."""

    class Inner(BaseModel):
        n: int

    class Lax(BaseModel):
        flag: bool
        count: int
        ratio: float
        inner: list[Inner]
        when: pydantic.AwareDatetime
        text: str

    @tool(model=Lax)
    def f(**fields: Any) -> None: ...

    f.call(
        flag="true",
        count=True,
        ratio=1,
        inner=[{"n": 1}, {"n": "2"}],
        when="2024-01-31T12:00:00Z",
        text="x",
    )

    assert repairs(records) == [
        ("flag", "str", "bool"),
        ("count", "bool", "int"),
        ("inner.*.n", "str", "int"),
    ]


@pytest.mark.parametrize("model", [PydanticRequest, StructRequest, DataRequest, DictRequest])
def test_coercion_with_every_kind_of_model(model: Any, records: list[CallRecord]) -> None:
    """[H-09] With ``coerce=True`` a numeric string is repaired once and recorded once."""
    assert fetcher(model, coerce=True).call(url="a", port="80").value == ["a", 80]
    assert repairs(records) == [("port", "str", "int")]


def test_a_strict_model_is_repaired_before_it_validates(records: list[CallRecord]) -> None:
    """[H-09] Coercion runs before validation, so that a strict model accepts it."""

    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)

        flag: bool
        headers: dict[str, str]
        ids: list[int]
        note: str

    @tool(model=Strict, coerce=True)
    def f(**fields: Any) -> Any:
        return fields

    result = f.call(flag="Yes", headers='{"a": "b"}', ids='["1", 2]', note="true")

    assert result.value == {"flag": True, "headers": {"a": "b"}, "ids": [1, 2], "note": "true"}
    assert repairs(records) == [
        ("flag", "str", "bool"),
        ("headers", "str", "dict"),
        ("ids", "str", "list"),
        ("ids.*", "str", "int"),
    ]


def test_broken_json_is_said_as_such() -> None:
    """[H-10] The model saw a string; the coercer knows why it stayed one."""

    class Strict(BaseModel):
        headers: dict[str, str]
        port: int

    @tool(model=Strict, coerce=True)
    def f(**fields: Any) -> None: ...

    error = f.call(headers="{invalid}", port="x").error

    assert error is not None
    assert [(issue.field, issue.code.value) for issue in error.issues] == [
        ("headers", "malformed_json"),
        ("port", "wrong_type"),
    ]
    assert error.issues[0].message == (
        "Invalid JSON: Expecting property name enclosed in double quotes"
    )


def test_broken_json_is_said_as_such_however_long_it_is() -> None:
    """[H-10] A model that ran out of words in the middle of a long text reads that it did."""

    class Strict(BaseModel):
        rows: list[int]

    @tool(model=Strict, coerce=True)
    def f(**fields: Any) -> None: ...

    error = f.call(rows="[" + "1," * 20_000).error

    assert error is not None
    assert error.code.value == "malformed_json"
    assert error.issues[0].message == "Invalid JSON: Expecting value"


def test_annotated_coercers_in_a_model(records: list[CallRecord]) -> None:
    """``LLMInt`` and its kin repair inside pydantic models too, and are recorded."""

    class Request(BaseModel):
        model_config = ConfigDict(strict=True)

        port: LLMInt
        verify: LLMBool
        day: LLMDate
        body: LLMJson

    @tool(model=Request)
    def f(**fields: Any) -> None: ...

    assert f.call(port="80", verify="off", day="Jan 31, 2024", body='{"a": 1}').success
    assert repairs(records) == [
        ("port", "str", "int"),
        ("verify", "str", "bool"),
        ("day", "str", "date"),
        ("body", "str", "dict"),
    ]


@pytest.mark.parametrize("model", [3, "PydanticRequest", object(), int])
def test_what_is_no_model(model: Any) -> None:
    """A model that cannot validate anything is refused at the decoration."""
    with pytest.raises(ConfigError, match="model= takes"):
        tool(model=model)(lambda: None)


class Cat(BaseModel):
    """A kind of pet."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    """Another one."""

    kind: Literal["dog"]
    bark: str = "wuff"


def test_a_tagged_union_among_type_hints_is_validated_by_its_tag() -> None:
    """The model is told all tags, or what is wrong with the branch whose tag it sent."""

    @tool
    def adopt(
        pet: Annotated[Cat | Dog, Field(discriminator="kind")],
        more: list[Annotated[Cat | Dog, Field(discriminator="kind")]] | None = None,
    ) -> str:
        return f"{type(pet).__name__} {[type(each).__name__ for each in more or ()]}"

    wrong = adopt.call(pet={"kind": "bird"}, more=[{"kind": "dog", "bark": 1}, {}])
    assert wrong.error is not None
    assert [(issue.field, str(issue.code)) for issue in wrong.error.issues] == [
        ("pet", "invalid_choice"),
        ("more.0.dog.bark", "wrong_type"),
        ("more.1.kind", "missing_field"),
    ]
    assert "'cat', 'dog'" in str(wrong.content)
    assert adopt.call(pet={"kind": "cat"}, more=[{"kind": "dog"}]).value == "Cat ['Dog']"
    assert "Cat_or_Dog.Cat" in adopt.tool.parameters["$defs"]
