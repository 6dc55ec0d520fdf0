"""Cases A04 and A06 to A15: arguments that the model can fix."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from tests.sdk.acceptance.expecting import Expect, expected_case

from toolfault import ToolManager, ToolRegistry, ToolResult, format_validation_errors, tool
from toolfault.coerce import coerce_bool, coerce_int, coerce_json
from toolfault.tools import CallRecord


async def call(function: Any, arguments: object, *, name: str | None = None) -> ToolResult[Any]:
    """Call one tool through a manager of its own."""
    manager = ToolManager(ToolRegistry([function]))
    return await manager.call_tool(name or function.tool.name, arguments)


@tool
def calculator(expression: str, precision: int = 2) -> str:
    """Evaluate an expression."""
    return f"{expression} to {precision} digits"


async def test_a_missing_parameter(expect: Expect) -> None:
    """[A04][L-04][L-12][P-08][K-03][C10] One missing parameter is said in the guideline's words."""
    result = await call(calculator, {})

    expect("A04", result)
    assert "missing required parameter" in str(result.content).lower()


async def test_an_exception_with_a_seed_phrase(expect: Expect) -> None:
    """[A06][L-05][L-07] A plain exception about a parameter is shown to the model."""

    @tool
    def scale(value: float) -> float:
        raise ValueError("Invalid parameter value for xyz: must be a positive number")

    expect("A06", await call(scale, {"value": -1}))


async def test_only_the_first_line_of_a_seed_phrase_is_shown() -> None:
    """[A06][L-16][C15] What follows the first line may be a traceback, and stays inside."""

    @tool
    def scale(value: float) -> float:
        raise RuntimeError("boom: Missing required parameter: abc\nTraceback (most recent call)")

    result = await call(scale, {"value": 1})

    assert result.message == "Error: boom: Missing required parameter: abc"
    assert result.error is not None
    assert result.error.code == "missing_field"


class StrictRequest(BaseModel):
    """The model of A07: strict, no coercers but the one for JSON."""

    model_config = ConfigDict(strict=True)

    follow_redirects: bool
    port: int
    headers: dict[str, str]

    _headers = field_validator("headers", mode="before")(coerce_json)


class Request(BaseModel):
    """The model of A08 to A10, with coercers."""

    follow_redirects: bool = Field(strict=True)
    port: int = Field(ge=1, le=65535, strict=True)

    _bools = field_validator("follow_redirects", mode="before")(coerce_bool)
    _ints = field_validator("port", mode="before")(coerce_int)


async def test_three_errors_at_once(expect: Expect) -> None:
    """[A07][H-01][H-04][H-10][H-11][H-12][H-13] All errors of one call are one message."""

    @tool(model=StrictRequest, context="HTTP request")
    async def http_request(**fields: Any) -> dict[str, Any]:
        return fields

    arguments = {"follow_redirects": "true", "port": "80", "headers": "{invalid}"}

    result = await call(http_request, arguments)

    expect("A07", result)
    with pytest.raises(ValidationError) as caught:
        StrictRequest(**arguments)  # type: ignore[arg-type]
    block = format_validation_errors(caught.value, "HTTP request")
    assert f"Error: {block}" == expected_case("A07")["llm"]
    assert result.error is not None
    assert isinstance(result.error.__cause__, ValidationError)


async def test_with_coercers_one_error_is_left() -> None:
    """[A07][C12] The same arguments on a model with coercers fail for the broken JSON only."""

    class Lenient(Request):
        headers: dict[str, str]

        _headers = field_validator("headers", mode="before")(coerce_json)

    @tool(model=Lenient, context="HTTP request")
    def http_request(**fields: Any) -> dict[str, Any]:
        return fields

    result = await call(
        http_request, {"follow_redirects": "true", "port": "80", "headers": "{invalid}"}
    )

    assert result.error is not None
    assert [issue.field for issue in result.error.issues] == ["headers"]
    assert result.error.code == "malformed_json"


@tool(model=Request, name="http2")
def http2(follow_redirects: bool, port: int) -> dict[str, Any]:
    """Echo what arrived."""
    return {"follow_redirects": follow_redirects, "port": port}


async def test_coercion_succeeds_and_is_reported(expect: Expect, records: list[CallRecord]) -> None:
    """[A08][C3][H-09] A repaired value reaches the function, and the repair is on the record."""
    result = await call(http2, {"follow_redirects": "Yes", "port": " 80 "})

    expect("A08", result)
    [record] = records
    assert record.success is True
    assert record.error is None
    assert [repair.to_dict() for repair in record.coercions] == [
        {"field": "follow_redirects", "from_type": "str", "to_type": "bool"},
        {"field": "port", "from_type": "str", "to_type": "int"},
    ]


async def test_one_error_as_text_and_in_the_pipeline(expect: Expect) -> None:
    """[A09][H-03][C10] One error: the guideline's sentence, and the helper's own form."""
    arguments = {"follow_redirects": "maybe", "port": "80"}

    result = await call(http2, arguments)

    expect("A09", result)
    with pytest.raises(ValidationError) as caught:
        Request(**arguments)  # type: ignore[arg-type]
    said = caught.value.errors()[0]["msg"]
    assert format_validation_errors(caught.value, "HTTP request") == (
        f"Invalid HTTP request: follow_redirects - {said} (received: 'maybe')"
    )


async def test_received_is_what_the_model_sent(expect: Expect) -> None:
    """[A10] A coerced value that is out of bounds is shown as it was sent."""
    expect("A10", await call(http2, {"follow_redirects": True, "port": "99999"}))


async def test_nothing_leaks(expect: Expect, records: list[CallRecord]) -> None:
    """[A11][H-06][C16][P-07] A missing field does not carry all arguments; secrets are hidden."""

    class Login(BaseModel):
        model_config = ConfigDict(extra="forbid")

        user: str
        password: str = Field(min_length=8)

    @tool(model=Login)
    def login(user: str, password: str) -> str:
        return user + password

    arguments = {"password": "abc", "api_key": "sk-live123456"}

    result = await call(login, arguments)

    expect("A11", result)
    assert result.error is not None
    shown = f"{result.error.renderings()} {result.error.to_llm_payload()} {result.to_dict()}"
    assert "'abc'" not in shown
    assert "sk-live123456" not in shown
    with pytest.raises(ValidationError) as caught:
        Login(**arguments)
    text = format_validation_errors(caught.value)
    assert "  • user: Field required (received unknown: 'N/A')" in text.splitlines()


async def test_nested_paths(expect: Expect) -> None:
    """[A12][H-05] Indexes are part of a path, and a star in the pattern it is grouped by."""

    class Item(BaseModel):
        port: int

    class Batch(BaseModel):
        items: list[Item]

    @tool(model=Batch)
    def batch(items: list[Item]) -> int:
        return len(items)

    result = await call(batch, {"items": [{"port": 1}, {"port": "x"}, {}]})

    expect("A12", result)
    assert result.error is not None
    assert {issue.field_pattern for issue in result.error.issues} == {"items.*.port"}


async def test_a_rule_about_the_whole_model(expect: Expect) -> None:
    """[A13] A rule across fields is about the arguments as a whole, and echoes none of them."""

    class Range(BaseModel):
        start: int
        end: int

        @model_validator(mode="after")
        def ordered(self) -> Range:
            if self.end < self.start:
                raise ValueError("end must be >= start")
            return self

    @tool(model=Range)
    def range_tool(start: int, end: int) -> int:
        return end - start

    expect("A13", await call(range_tool, {"start": 3, "end": 1}))


async def test_arguments_that_are_no_json(expect: Expect) -> None:
    """[A14][P-11][P-12] Text that is not JSON: where it breaks, and the text itself."""
    expect("A14", await call(calculator, '{"expression": "1+1"<|tool_call_end|>'))


async def test_arguments_that_are_no_object(expect: Expect) -> None:
    """[A15] JSON that is no object is named as what it is."""
    result = await call(calculator, "[1,2]")

    expect("A15", result)
    error = result.error
    assert error is not None
    assert (error.code, error.expected) == ("wrong_type", "object")
    assert (error.received, error.received_type) == ("[1, 2]", "list")
    assert error.issues == ()
