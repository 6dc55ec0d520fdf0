"""Registry and manager: which tools may be called, and how a batch runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.sdk.tools.recording import recorded

from toolfault import ConfigError, ToolError, ToolManager, ToolRegistry, ToolResult, tool
from toolfault.tools import CallRecord, report, running_call


@tool
def echo(text: str = "") -> str:
    """Return the text."""
    return text


@tool
async def echo_later(text: str = "") -> str:
    """Return the text, in time."""
    await asyncio.sleep(0)
    return text


@tool
def broken() -> None:
    """Fail."""
    raise RuntimeError("broken")


def reasons(records: list[CallRecord]) -> list[str | None]:
    """Why each recorded call was not available."""
    return [
        None if record.error is None or record.error.reason is None else record.error.reason.value
        for record in records
    ]


async def test_a_registry_takes_any_function() -> None:
    """[L-09] Bare functions are decorated; names and entries can be listed."""
    registry = ToolRegistry([echo])
    registry.register(lambda text: text.upper(), name="shout")
    manager = ToolManager(registry)

    assert registry.names() == ("echo", "shout")
    assert "echo" in registry
    assert "nope" not in registry
    assert len(registry) == 2
    assert [entry.name for entry in registry] == ["echo", "shout"]
    assert (await manager.call_tool("shout", {"text": "a"})).value == "A"
    assert (await registry.call_tool("echo", {"text": "b"})).value == "b"
    assert not (await registry.call_tool("nope")).success


async def test_states_of_a_tool(records: list[CallRecord]) -> None:
    """[L-02] Every way to be unavailable has its reason, and can be undone."""
    registry = ToolRegistry([echo])
    registry.register(echo, name="write_file", access="write")
    registry.declare("hosted_search")
    manager = ToolManager(registry, access="read")
    manager.disable("echo")
    await manager.call_tool("echo")
    manager.enable("echo")
    manager.pause("echo")
    await manager.call_tool("echo")
    manager.resume("echo")
    await manager.call_tool("echo")
    await manager.call_tool("write_file")
    await manager.call_tool("hosted_search")

    assert reasons(records) == ["not_enabled", "paused", None, "access_denied", "no_handler"]
    assert manager.availability("echo") is None
    assert str(manager.availability("nope")) == "not_registered"


async def test_only_the_enabled_ones() -> None:
    """With a list of enabled tools, everything else is off until it is enabled."""
    manager = ToolManager([echo, broken], enabled=["echo"])

    assert (await manager.call_tool("echo")).success
    assert manager.availability("broken") == "not_enabled"
    manager.enable("broken")
    assert manager.availability("broken") is None
    manager.disable("broken")
    assert manager.availability("broken") == "not_enabled"


async def test_a_policy(records: list[CallRecord]) -> None:
    """A policy sees what the model sent; it denies by saying False or by failing."""
    seen: list[Any] = []

    async def policy(name: str, arguments: Any) -> bool:
        seen.append((name, arguments))
        if arguments == "raise":
            raise RuntimeError("undecided")
        return bool(arguments)

    manager = ToolManager([echo], policy=policy)

    assert (await manager.call_tool("echo", {"text": "a"})).success
    assert not (await manager.call_tool("echo", {})).success
    assert not (await manager.call_tool("echo", "raise")).success
    assert seen[0] == ("echo", {"text": "a"})
    assert reasons(records) == [None, "policy_denied", "policy_denied"]


async def test_a_hook(records: list[CallRecord]) -> None:
    """[T08] A hook may let a call go on, block it, or answer it; each leaves one record."""

    def hook(name: str, arguments: Any) -> Any:
        return {"go": None, "block": False, "answer": "cached"}[arguments["text"]]

    manager = ToolManager([echo], before_call=hook)

    assert (await manager.call_tool("echo", {"text": "go"})).value == "go"
    assert not (await manager.call_tool("echo", {"text": "block"})).success
    assert (await manager.call_tool("echo", {"text": "answer"})).value == "cached"
    assert reasons(records) == [None, "blocked_by_hook", None]
    assert [record.success for record in records] == [True, False, True]


async def test_aliases(records: list[CallRecord]) -> None:
    """[L-11] Calls are counted under the resolved name; a circle of aliases ends."""
    manager = ToolManager([echo])
    manager.alias("say", "echo")
    manager.alias("shout", "say")
    manager.alias("a", "b")
    manager.alias("b", "a")

    assert (await manager.call_tool("shout", {"text": "x"})).value == "x"
    assert not (await manager.call_tool("a")).success
    assert (records[0].tool, records[0].tool_requested) == ("echo", "shout")


async def test_known_tools_are_told_where_the_host_allows_it() -> None:
    """The model reads which tools are available and a close name, nothing of the others."""
    manager = ToolManager([echo, echo_later, broken], known_tools=True)
    manager.pause("broken")
    told = "This tool is not available. Available tools: echo, echo_later."

    assert manager.call_tool_sync("echos").content == f"{told} Did you mean 'echo'?"
    assert (await manager.call_tool("broken")).content == told
    assert "echo" not in str(ToolManager([echo]).call_tool_sync("echos").content)


@pytest.mark.parametrize("name", [None, 7, ["x"], object(), "", "x" * 10_000, "\ud800", "a\nb"])
@pytest.mark.parametrize("known_tools", [False, True])
async def test_any_name_is_answered(
    name: Any, known_tools: bool, records: list[CallRecord]
) -> None:
    """[L-15] Whatever a model writes as a name, the answer is a result."""
    result = await ToolManager([echo], known_tools=known_tools).call_tool(name, {})

    told = ". Available tools: echo." if known_tools else ""
    assert result.message == f"This tool is not available{told}"
    assert len(records) == 1
    assert result.to_dict()["success"] is False


def test_an_unknown_access_level() -> None:
    """It is refused where it is written."""
    with pytest.raises(ConfigError):
        ToolManager(access="root")
    with pytest.raises(ConfigError):
        ToolRegistry().register(echo, access="root")


@tool(context=("db", "user"))
def query(db: dict[str, str], key: str, user: str = "nobody") -> str:
    """Look a key up."""
    return f"{user}:{db[key]}"


async def test_context_is_injected(records: list[CallRecord]) -> None:
    """[L-10] The host's values reach the function, and nothing of them anyone else."""
    manager = ToolManager([query], context={"db": {"k": "v"}})

    assert (await manager.call_tool("query", {"key": "k"})).value == "nobody:v"
    assert (await manager.call_tool("query", {"key": "k"}, context={"user": "ann"})).value == (
        "ann:v"
    )
    missing = await manager.call_tool("query", {})
    assert missing.message == "Error: Missing required parameter: key"
    invented = await manager.call_tool("query", {"key": "k", "db": {"k": "stolen"}})
    assert invented.message == "Error: Unexpected parameter: db"
    assert [dict(record.arguments or {}) for record in records][:2] == [{"key": "k"}] * 2
    assert "db" not in query.tool.parameters["properties"]


async def test_context_that_nobody_gave() -> None:
    """A required context value that is missing is the host's mistake, not the model's."""
    result = await ToolManager([query]).call_tool("query", {"key": "k"})

    assert result.error is not None
    assert (result.error.code.value, result.error.category.value) == (
        "configuration_error",
        "internal",
    )


def test_context_without_a_manager(records: list[CallRecord]) -> None:
    """``with_context`` gives values to one tool; a direct call passes them as the function says."""
    bound = query.tool.with_context(db={"k": "v"})

    assert bound.call({"key": "k"}).value == "nobody:v"  # type: ignore[union-attr]
    assert query({"k": "v"}, "k") == "nobody:v"
    assert [dict(record.arguments or {}) for record in records] == [{"key": "k"}] * 2


def test_both_meanings_of_context() -> None:
    """[L-10][A07] A string that names a parameter is injected; any other is what texts say."""

    @tool(context="HTTP request")
    def labelled(a: int) -> None: ...

    @tool(context="session")
    def injected(session: object, a: int) -> None: ...

    @tool(context=("search query", "session"))
    def both(session: object, a: int, b: int) -> None: ...

    assert labelled.call(a="x", c=1).message.startswith("Error: Invalid HTTP request - 2 errors:")
    assert injected.tool.injected == ("session",)
    assert injected.tool.label == "parameters"
    assert both.call({}).message.startswith("Error: Invalid search query - 2 errors:")


async def test_a_batch_keeps_order_and_ids(records: list[CallRecord]) -> None:
    """[P-16][K-10][W-08] Each result stands at its call; one turn for all of them."""
    manager = ToolManager([echo, echo_later, broken])

    results = await manager.call_tools(
        [
            ("c1", "echo_later", {"text": "a"}),
            ("c2", "broken", {}),
            ("c3", "nope", {}),
            ("c4", "echo", "not json"),
            ("c5", "echo", '{"text": "e"}'),
        ]
    )

    assert [call_id for call_id, _ in results] == ["c1", "c2", "c3", "c4", "c5"]
    assert [each.success for each in results] == [True, False, False, False, True]
    assert [each.value for each in results] == ["a", None, None, None, "e"]
    assert [each.is_error for each in results] == [not each.success for each in results]
    assert [each.content for each in results] == [each.result.content for each in results]
    assert [each.message for each in results] == [each.result.message for each in results]
    assert [each.to_dict() for each in results] == [each.result.to_dict() for each in results]
    assert results[1].error is results[1].result.error
    assert results[2].to_anthropic()["tool_use_id"] == "c3"
    assert [each.to_tool_message()["tool_call_id"] for each in results] == [
        "c1",
        "c2",
        "c3",
        "c4",
        "c5",
    ]
    assert {record.call_id for record in records} == {"c1", "c2", "c3", "c4", "c5"}
    assert len({record.turn for record in records}) == 1
    assert records[0].turn


async def test_a_batch_runs_at_the_same_time() -> None:
    """Synchronous and async tools of one turn wait for one another without a deadlock."""
    together = threading.Barrier(2, timeout=30)
    met = asyncio.Event()

    @tool
    def waits() -> str:
        together.wait()
        return "met"

    @tool
    async def sets() -> None:
        met.set()

    @tool
    async def awaits() -> None:
        await met.wait()

    results = await ToolManager([waits, sets, awaits]).call_tools(
        [("1", "waits", {}), ("2", "waits", {}), ("3", "awaits", {}), ("4", "sets", {})]
    )

    assert all(each.success for each in results)


async def test_an_exception_that_passes_through_a_batch(records: list[CallRecord]) -> None:
    """The other calls of the batch end first, and are recorded."""

    class Stop(Exception):
        pass

    stopped = asyncio.Event()

    @tool(passthrough=Stop)
    async def stops() -> None:
        stopped.set()
        raise Stop

    @tool
    async def goes_on() -> None:
        await stopped.wait()
        for _ in range(100):
            await asyncio.sleep(0)

    with pytest.raises(Stop):
        await ToolManager([stops, goes_on]).call_tools([("1", "stops", {}), ("2", "goes_on", {})])

    assert [record.tool for record in records if record.success] == ["goes_on"]
    assert len(records) == 2


async def test_a_cancelled_batch(records: list[CallRecord]) -> None:
    """Cancelling the batch cancels its calls, each with its record."""
    started = asyncio.Event()

    @tool
    async def hangs() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(
        ToolManager([hangs]).call_tools([("1", "hangs", {}), ("2", "hangs", {})])
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [record.error.code.value for record in records if record.error] == ["cancelled"] * 2


async def test_an_empty_batch_and_a_wrong_one(records: list[CallRecord]) -> None:
    """Nothing to do is nothing; what is no triple is refused before anything runs."""
    manager = ToolManager([echo])

    assert await manager.call_tools([]) == []
    with pytest.raises(ConfigError, match="call 1"):
        await manager.call_tools([("1", "echo", {}), ("2", "echo")])  # type: ignore[list-item]
    assert records == []


def test_the_synchronous_entry() -> None:
    """Sync and async tools run from code without a loop."""
    manager = ToolManager([echo, echo_later, broken])

    assert manager.call_tool_sync("echo", {"text": "a"}).value == "a"
    assert manager.call_tool_sync("echo_later", {"text": "b"}).value == "b"
    assert not manager.call_tool_sync("broken").success
    assert not manager.call_tool_sync("nope").success


async def test_the_synchronous_entry_inside_a_loop() -> None:
    """An async tool called synchronously from a running loop gets a loop of its own."""
    manager = ToolManager([echo_later], policy=lambda name, arguments: True)

    assert manager.call_tool_sync("echo_later", {"text": "b"}).value == "b"


async def test_where_a_synchronous_tool_runs() -> None:
    """In a thread, so that the loop goes on; in the caller's thread where that is asked for."""

    @tool
    def where() -> str:
        return threading.current_thread().name

    own = threading.current_thread().name

    assert (await ToolManager([where]).call_tool("where")).value != own
    assert (await ToolManager([where], threads=False).call_tool("where")).value == own
    assert ToolManager([where]).call_tool_sync("where").value == own


async def test_a_function_that_returns_an_awaitable() -> None:
    """The manager awaits what a plain function gives it to await."""

    @tool
    def lazily() -> Any:
        return asyncio.sleep(0, "later")

    assert (await ToolManager([lazily]).call_tool("lazily")).value == "later"


async def test_the_running_call_is_known_inside(records: list[CallRecord]) -> None:
    """Handlers and their logs know which call they run in, in threads too, and nobody after."""
    seen: list[tuple[str, str | None]] = []

    @tool
    def look() -> None:
        call = running_call()
        assert call is not None
        seen.append((call.tool, call.call_id))

    await ToolManager([look]).call_tool("look", {}, call_id="c7")
    look()

    assert seen == [("look", "c7"), ("look", None)]
    assert running_call() is None
    assert len(records) == 2


async def test_what_a_handler_starts_and_leaves_is_no_call() -> None:
    """A task that goes on after its call has ended runs in no call, and reports into none."""
    ended = asyncio.Event()
    seen: list[Any] = []

    async def later() -> None:
        await ended.wait()
        seen.extend([running_call(), report(ToolError("starts", "late"))])

    tasks: list[asyncio.Task[None]] = []

    @tool
    async def starts() -> None:
        tasks.append(asyncio.ensure_future(later()))

    with recorded():
        await ToolManager([starts]).call_tool("starts")
        ended.set()
        await tasks[0]

    assert seen == [None, False]


async def test_a_tool_may_return_a_result(records: list[CallRecord]) -> None:
    """[W-01][W-02][W-03] A ToolResult is taken as it is, success or failure."""

    @tool(echo="n")
    def results(n: int) -> ToolResult[int]:
        if n < 0:
            return ToolResult("too small to matter", success=False, error_value=n)
        return ToolResult("error-free", n)

    manager = ToolManager([results])
    good = await manager.call_tool("results", {"n": 1})
    bad = await manager.call_tool("results", {"n": -1})

    assert (good.success, good.value, good.message) == (True, 1, "error-free")
    assert good.to_dict()["n"] == 1
    assert (bad.success, bad.value, bad.message) == (False, -1, "too small to matter")
    assert bad.error is not None
    assert bad.error.tool == "results"
    assert [record.success for record in records] == [True, False]


async def test_no_retry_of_its_own() -> None:
    """[W-12][C18] The SDK runs a handler once, whatever it does."""
    runs = []

    @tool
    def flaky() -> None:
        runs.append(1)
        raise ConnectionError

    await ToolManager([flaky]).call_tool("flaky")

    assert len(runs) == 1


def test_the_event_loop_of_the_host_stays_set() -> None:
    """An async tool called from synchronous code leaves the thread's own loop as it was."""

    @tool
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    before = asyncio.new_event_loop()
    asyncio.set_event_loop(before)
    try:
        assert ToolManager([later]).call_tool_sync("later", {"n": 3}).value == 3
        assert asyncio.get_event_loop_policy().get_event_loop() is before
        assert not before.is_closed()
    finally:
        asyncio.set_event_loop(None)
        before.close()
