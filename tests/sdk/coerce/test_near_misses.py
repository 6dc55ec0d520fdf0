"""Near misses: names of remedies that would have helped."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest

from toolfault.coerce import REMEDIES, near_misses
from toolfault.errors import Issue


@pytest.fixture(autouse=True)
def _enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no busy machine cut the advice short, which has two milliseconds."""
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)


CHOICES = ["celsius", "fahrenheit", "kelvin"]


def issue(code: str = "wrong_type", expected: str | None = None, field: str = "f") -> Issue:
    """What was wrong with a value."""
    return Issue(field, code, expected=expected)


def test_the_remedies_that_would_have_accepted() -> None:
    """[C3] Each remedy is named exactly when it would have made the value right."""
    cases: list[tuple[object, Issue, dict[str, Any], tuple[str, ...]]] = [
        ("true", issue(expected="boolean"), {}, ("bool_from_string",)),
        (" true ", issue(expected="boolean"), {}, ("bool_from_string", "strip")),
        ("maybe", issue(expected="boolean"), {}, ()),
        ("80", issue(expected="integer"), {}, ("int_from_string",)),
        ("eighty", issue(expected="integer"), {}, ()),
        ("1.5", issue(expected="number"), {}, ("float_from_string",)),
        ('{"a": 1}', issue(expected="object"), {}, ("json_from_string",)),
        ("[1]", issue(expected="array"), {}, ("json_from_string",)),
        ("[1]", issue(expected="object"), {}, ()),
        ("{broken", issue(expected="object"), {}, ()),
        ("a", issue(expected="array"), {}, ("wrap_in_list",)),
        (5, issue(expected="array"), {}, ("wrap_in_list",)),
        ({"a": 1}, issue(expected="array"), {}, ("wrap_in_list",)),
        (None, issue(expected="array"), {}, ()),
        ([1], issue(expected="array"), {}, ()),
        (" kelvin ", issue("invalid_choice"), {"choices": CHOICES}, ("strip",)),
        ("Kelvin", issue("invalid_choice"), {"choices": CHOICES}, ("fold_case",)),
        (" KELVIN", issue("invalid_choice"), {"choices": CHOICES}, ("strip", "fold_case")),
        ("kelvn", issue("invalid_choice"), {"choices": CHOICES}, ("close_choice",)),
        ("2", issue(expected="integer"), {"choices": [1, 2]}, ("int_from_string",)),
        (" 2x", issue(expected="integer"), {"choices": [1, 2]}, ()),
        ("7", issue(expected="integer"), {"choices": [1, 2]}, ()),
        (" no ", issue(expected="boolean"), {"choices": [True]}, ()),
        ("2", issue("unknown_field", "integer"), {"choices": ["f"]}, ("int_from_string",)),
        ("kelvn", issue("invalid_choice", "'celsius' or 'kelvin'"), {}, ("close_choice",)),
        ("banana", issue("invalid_choice"), {"choices": CHOICES}, ()),
        (1, issue("unknown_field", field="expr"), {"choices": ["expression"]}, ("alias",)),
        (1, issue("unknown_field", field="zzz"), {"choices": ["expression"]}, ()),
        (99, issue("field_too_large", "<= 10"), {}, ("clamp",)),
        ("99", issue("field_too_large", "<= 10"), {}, ("clamp",)),
        (-1, issue("field_too_small", ">= 1"), {}, ("clamp",)),
        ("x" * 5, issue("field_too_large", "length <= 4"), {}, ()),
        (float("nan"), issue("field_too_large", "<= 10"), {}, ()),
        ("31 Jan 2024", issue("invalid_format", "date (YYYY-MM-DD)"), {}, ("date_from_string",)),
        ("01/02/2024", issue("invalid_format", "date (YYYY-MM-DD)"), {}, ()),
        ("x" * 20_000, issue(expected="integer"), {}, ()),
    ]
    for value, problem, options, names in cases:
        assert near_misses(value, problem, **options) == names
        assert set(names) <= set(REMEDIES)


def test_the_names_are_those_of_the_protocol() -> None:
    """[C3] The remedies carry the names that senders and readers rely on."""
    assert REMEDIES == (
        "bool_from_string",
        "int_from_string",
        "float_from_string",
        "json_from_string",
        "wrap_in_list",
        "strip",
        "fold_case",
        "close_choice",
        "alias",
        "clamp",
        "date_from_string",
    )


class Hostile:
    """A value that raises whatever is asked of it."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("no")

    __eq__ = __repr__ = __str__ = __bool__ = __hash__ = _raise


def test_hostile_values_have_no_near_miss_but_a_list() -> None:
    """[P-05] Nothing of the value is called; wrapping it is all that could help."""
    for expected in ["boolean", "integer", "array", "object", "'a' or 'b'", "<= 5", None]:
        found = near_misses(Hostile(), issue("wrong_type", expected))

        assert found in ((), ("wrap_in_list",))


def test_hostile_options_do_no_harm() -> None:
    """[P-05] Whatever the options hold, the answer is a tuple."""
    choices: Any = 5
    assert near_misses("a", issue("invalid_choice"), choices=[Hostile(), "b"]) == ()
    assert near_misses(5, issue(), choices=choices) == ()


def test_no_time_no_near_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """[C3] A remedy that is not tried in time is left out: advice never delays a failure."""
    asked = issue("wrong_type", "integer")
    assert near_misses("5", asked) == ("int_from_string",)
    for clock in ("thread_time", "perf_counter"):
        monkeypatch.setattr(time, clock, count().__next__)
    assert near_misses("5", asked) == ()
