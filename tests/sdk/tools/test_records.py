"""One record per call on every path, and one call of the adapter per failed call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from toolfault import Issue, ToolError, ToolInvocationError, ToolManager, ToolResult, tool
from toolfault.errors import default_adapt_error
from toolfault.tools import (
    CallRecord,
    Repair,
    observe,
    report,
    report_validation_error,
    unobserve,
)


class Number(BaseModel):
    """A model with one integer."""

    n: int


adapted: list[ToolInvocationError] = []


def counting(invocation: ToolInvocationError) -> ToolError:
    """The default adapter, counted."""
    adapted.append(invocation)
    return default_adapt_error(invocation)


class Stop(Exception):
    """Goes on to the caller."""


def behave(n: int) -> Any:
    """Succeed, or fail in one of the ways a tool can fail."""
    ways: dict[int, Any] = {
        1: RuntimeError("unexpected"),
        2: ToolError("wrong_name", "nothing found", "not_found"),
        3: ValueError("Missing required parameter: x"),
        4: TimeoutError("slow"),
        5: Stop("host"),
        6: KeyboardInterrupt(),
        7: asyncio.CancelledError(),
        8: SystemExit(3),
    }
    if n in ways:
        raise ways[n]
    returned = {9: {"success": False, "error": "no"}, 10: ToolResult("no", success=False)}
    return returned.get(n, n)


OPTIONS: dict[str, Any] = {"adapt_error": counting, "passthrough": Stop}


@tool(name="by_hints", **OPTIONS)
def by_hints(n: int) -> Any:
    """Validated by hints."""
    return behave(n)


@tool(name="by_model", model=Number, **OPTIONS)
async def by_model(n: int) -> Any:
    """Validated by a model, async."""
    return behave(n)


@tool(name="in_time", timeout=30, **OPTIONS)
def in_time(n: int) -> Any:
    """Run in a thread."""
    return behave(n)


@tool(
    name="by_schema",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    **OPTIONS,
)
async def by_schema(n: int) -> Any:
    """Validated by a schema, async."""
    return behave(n)


TOOLS = [by_hints, by_model, in_time, by_schema]
# arguments -> (success, code, whether it goes on to the caller, calls of the adapter)
PATHS: list[tuple[Any, tuple[bool, str | None, bool, int]]] = [
    ({"n": 0}, (True, None, False, 0)),
    ('{"n": 0}', (True, None, False, 0)),
    ({"n": 1}, (False, "internal_error", False, 1)),
    ({"n": 2}, (False, "not_found", False, 1)),
    ({"n": 3}, (False, "missing_field", False, 1)),
    ({"n": 4}, (False, "timeout", False, 1)),
    ({"n": 5}, (False, "internal_error", True, 0)),
    ({"n": 6}, (False, "cancelled", True, 0)),
    ({"n": 7}, (False, "cancelled", True, 0)),
    ({"n": 8}, (False, "cancelled", True, 0)),
    ({"n": 9}, (False, "internal_error", False, 1)),
    ({"n": 10}, (False, "internal_error", False, 1)),
    ({}, (False, "missing_field", False, 1)),
    ({"n": "x"}, (False, "wrong_type", False, 1)),
    ("{", (False, "malformed_json", False, 1)),
    ("[]", (False, "wrong_type", False, 1)),
    (7, (False, "wrong_type", False, 1)),
]


@pytest.mark.parametrize("function", TOOLS, ids=lambda function: function.tool.name)
@pytest.mark.parametrize(("arguments", "told"), PATHS, ids=lambda item: str(item)[:16])
async def test_one_record_on_every_path(
    function: Any, arguments: Any, told: tuple[Any, ...], records: list[CallRecord]
) -> None:
    """[H-15][P-10][W-09][T08] Each call leaves one record with the resolved name."""
    success, code, goes_on, adaptions = told
    adapted.clear()
    manager = ToolManager([function], threads=False)

    try:
        result = await manager.call_tool(function.tool.name, arguments, call_id="c1", turn="t1")
    except (Stop, KeyboardInterrupt, asyncio.CancelledError, SystemExit):
        assert goes_on
    else:
        assert not goes_on
        assert result.success is success

    [record] = records
    assert record.success is success
    assert record.tool == function.tool.name
    assert (record.call_id, record.turn) == ("c1", "t1")
    assert len(adapted) == adaptions
    assert record.started_at > 0
    assert record.duration_ms >= 0
    if record.error is not None:
        assert record.error.code.value == code
        assert record.error.tool == function.tool.name


# A direct call takes Python values and validates nothing.
DIRECT = [path for path in PATHS if isinstance(path[0], dict) and path[0] != {"n": "x"}]


@pytest.mark.parametrize(("arguments", "told"), DIRECT, ids=lambda item: str(item)[:16])
async def test_direct_calls_leave_one_record_too(
    arguments: Any, told: tuple[Any, ...], records: list[CallRecord]
) -> None:
    """[H-15] Whoever calls the function itself is recorded the same way."""
    success, code, _, adaptions = told
    adapted.clear()

    try:
        await by_model(**arguments)
    except BaseException:
        assert not success

    [record] = records
    assert record.success is success
    assert len(adapted) == adaptions
    assert (record.error and record.error.code.value) == code


def test_an_event_id_of_its_own() -> None:
    """A tool may raise the same object again and again; each call is its own event."""
    shared = ToolError("shared", "busy", "rate_limited")

    @tool
    def fails() -> None:
        raise shared

    first, second = fails.call().error, fails.call().error

    assert first is not None
    assert second is not None
    assert first.event_id != second.event_id


def test_an_error_of_the_host_stays_as_it_is() -> None:
    """What a tool raises or an adapter returns is described on a copy, down to its issues."""
    shared = ToolError.from_issues("own", [Issue("n", "wrong_type", "no", expected="integer")])
    shared.event_id  # noqa: B018 - made when it is first asked for
    before = {**vars(shared)}, shared.issues[0].with_()

    @tool(name="raises", hints="derived")
    def raises(n: Any) -> None:
        raise shared

    @tool(name="adapts", hints="Numbers.", adapt_error=lambda invocation: shared)
    def adapts(n: Any) -> None:
        raise RuntimeError

    first, second = raises.call(n="1").error, adapts.call(n="1").error

    assert ({**vars(shared)}, shared.issues[0]) == before
    assert first is not None
    assert second is not None
    assert (first.tool, first.issues[0].near_miss) == ("raises", ("int_from_string",))
    assert (second.tool, second.retry_hint) == ("adapts", "Numbers.")


def test_a_tool_that_reports_and_then_raises(records: list[CallRecord]) -> None:
    """[T08] Its report joins the one record; without a failure it is not lost."""

    @tool
    def reports(fail: bool) -> None:
        assert report(ToolError("reports", "half of it failed"), tool="reports") is True
        if fail:
            raise RuntimeError("all of it failed")

    reports.call(fail=True)
    reports.call(fail=False)

    assert [record.success for record in records] == [False, True]
    assert [len(record.reported) for record in records] == [1, 1]
    assert report(ToolError("reports", "nobody runs")) is False


def test_another_tools_error_is_not_attached(records: list[CallRecord]) -> None:
    """[T08] An error about another tool is an event of its own."""

    @tool
    def outer() -> bool:
        return report(ToolError("inner", "failed"), tool="inner")

    assert outer.call().value is False
    assert records[0].reported == ()


def test_a_failing_observer_hurts_nobody(records: list[CallRecord]) -> None:
    """[W-10] Neither the call nor the other observers notice."""

    def broken(record: CallRecord) -> None:
        raise RuntimeError("no")

    observe(broken)
    try:
        assert by_hints.call(n=0).value == 0
        with pytest.raises(RuntimeError, match="unexpected"):
            by_hints(1)
    finally:
        unobserve(broken)
        unobserve(broken)

    assert len(records) == 2


def test_failures_can_be_selected(records: list[CallRecord]) -> None:
    """[W-11] ``success`` is a real bool and enough to tell failures apart."""
    by_hints.call(n=0)
    by_hints.call(n=1)

    assert [record.success for record in records if not record.success] == [False]


def test_values_of_a_success_and_a_failure(records: list[CallRecord]) -> None:
    """[W-03][W-04] A failure has no value; rejected arguments stay in the record."""
    result = by_hints.call(n="x")

    assert result.value is None
    assert records[0].arguments == {"n": "x"}
    assert records[0].validation_mode == "comprehensive"


def test_records_say_how_they_were_validated(records: list[CallRecord]) -> None:
    """[H-14] Validated calls and unvalidated ones can be told apart."""
    by_hints.call(n=0)
    by_hints(0)

    assert [record.validation_mode for record in records] == ["comprehensive", "none"]


def test_repairs_compare_by_what_they_say() -> None:
    """A repair is a value: field and types."""
    assert Repair("a", "str", "int") == Repair("a", "str", "int") != Repair("a", "str", "bool")
    assert len({Repair("a", "str", "int"), Repair("a", "str", "int")}) == 1
    assert repr(Repair("a", "str", "int")) == "Repair('a', 'str', 'int')"


def test_a_record_of_its_own() -> None:
    """A record can be built by whoever has calls from elsewhere."""
    record = CallRecord("a", "b", success=False, started_at=1.0, duration_ms=2.0)

    assert (record.tool, record.tool_requested, record.success) == ("a", "b", False)
    assert repr(record) == "<CallRecord 'a' failed after 2.000 ms>"


@pytest.mark.parametrize("arguments", [{"n": "x", "m": 1}, '{"n": "x", "m": 1}', None, "broken"])
def test_a_framework_that_validates_itself(arguments: Any, records: list[CallRecord]) -> None:
    """[T13] A failure before the tool body is a failed call like any other."""
    try:
        Number(n="x")  # type: ignore[arg-type]
    except ValueError as error:
        result = report_validation_error("framework_tool", error, arguments, call_id="c9")

    assert result.message.startswith("Error: Invalid parameter value for n: ")
    [record] = records
    assert (record.tool, record.call_id, record.success) == ("framework_tool", "c9", False)


def test_the_boundary_knows_a_decorated_tool(records: list[CallRecord]) -> None:
    """[T13] Given the tool itself, its adapter and its hints apply."""
    adapted.clear()
    try:
        Number(n="x")  # type: ignore[arg-type]
    except ValueError as error:
        result = report_validation_error(by_model, error, {"n": "x"})

    assert len(adapted) == 1
    assert result.error is not None
    assert result.error.issues[0].near_miss == ()
    assert records[0].tool == "by_model"


def test_the_boundary_and_any_other_exception(records: list[CallRecord]) -> None:
    """[T13][T03] What is no validation error is an internal failure of phase validation."""
    result = report_validation_error("framework_tool", TypeError("a bug"), {"n": 1})

    assert result.message == "An unexpected error occurred while executing this tool"
    assert records[0].error is not None
    assert records[0].error.phase == "validation"


def test_the_boundary_takes_any_name(records: list[CallRecord]) -> None:
    """Whatever a framework calls the tool, its failure is told and nothing is raised."""

    class Nameless:
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("do not look at me")

    names: list[Any] = [None, 3, "\ud800", Nameless()]
    for name in names:
        assert not report_validation_error(name, ValueError("x")).success
    told = [record.tool for record in records]
    assert told[:3] == ["None", "3", "\ufffd"]
    assert "Nameless" in told[3]


def test_validate_call(records: list[CallRecord]) -> None:
    """[T04] Errors of ``validate_call`` go by parameter names and never print all arguments."""
    from pydantic import ValidationError, validate_call

    @validate_call
    def login(user: str, password: str) -> None: ...

    @tool(name="login")
    def target(user: str, password: str) -> None: ...

    with pytest.raises(ValidationError) as caught:
        login("hunter2")  # type: ignore[call-arg]

    result = report_validation_error(target, caught.value)

    assert "hunter2" not in f"{result.to_dict()}"
    assert result.error is not None
    assert [(issue.field, issue.code.value) for issue in result.error.issues] == [
        ("password", "missing_field")
    ]
