"""Validation from type hints, without any validation library."""
# ruff: noqa: UP007, UP045 - the older spellings are among what is tested

from __future__ import annotations

import datetime as dt
import enum
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import annotated_types as at
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolfault import tool
from toolfault.coerce import LLMBool, LLMDate, LLMInt, LLMJson, LLMList, LLMStr
from toolfault.tools._checks import Findings, Hints
from toolfault.tools._models import model_check


class Color(enum.Enum):
    """Goes by value."""

    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    """Goes by name: JSON has no such values."""

    LOW = (1,)
    HIGH = (2,)


@dataclass
class Point:
    """A nested object."""

    x: int
    y: float = 0.0


@dataclass
class Ordered:
    """An object with a rule of its own."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end must be >= start")


@dataclass
class Tree:
    """An object that contains itself."""

    value: int
    children: list[Tree] = field(default_factory=list)


class Options(TypedDict, total=False):
    """An object that stays a dict."""

    limit: int
    tags: list[str]


class Pair(NamedTuple):
    """An object with a default."""

    left: int
    right: int = 0


class Struct(msgspec.Struct):
    """A class with validation of its own."""

    name: str
    size: int = 1


class Model(BaseModel):
    """Another one."""

    name: str
    size: int = Field(default=1, ge=1)


UserId = NewType("UserId", int)
T = TypeVar("T", int, str)


def short(item: Any) -> str:
    """A name for a case."""
    return str(item)[:40]


def check(annotation: Any, value: Any, *, coerce: bool = False) -> tuple[Any, list[Any]]:
    """What the value becomes, and what is wrong: (path, code, message, expected)."""
    findings = Findings(coerce)
    result = Hints(model_check).compile(annotation).check(value, ("x",), findings)
    return result, [(f.loc[1:], f.code, f.message, f.expected) for f in findings.found]


ACCEPTED: list[tuple[Any, Any, Any]] = [
    (int, 1, 1),
    (int, 2.0, 2),
    (float, 1, 1),
    (float, 1.5, 1.5),
    (bool, True, True),
    (str, "a", "a"),
    (None, None, None),
    (Any, object, object),
    (object, 3, 3),
    (list, [1, "a"], [1, "a"]),
    (list[int], [1, 2], [1, 2]),
    (list[Point], [{"x": 1}], [Point(1)]),
    (Sequence[int], (1, 2), [1, 2]),
    (set[int], [1, 2, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, str], [1, "a"], (1, "a")),
    (dict, {"a": 1}, {"a": 1}),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[int, int], {"1": 2}, {1: 2}),
    (Mapping[str, Any], {"a": 1}, {"a": 1}),
    (Literal["a", 1], 1, 1),
    (Literal[Color.RED], "red", Color.RED),
    (Color, "red", Color.RED),
    (Color, Color.BLUE, Color.BLUE),
    (Level, "HIGH", Level.HIGH),
    (Optional[int], None, None),
    (Union[int, str], "a", "a"),
    (int | float, 2.0, 2.0),
    (int | Annotated[float, at.Ge(0)], 2.0, 2.0),
    (Point | int, {"x": 1}, Point(1)),
    (Point, Point(3), Point(3)),
    (Tree, {"value": 1, "children": [{"value": 2}]}, Tree(1, [Tree(2)])),
    (Options, {"limit": 3}, {"limit": 3}),
    (Pair, {"left": 1}, Pair(1)),
    (UserId, 7, 7),
    (T, "a", "a"),
    (Annotated[int, at.Ge(1)], 1, 1),
    (Annotated[str, "a text that describes it"], "a", "a"),
    (dt.date, "2024-01-31", dt.date(2024, 1, 31)),
    (dt.datetime, "2024-01-31T12:00:00Z", dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)),
    (dt.time, "12:30:00", dt.time(12, 30)),
    (UUID, "123e4567-e89b-12d3-a456-426614174000", UUID("123e4567-e89b-12d3-a456-426614174000")),
    (Path, "a/b.txt", Path("a/b.txt")),
    (Decimal, 1.5, Decimal("1.5")),
    (Decimal, "1.50", Decimal("1.50")),
    (bytes, "ä", "ä".encode()),
    (Struct, {"name": "a"}, Struct("a")),
    (Model, {"name": "a"}, Model(name="a")),
    (LLMInt, "80", 80),
    (LLMBool, "no", False),
    (LLMStr, " a ", "a"),
    (LLMDate, "Jan 31, 2024", dt.date(2024, 1, 31)),
    (LLMJson, '{"a": [1]}', {"a": [1]}),
    (LLMList[int], 3, [3]),
    (Annotated[LLMInt, at.Le(100)], "80", 80),
]


@pytest.mark.parametrize(("annotation", "value", "result"), ACCEPTED, ids=short)
def test_what_is_accepted(annotation: Any, value: Any, result: Any) -> None:
    """Every known annotation accepts what JSON can say of it, and gives the Python value."""
    got, wrong = check(annotation, value)

    assert wrong == []
    assert got == result
    assert type(got) is type(result)


REJECTED: list[tuple[Any, Any, list[Any]]] = [
    (int, "80", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (int, True, [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        int,
        2.5,
        [
            (
                (),
                "wrong_type",
                "Input should be a valid integer, got a number with a fractional part",
                "integer",
            )
        ],
    ),
    (int, float("nan"), [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (float, True, [((), "wrong_type", "Input should be a valid number", "number")]),
    (bool, "true", [((), "wrong_type", "Input should be a valid boolean", "boolean")]),
    (bool, 1, [((), "wrong_type", "Input should be a valid boolean", "boolean")]),
    (str, 1, [((), "wrong_type", "Input should be a valid string", "string")]),
    (None, 0, [((), "wrong_type", "Input should be None", "null")]),
    (list[int], "x", [((), "wrong_type", "Input should be a valid list", "array")]),
    (
        list[int],
        [1, "x", None],
        [
            ((1,), "wrong_type", "Input should be a valid integer", "integer"),
            ((2,), "wrong_type", "Input should be a valid integer", "integer"),
        ],
    ),
    (set[Any], [[1]], [((), "wrong_type", "Set items should be hashable", "array")]),
    (
        tuple[int, str],
        [1],
        [((), "field_too_small", "Tuple should have exactly 2 items, not 1", "length 2")],
    ),
    (dict[str, int], [], [((), "wrong_type", "Input should be a valid dictionary", "object")]),
    (
        dict[int, int],
        {"a": 1},
        [(("a",), "wrong_type", "Input should be a valid integer", "integer")],
    ),
    (
        Literal["a", "b", "c"],
        "d",
        [((), "invalid_choice", "Input should be 'a', 'b' or 'c'", "'a', 'b' or 'c'")],
    ),
    (Literal[1], True, [((), "invalid_choice", "Input should be 1", "1")]),
    (Color, "Red", [((), "invalid_choice", "Input should be 'red' or 'blue'", "'red' or 'blue'")]),
    (
        Color,
        ["red"],
        [((), "invalid_choice", "Input should be 'red' or 'blue'", "'red' or 'blue'")],
    ),
    (Optional[int], "x", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        int | list[str],
        "x",
        [((), "wrong_type", "Input should be a valid integer or array", "integer or array")],
    ),
    (int | list[str], [1], [((0,), "wrong_type", "Input should be a valid string", "string")]),
    (
        Point,
        {"x": "1", "z": 2},
        [
            (("x",), "wrong_type", "Input should be a valid integer", "integer"),
            (("z",), "unknown_field", "Unexpected parameter", None),
        ],
    ),
    (Point, {}, [(("x",), "missing_field", "Missing required parameter", None)]),
    (Point, 3, [((), "wrong_type", "Input should be a valid dictionary", "object")]),
    (Ordered, {"start": 3, "end": 1}, [((), "invalid_input", "end must be >= start", None)]),
    (
        Tree,
        {"value": 1, "children": [{"value": "2"}, {}]},
        [
            (("children", 0, "value"), "wrong_type", "Input should be a valid integer", "integer"),
            (("children", 1, "value"), "missing_field", "Missing required parameter", None),
        ],
    ),
    (
        Options,
        {"limit": "3", "x": 1},
        [
            (("limit",), "wrong_type", "Input should be a valid integer", "integer"),
            (("x",), "unknown_field", "Unexpected parameter", None),
        ],
    ),
    (
        Annotated[int, at.Ge(1), at.Le(10)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[int, at.Interval(gt=0, lt=10)],
        10,
        [((), "field_too_large", "Input should be less than 10", "< 10")],
    ),
    (
        Annotated[float, at.Gt(0)],
        float("nan"),
        [((), "field_too_small", "Input should be greater than 0", "> 0")],
    ),
    (
        Annotated[int | None, at.Ge(1)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[int, at.MultipleOf(5)],
        7,
        [((), "invalid_format", "Input should be a multiple of 5", "multiple of 5")],
    ),
    (
        Annotated[str, at.MinLen(8)],
        "abc",
        [((), "field_too_small", "String should have at least 8 characters", "length >= 8")],
    ),
    (
        Annotated[str, at.Len(1, 1)],
        "ab",
        [((), "field_too_large", "String should have at most 1 character", "length <= 1")],
    ),
    (
        Annotated[list[int], at.MaxLen(1)],
        [1, 2],
        [
            (
                (),
                "field_too_large",
                "List should have at most 1 item after validation, not 2",
                "length <= 1",
            )
        ],
    ),
    (
        Annotated[str, msgspec.Meta(pattern="^a+$")],
        "b",
        [((), "invalid_format", "String should match pattern '^a+$'", "pattern ^a+$")],
    ),
    (
        Annotated[int, Field(ge=1)],
        0,
        [((), "field_too_small", "Input should be greater than or equal to 1", ">= 1")],
    ),
    (
        Annotated[str, at.Predicate(str.islower)],
        "A",
        [((), "invalid_input", "Invalid value", None)],
    ),
    (
        dt.date,
        "31.1.24",
        [((), "invalid_format", "Input should be a valid date", "date (YYYY-MM-DD)")],
    ),
    (UUID, "x", [((), "invalid_format", "Input should be a valid UUID", "UUID")]),
    (UUID, 3, [((), "wrong_type", "Input should be a valid UUID", "UUID")]),
    (LLMInt, "80x", [((), "wrong_type", "Input should be a valid integer", "integer")]),
    (
        LLMJson,
        "{bad}",
        [
            (
                (),
                "malformed_json",
                "Invalid JSON: Expecting property name enclosed in double quotes",
                None,
            )
        ],
    ),
]


@pytest.mark.parametrize(("annotation", "value", "wrong"), REJECTED, ids=short)
def test_what_is_rejected(annotation: Any, value: Any, wrong: list[Any]) -> None:
    """[P-14] Every mistake is named with path, code, sentence and what would have been right."""
    assert check(annotation, value)[1] == wrong


@pytest.mark.parametrize(
    ("annotation", "value", "path", "code"),
    [
        (Struct, {"name": 3}, ("name",), "wrong_type"),
        (Struct, {}, (), "missing_field"),
        (list[Model], [{"name": "a", "size": 0}], (0, "size"), "field_too_small"),
        (dict[str, Model], {"k": {}}, ("k", "name"), "missing_field"),
    ],
)
def test_foreign_models_inside_hints(
    annotation: Any, value: Any, path: tuple[Any, ...], code: str
) -> None:
    """A class with its own validation reports below the place where it stands."""
    [found] = check(annotation, value)[1]

    assert found[1] == code
    assert found[0][: len(path)] == path


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (int, "80", 80),
        (bool, "YES", True),
        (float, "1.5", 1.5),
        (list[int], '["1", 2]', [1, 2]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (Point, '{"x": "3"}', Point(3)),
        (Optional[int], "5", 5),
        (int | bool, "true", True),
        (int | str, "5", "5"),
        (str, " a ", " a "),
    ],
)
def test_coercion_inside_hints(annotation: Any, value: Any, result: Any) -> None:
    """[H-09] With coercion on, a string becomes what the field takes, and only then."""
    got, wrong = check(annotation, value, coerce=True)

    assert wrong == []
    assert got == result


@pytest.mark.parametrize(
    ("annotation", "value"), [(bool, " true "), (int, "12.5"), (bool, "maybe")]
)
def test_what_coercion_leaves_alone(annotation: Any, value: Any) -> None:
    """[H-07][H-08] What no rule covers stays as it is and is reported with everything else."""
    got, wrong = check(annotation, value, coerce=True)

    assert got == value
    assert [found[1] for found in wrong] == ["wrong_type"]


def test_a_cycle_ends_in_an_issue() -> None:
    """A value that contains itself is refused, not followed."""
    tree: dict[str, Any] = {"value": 1}
    tree["children"] = [tree]

    [(loc, code, message, _)] = check(Tree, tree)[1]

    assert (code, message) == ("invalid_format", "Input is nested too deeply")
    assert len(loc) < 100


def test_an_annotation_that_nobody_can_resolve() -> None:
    """It accepts everything, and the others are checked all the same."""

    def search(q: Nowhere, n: int) -> str:  # type: ignore[name-defined] # noqa: F821
        return f"{q} {n}"

    checked = tool(search)

    assert checked.call(q=[1], n=2).value == "[1] 2"
    assert checked.call(q=1, n="2").error is not None


def test_a_class_of_the_enclosing_function_is_found() -> None:
    """Postponed annotations may name classes that exist in the enclosing function only."""

    class Size(enum.Enum):
        BIG = "big"

    @tool
    def pick(size: Size) -> Size:
        return size

    assert pick.call(size="big").value is Size.BIG
    assert not pick.call(size="huge").success


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is Python 3.12")
def test_a_type_alias() -> None:
    """An alias made with the ``type`` statement is what it stands for."""
    names: dict[str, Any] = {}
    exec("type Port = int", names)

    assert check(names["Port"], "x")[1] == check(int, "x")[1]


def test_positional_only_and_keyword_parameters() -> None:
    """However a function takes its parameters, the model's fields reach it."""

    @tool
    def mix(a: int, /, b: int, *, c: int = 3, **rest: int) -> list[Any]:
        return [a, b, c, rest]

    assert mix.call({"a": 1, "b": 2, "d": 4}).value == [1, 2, 3, {"d": 4}]
    assert not mix.call({"a": 1, "b": 2, "d": "x"}).success


def test_a_default_of_none_accepts_null() -> None:
    """``x: int = None`` means that null is fine."""

    @tool
    def f(x: int = None) -> int | None:  # type: ignore[assignment] # noqa: RUF013
        return x

    assert f.call(x=None).success
    assert f.call({}).success


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
ANNOTATIONS = [entry[0] for entry in ACCEPTED]


@settings(deadline=None)
@given(annotation=st.sampled_from(ANNOTATIONS), value=json_values, coerce=st.booleans())
def test_any_json_is_accepted_or_explained(annotation: Any, value: Any, coerce: bool) -> None:
    """Whatever the model sends, the check returns, and says why where it does not accept."""
    _, wrong = check(annotation, value, coerce=coerce)

    for _, code, message, _ in wrong:
        assert code
        assert message


@settings(deadline=None)
@given(value=st.integers() | st.text() | st.booleans() | st.none() | st.floats())
def test_pydantic_and_the_hints_agree(value: Any) -> None:
    """What the strict pydantic model of the same hints accepts, the hints accept, and inversely."""

    class Same(BaseModel, strict=True):
        x: int | str | None

    try:
        Same(x=value)
    except ValueError:
        accepted = False
    else:
        accepted = True
    whole = type(value) is float and value.is_integer()  # JSON's 2.0 is the integer 2

    assert (check(int | str | None, value)[1] == []) == (accepted or whole)
