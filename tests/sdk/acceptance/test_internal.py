"""Cases A05 and A18 to A24: failures of the tool itself, hidden from user and model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.sdk.acceptance.expecting import Expect

from toolfault import (
    ErrorCategory,
    ToolError,
    ToolErrorCode,
    ToolInvocationError,
    ToolManager,
    ToolRegistry,
    ToolResult,
    tool,
)
from toolfault.errors import default_adapt_error
from toolfault.tools import CallRecord

LEAK = "db password=hunter2 at 10.0.0.5:5432 /srv/app/x.py"


async def call(function: Any, arguments: object = None) -> ToolResult[Any]:
    """Call one tool through a manager of its own."""
    return await ToolManager(ToolRegistry([function])).call_tool(function.tool.name, arguments)


async def test_an_unexpected_exception_is_hidden(expect: Expect, records: list[CallRecord]) -> None:
    """[A05][L-06][L-12][L-14][K-09][W-06][C1] The model reads a fixed sentence, the log it all."""

    @tool
    async def failing_tool() -> None:
        raise RuntimeError(LEAK)

    result = await call(failing_tool, {})

    expect("A05", result)
    assert result.error is not None
    shown = json.dumps(
        [result.message, result.error.render("user"), result.error.to_llm_payload()]
    ) + json.dumps(result.to_dict())
    for secret in ("hunter2", "10.0.0.5", "RuntimeError", "/srv/app"):
        assert secret not in shown
    [record] = records
    assert isinstance(record.error, ToolError)
    assert isinstance(record.error.cause, RuntimeError)
    assert record.error.exception_type == "builtins.RuntimeError"


async def test_a_timeout_of_the_tool(expect: Expect) -> None:
    """[A18] The text is hidden, the code and a safe hint are not."""

    @tool
    def slow() -> None:
        raise TimeoutError("read timed out after 30s on https://u:p@internal.host/x")

    expect("A18", await call(slow))


async def test_a_rate_limit_of_a_dependency(expect: Expect) -> None:
    """[A19] A status of 429 is a rate limit, whatever the exception's class and text."""

    class RL(Exception):
        status_code = 429

    RL.__module__, RL.__qualname__ = "__main__", "RL"

    @tool
    def quote() -> None:
        raise RL("429 from api.example.com key sk-abcdef123456")

    expect("A19", await call(quote))


async def test_an_io_error() -> None:
    """[A19] A file system error is ``io`` for the system and internal for the model."""

    @tool
    def quote() -> None:
        raise PermissionError(13, "Permission denied", "/etc/shadow")

    result = await call(quote)

    assert result.error is not None
    assert "code=io " in result.error.render("system")
    payload = result.error.to_llm_payload()
    assert (payload["code"], payload["retryable"]) == ("internal_error", False)


@tool(echo=("keyword",), error_defaults={"results": []})
def search(keyword: str) -> dict[str, Any]:
    """Find entries."""
    if keyword == "k-on":
        raise RuntimeError("upstream exploded")
    return {"results": [keyword]}


async def test_the_contract_dict_of_a_failure(expect: Expect) -> None:
    """[A20][K-01][K-03][K-06][C20] Echo and defaults give a failure the keys of a success."""
    result = await call(search, {"keyword": "k-on"})

    expect("A20", result)
    assert "upstream exploded" not in json.dumps(result.to_dict())
    success = (await call(search, {"keyword": "other"})).to_dict()
    assert {"keyword", "results"} <= set(success) & set(result.to_dict())


def adapt_file_errors(invocation: ToolInvocationError) -> ToolError:
    """Say what a missing file means to the model."""
    if isinstance(invocation.exc, FileNotFoundError):
        return ToolError(
            "read_file",
            f"no such file: {invocation.exc.filename}",
            ToolErrorCode.IO,
            category=ErrorCategory.PARAMETER,
            field="file",
            retry_hint="Use a workspace-root-relative path; "
            "directories are not valid for read_file.",
        )
    return default_adapt_error(invocation)


async def test_a_tool_adapts_its_own_errors(expect: Expect) -> None:
    """[A22][P-10] The tool knows that a missing file is the model's to fix."""

    @tool(adapt_error=adapt_file_errors)
    def read_file(file: str) -> str:
        raise FileNotFoundError(2, "No such file or directory", file)

    expect("A22", await call(read_file, {"file": "nope.rs"}))


async def test_an_adapter_that_raises(expect: Expect, records: list[CallRecord]) -> None:
    """[A23][P-10] The default adapter stands in, and the record says so."""

    def broken(invocation: ToolInvocationError) -> ToolError:
        raise KeyError(invocation.kind)

    @tool(adapt_error=broken)
    def ft2() -> None:
        raise RuntimeError(LEAK)

    expect("A23", await call(ft2))
    [record] = records
    assert record.adapter_failed is True


async def test_an_adapter_that_returns_nonsense(records: list[CallRecord]) -> None:
    """[A23] What is no ToolError is as good as an exception."""
    answers: Iterator[Any] = iter([None, "text", ValueError("x")])

    @tool(adapt_error=lambda invocation: next(answers))
    def ft2() -> None:
        raise RuntimeError(LEAK)

    for _ in range(3):
        assert (await call(ft2)).message == "An unexpected error occurred while executing this tool"
    assert [record.adapter_failed for record in records] == [True] * 3


@pytest.mark.parametrize(
    ("error", "threads"),
    [
        (KeyboardInterrupt, True),
        (KeyboardInterrupt, False),
        (SystemExit, True),
        (asyncio.CancelledError, False),
    ],
)
async def test_what_tears_a_call_off_propagates(
    error: type[BaseException], threads: bool, records: list[CallRecord]
) -> None:
    """[A24][C6][W-07] Cancellation, interrupt and exit go on to the caller, with one record."""

    @tool
    def torn() -> None:
        raise error

    @tool
    async def torn_too() -> None:
        raise error

    manager = ToolManager(ToolRegistry([torn, torn_too]), threads=threads)
    for name in ("torn", "torn_too"):
        with pytest.raises(error):
            await manager.call_tool(name, {})

    assert [record.success for record in records] == [False, False]
    assert {record.error.code.value for record in records if record.error} == {"cancelled"}
    assert {record.error.category.value for record in records if record.error} == {"internal"}


async def test_a_call_that_is_cancelled(records: list[CallRecord]) -> None:
    """[A24] Cancelling the task of a call leaves one record and no result."""
    started = asyncio.Event()

    @tool
    async def waiting() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(call(waiting))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    [record] = records
    assert record.error is not None
    assert record.error.code == "cancelled"


class ProviderDown(Exception):
    """The provider of the model does not answer."""


@pytest.mark.parametrize("passthrough", [ProviderDown, (ProviderDown, KeyError)])
async def test_what_a_tool_lets_through(passthrough: Any, records: list[CallRecord]) -> None:
    """[A24][W-07] A listed exception type propagates unchanged and is recorded as passed on."""
    raised = ProviderDown("no answer")

    @tool(passthrough=passthrough)
    def ask() -> None:
        raise raised

    with pytest.raises(ProviderDown) as caught:
        await call(ask)

    assert caught.value is raised
    [record] = records
    assert record.error is not None
    assert (record.error.code.value, str(record.error.reason)) == ("internal_error", "passthrough")
