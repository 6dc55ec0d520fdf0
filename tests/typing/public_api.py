"""How the public face looks to a type checker; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type

from toolfault import (
    Audience,
    ToolError,
    ToolErrorCode,
    ToolInvocationError,
    ToolManager,
    ToolRegistry,
    ToolResult,
    report_validation_error,
    tool,
)
from toolfault.tools import BatchedCall, Tool


class User:
    """What a tool finds."""

    name: str = ""


@tool
def find_user(user_id: int, exact: bool = True) -> User:
    """Find a user."""
    return User()


@tool(name="count", timeout=3.0, echo=("kind",))
async def count_users(kind: str) -> int:
    """Count users."""
    return 0


@tool()
def plain() -> None:
    """Return nothing."""


def adapt(invocation: ToolInvocationError) -> ToolError:
    """Say what went wrong."""
    return ToolError("find_user", str(invocation.exc), ToolErrorCode.NOT_FOUND)


@tool(adapt_error=adapt, passthrough=(KeyError, OSError), error_defaults={"users": []})
def adapted(user_id: int) -> dict[str, list[User]]:
    """Use every kind of option."""
    return {}


async def calls() -> None:
    """Every way to call, and what comes of it."""
    assert_type(find_user(1), User)
    assert_type(find_user(user_id=1, exact=False), User)
    assert_type(await count_users("a"), int)
    pending: Coroutine[Any, Any, int] = count_users(kind="a")
    pending.close()
    plain()

    result = find_user.call('{"user_id": 1}')
    assert_type(result, ToolResult[User])
    assert_type(result.value, User | None)
    assert_type(result.success, bool)
    assert_type(await count_users.call(kind="a"), ToolResult[int])
    assert_type(adapted.call({"user_id": 1}), ToolResult[dict[str, list[User]]])
    assert_type(find_user.tool, Tool)

    find_user("1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    find_user()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    find_user(user=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    tool(timeout="3")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]


async def managed() -> None:
    """Registry and manager."""
    manager = ToolManager(ToolRegistry([find_user, count_users, len]), context={"db": 1})
    assert_type(await manager.call_tool("find_user", {"user_id": 1}), ToolResult[Any])
    assert_type(manager.call_tool_sync("find_user"), ToolResult[Any])
    batch = await manager.call_tools([("c1", "find_user", "{}"), (None, "count", {"kind": "a"})])
    assert_type(batch, list[BatchedCall])
    for call_id, outcome in batch:
        assert_type(call_id, str | None)
        assert_type(outcome, ToolResult[Any])
    assert_type(report_validation_error("x", ValueError(), {}), ToolResult[Any])


def results() -> None:
    """Results and errors by themselves."""
    assert_type(ToolResult("OK", 3), ToolResult[int])
    assert_type(ToolResult[str].ok("a").value, str | None)
    assert_type(ToolResult.ok("a"), ToolResult[str])
    assert_type(ToolResult.ok(["a"], "found one"), ToolResult[list[str]])
    nothing: ToolResult[None] = ToolResult.ok()
    assert_type(nothing.value, None)
    assert_type(ToolResult.from_success(3), ToolResult[int])
    error = ToolError("t", "nothing found", "not_found", field="q")
    assert_type(error.render(Audience.LLM), str)
    assert_type(error.with_(retry_hint="x"), ToolError)
    assert_type(ToolResult[int](success=False, error=error).error, ToolError | None)
    failed: ToolResult[int] = ToolResult.failure(error, message="nothing found")
    assert_type(failed.value, int | None)
    also_failed: ToolResult[str] = ToolResult.from_error("nothing found", tool="t")
    assert_type(also_failed.value, str | None)


class Toolkit:
    """Tools as methods."""

    @tool
    def find(self, user_id: int) -> User:
        """Find a user."""
        return User()

    @tool
    async def count(self, kind: str) -> int:
        """Count users."""
        return 0


async def methods() -> None:
    """A method that is a tool takes no ``self`` from its caller."""
    kit = Toolkit()
    assert_type(kit.find(1), User)
    assert_type(kit.find.call(user_id=1), ToolResult[User])
    assert_type(await kit.count("a"), int)
    assert_type(await kit.count.call(kind="a"), ToolResult[int])
