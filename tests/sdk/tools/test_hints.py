"""Validation from type hints, without any validation library: what is accepted and repaired."""
# ruff: noqa: UP045 - the older spellings are among what is tested

from __future__ import annotations

import enum
import sys
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.sdk.tools.hinted import ACCEPTED, Point, check, short

from toolfault import tool


@pytest.mark.parametrize(("annotation", "value", "result"), ACCEPTED, ids=short)
def test_what_is_accepted(annotation: Any, value: Any, result: Any) -> None:
    """Every known annotation accepts what JSON can say of it, and gives the Python value."""
    got, wrong = check(annotation, value)

    assert wrong == []
    assert got == result
    assert type(got) is type(result)


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


@settings(max_examples=40, deadline=None)
@given(annotation=st.sampled_from(ANNOTATIONS), value=json_values, coerce=st.booleans())
def test_any_json_is_accepted_or_explained(annotation: Any, value: Any, coerce: bool) -> None:
    """Whatever the model sends, the check returns, and says why where it does not accept."""
    _, wrong = check(annotation, value, coerce=coerce)

    for _, code, message, _ in wrong:
        assert code
        assert message


@settings(max_examples=40, deadline=None)
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
