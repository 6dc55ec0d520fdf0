"""Validation from a JSON schema: the documented subset of draft 2020-12."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfault import tool


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
CASES: list[tuple[dict[str, Any], Any, list[tuple[Any, str]]]] = [
    ({"type": "string"}, "a", []),
    ({"type": "string"}, 1, [((), "wrong_type")]),
    ({"type": ["string", "null"]}, None, []),
    ({"type": ["string", "null"]}, 3, [((), "wrong_type")]),
    ({"type": "string", "nullable": True}, None, []),
    ({"type": "integer"}, 1.0, []),
    ({"type": "integer"}, True, [((), "wrong_type")]),
    ({"type": "integer", "minimum": 1, "maximum": 3}, 4, [((), "field_too_large")]),
    ({"type": "number", "exclusiveMinimum": 0}, 0, [((), "field_too_small")]),
    ({"type": "number", "exclusiveMinimum": True, "minimum": 0}, 0, []),
    ({"type": "number", "multipleOf": 0.1}, 0.3, []),
    ({"type": "number", "multipleOf": 0.1}, 0.35, [((), "invalid_format")]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "a", [((), "field_too_small")]),
    ({"type": "string", "pattern": "b"}, "abc", []),
    ({"type": "string", "pattern": "^b"}, "abc", [((), "invalid_format")]),
    ({"type": "string", "format": "date"}, "2024-13-01", [((), "invalid_format")]),
    ({"type": "string", "format": "date-time"}, "2024-01-31T12:00:00Z", []),
    ({"type": "string", "format": "email"}, "a.b", [((), "invalid_format")]),
    ({"type": "string", "format": "uri"}, "https://example.com", []),
    ({"type": "string", "format": "uuid"}, "x", [((), "invalid_format")]),
    ({"type": "string", "format": "a-format-of-tomorrow"}, "x", []),
    ({"enum": ["a", 1, None]}, None, []),
    ({"enum": ["a", 1]}, True, [((), "invalid_choice")]),
    ({"enum": [{"a": 1}, [1]]}, {"a": 1}, []),
    ({"const": 3}, 4, [((), "invalid_choice")]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", [((), "wrong_type")]),
    ({"oneOf": [POINT, {"type": "integer"}]}, {"x": "1"}, [(("x",), "wrong_type")]),
    ({"allOf": [POINT, {"required": ["y"]}]}, {"x": 1}, [(("y",), "missing_field")]),
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
        (("x",), "missing_field"), (("y",), "wrong_type"), (("z",), "unknown_field"),
    ]),
    (POINT, [], [((), "wrong_type")]),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1, "b": 2}, [(("a",), "wrong_type")]),
    ({"type": "object", "required": ["a"]}, {}, []),
    ({"type": "object", "properties": {}, "required": ["a"]}, {}, [(("a",), "missing_field")]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, [
        (("a",), "wrong_type"),
    ]),
    ({"type": "object", "properties": {}, "minProperties": 1}, {}, [((), "field_too_small")]),
    ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, {}, [(("x",), "missing_field")]),
    ({"$ref": "https://elsewhere/schema"}, 3, []),
    ({"$ref": "#/nowhere"}, 3, []),
    ({"type": "a-type-of-tomorrow"}, 3, []),
    ({}, 3, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), CASES)
def test_every_keyword(schema: dict[str, Any], value: Any, expected: list[Any]) -> None:
    """Every documented keyword accepts and rejects what the specification says."""
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
    assert not fetch.call(url="a", port="0").success


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


@settings(deadline=None)
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
