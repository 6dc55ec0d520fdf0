"""Repairing what models commonly send."""

from __future__ import annotations

import datetime
import enum
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from toolfault.coerce import (
    COERCERS,
    Coercion,
    InvalidJSONError,
    LLMBool,
    LLMDate,
    LLMFloat,
    LLMInt,
    LLMJson,
    LLMList,
    LLMStr,
    coerce_bool,
    coerce_date,
    coerce_enum,
    coerce_float,
    coerce_int,
    coerce_json,
    coerce_list,
    coerce_strip,
)


class Colour(enum.Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


def test_eight_words_are_booleans_and_nothing_else() -> None:
    """[H-07][C24] Four words of each, in any case; unknown text never becomes False."""
    for text in ("true", "TRUE", "True", "1", "yes", "YES", "on", "On"):
        assert coerce_bool(text) is True
    for text in ("false", "FALSE", "0", "no", "No", "off"):
        assert coerce_bool(text) is False
    others: list[object] = [
        "",
        " true ",
        "maybe",
        "2",
        "t",
        "nope",
        1,
        0,
        None,
        [],
        True,
        1.0,
        b"1",
    ]
    for value in others:
        assert coerce_bool(value) is value


@given(st.text())
def test_no_unknown_text_becomes_a_boolean(text) -> None:
    """[H-07] Only the eight words are converted."""
    known = text.lower() in {"true", "1", "yes", "on", "false", "0", "no", "off"}

    assert (type(coerce_bool(text)) is bool) is known


def test_integers_in_text() -> None:
    """[H-08] What int() reads is an integer; nothing else changes."""
    for text, number in (("80", 80), ("-456", -456), ("+7", 7), ("0", 0)):
        assert coerce_int(text) == number
        assert type(coerce_int(text)) is int
    others: list[object] = ["12.34", "abc", "", "1e3", "0x10", True, None, [1], 1.5, b"1", {}]
    for value in others:
        assert coerce_int(value) is value


def test_numbers_in_text() -> None:
    """[H-08] What float() reads as a finite number is one; JSON has no NaN and no infinities."""
    for text, number in (("1.5", 1.5), (" -2 ", -2.0), ("1e3", 1000.0), (".5", 0.5)):
        assert coerce_float(text) == number
    others: list[object] = ["nan", "inf", "-Infinity", "abc", "", 5, True, None, "9" * 5_000]
    for value in others:
        assert coerce_float(value) is value


def test_objects_and_arrays_in_text() -> None:
    """[H-10] A JSON object or array in a text is that; bare values and objects stay."""
    for text, value in [
        ('{"a": 1}', {"a": 1}),
        (" [1, 2] ", [1, 2]),
        ("{}", {}),
        ('{"a": null}', {"a": None}),
    ]:
        assert coerce_json(text) == value
    others: list[object] = ["5", '"x"', "true", "null", {"a": 1}, [1], None, 5]
    for other in others:
        assert coerce_json(other) is other


def test_broken_json_says_what_was_expected() -> None:
    """[H-10][A07] The parser's words follow Invalid JSON, whoever asks."""
    for text, reason in [
        ("{invalid}", "Expecting property name enclosed in double quotes"),
        ("", "Expecting value"),
        ("[1", "Expecting ',' delimiter"),
        ("{} {}", "Extra data"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[" * 100_000, "Too deeply nested"),
        ("[" + "9" * 5_000 + "]", "Number too large"),
    ]:
        with pytest.raises(ValueError, match=r"^Invalid JSON: ") as caught:
            coerce_json(text)
        assert str(caught.value).startswith(f"Invalid JSON: {reason}")


def test_broken_json_without_pydantic(monkeypatch) -> None:
    """[H-10] Where pydantic is not loaded, the SDK's own ValueError says the same."""
    monkeypatch.delitem(sys.modules, "pydantic_core")
    with pytest.raises(InvalidJSONError, match="Invalid JSON: Expecting property name"):
        coerce_json("{invalid}")


def test_broken_json_with_pydantic_names_its_code() -> None:
    """[A07] Where pydantic is loaded, the error is of type malformed_json."""
    with pytest.raises(PydanticCustomError) as caught:
        coerce_json("{invalid}")
    assert caught.value.type == "malformed_json"


def test_a_single_value_is_a_list_of_one() -> None:
    """[H-09] A single value is wrapped, a JSON array in a text read; lists and nothing stay."""
    cases: list[tuple[object, list[object]]] = [
        ("a", ["a"]),
        (5, [5]),
        ({"a": 1}, [{"a": 1}]),
        ("[1, 2]", [1, 2]),
        ("[broken", ["[broken"]),
        ("", [""]),
    ]
    for value, items in cases:
        assert coerce_list(value) == items
    others: list[object] = [None, [], [1], (1,), {1}]
    for other in others:
        assert coerce_list(other) is other


def test_strip() -> None:
    """[H-09] White space around a text goes; other values stay."""
    assert coerce_strip("  a b\n") == "a b"
    assert coerce_strip(5) == 5


def test_choices_but_for_their_case() -> None:
    """[H-09] The one choice that differs by case or separator only; never a guess between two."""
    cases: list[tuple[object, Any, object]] = [
        ("RED", ["red", "blue"], "red"),
        (" Dark Blue ", ["dark-blue"], "dark-blue"),
        ("red", ["red", "RED"], "red"),
        ("Red", ["red", "RED"], "Red"),
        ("green", ["red"], "green"),
        ("RED", Colour, Colour.RED),
        ("Red", Colour, Colour.RED),
        ("dark_blue", Colour, Colour.DARK_BLUE),
        ("DARK_BLUE", Colour, Colour.DARK_BLUE),
        (5, ["red"], 5),
        ("", [], ""),
    ]
    for value, choices, found in cases:
        assert coerce_enum(value, choices) == found


def test_unmistakable_days() -> None:
    """[H-09] Every spelling of one certain day is that day."""
    for text in [
        "2024-01-31",
        "2024/1/31",
        "2024.01.31",
        "20240131",
        "31 Jan 2024",
        "31st January 2024",
        "31-Jan-2024",
        "January 31, 2024",
        "Jan. 31 2024",
        "2024-01-31T12:30:00Z",
        "2024-01-31 12:30:00+02:00",
        " 2024-01-31 ",
    ]:
        assert coerce_date(text) == datetime.date(2024, 1, 31)


def test_doubtful_days_stay() -> None:
    """[H-09] What could be two days, or none, is left as it is."""
    values: list[object] = [
        "01/02/2024",
        "31/01/2024",
        "2024-02-31",
        "tomorrow",
        "",
        "2024",
        20240131,
        None,
        "2024-13-01",
        "x" * 50,
    ]
    for value in values:
        assert coerce_date(value) is value


class Request(BaseModel):
    follow: LLMBool = False
    port: LLMInt = Field(default=80, ge=1, le=65_535)
    ratio: LLMFloat = 1.0
    name: LLMStr = ""
    day: LLMDate = datetime.date(2024, 1, 1)
    headers: LLMJson = Field(default_factory=dict)
    tags: LLMList[int] = Field(default_factory=list)


def test_annotated_types_in_a_pydantic_model() -> None:
    """[H-09][A08] Every repair works as an annotation."""
    model = Request.model_validate(
        {
            "follow": "Yes",
            "port": " 80 ",
            "ratio": "1.5",
            "name": " x ",
            "day": "31 Jan 2024",
            "headers": '{"a": "b"}',
            "tags": "5",
        }
    )

    assert model.model_dump() == {
        "follow": True,
        "port": 80,
        "ratio": 1.5,
        "name": "x",
        "day": datetime.date(2024, 1, 31),
        "headers": {"a": "b"},
        "tags": [5],
    }


def test_annotated_types_leave_errors_to_pydantic() -> None:
    """[H-09][H-01] Where no repair applies, all errors are reported together."""
    with pytest.raises(ValidationError) as caught:
        Request.model_validate({"follow": "maybe", "port": "99999", "headers": "{broken"})

    assert [error["type"] for error in caught.value.errors()] == [
        "bool_parsing",
        "less_than_equal",
        "malformed_json",
    ]


def test_annotated_types_keep_their_json_schema() -> None:
    """[H-09] The schema shown to the model is that of the plain type."""
    assert TypeAdapter(LLMInt).json_schema() == {"type": "integer"}
    assert TypeAdapter(LLMList[int]).json_schema() == {
        "type": "array",
        "items": {"type": "integer"},
    }


def test_a_coercion_of_ones_own() -> None:
    """[P-17] Any function can be a coercion."""
    percent = Coercion("number", lambda v: v.rstrip("%") if isinstance(v, str) else v)
    adapter = TypeAdapter(Annotated[float, percent])

    assert adapter.validate_python("5%") == 5.0
    assert Coercion("integer", coerce_int) == Coercion("integer", coerce_int)
    assert len({Coercion("integer", coerce_int), Coercion("integer", coerce_int)}) == 1
    assert repr(percent) == "Coercion('number')"


def test_repairs_by_json_type() -> None:
    """[C3] Ruling 8: what coerce=True does for each type, and what it leaves."""
    cases: list[tuple[str, str, object]] = [
        ("boolean", "true", True),
        ("integer", "5", 5),
        ("number", "1.5", 1.5),
        ("object", '{"a": 1}', {"a": 1}),
        ("array", "[1]", [1]),
        ("object", "hello", "hello"),
        ("object", "[1]", "[1]"),
        ("object", "{broken", "{broken"),
        ("array", '{"a": 1}', '{"a": 1}'),
        ("boolean", " true ", " true "),
    ]
    for kind, value, repaired in cases:
        assert COERCERS[kind](value) == repaired
    assert "string" not in COERCERS


@settings(max_examples=30)
@given(st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.booleans(), st.none())))
def test_every_object_survives_the_way_through_text(value) -> None:
    """[H-10] Whatever object a model writes as JSON text comes out as it was."""
    assert coerce_json(json.dumps(value)) == value


class Loud(str):
    """Text that must not be printed, measured or converted by methods of its own."""

    def _raise(self, *_):
        raise RuntimeError("hostile")

    __repr__ = __len__ = __int__ = __float__ = strip = lower = lstrip = startswith = _raise


def test_a_class_of_text_is_read_as_its_text() -> None:
    """[P-05] Methods that a class derived from str has overridden are not asked."""
    cases: list[tuple[Callable[[object], object], str, object]] = [
        (coerce_bool, "YES", True),
        (coerce_int, " 80 ", 80),
        (coerce_float, "1.5", 1.5),
        (coerce_list, "[1]", [1]),
        (coerce_strip, " a ", "a"),
        (coerce_date, "2024-01-31", datetime.date(2024, 1, 31)),
        (coerce_json, '{"a": 1}', {"a": 1}),
    ]
    for coerce, text, result in cases:
        assert coerce(Loud(text)) == result


def test_a_class_of_text_that_means_nothing_is_returned() -> None:
    """[H-07][P-05] Nor to say that it does not apply."""
    odd = Loud("odd text")
    for coerce in (coerce_bool, coerce_int, coerce_float, coerce_date):
        assert coerce(odd) is odd
