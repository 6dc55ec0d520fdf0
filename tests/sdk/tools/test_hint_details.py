"""Corners of the validation from type hints: the schema it amounts to, and rarer forms."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, Optional, TypedDict, TypeVar

import annotated_types as at
import msgspec
import pydantic
import pytest
from pydantic import BaseModel
from tests.sdk.tools.hinted import (
    ACCEPTED,
    Color,
    Options,
    Point,
    Tree,
    check,
    short,
    tool_of,
)

from toolfault import ConfigError, tool
from toolfault.coerce import Coercion, LLMInt, coerce_enum, coerce_strip
from toolfault.tools import CallRecord, as_tool

jsonschema = pytest.importorskip("jsonschema")


def as_json(value: Any) -> bool:
    """Whether a model could have sent the value."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


# What a coercer repairs, and a number for a Decimal, is accepted beyond what the schema asks for.
SAID = [
    (annotation, value)
    for annotation, value, _ in ACCEPTED
    if as_json(value) and "Coercion" not in repr(annotation) and not isinstance(value, float)
]


@pytest.mark.parametrize(("annotation", "value"), SAID, ids=short)
def test_the_schema_says_what_is_accepted(annotation: Any, value: Any) -> None:
    """What the hints accept is valid under the JSON schema that is shown to the model."""
    schema = tool_of(annotation).tool.parameters

    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid({"x": value})


class Order(pydantic.BaseModel):
    """A model with a part, which is called as a part of another."""

    class Item(pydantic.BaseModel):
        """Something to buy."""

        price: int

    items: list[Item]
    next: Order | None = None


class Parcel(msgspec.Struct):
    """A struct with a part, which is called as a part of another."""

    class Item(msgspec.Struct):
        """Something to carry."""

        grams: int

    items: list[Item]


def test_parts_of_models_are_found_in_the_schema() -> None:
    """Every ``$ref`` of the models inside leads somewhere, and each to its own model's part."""

    @tool
    def send(order: Order, parcels: list[Parcel]) -> None: ...

    schema = send.tool.parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    right: dict[str, Any] = {
        "order": {"items": [{"price": 1}], "next": {"items": []}},
        "parcels": [{"items": [{"grams": 1}]}],
    }
    assert list(validator.iter_errors(right)) == []
    assert send.call(right).success
    for wrong in (
        {**right, "order": {"items": [], "next": {"items": [{"price": "x"}]}}},
        {**right, "parcels": [{"items": [{"price": 1}]}]},
    ):
        assert len(list(validator.iter_errors(wrong))) >= 1
        assert not send.call(wrong).success


def test_the_schema_in_detail() -> None:
    """Bounds, descriptions, defaults and alternatives are all in the schema."""

    @tool
    def f(
        port: Annotated[int, at.Ge(1), at.Le(9), "the port"],
        name: Annotated[str, at.Len(1, 5), pydantic.Field(description="the name", pattern="^a")],
        color: Color = Color.RED,
        items: Annotated[list[int], at.MaxLen(3)] = (),  # type: ignore[assignment]
        mode: Literal["a", 1] = "a",
        pair: tuple[int, str] = (1, "a"),
        options: Optional[Options] = None,  # noqa: UP045
        weights: Annotated[dict[str, float], at.MaxLen(2)] | None = None,
        tree: Tree | None = None,
    ) -> None: ...

    properties = f.tool.parameters["properties"]
    assert properties["port"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "the port",
    }
    assert properties["name"] == {
        "type": "string",
        "minLength": 1,
        "maxLength": 5,
        "pattern": "^a",
        "description": "the name",
    }
    assert properties["color"] == {"type": "string", "enum": ["red", "blue"]}
    assert properties["items"] == {"type": "array", "items": {"type": "integer"}, "maxItems": 3}
    assert properties["mode"] == {"enum": ["a", 1], "default": "a"}
    assert properties["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["options"]["default"] is None
    assert properties["weights"]["anyOf"][0]["maxProperties"] == 2
    tree = properties["tree"]["anyOf"][0]
    assert tree["properties"]["children"]["items"] == {"type": "object", "title": "Tree"}
    assert f.tool.parameters["required"] == ["port", "name"]


@dataclass
class Line:
    """Two fields of one class, and one that nobody passes."""

    start: Point
    end: Point
    length: float = field(init=False, default=0.0)


@dataclass
class Unresolved:
    """A field whose class does not exist."""

    value: Nowhere  # type: ignore[name-defined] # noqa: F821


class Base(BaseModel):
    """Has a rule."""

    n: int


class Wrapped(TypedDict):
    """Annotations around annotations."""

    n: Annotated[Annotated[int, at.Ge(0)], at.Le(9)]


T = TypeVar("T")


class Box(Generic[T]):
    """A generic class of the host."""


class Size(enum.Enum):
    """Sizes."""

    SMALL = "small"


@pytest.mark.parametrize(
    ("annotation", "value", "codes"),
    [
        (Line, {"start": {"x": 1}, "end": {"x": 2}}, []),
        (
            Line,
            {"start": {"x": 1}, "end": {"x": "2"}, "length": 1},
            ["wrong_type", "unknown_field"],
        ),
        (Unresolved, {"value": object}, []),
        (list[Base], [Base(n=1), {"n": 2}], []),
        (Wrapped, {"n": -1}, ["field_too_small"]),
        (Wrapped, {"n": 10}, ["field_too_large"]),
        (Box[int], 3, []),
        (T, 3, []),
        (tuple, [1, "a"], []),
        (tuple, 3, ["wrong_type"]),
        (Sequence, "text", ["wrong_type"]),
        (frozenset[int], {1, 2}, []),
        (tuple[int, int], "ab", ["wrong_type"]),
        (tuple[int, int], [1, 2, 3], ["field_too_large"]),
        (Annotated[dict[str, int], at.MinLen(1)], {}, ["field_too_small"]),
        (list[Annotated[str, Coercion("string", coerce_strip)]], [" a "], []),
        (Annotated[Size, Coercion("choice", lambda v: coerce_enum(v, Size))], " SMALL ", []),
        ("a forward reference as text", 3, []),
    ],
    ids=short,
)
def test_rarer_forms(annotation: Any, value: Any, codes: list[str]) -> None:
    """Each is understood, or accepts everything; none breaks."""
    assert [found[1] for found in check(annotation, value)[1]] == codes


def test_json_in_a_string_with_coercion() -> None:
    """Broken JSON, and JSON of the wrong kind, is said; other text is left to the type."""
    assert [f[1] for f in check(list[int], "[1", coerce=True)[1]] == ["malformed_json"]
    assert [f[1] for f in check(list[int], '{"a": 1}', coerce=True)[1]] == ["wrong_type"]
    assert [f[1] for f in check(dict[str, int], "text", coerce=True)[1]] == ["wrong_type"]
    assert [f[1] for f in check(Point, "{x", coerce=True)[1]] == ["malformed_json"]
    assert [f[1] for f in check(list[int], "[" * 99_999, coerce=True)[1]] == ["malformed_json"]


def test_repairs_a_field_asks_for(records: list[CallRecord]) -> None:
    """They are recorded where they changed something and the result was right."""

    @tool
    def f(port: LLMInt, name: Annotated[str, Coercion("string", coerce_strip)]) -> None: ...

    f.call(port="80", name=" a ")
    f.call(port=80, name="a")
    f.call(port="x", name="a")

    assert [[repair.to_dict() for repair in record.coercions] for record in records] == [
        [
            {"field": "port", "from_type": "str", "to_type": "int"},
            {"field": "name", "from_type": "str", "to_type": "str"},
        ],
        [],
        [],
    ]


def test_context_as_a_mapping() -> None:
    """Names with values; a name that is no parameter, or a second label, is refused."""

    @tool(context={"db": {"k": 1}})
    def get(db: dict[str, int], key: str) -> int:
        return db[key]

    assert get.call(key="k").value == 1
    for context in ({"nobody": 1}, ("first label", "second label"), ("typo", "HTTP request")):
        with pytest.raises(ConfigError, match="no such parameter"):
            tool(context=context)(lambda key: key)


def test_functions_that_do_not_say_what_they_take() -> None:
    """They take anything; ``*args`` are no parameters of a model."""

    @tool
    def star(*args: int, n: int = 1) -> int:
        return n + len(args)

    assert star.call(n=2).value == 2
    assert not star.call(args=[1]).success
    assert as_tool(dict).call({"a": 1}).value == {"a": 1}  # type: ignore[union-attr]


def test_a_model_that_fails_in_its_own_way() -> None:
    """A bug in a nested model is internal; a dataclass that wraps a model says no value."""

    class Broken(BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            raise KeyError("a bug")

    @dataclass
    class Wrapping:
        n: Any

        def __post_init__(self) -> None:
            Base(n=self.n)

    @tool
    def f(a: Broken | None = None, b: Wrapping | None = None) -> None: ...

    internal = f.call(a={"n": 1}).error
    assert internal is not None
    assert internal.category == "internal"
    wrapped = f.call(b={"n": "hunter2"}).error
    assert wrapped is not None
    assert wrapped.issues[0].message == "Invalid value"


@dataclass
class Labelled(dict[str, int]):
    """A dictionary that has a field as well."""

    label: str = ""


def test_a_dataclass_that_is_a_dictionary_is_built_as_one() -> None:
    """[3.1] Only a TypedDict is given as the dictionary that came."""

    @tool
    def f(of: Labelled) -> str:
        return f"{type(of).__name__} {of.label}"

    assert f.call(of={"label": "x"}).value == "Labelled x"
