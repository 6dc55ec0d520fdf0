"""Hostile payloads: no exception leaves a public entry point, every answer is bounded JSON.

The values are objects whose special methods raise or lie, cycles,
mutation during iteration, huge strings, bytes, NaN, lone surrogates.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from toolfault import ToolManager, ToolRegistry, ToolResult, report_validation_error, tool
from toolfault.coerce import LLMBool, LLMInt, LLMJson
from toolfault.tools import CallRecord, observe, unobserve

EXAMPLES = int(os.environ.get("TOOLFAULT_HOSTILE_EXAMPLES", "30"))
MOST_BYTES = 64 * 1024


@pytest.fixture(autouse=True, scope="module")
def quiet_pydantic() -> Iterator[None]:
    """pydantic-core looks at ``__class__`` and tells the interpreter when that raises, not us."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None
    yield
    sys.unraisablehook = before


class Raising:
    """Every way to look at it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    def __hash__(self) -> int:
        return 1

    def __len__(self) -> int:
        raise RuntimeError("no len")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no iter")

    def __bool__(self) -> bool:
        raise RuntimeError("no bool")

    def __int__(self) -> int:
        raise RuntimeError("no int")


class Endless:
    """Iterates and describes itself without end."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 1

    def __getattr__(self, name: str) -> Any:
        return self

    def __repr__(self) -> str:
        return "x" * 10_000_000


class Liar(str):
    """A string whose methods lie."""

    __slots__ = ()

    def lower(self) -> Any:
        """Refuse."""
        raise RuntimeError("no lower")

    def strip(self, chars: Any = None) -> Any:
        """Refuse."""
        raise RuntimeError("no strip")

    def __len__(self) -> int:
        return 10**9


class Shrinking(dict):
    """A dict that changes while it is read."""

    def items(self) -> Any:
        """Lose a key with every step."""
        for key in list(self):
            self.pop(key, None)
            yield key, 1


class BrokenMapping(Mapping):
    """A mapping that cannot be read."""

    def __getitem__(self, key: Any) -> Any:
        raise RuntimeError("no item")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no keys")

    def __len__(self) -> int:
        return 3


def cycle() -> dict[str, Any]:
    """An object that contains itself."""
    inside: dict[str, Any] = {}
    inside["n"] = inside
    inside["items"] = [inside]
    return inside


def deep() -> Any:
    """Five hundred lists in one another."""
    value: Any = 1
    for _ in range(500):
        value = [value]
    return value


class Maker:
    """Stands for a hostile value until the test runs: hypothesis too would look at the value."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __repr__(self) -> str:
        return f"Maker({self.place})"


def built(value: Any) -> Any:
    """The value with every placeholder replaced."""
    if type(value) is Maker:
        return MAKERS[value.place]()
    if type(value) is list:
        return [built(item) for item in value]
    if type(value) is dict:
        return {key: built(item) for key, item in value.items()}
    return value


MAKERS: list[Callable[[], Any]] = [
    Raising,
    Endless,
    lambda: Liar("80"),
    lambda: Shrinking(n=1, x=2),
    BrokenMapping,
    cycle,
    deep,
    lambda: b"\xff\x00",
    lambda: bytearray(b"x" * 1000),
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: 10**5000,
    lambda: "\ud800",
    lambda: "\x00\x1b[31m",
    lambda: "x" * 1_000_000,
    lambda: object,
    lambda: lambda: None,
    lambda: Raising(),
    lambda: {Raising(): Raising()},
    lambda: [Raising()] * 100,
    lambda: {1: 2, None: 3, (4,): 5},
    lambda: {"<img src=x>": "=1+1", "a\nb": 1, "\ud800": 2, "k" * 100_000: 3},
    lambda: {f"field{n}": n for n in range(2_000)},
    lambda: set("abc"),
    lambda: (item for item in "abc"),
]
hostile = st.builds(Maker, st.integers(0, len(MAKERS) - 1))
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50)
values = st.recursive(
    hostile | plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)
names = st.sampled_from(["n", "flag", "items", "point", "kind", "extra"]) | st.text(max_size=9)
payloads = st.dictionaries(names, values, max_size=6) | values | st.text()


@dataclass
class Point:
    """A nested object."""

    x: int
    y: float = 0.0


class Bound:
    """Bounds of a number."""

    ge = 0
    le = 10


class Model(BaseModel):
    """The same fields for pydantic."""

    n: int = 0
    flag: bool = False
    items: list[int] = []
    point: Any = None
    kind: Literal["a", "b"] = "a"


def function(
    n: Annotated[int, Bound()] = 0,
    flag: bool = False,
    items: list[int] | None = None,
    point: Point | None = None,
    kind: Literal["a", "b"] = "a",
) -> Any:
    """Return what arrived."""
    return [n, flag, items, point, kind]


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "maximum": 10},
        "flag": {"type": "boolean"},
        "items": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        "point": {"$ref": "#/$defs/P"},
        "kind": {"enum": ["a", "b", {"c": 1}]},
    },
    "$defs": {"P": {"type": "object", "properties": {"x": {"type": "string", "format": "date"}}}},
}


def marked(n: LLMInt = 0, flag: LLMBool = False, items: LLMJson | None = None, **rest: Any) -> Any:
    """Repaired field by field."""
    return [n, flag, items, rest]


def anything(**arguments: Any) -> Any:
    """Return the arguments themselves."""
    return arguments


def raiser(**arguments: Any) -> Any:
    """Raise an exception that carries the arguments."""
    raise RuntimeError(*arguments.values())


TOOLS = [
    tool(name="hints")(function),
    tool(name="repaired", coerce=True, hints="derived", echo=("n", "extra"))(function),
    tool(name="model", model=Model)(anything),
    tool(name="model_repaired", model=Model, coerce=True, hints="derived")(anything),
    tool(name="schema", parameters=SCHEMA)(function),
    tool(name="schema_repaired", parameters=SCHEMA, coerce=True)(function),
    tool(name="marked")(marked),
    tool(name="anything", echo=("n",))(anything),
    tool(name="raiser")(raiser),
]
manager = ToolManager(ToolRegistry(TOOLS), threads=False)


def check_answer(result: ToolResult[Any]) -> None:
    """The answer is a result whose every failing form is JSON and bounded."""
    assert type(result.success) is bool
    if result.success:
        return
    assert result.error is not None
    forms = [
        result.to_tool_message("c1"),
        result.to_anthropic("c1"),
        result.to_mcp(),
        result.to_openai_text(),
        result.error.to_llm_payload(),
        result.error.renderings(),
    ]
    for form in forms:
        text = json.dumps(form, allow_nan=False)
        assert len(text.encode("utf-8")) <= MOST_BYTES
    payload = json.dumps(result.error.to_llm_payload(), ensure_ascii=False)
    assert len(payload.encode("utf-8")) <= 8 * 1024


class Heard(logging.Handler):
    """Has every line of the log written, and forgets it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line."""
        self.format(record)


@pytest.fixture(autouse=True, scope="module")
def heard() -> Iterator[None]:
    """Let somebody listen to the log: composing its lines is part of what must be safe."""
    handler, logger = Heard(), logging.getLogger("toolfault")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(payload=payloads, which=st.sampled_from(TOOLS))
def test_every_payload_is_answered(payload: Any, which: Any) -> None:
    """[S1][P-05][K-05] Every entry point answers, records once, and raises nothing."""
    payload = built(payload)
    records: list[CallRecord] = []
    observe(records.append)
    try:
        check_answer(which.call(payload))
        check_answer(asyncio.run(manager.call_tool(which.tool.name, payload)))
        check_answer(manager.call_tool_sync(which.tool.name, payload))
        check_answer(manager.call_tool_sync(payload, payload))
        check_answer(report_validation_error("framework", ValueError("x"), payload))
    finally:
        unobserve(records.append)
    assert len(records) == 5


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values)
def test_the_host_gets_its_own_object_back(value: Any) -> None:
    """[S1] Whatever a tool returns, the caller of the function gets that very object."""
    value = built(value)

    @tool
    def give() -> Any:
        return value

    records: list[CallRecord] = []
    observe(records.append)
    try:
        assert give() is value
        result = give.call()
    finally:
        unobserve(records.append)
    assert result.success is False or result.value is value
    json.dumps(result.to_dict(), allow_nan=False)
