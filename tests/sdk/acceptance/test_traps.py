"""Thirteen traps of an implementation."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, ValidationError, field_validator, validate_call

from toolfault import (
    Issue,
    ToolError,
    ToolErrorCode,
    ToolManager,
    format_validation_errors,
    report_validation_error,
    tool,
)
from toolfault.coerce import coerce_bool, coerce_int
from toolfault.errors import snippet
from toolfault.tools import CallRecord, report


def every_surface(error: ToolError) -> str:
    """All texts that user, model and system may read."""
    return json.dumps([error.renderings(), error.to_llm_payload()], ensure_ascii=False)


def test_an_error_is_an_ordinary_exception() -> None:
    """[T01][P-04] It passes a context manager, takes notes, is hashable, pickled and copied."""

    @contextlib.contextmanager
    def passing() -> Any:
        yield

    error = ToolError("t", "broken", "not_found", field="x", retry_context={"a": 1})
    with pytest.raises(ToolError) as caught, passing():
        raise error from ValueError("why")

    assert caught.value is error
    error.add_note("a note")
    assert len({error, error, ToolError("t", "broken")}) == 2
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert twin.to_llm_payload() == error.to_llm_payload()
        assert twin.event_id == error.event_id
        assert isinstance(twin.__cause__, ValueError)


def test_no_exception_object_in_the_payload() -> None:
    """[T02] pydantic's ``ctx`` holds an exception and ``url`` a link; neither is shown."""

    class Ruled(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def refuse(cls, value: int) -> int:
            raise ValueError("n is not allowed")

    @tool(model=Ruled)
    def f(n: int) -> None: ...

    error = f.call(n=1).error
    assert error is not None
    assert error.issues[0].message == "n is not allowed"
    assert "https://errors.pydantic.dev" not in every_surface(error)
    json.dumps(error.to_llm_payload(), allow_nan=False)


def test_a_type_error_inside_a_validator() -> None:
    """[T03] It is internal and of phase validation, although it happens before the handler."""

    class Broken(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def add(cls, value: int) -> int:
            return value + "a"  # type: ignore[operator]

    @tool(model=Broken)
    def f(n: int) -> None: ...

    error = f.call(n=1).error
    assert error is not None
    assert (error.category.value, error.phase) == ("internal", "validation")


def test_binding_errors_go_by_name() -> None:
    """[T04] Positions become parameter names, and the packed arguments are never printed."""

    @validate_call
    def login(user: str, password: str) -> None: ...

    @tool(name="login")
    def declared(user: str, password: str) -> None: ...

    with pytest.raises(ValidationError) as caught:
        login(7)  # type: ignore[call-arg,arg-type]

    result = report_validation_error(declared, caught.value)

    assert result.error is not None
    assert [issue.field for issue in result.error.issues] == ["user", "password"]
    assert "ArgsKwargs" not in every_surface(result.error)


def test_strange_numbers_and_letters() -> None:
    """[T05][H-07][H-08] The coercers take what ``int`` takes and ASCII words; nothing crashes."""
    for text, value in (("8_0", 80), ("٣", 3), ("9" * 5000, "9" * 5000), (" 80 ", 80)):
        assert coerce_int(text) == value
    assert coerce_bool("ＴＲＵＥ") == "ＴＲＵＥ"


def test_a_secret_string() -> None:
    """[T06] The length error of a SecretStr carries the clear value in its input."""

    class Login(BaseModel):
        pin: SecretStr = Field(min_length=8)

    @tool(model=Login)
    def login(pin: SecretStr) -> None: ...

    error = login.call(pin="hunter2").error
    assert error is not None
    assert "hunter2" not in every_surface(error)


def test_success_is_never_guessed() -> None:
    """[T07][W-01] A success whose text sounds like a failure stays a success."""

    @tool
    def say(text: str) -> str:
        return text

    for text in ("error: none", "Error: all good", "This tool is not available"):
        result = say.call(text=text)
        assert result.success is True
        assert result.to_dict() == {"success": True, "error": None, "data": text}


async def test_one_event_per_call_id() -> None:
    """[T08] Reported and raised, denied, paused, blocked, cancelled: one record each."""
    from tests.sdk.tools.recording import recorded

    @tool
    def doubles() -> None:
        error = ToolError("doubles", "quota", "rate_limited")
        report(error)
        raise error

    started = asyncio.Event()

    @tool
    async def hangs() -> None:
        started.set()
        await asyncio.Event().wait()

    with recorded() as records:
        manager = ToolManager([doubles, hangs], policy=lambda name, arguments: arguments != "deny")
        await manager.call_tool("doubles", call_id="1")
        await manager.call_tool("doubles", "deny", call_id="2")
        manager.pause("doubles")
        await manager.call_tool("doubles", call_id="3")
        task = asyncio.ensure_future(manager.call_tool("hangs", call_id="4"))
        await started.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        blocking = ToolManager([doubles], before_call=lambda name, arguments: False)
        await blocking.call_tool("doubles", call_id="5")

    assert [record.call_id for record in records] == ["1", "2", "3", "4", "5"]


def test_the_payload_is_all_the_model_gets() -> None:
    """[T09] No message for the model carries the system's text."""

    @tool
    def f() -> None:
        raise RuntimeError("inside at /srv/app/x.py")

    result = f.call()
    messages = [
        result.to_tool_message("1"),
        result.to_anthropic("1"),
        result.to_mcp(),
        result.to_openai_text(),
        result.to_dict(),
    ]
    assert "/srv/app" not in json.dumps(messages)
    assert "tool=f" not in json.dumps(messages)


def test_snippets_are_cut_by_characters() -> None:
    """[T10] A cut never tears a character and has its length, also for small ones."""
    for limit in (512, 300, 201, 200, 199, 50, 8, 1, 0):
        text = "€😀" * 500
        cut = snippet(text, limit)

        assert len(cut) == limit + 8
        assert "…<snip>…" in cut
        assert set(cut) <= {*text, *"…<snip>…"}
        assert snippet(text[:limit], limit) == text[:limit]


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "=1+1", "a\nlog", "\x1b[31m\u202ex", "k" * 10_000]
)
async def test_names_the_model_invents(name: str) -> None:
    """[T11][L-16] An invented field or tool name is one bounded line wherever it is shown."""

    @tool
    def f(a: int = 0) -> None: ...

    error = f.call({name: 1}).error
    assert error is not None
    assert error.code == "unknown_field"
    assert error.issues[0].field == name or not name.isprintable() or len(name) > 256
    assert len(error.issues[0].field) <= 256
    unknown = (await ToolManager().call_tool(name)).error
    assert unknown is not None
    for text in (*error.renderings().values(), *unknown.renderings().values()):
        assert not set(text) & {"\n", "\x1b", "\u202e"}
        assert len(text) <= 8_000
    assert all(len(text) < 2_000 for text in error.renderings().values())


def test_invented_fields_are_grouped() -> None:
    """[T12] Names that a model invents do not flood what is grouped by field."""
    issues = [Issue(f"invented_{n}", ToolErrorCode.UNKNOWN_FIELD) for n in range(50)]

    assert {issue.field_pattern for issue in issues} == {"*"}
    assert {ToolError.from_issues("t", [issue]).fingerprint for issue in issues} == {
        ToolError.from_issues("t", issues[:1]).fingerprint
    }


def test_what_a_framework_rejected(records: list[CallRecord]) -> None:
    """[T13] Validation before the tool body is a recorded call, with the model's text at hand."""

    class Request(BaseModel):
        port: int

    with pytest.raises(ValidationError) as caught:
        Request(port="x")  # type: ignore[arg-type]

    result = report_validation_error("http_request", caught.value, {"port": "x"}, call_id="c1")

    assert result.message == (
        f"Error: Invalid parameter value for port: {caught.value.errors()[0]['msg']} "
        "(received str: 'x')"
    )
    assert format_validation_errors(caught.value).startswith("Invalid parameters: port - ")
    assert [(record.tool, record.call_id) for record in records] == [("http_request", "c1")]
