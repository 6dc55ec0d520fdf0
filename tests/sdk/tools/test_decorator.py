"""The decorator: a decorated function is the same function, plus ``call``."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from toolfault import ConfigError, ToolError, ToolManager, ToolResult, tool
from toolfault.tools import CallRecord, Tool, as_tool


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@tool
async def add_later(a: int, b: int = 2) -> int:
    """Add two numbers, in time."""
    return a + b


@tool
def identity(value: Any) -> Any:
    """Return the value itself."""
    return value


@tool
def raising(error: Any) -> None:
    """Raise what it is given."""
    raise error


def test_signature_and_docstring_stay() -> None:
    """What inspects the function sees the function."""
    assert add.__doc__ == "Add two numbers."
    assert add.__name__ == "add"
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert inspect.isfunction(add)
    assert inspect.iscoroutinefunction(add_later)
    assert not inspect.iscoroutinefunction(add)


def test_a_decorated_function_can_be_pickled_and_copied() -> None:
    """Like any function of a module it goes by its name."""
    assert pickle.loads(pickle.dumps(add)) is add
    assert copy.deepcopy(add) is add


@pytest.mark.parametrize("listening", [True, False])
async def test_a_direct_call_is_the_function(listening: bool, request: Any) -> None:
    """The same value, positional or by keyword, awaited or not, whether anybody listens or not."""
    if listening:
        request.getfixturevalue("records")

    marker = object()

    assert identity(marker) is marker
    assert (add(1), add(1, 2), add(a=1, b=3)) == (3, 3, 4)
    assert await add_later(1, b=5) == 6


class Hostile:
    """A value no part of which may be touched."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("do not look at me")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("place", range(8))
async def test_every_way_returns_the_very_object(place: int, records: list[CallRecord]) -> None:
    """[S1] Whatever the tool returns is returned as it is, and is a success."""
    value = [Hostile(), b"\xff", "\ud800", float("nan"), [], {}, None, "x" * 99][place]
    manager = ToolManager([identity])

    assert identity(value) is value
    assert identity.call({"value": value}).value is value
    assert (await manager.call_tool("identity", {"value": value})).value is value
    assert manager.call_tool_sync("identity", {"value": value}).value is value
    assert [record.success for record in records] == [True] * 4


@pytest.mark.parametrize("error", [ValueError("x"), KeyError(3), KeyboardInterrupt()])
def test_a_direct_call_raises_what_the_function_raises(
    error: BaseException, records: list[CallRecord]
) -> None:
    """The very same exception goes on to the caller, and leaves one record."""
    with pytest.raises(type(error)) as caught:
        raising(error)

    assert caught.value is error
    assert [record.success for record in records] == [False]


async def test_direct_calls_are_recorded(records: list[CallRecord]) -> None:
    """Arguments go by their names, also positional ones."""
    add(1, 2)
    await add_later(3)

    assert [(r.tool, r.success, dict(r.arguments or {}), r.result) for r in records] == [
        ("add", True, {"a": 1, "b": 2}, 3),
        ("add_later", True, {"a": 3}, 5),
    ]
    assert all(record.duration_ms >= 0 for record in records)


def test_a_direct_call_that_does_not_fit(records: list[CallRecord]) -> None:
    """Python's own TypeError goes on; the record names the parameters."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        add(c=1)  # type: ignore[call-arg]

    [record] = records
    assert record.error is not None
    assert [(i.field, i.code.value) for i in record.error.issues] == [
        ("a", "missing_field"),
        ("c", "unknown_field"),
    ]


def test_a_type_error_inside_a_direct_call_is_internal(records: list[CallRecord]) -> None:
    """[E3] Only a TypeError of the call itself is about arguments."""
    with pytest.raises(TypeError):
        add("a", 1)  # type: ignore[arg-type]

    assert [record.error.category.value for record in records if record.error] == ["internal"]


def test_a_returned_failure_of_a_direct_call(records: list[CallRecord]) -> None:
    """[E6] The caller gets the dict; the record says failure."""
    failure = {"success": False, "error": "quota exceeded"}

    assert identity(failure) is failure
    [record] = records
    assert record.error is not None
    assert record.error.message == "quota exceeded"


@pytest.mark.parametrize(
    "arguments", ['{"a": 1}', {"a": 1}, b'{"a": 1}', '  {"a": 1}<|tool_call_end|> and more']
)
def test_call_takes_what_a_model_sends(arguments: Any) -> None:
    """A JSON string, a mapping, bytes: all the same."""
    assert add.call(arguments).value == 3


def test_call_takes_keywords() -> None:
    """Fields may be given as keywords, or as a mapping and keywords."""
    assert add.call(a=1).value == 3
    assert add.call({"a": 1}, b=5).value == 6
    with pytest.raises(TypeError, match="not both"):
        add.call('{"a": 1}', b=5)


@tool(context=("tenant",))
def place(a: int = 1, b: int = 2, tenant: str = "none", /, c: int = 3) -> list[Any]:
    """Take most arguments by position only."""
    return [a, b, tenant, c]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({}, [1, 2, "none", 3]),
        ({"b": 5}, [1, 5, "none", 3]),
        ({"a": 5, "c": 6}, [5, 2, "none", 6]),
    ],
)
def test_arguments_taken_by_position_only_keep_their_places(
    arguments: dict[str, int], value: list[Any]
) -> None:
    """What is left out in front of a given argument has its default; nothing moves up."""
    assert place.call(arguments).value == value
    with_tenant = place.tool.with_context(tenant="t").call(arguments)
    assert isinstance(with_tenant, ToolResult)
    assert with_tenant.value == [*value[:2], "t", value[3]]


async def test_call_of_an_async_tool_is_awaited() -> None:
    """A coroutine function's call is a coroutine of a result."""
    pending = add_later.call(a=1)

    assert inspect.iscoroutine(pending)
    result = await pending
    assert isinstance(result, ToolResult)
    assert result.value == 3


@pytest.mark.parametrize("arguments", ["", "   ", None, {}, "{}"])
def test_no_arguments(arguments: Any) -> None:
    """[L-15] An empty string means no arguments where none are needed."""

    @tool
    def now() -> str:
        return "now"

    assert now.call(arguments).value == "now"


def test_an_empty_string_is_no_json_where_arguments_are_needed() -> None:
    """[A14] Then it is said to be no JSON."""
    error = add.call("").error
    assert error is not None
    assert error.code == "malformed_json"


def test_the_end_marker_inside_an_argument_stays() -> None:
    """Valid JSON that mentions the marker is not cut."""
    text = "see <|tool_call_end|> there"

    assert identity.call(json.dumps({"value": text})).value == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "Too deeply nested"),
        ('{"a": ' + "9" * 5_000 + "}", "Number too large"),
        ("{'a': 1}", "Expecting property name"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": -Infinity}<|tool_call_end|>', "-Infinity is not a JSON number"),
    ],
)
def test_text_that_is_not_json(text: str, reason: str) -> None:
    """[P-12] What JSON has not, or the parser has no room for, is malformed and no crash."""
    result = add.call(text)

    assert result.message.startswith("Error: failed to parse tool arguments: ")
    assert reason in result.message
    assert result.error is not None
    assert result.error.code == "malformed_json"


def test_options() -> None:
    """The decorator takes options, and the tool its own name."""

    @tool(name="sum", timeout=3)
    def add_up(*, a: int) -> int:
        """Sum."""
        return a

    assert add_up.tool.name == "sum"
    assert add_up.tool.description == "Sum."
    assert add_up.tool.timeout == 3.0
    assert add_up.__name__ == "add_up"


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": "5"}, {"timeout": True}, {"context": {"nobody": 1}}, {"model": 7}],
)
def test_options_that_cannot_work(options: dict[str, Any]) -> None:
    """They are refused where they are written."""
    with pytest.raises(ConfigError):
        tool(**options)(lambda: None)


def test_what_cannot_be_decorated() -> None:
    """A tool is not decorated twice, and a number not at all."""
    with pytest.raises(ConfigError, match="already"):
        tool(add)
    with pytest.raises(ConfigError, match="decorates a function"):
        tool(3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="unexpected options"):
        tool(tiemout=3)(lambda: None)  # type: ignore[call-overload]


class Toolkit:
    """An agent's tools as methods."""

    def __init__(self, base: int) -> None:
        self.base = base

    @tool
    def add(self, n: int) -> int:
        """Add to the base."""
        return self.base + n

    @tool(name="later")
    async def add_later(self, n: int) -> int:
        """Add to the base, in time."""
        return self.base + n


async def test_methods_are_tools_of_their_instance(records: list[CallRecord]) -> None:
    """Every instance has its own bound tool; ``self`` is no parameter of the model."""
    one, ten = Toolkit(1), Toolkit(10)

    assert (one.add(1), ten.add(1)) == (2, 11)
    assert one.add.call(n=5).value == 6
    assert ten.add.call(n=5).value == 15
    assert (await ten.add_later.call(n=1)).value == 11
    assert not one.add.call({}).success
    assert Toolkit.add(one, 1) == 2
    assert list(one.add.tool.parameters["properties"]) == ["n"]
    assert [record.tool for record in records] == ["add"] * 4 + ["later", "add", "add"]


class LouderToolkit(Toolkit):
    """Tools that go on with those of their base."""

    @tool
    def add(self, n: int) -> int:
        """Add a hundred too."""
        return super().add(n) + 100

    @tool
    @classmethod
    def named(cls) -> str:
        """Say which class it is."""
        return cls.__name__


class LoudestToolkit(LouderToolkit):
    """The same once more."""

    @tool
    @classmethod
    def named(cls) -> str:
        """Say it of the base, too."""
        return f"{super().named()}!"  # type: ignore[call-arg]


def test_an_overriding_method_calls_that_of_its_base_each_time() -> None:
    """``super()`` in a tool reaches the base's, and never puts it in the place of the override."""
    louder = LouderToolkit(1)

    assert [louder.add(1), louder.add(1), louder.add.call(n=1).value] == [102, 102, 102]
    loudest: Any = LoudestToolkit
    assert [loudest.named(), loudest.named()] == ["LoudestToolkit!"] * 2


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))]
)
def test_a_copy_has_tools_of_its_own(copied: Callable[[Toolkit], Toolkit]) -> None:
    """A copied or pickled object runs its tools on itself, also after they were used."""
    one = Toolkit(1)
    one.add(1)
    twin = copied(one)
    twin.base = 10

    assert (twin.add(1), twin.add.call(n=1).value) == (11, 11)
    assert (one.add(1), one.add.call(n=1).value) == (2, 2)


def test_tools_keep_no_instance_alive() -> None:
    """An object whose tools were called goes with its last reference."""
    one = Toolkit(1)
    one.add.call(n=1)
    gone = weakref.ref(one)
    del one

    assert gone() is None


def test_a_wrong_option_of_a_method_is_told_at_its_decoration() -> None:
    """As with functions: not when the first object is made, and not when it is called."""
    with pytest.raises(ConfigError, match="timeout"):

        class Wrong:
            @tool(timeout=-1)
            def run(self) -> None: ...


class Counter:
    """Tools of a class, and tools that need neither class nor instance."""

    base = 1

    @tool
    @classmethod
    def of_class(cls, n: int) -> int:
        """Add to the base of the class."""
        return cls.base + n

    @classmethod
    @tool
    def of_class_too(cls, n: int) -> int:
        """Add to the base of the class, decorated the other way round."""
        return cls.base + n

    @tool(name="free")
    @staticmethod
    def of_nobody(n: int) -> int:
        """Return the number."""
        return n

    @staticmethod
    @tool
    def of_nobody_too(n: int) -> int:
        """Return the number, decorated the other way round."""
        return n

    @tool
    @classmethod
    async def in_time(cls, n: int) -> int:
        """Add to the base of the class, in time."""
        return cls.base + n


class TenCounter(Counter):
    """A class with another base."""

    base = 10


@pytest.mark.parametrize(("owner", "base"), [(Counter, 1), (TenCounter, 10), (TenCounter(), 10)])
async def test_class_and_static_methods_are_tools(owner: Any, base: int) -> None:
    """``@tool`` goes with ``@classmethod`` and ``@staticmethod``; a subclass has its own tool."""
    assert owner.of_class(1) == base + 1
    assert owner.of_class.call('{"n": 5}').value == base + 5
    assert not owner.of_class.call({}).success
    assert (await owner.in_time.call(n=1)).value == base + 1
    assert owner.of_class_too(1) == base + 1
    for free in (owner.of_nobody, owner.of_nobody_too):
        assert free(3) == 3
        assert free.call(n=4).value == 4
        assert list(free.tool.parameters["properties"]) == ["n"]
    assert owner.of_nobody.tool.name == "free"


def test_classmethod_around_a_tool() -> None:
    """Up to Python 3.12 it works; later it no longer says which class, and the error says so."""
    if sys.version_info < (3, 13):
        assert TenCounter.of_class_too.call(n=5).value == 15
    else:
        with pytest.raises(AttributeError, match="write @tool above @classmethod"):
            TenCounter.of_class_too.call(n=5)
    with pytest.raises(AttributeError, match="nothing"):
        _ = Toolkit.add.nothing  # type: ignore[attr-defined]


def test_callable_objects_and_partials() -> None:
    """Whatever can be called can be a tool."""

    class Adder:
        """Adds."""

        def __call__(self, a: int) -> int:
            return a + 1

    assert as_tool(Adder()).call({"a": 1}).value == 2  # type: ignore[union-attr]
    assert as_tool(functools.partial(add.tool.fn, b=5)).call({"a": 1}).value == 6  # type: ignore[union-attr]
    assert as_tool(len).call({"obj": "ab"}).value == 2  # type: ignore[union-attr]


def test_as_tool_finds_what_is_decorated() -> None:
    """The tool behind a decorated function, the tool itself, or a new one."""
    assert as_tool(add) is add.tool
    assert as_tool(add.tool) is add.tool
    assert isinstance(as_tool(lambda: 1), Tool)
    with pytest.raises(ConfigError):
        as_tool("add")


def test_the_schema_for_the_model() -> None:
    """Type hints amount to a JSON schema that can be shown to a model."""
    assert add.tool.parameters == {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_a_change_of_the_schema_changes_its_hash(records: list[CallRecord]) -> None:
    """The hash is that of the parameters alone, 16 hex digits."""

    def first(a: int) -> None: ...

    def second(a: str) -> None: ...

    tool(first, name="t").call(a=1)
    tool(first, name="other").call(a="x")
    tool(second, name="t").call(a="x")

    hashes = [record.schema_hash for record in records]
    assert hashes[0] == hashes[1] != hashes[2]
    assert all(value is not None and len(value) == 16 for value in hashes)


def test_a_generator_and_an_awaitable_are_values() -> None:
    """What a synchronous function returns is its value, whatever it is."""

    @tool
    def lazily() -> Any:
        return asyncio.sleep(0, "later")

    result = lazily.call()
    assert result.success
    result.value.close()


def test_an_error_with_nothing_but_its_text_is_raised_inside_a_tool() -> None:
    """The tool's name is known there; a text with a space, or nothing else, is the message."""

    @tool
    def find(code: str) -> None:
        if code == "alone":
            raise ToolError("Gone")
        raise ToolError("User 42 does not exist", code="not_found")

    error = find.call({"code": "x"}).error
    assert error is not None
    assert (error.tool, error.code.value) == ("find", "not_found")
    assert error.render("llm") == "Error: User 42 does not exist"
    alone = find.call({"code": "alone"})
    assert (alone.message, str(alone)) == ("Error: Gone", "Error: Gone")
    assert str(ToolResult(value={"a": 1})) == '{"a": 1}'
