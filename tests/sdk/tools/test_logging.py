"""Local log lines: what a developer reads."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolfault import ToolManager, tool, variant
from toolfault.tools import CallRecord, observe, unobserve


@tool
def fails(text: str = "") -> None:
    """Fail."""
    raise RuntimeError(f"secret detail\nsecond line {text}")


async def test_a_failure_is_logged_with_all_detail(caplog: pytest.LogCaptureFixture) -> None:
    """[L-12][L-13][L-14][K-09][C17] First line, stack trace, parameters as fields."""
    result = await ToolManager([fails]).call_tool("fails", {"text": "x"}, call_id="c1")

    [record] = caplog.records
    assert record.getMessage() == "Exception in tool 'fails': secret detail"
    assert record.exc_info is not None
    assert record.exc_info[1] is not None
    assert "second line x" in str(record.exc_info[1])
    fields = vars(record)
    assert fields["parameters"] == {"text": "x"}
    assert (fields["tool"], fields["call_id"]) == ("fails", "c1")
    assert (fields["error_code"], fields["error_category"]) == ("internal_error", "internal")
    assert fields["error_type"] == "builtins.RuntimeError"
    assert "secret detail" not in str(result.content)


async def test_parameters_are_redacted_in_the_fields(caplog: pytest.LogCaptureFixture) -> None:
    """[K-09] A record is easily shipped elsewhere."""
    await ToolManager([fails]).call_tool("fails", {"text": "x", "api_key": "sk-live1234567890"})

    assert "sk-live1234567890" not in str(vars(caplog.records[-1])["parameters"])


def test_a_rejected_argument_leaves_no_value_in_the_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """[L-14] A validation library prints what it was given; our trace says where, not what."""

    class Login(BaseModel):
        password: str = Field(min_length=8)

    @tool(model=Login)
    def login(password: str) -> None: ...

    login.call(password="hunter2")

    assert caplog.records[0].exc_info is not None
    assert "hunter2" not in caplog.text
    assert "password: String should have" in caplog.text or "field_too_small" in caplog.text


async def test_availability_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """[L-11][C19] Both names, no stack trace."""
    manager = ToolManager([fails])
    manager.alias("f", "fails")
    manager.disable("fails")
    await manager.call_tool("f")

    [record] = caplog.records
    assert (record.levelname, record.getMessage(), record.exc_info) == (
        "WARNING",
        "Tool 'f' (resolved to 'fails') is not enabled",
        None,
    )


async def test_the_flow_is_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """[L-13] Which tool was called by which name, and that it ran."""
    caplog.set_level(logging.DEBUG, "toolfault")

    @tool(name="one")
    def give() -> int:
        return 1

    manager = ToolManager([give])
    manager.alias("uno", "one")

    await manager.call_tool("uno")

    lines = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    assert lines == ["Calling tool 'uno' (resolved to 'one')", "Executing tool 'one'"]


class _Session:
    """A class of the host."""


def test_a_tool_says_once_what_it_cannot_check(caplog: pytest.LogCaptureFixture) -> None:
    """Annotations that nobody can check, or that name nothing, are named; known ones are not."""

    @tool
    def run(session: _Session, items: list[Missing], text: Any, at: timedelta) -> str:  # type: ignore[name-defined] # noqa: F821
        return f"{items} {at.total_seconds():.0f}"

    for _ in range(2):
        result = run.call({"session": 1, "items": [1], "text": 2, "at": "PT1H"})
        assert result.value == "[1] 3600"
    [line] = [each.getMessage() for each in caplog.records]
    assert line == (
        "Tool 'run' checks only some of its arguments: nothing is known of _Session; "
        "the annotation of 'items' cannot be resolved"
    )
    wrong = run.call({"session": 1, "items": [], "text": 2, "at": "soon"})
    assert wrong.error is not None
    assert [issue.field for issue in wrong.error.issues] == ["at"]


def test_an_annotation_that_cannot_be_printed_is_named_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing that a host annotates with raises into it."""

    class Hostile:
        def __call__(self) -> None: ...
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __repr__

    @tool
    def run(given: Any) -> Any:
        return given

    run.__annotations__["given"] = Hostile()
    assert run.call({"given": 1}).value == 1
    assert "checks only some of its arguments" in caplog.text


def test_an_exception_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """A hostile ``__str__`` spoils neither the call nor the log."""

    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    @tool
    def f() -> None:
        raise Hostile

    assert not f.call().success
    assert caplog.records[0].getMessage() == "Exception in tool 'f': <unrepresentable Hostile>"


def test_a_handler_that_raises_hurts_nobody() -> None:
    """What the host does with lines of the log is its own code, whoever writes them and why."""

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record.msg)

    class Unreadable(Exception):
        @property
        def __traceback__(self) -> None:  # type: ignore[override]
            raise RuntimeError("no")

    @tool
    def f(broken: bool = False) -> str:
        if broken:
            raise Unreadable
        return "done"

    def observer(record: CallRecord) -> None:
        raise RuntimeError("no")

    log = logging.getLogger("toolfault")
    handler, level = Broken(), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    observe(observer)
    try:
        assert f.call().value == "done"
        assert not f.call(broken=True).success
    finally:
        unobserve(observer)
        log.setLevel(level)
        log.removeHandler(handler)


def test_a_handler_that_refuses_to_be_looked_at_hurts_nobody() -> None:
    """[S1] Whether somebody listens is asked of the class of a handler, not of the handler."""

    class Refusing(logging.Handler):
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise RuntimeError("no class")

        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    @tool
    def f(n: int) -> None: ...

    heard: list[str] = []
    refusing = Refusing()
    logger = logging.getLogger("toolfault")
    logger.addHandler(refusing)
    try:
        assert variant("trial", ()) == "control"
        assert f.call(n="x").success is False
    finally:
        logger.removeHandler(refusing)
    assert len(heard) == 2


def test_a_host_that_does_not_log_sees_nothing() -> None:
    """Without a handler nothing reaches stderr, and nothing is configured for the host."""
    program = """
from toolfault import tool
@tool
def f(n: int): raise RuntimeError("x")
f.call(n=1); f.call({})
import logging
assert not logging.getLogger().handlers
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert (done.stdout, done.stderr) == ("", "")
