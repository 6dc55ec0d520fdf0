"""Validation by a JSON schema: the verdict is jsonschema's, the words are ours."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfault import ConfigError, tool
from toolfault.tools import CallRecord


def wrong(schema: dict[str, Any], value: Any) -> list[tuple[Any, str]]:
    """Path and code of everything that is wrong with ``value``."""
    parameters = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    if "$defs" in schema:
        parameters["$defs"] = schema["$defs"]

    @tool(parameters=parameters)
    def take(x: Any) -> None: ...

    error = take.call({"x": value}).error
    return [] if error is None else [(issue.loc[1:], issue.code.value) for issue in error.issues]


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
}
KIND_A = {
    "type": "object",
    "properties": {"kind": {"const": "a"}, "n": {"type": "string"}},
    "required": ["kind"],
}
KIND_B = {
    "type": "object",
    "properties": {"kind": {"const": "b"}, "n": {"type": "integer"}},
    "required": ["kind"],
}
HEADERS = {
    "type": "object",
    "patternProperties": {"^x-": {"type": "string"}},
    "additionalProperties": False,
}
CASES: list[tuple[dict[str, Any], Any, list[tuple[Any, str]]]] = [
    ({"type": "string"}, "a", []),
    ({"type": "string"}, 1, [((), "wrong_type")]),
    ({"type": ["string", "null"]}, None, []),
    ({"type": ["string", "null"]}, 3, [((), "wrong_type")]),
    ({"type": ["array", "null"]}, "a", [((), "wrong_type")]),
    ({"type": "integer"}, 1.0, []),
    ({"type": "number"}, 10**400, []),
    ({"type": "number"}, float("nan"), [((), "wrong_type")]),
    ({"type": "number"}, float("inf"), [((), "wrong_type")]),
    ({"type": "integer"}, True, [((), "wrong_type")]),
    ({"type": "integer", "minimum": 1, "maximum": 3}, 4, [((), "field_too_large")]),
    ({"type": "number", "exclusiveMinimum": 0}, 0, [((), "field_too_small")]),
    ({"type": "number", "multipleOf": 0.5}, 1.5, []),
    ({"type": "number", "multipleOf": 0.5}, 0.3, [((), "invalid_format")]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "a", [((), "field_too_small")]),
    ({"type": "string", "pattern": "b"}, "abc", []),
    ({"type": "string", "pattern": "^b"}, "abc", [((), "invalid_format")]),
    ({"type": "string", "format": "date"}, "2024-13-01", [((), "invalid_format")]),
    ({"type": "string", "format": "date-time"}, "2024-01-31T12:00:00Z", []),
    ({"type": "string", "format": "email"}, "a.b", [((), "invalid_format")]),
    ({"type": "string", "format": "uri"}, "https://example.com", []),
    ({"type": "string", "format": "uuid"}, "x", [((), "invalid_format")]),
    ({"type": "string", "format": "date", "maxLength": 5}, "2024-01-31", [
        ((), "field_too_large"),
    ]),
    ({"type": "string", "format": "a-format-of-tomorrow"}, "x", []),
    ({"enum": ["a", 1, None]}, None, []),
    ({"enum": ["a", 1]}, True, [((), "invalid_choice")]),
    ({"enum": [1, 2]}, 1.0, []),
    ({"enum": [{"a": 1}, [1]]}, {"a": 1}, []),
    ({"const": 3}, 4, [((), "invalid_choice")]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", [((), "wrong_type")]),
    ({"anyOf": [POINT, {"type": "string"}]}, {"x": "1"}, [(("x",), "wrong_type")]),
    ({"oneOf": [POINT, {"type": "integer"}]}, {"x": "1"}, [(("x",), "wrong_type")]),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, [((), "invalid_input")]),
    ({"oneOf": [KIND_A, KIND_B]}, {"kind": "b", "n": "3"}, [(("n",), "wrong_type")]),
    ({"oneOf": [KIND_A, KIND_B]}, {"kind": "c"}, [(("kind",), "invalid_choice")]),
    ({**POINT, "anyOf": [{"required": ["y"]}, {"required": ["x"]}]}, {"x": "1"}, [
        (("x",), "wrong_type"),
    ]),
    ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, "a", [
        ((), "wrong_type"),
    ]),
    ({"allOf": [POINT, {"required": ["y"]}]}, {"x": 1}, [(("y",), "missing_field")]),
    ({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "z$"}]}, "ab", [
        ((), "invalid_format"),
    ]),
    ({"not": {"type": "string"}}, "a", [((), "invalid_input")]),
    ({"type": "array", "items": {"type": "integer"}}, [1, "a"], [((1,), "wrong_type")]),
    ({"type": "array", "minItems": 2}, [1], [((), "field_too_small")]),
    ({"type": "array", "maxItems": 1}, [1, 2], [((), "field_too_large")]),
    ({"type": "array", "uniqueItems": True}, [1, True], []),
    ({"type": "array", "uniqueItems": True}, [{"a": 1}, {"a": 1}], [((), "invalid_format")]),
    (
        {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1, "maxItems": 1},
        ["a"],
        [((0,), "wrong_type")],
    ),
    (POINT, {"x": 1, "y": 2}, []),
    (POINT, {"y": "2", "z": 1}, [
        (("y",), "wrong_type"), (("x",), "missing_field"), (("z",), "unknown_field"),
    ]),
    (POINT, [], [((), "wrong_type")]),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1, "b": 2}, [(("a",), "wrong_type")]),
    ({"type": "object", "required": ["a"]}, {}, [(("a",), "missing_field")]),
    (HEADERS, {"x-a": "1"}, []),
    (HEADERS, {"x-a": 1, "y": "2"}, [(("x-a",), "wrong_type"), (("y",), "unknown_field")]),
    ({"properties": {"gone": False}}, {"gone": 1}, [((), "invalid_input")]),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1, "b": 2}, [
        (("b",), "unknown_field"),
    ]),
    ({"dependentRequired": {"a": ["b", "c"]}}, {"a": 1, "b": 2}, [(("c",), "missing_field")]),
    ({"type": "object", "properties": {}, "required": ["a"]}, {}, [(("a",), "missing_field")]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, [
        (("a",), "wrong_type"),
    ]),
    ({"type": "object", "properties": {}, "minProperties": 1}, {}, [((), "field_too_small")]),
    ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, {}, [(("x",), "missing_field")]),
    ({}, 3, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_every_keyword(schema: dict[str, Any], value: Any, expected: list[Any]) -> None:
    """What is wrong has the code and the path of the argument, whatever the keyword is."""
    assert wrong(schema, value) == expected


def test_a_schema_that_refers_to_itself() -> None:
    """A recursive schema is followed as deep as the value goes."""
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                },
                "required": ["value"],
            }
        },
    }

    assert wrong(schema, {"value": 1, "next": {"value": 2, "next": None}}) == []
    assert wrong(schema, {"value": 1, "next": {"next": None}}) == [
        (("next", "value"), "missing_field")
    ]


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "integer"}, "x", ("Input should be a valid integer", "integer")),
        (
            {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
            "x",
            ("Input should be a valid integer", "integer"),
        ),
        (
            {"anyOf": [{"type": ["integer", "boolean"]}, {"type": "array"}]},
            "x",
            ("Input should be a valid integer or boolean or array", "integer or boolean or array"),
        ),
        ({"enum": ["c", "f"]}, "x", ("Input should be 'c' or 'f'", "'c' or 'f'")),
        ({"type": "string", "minLength": 1}, "", ("at least 1 character", "length >= 1")),
        ({"format": "date"}, "x", ("Input should be a valid date", "date (YYYY-MM-DD)")),
    ],
)
def test_words_of_an_issue(schema: dict[str, Any], value: Any, told: tuple[str, str]) -> None:
    """Message and expectation are those of the contract, not the sentence of the library."""

    @tool(parameters={"properties": {"x": schema}})
    def take(x: Any) -> None: ...

    error = take.call(x=value).error
    assert error is not None
    assert error.issues[0].message.endswith(told[0])
    assert error.issues[0].expected == told[1]


def test_thousand_errors_are_counted() -> None:
    """[H-16] The header says how many there were, although not all are kept."""

    @tool(parameters={"properties": {"x": {"items": {"type": "integer"}}}})
    def take(x: Any) -> None: ...

    result = take.call(x=["a"] * 1_000)
    assert result.message.startswith("Error: Invalid parameters - 1000 errors:")


def test_a_value_without_an_end_is_refused() -> None:
    """Nested deeper than the stack, a value is wrong arguments and no failure of the tool."""
    schema = {
        "$ref": "#/$defs/L",
        "$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}},
    }

    @tool(parameters={"properties": {"x": {"$ref": "#/$defs/L"}}, "$defs": schema["$defs"]})
    def take(x: Any) -> None: ...

    value: list[Any] = []
    value.append(value)
    error = take.call(x=value).error
    assert error is not None
    assert error.code == "invalid_format"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"properties": {"name": {"pattern": r"^\p{L}+$"}}}, "name.pattern"),
        ({"properties": {"name": {"type": "a-type-of-tomorrow"}}}, "name.type"),
        ({"required": "name"}, "required"),
        (["name"], "as a dict"),
    ],
)
def test_a_schema_that_cannot_work_is_told_at_the_decoration(schema: Any, told: str) -> None:
    """The author reads what is wrong and where, before any model calls the tool."""
    with pytest.raises(ConfigError, match=told):
        tool(parameters=schema)(lambda **_: None)


def test_a_schema_is_fetched_from_nowhere() -> None:
    """A reference to another document fails the call; the SDK opens no connection."""

    @tool(parameters={"properties": {"x": {"$ref": "http://127.0.0.1:1/schema"}}})
    def take(x: Any) -> None: ...

    error = take.call(x=1).error
    assert error is not None
    assert "Unresolvable" in error.render("system")


def test_without_jsonschema_the_decoration_says_what_to_install() -> None:
    """A tool with a schema needs the extra; every other tool does without."""
    program = (
        "import sys; sys.modules['jsonschema'] = None\n"
        "import toolfault\n"
        "assert toolfault.tool(lambda n: n).call(n=1).success\n"
        "toolfault.tool(parameters={})(lambda n: n)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr.splitlines()[-1].endswith("pip install jsonschema"), done.stderr


PARAMETERS = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "where to"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    },
    "required": ["url"],
}


def test_a_tool_with_a_schema_of_its_own() -> None:
    """[H-01] All issues at once, in the order of the schema, and the schema as it was given."""

    @tool(parameters=PARAMETERS)
    def fetch(**arguments: Any) -> Any:
        return arguments

    assert fetch.tool.parameters == PARAMETERS
    assert fetch.call(url="a", port=80).value == {"url": "a", "port": 80}
    error = fetch.call(port=0).error
    assert error is not None
    assert [(issue.field, issue.code.value) for issue in error.issues] == [
        ("url", "missing_field"),
        ("port", "field_too_small"),
    ]


def test_what_the_function_needs_is_required() -> None:
    """A parameter the schema leaves optional but the function needs is reported as missing."""

    @tool(parameters={"type": "object", "properties": {"a": {"type": "string"}}})
    def f(a: str, b: str) -> str:
        return a + b

    error = f.call({}).error
    assert error is not None
    assert [issue.field for issue in error.issues] == ["a", "b"]


def test_a_closed_function_takes_no_invented_parameter() -> None:
    """[E5] Where the schema says nothing, the function's own parameters decide."""

    @tool(parameters={"type": "object", "properties": {"a": {"type": "string"}}})
    def closed(a: str) -> str:
        return a

    @tool(parameters={"type": "object", "properties": {"a": {"type": "string"}}})
    def open_(a: str, **rest: Any) -> Any:
        return rest

    error = closed.call(a="x", b=1).error
    assert error is not None
    assert error.code == "unknown_field"
    assert open_.call(a="x", b=1).value == {"b": 1}


def test_coercion_follows_the_schema() -> None:
    """[H-09] With ``coerce=True`` strings become what the schema asks for."""

    @tool(parameters=PARAMETERS, coerce=True)
    def fetch(url: str, port: int = 80) -> int:
        return port

    assert fetch.call(url="a", port="443").value == 443
    error = fetch.call(url="a", port="0").error
    assert error is not None
    assert (error.code, error.received) == ("field_too_small", "'0'")


def test_coercion_reaches_what_stands_in_text(records: list[CallRecord]) -> None:
    """JSON in JSON and branches of unions are repaired; what is no repair stays as it was sent."""
    schema = {
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}},
            "either": {"anyOf": [{"type": "integer"}, {"type": "array"}]},
            "flag": {"type": "boolean"},
            "note": {"type": "string"},
        }
    }

    @tool(parameters=schema, coerce=True)
    def take(**fields: Any) -> Any:
        return fields

    sent = {"ids": '["1", 2]', "either": "[1]", "flag": "yes", "note": "7"}
    assert take.call(sent).value == {"ids": [1, 2], "either": [1], "flag": True, "note": "7"}
    assert sent["ids"] == '["1", 2]'
    error = take.call({**sent, "flag": "maybe", "ids": "[1,"}).error
    assert error is not None
    assert [(issue.field, issue.code.value, issue.received) for issue in error.issues] == [
        ("ids", "malformed_json", "'[1,'"),
        ("flag", "wrong_type", "'maybe'"),
    ]
    assert [repair.field for repair in records[0].coercions] == ["ids", "either", "flag", "ids.*"]


schemas = st.recursive(
    st.sampled_from(
        [
            {"type": "integer"},
            {"type": "string", "maxLength": 3},
            {"type": "boolean"},
            {"enum": ["a", 1]},
            {"type": "null"},
            {},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(
            lambda a, b: {"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]},
            inner,
            inner,
        ),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=40, deadline=None)
@given(schema=schemas, value=values)
def test_the_verdict_is_that_of_the_specification(schema: dict[str, Any], value: Any) -> None:
    """The same verdict as jsonschema, the reference implementation in Python."""
    jsonschema = pytest.importorskip("jsonschema")

    valid = jsonschema.Draft202012Validator(schema).is_valid(value)

    assert (wrong(schema, value) == []) == valid


def test_a_field_that_the_schema_marks_as_secret_is_never_shown() -> None:
    """``writeOnly`` and the format ``password`` hide a value, at any depth, whatever its name."""
    schema = {
        "type": "object",
        "properties": {
            "pin": {"type": "string", "writeOnly": True, "minLength": 8},
            "more": {
                "type": "array",
                "items": {"type": "object", "properties": {"code": {"$ref": "#/$defs/code"}}},
            },
            "either": {"anyOf": [{"type": "integer", "format": "password"}, {"type": "null"}]},
            "open": {"type": "integer"},
        },
        "$defs": {
            "code": {"type": "integer"},
            "other": {"properties": {"code": {"type": "integer", "format": "password"}}},
        },
    }

    @tool(parameters=schema)
    def login(**fields: Any) -> None: ...

    sent = {"pin": "hunter2", "more": [{"code": "hunter3"}], "either": "hunter4", "open": "seen5"}
    error = login.call(sent).error

    assert error is not None
    shown = {issue.field: issue.received for issue in error.issues}
    assert shown == {
        "pin": "[REDACTED]",
        "more.0.code": "[REDACTED]",
        "either": "[REDACTED]",
        "open": "'seen5'",
    }
    texts = [error.render(audience) for audience in ("user", "llm", "system")]
    assert "hunter" not in f"{texts} {error.to_llm_payload()}"
