"""Classes and a check for the tests of validation from type hints."""
# ruff: noqa: UP007, UP045 - the older spellings are among what is tested

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import annotated_types as at
import msgspec
from pydantic import BaseModel, Field

from toolfault.coerce import LLMBool, LLMDate, LLMInt, LLMJson, LLMList, LLMStr
from toolfault.tools import tool


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


@cache
def tool_of(annotation: Any, *, coerce: bool = False) -> Any:
    """A tool with one parameter ``x`` of this annotation, which returns what it gets."""

    def give(x: Any) -> Any:
        return x

    give.__annotations__ = {"x": annotation}
    return tool(coerce=coerce)(give)


def check(annotation: Any, value: Any, *, coerce: bool = False) -> tuple[Any, list[Any]]:
    """What the value becomes, and what is wrong: (path, code, message, expected).

    Where anything is wrong the value never reaches the tool, and is given back as it was.
    """
    try:
        taker = tool_of(annotation, coerce=coerce)
    except TypeError:  # what cannot be hashed is not kept
        taker = tool_of.__wrapped__(annotation, coerce=coerce)
    result = taker.call({"x": value})
    error = result.error
    if error is None:
        return result.value, []
    return value, [
        (issue.loc[1:], issue.code.value, issue.message, issue.expected) for issue in error.issues
    ]


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
