"""Texts, snippets and representations of anything."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, SecretStr

from toolfault.errors import redacted_repr, safe_repr, safe_text, to_jsonable, type_name


class Evil:
    """An object that fights back wherever it is asked."""

    def __repr__(self):
        raise RuntimeError("no")

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        raise RuntimeError("no")

    @property  # type: ignore[misc]
    def __class__(self):
        raise RuntimeError("no")


class Endless:
    """An object whose methods never return."""

    def __repr__(self):
        while True:
            pass

    __str__ = __repr__

    def __getattr__(self, name):
        while True:
            pass


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 2


class Model(BaseModel):
    name: str
    secret: SecretStr


class LoudStr(str):
    """A string that lies about itself."""

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__

    def __len__(self):
        return -1  # noqa: PLE0303 - a lie


class LoudDict(dict):
    """A dict that lies about its items."""

    def items(self):
        raise RuntimeError("no")

    __iter__ = items


def test_ordinary_values_look_as_python_shows_them() -> None:
    """[H-04] What JSON and common types can hold is represented as `repr` does."""
    values: list[object] = [
        None,
        True,
        -456,
        1.5,
        "x'y",
        'a"b\n',
        [],
        [1, "a"],
        (1,),
        (),
        {"a": [1, {"b": None}]},
        {1, 2},
        set(),
        frozenset({1}),
        datetime.date(2024, 1, 31),
        decimal.Decimal("1.50"),
        uuid.UUID(int=5),
        pathlib.PurePosixPath("/a/b"),
        range(3),
        Colour.RED,
        Point(1),
        ValueError("x", 1),
    ]
    for value in values:
        assert safe_repr(value) == repr(value)


def test_dangerous_values_are_named_not_asked() -> None:
    """[P-05][E1] Objects with methods of their own are never called; generators never consumed."""
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Evil(), "<unrepresentable Evil>"),
        (lambda: Endless(), "<unrepresentable Endless>"),
        (lambda: object(), "<object object>"),
        (lambda: b"abc", "<bytes len=3>"),
        (lambda: bytearray(2), "<bytearray len=2>"),
        (lambda: (n for n in [1]), "<generator object>"),
        (lambda: threading.Lock(), "<lock object>"),
        (lambda: 10**6_000, "<int of 19932 bits>"),
        (lambda: LoudStr("hi"), "'hi'"),
        (lambda: LoudDict(a=1), "{'a': 1}"),
        (lambda: collections.OrderedDict(a=1), "{'a': 1}"),
        (lambda: Evil, "<class Evil>"),
        (
            lambda: [Evil(), {"k": Endless()}],
            "[<unrepresentable Evil>, {'k': <unrepresentable Endless>}]",
        ),
    ]
    for make, shown in cases:
        assert safe_repr(make()) == shown


def test_a_generator_is_not_consumed() -> None:
    """[P-05] Looking at a generator leaves all its items in it."""
    numbers = (n for n in (1, 2))
    safe_repr({"n": numbers})
    to_jsonable({"n": numbers})

    assert list(numbers) == [1, 2]


def test_arrays_show_their_type() -> None:
    """[P-05] Arrays and frames show their type and are never iterated."""
    import numpy as np
    import pandas as pd

    assert safe_repr(np.zeros((1_000, 1_000))) == "<ndarray object>"
    assert safe_repr(pd.DataFrame({"a": [1, 2]})) == "<unrepresentable DataFrame>"


def test_models_show_their_fields_but_no_secret() -> None:
    """[P-05] Trap 6: a model is shown field by field, its secret stays one."""
    shown = safe_repr(Model(name="n", secret=SecretStr("hunter2")))

    assert shown.startswith("Model(name='n', secret=")
    assert "hunter2" not in shown


def test_cycles_and_depth_are_cut() -> None:
    """[P-05] Cyclic and very deep values end in an ellipsis."""
    cyclic: list[Any] = [1]
    cyclic.append(cyclic)
    deep: list[Any] = []
    current = deep
    for _ in range(50_000):
        current.append([])
        current = current[0]

    assert safe_repr(cyclic) == "[1, ...]"
    assert safe_repr(deep) == "[[[[[[...]]]]]]"
    assert to_jsonable(cyclic) == [1, "…"]
    assert json.dumps(to_jsonable(deep))


def test_representations_are_bounded() -> None:
    """[L-16] A representation has at most the characters asked for and says when it was cut."""
    values: list[object] = ["x" * 1_000_000, ["y"] * 1_000_000, {n: n for n in range(9_999)}]
    for value in values:
        shown = safe_repr(value, 100)

        assert len(shown) <= 100
        assert shown.endswith(("…", "...]", "...}"))


def test_a_dict_that_changes_meanwhile_does_no_harm() -> None:
    """[P-05] A value mutated by another thread while it is read is still represented."""
    shared: dict[int, int] = {}
    stop = threading.Event()

    def churn():
        n = 0
        while not stop.is_set():
            shared[n % 97] = n
            shared.pop((n * 7) % 97, None)
            n += 1

    thread = threading.Thread(target=churn)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(500):
            assert safe_repr(shared)
            json.dumps(to_jsonable(shared))
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_anything_becomes_plain_json() -> None:
    """[K-06] Every value becomes dicts, lists, strings, numbers, booleans and null."""
    cases: list[tuple[Callable[[], object], object]] = [
        (lambda: float("nan"), "nan"),
        (lambda: float("-inf"), "-inf"),
        (lambda: b"ab", "<bytes len=2>"),
        (lambda: Colour.RED, "red"),
        (lambda: Point(1), {"x": 1, "y": 2}),
        (lambda: datetime.date(2024, 1, 31), "2024-01-31"),
        (lambda: datetime.timedelta(1), "1 day, 0:00:00"),
        (lambda: decimal.Decimal("1.5"), "1.5"),
        (
            lambda: {2: "a", None: "b", True: "c", (1, 2): "d"},
            {"2": "a", "null": "b", "true": "c", "(1, 2)": "d"},
        ),
        (lambda: {"b", "a"}, ["a", "b"]),
        (lambda: (1, (2,)), [1, [2]]),
        (lambda: "\ud800x", "\ufffdx"),
        (lambda: LoudStr("hi"), "hi"),
        (lambda: Evil(), "<unrepresentable Evil>"),
        (lambda: 10**6_000, "<int of 19932 bits>"),
    ]
    for make, plain in cases:
        assert to_jsonable(make()) == plain
        json.dumps(to_jsonable(make()), allow_nan=False)


def test_control_characters_and_half_characters_are_replaced_in_texts() -> None:
    """[P-05] NUL, escapes and lone surrogates are replaced; line breaks and tabs stay."""
    assert safe_text("a\x00b\x1b[0m\ud800\r\nc\td") == "a\ufffdb\ufffd[0m\ufffd\nc\td"
    assert safe_text(5) == "5"


def test_type_names_are_those_of_python() -> None:
    """[H-04] received_type is the bare class name, whatever the class claims."""
    values: list[object] = ["", 1, {}, None, Evil()]

    assert [type_name(value) for value in values] == [
        "str",
        "int",
        "dict",
        "NoneType",
        "Evil",
    ]


def test_values_under_secret_keys_are_hidden_at_every_depth() -> None:
    """[C16] Redaction follows keys into nested values, and leaves numbers alone."""
    value = {
        "headers": {"Authorization": "Bearer abc.def", "Accept": "x"},
        "auth": {"user": "bob", "pw": "x"},
        "list": [{"name": "password", "value": "hunter2"}],
        "max_tokens": 5,
        "token": 7,
    }

    assert redacted_repr(value) == (
        "{'headers': {'Authorization': '[REDACTED]', 'Accept': 'x'}, 'auth': '[REDACTED]', "
        "'list': [{'name': 'password', 'value': '[REDACTED]'}], 'max_tokens': 5, 'token': 7}"
    )
    plain: Any = to_jsonable(value, redact=True)
    assert plain["list"] == [{"name": "password", "value": "[REDACTED]"}]
    assert redacted_repr("x", key="password") == "[REDACTED]"
    assert redacted_repr(5, key="password") == "5"
