"""Errors of no library we know, of pydantic 1, and plain exceptions."""

from __future__ import annotations

import json

from toolfault.errors import ToolError


class Odd(ValueError):
    """Anything with .errors()."""

    def __init__(self, found):
        super().__init__("odd")
        self.found = found

    def errors(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_strange_errors_are_still_one_failure() -> None:
    """[H-02][P-05] Whatever .errors() gives or raises, there is a failure with an issue."""
    strange: list[object] = [
        [],
        [None, 3],
        RuntimeError("no"),
        5,
        [{}],
        [{"loc": None, "msg": None, "type": None}],
        [{"loc": ("a", object(), 1.5), "msg": object(), "type": object(), "input": object()}],
        [{"loc": "a", "msg": "m", "type": "value_error", "ctx": 5}],
        [{"loc": ("a",) * 1_000, "msg": "m" * 100_000, "type": "t" * 1_000, "input": "x"}],
    ]
    for found in strange:
        error = ToolError.from_validation_error("t", Odd(found), {"a": 1})

        assert error.category == "parameter"
        assert error.issues
        assert all(error.renderings().values())
        json.dumps(error.to_llm_payload())


def test_errors_in_the_form_of_pydantic_1() -> None:
    """[H-06] Errors without input are read too."""
    error = ToolError.from_validation_error(
        "t",
        Odd(
            [
                {"loc": ("a",), "msg": "field required", "type": "value_error.missing"},
                {
                    "loc": ("b",),
                    "msg": "ensure this value is less than or equal to 5",
                    "type": "value_error.number.not_le",
                    "ctx": {"limit_value": 5},
                },
            ]
        ),
        {"b": 7},
    )

    assert [(i.field, i.code, i.message, i.expected, i.received) for i in error.issues] == [
        ("a", "missing_field", "Missing required parameter", None, None),
        (
            "b",
            "field_too_large",
            "ensure this value is less than or equal to 5",
            "<= 5",
            "7",
        ),
    ]


def test_a_plain_exception_is_an_issue_of_the_whole() -> None:
    """[H-02] What no library made is still told, by its first line."""
    error = ToolError.from_validation_error("t", ValueError("end must be later\nsecond line"))

    assert error.render("llm") == "Error: Invalid parameters: end must be later"
