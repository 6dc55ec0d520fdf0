"""Cases E1 to E8."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel
from tests.sdk.acceptance.words import WORDS

from toolfault import ToolError, ToolErrorCode, ToolManager, ToolRegistry, ToolResult, tool
from toolfault.tools import CallRecord

INTERNAL = "An unexpected error occurred while executing this tool"


async def call(function: Any, arguments: object = None) -> ToolResult[Any]:
    """Call one tool through a manager of its own."""
    return await ToolManager(ToolRegistry([function])).call_tool(function.tool.name, arguments)


class Evil:
    """A value that cannot show itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Number(BaseModel):
    """A model with one integer."""

    n: int


@tool
def by_hints(n: int) -> int:
    """Validated by its type hints."""
    return n


@tool(model=Number)
def by_model(n: int) -> int:
    """Validated by pydantic."""
    return n


@pytest.mark.parametrize("function", [by_hints, by_model])
async def test_a_value_that_cannot_show_itself(function: Any) -> None:
    """[E1] It goes by the name of its class."""
    said = WORDS["Input should be a valid integer"]

    assert (await call(function, {"n": Evil()})).message == (
        f"Error: Invalid parameter value for n: {said} (received Evil: <unrepresentable Evil>)"
    )


async def test_a_secret_in_an_authored_message(records: list[CallRecord]) -> None:
    """[E2] Redacted in text, issue, payload and record alike."""
    written = "bad header Authorization: Bearer abc.def.ghi for url https://bob:pw1@h/x"
    shown = "bad header Authorization: [REDACTED] for url https://[REDACTED]@h/x"

    @tool
    def fetch(header: str) -> None:
        raise ToolError("fetch", written, field="header")

    result = await call(fetch, {"header": "x"})

    assert result.message == f"Error: {shown}"
    assert result.error is not None
    assert result.error.issues[0].message == shown
    surfaces = json.dumps([result.error.to_llm_payload(), result.error.renderings()])
    assert "abc.def.ghi" not in surfaces
    assert "pw1" not in surfaces
    assert [record.error for record in records] == [result.error]


async def test_a_type_error_inside_the_handler() -> None:
    """[E3] It is the tool's bug, not the model's argument."""

    @tool
    def add(n: int) -> Any:
        return n + "a"  # type: ignore[operator]

    result = await call(add, {"n": 1})

    assert result.message == INTERNAL
    assert result.error is not None
    assert result.error.category == "internal"


async def test_an_authored_not_found() -> None:
    """[E4][C21] A tool that says so makes ``not_found`` the model's to fix."""

    @tool
    def get_user(user_id: int) -> None:
        raise ToolError(
            "get_user",
            code=ToolErrorCode.NOT_FOUND,
            message="User 42 does not exist",
            field="user_id",
            received="42",
            received_type="int",
        )

    result = await call(get_user, {"user_id": 42})

    assert result.message == "Error: User 42 does not exist (received int: 42)"
    assert result.error is not None
    assert result.error.category == "parameter"
    assert result.error.retryable is True


async def test_a_wrong_name_is_two_errors() -> None:
    """[E5] The missing parameter and the invented one are said together."""

    @tool
    def calculator(expression: str, precision: int = 2) -> str:
        return expression

    result = await call(calculator, {"expr": "1"})

    assert result.message == (
        "Error: Invalid parameters - 2 errors:\n"
        "  • expression: Missing required parameter\n"
        "  • expr: Unexpected parameter (received str: '1')\n"
        "\n"
        "Please fix all errors and retry with correct types."
    )
    error = result.error
    assert error is not None
    assert [issue.code.value for issue in error.issues] == ["missing_field", "unknown_field"]
    assert (error.code, error.field) == ("invalid_input", None)


async def test_a_returned_failure(
    records: list[CallRecord], caplog: pytest.LogCaptureFixture
) -> None:
    """[E6][K-07][C2] A tool that returns ``success: False`` has failed, in its own words."""

    @tool
    def rawfail() -> dict[str, Any]:
        return {
            "success": False,
            "error": "quota exceeded for today",
            "error_code": "rate_limited",
            "results": [],
        }

    result = await call(rawfail)

    assert result.success is False
    assert result.message == "quota exceeded for today"
    assert result.error is not None
    assert result.error.render("user") == f"rawfail: {INTERNAL}"
    assert [record.error.code.value for record in records if record.error] == ["rate_limited"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["Tool 'rawfail' returned error: quota exceeded for today"]
    shape = result.to_dict()
    assert shape["results"] == []
    assert shape["error"] == "quota exceeded for today"
    assert shape["error_code"] == "rate_limited"


async def test_a_returned_text_has_no_prefix() -> None:
    """[E6] Authored text of a returned failure reaches the model as it is, whatever its code."""
    codes = iter(["not_found", "invalid_input", "timeout", "own_code", 7, None])

    @tool
    def rawfail() -> dict[str, Any]:
        return {"success": False, "error": "nothing there", "error_code": next(codes)}

    for _ in range(6):
        assert (await call(rawfail)).message == "nothing there"


async def test_a_returned_failure_without_a_text() -> None:
    """[E7][K-04] A failure never has a null error."""
    errors: Iterator[Any] = iter([None, "", "   ", 5, ["x"]])

    @tool
    def rawfail() -> dict[str, Any]:
        return {"success": False, "error": next(errors)}

    for _ in range(5):
        assert (await call(rawfail)).to_dict()["error"] == INTERNAL


async def test_one_prefix() -> None:
    """[E8][C11] A message that brings its prefix keeps it once."""

    @tool
    def prefixed() -> None:
        raise ToolError("prefixed", "Error: Missing required parameter: xyz", "missing_field")

    result = await call(prefixed)
    assert result.message == "Error: Missing required parameter: xyz"
    assert result.error is not None
    assert result.error.render("user") == "prefixed: Missing required parameter: xyz"
