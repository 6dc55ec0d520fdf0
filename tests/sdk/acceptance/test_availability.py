"""Cases A01 to A03: a tool that is not available, for whatever reason."""

from __future__ import annotations

import json

import pytest
from tests.sdk.acceptance.expecting import Expect

from toolfault import ToolManager, ToolRegistry, tool
from toolfault.tools import CallRecord


@pytest.fixture
def ran() -> list[str]:
    """The expressions the handler of ``calculator`` was run with."""
    return []


@pytest.fixture
def manager(ran: list[str]) -> ToolManager:
    """A manager of one tool, ``calculator``."""

    @tool(echo=("expression",), error_defaults={"value": None})
    def calculator(expression: str, precision: int = 2) -> int:
        ran.append(expression)
        return precision

    return ToolManager(ToolRegistry([calculator]))


async def test_a_tool_that_is_not_registered(
    manager: ToolManager, expect: Expect, records: list[CallRecord]
) -> None:
    """[A01][L-01][L-02][L-08][L-11][L-15][W-05] An unknown name is answered with one sentence."""
    result = await manager.call_tool("nope", {})

    expect("A01", result)
    assert result.is_error is True
    assert result.content == "This tool is not available"
    assert result.value is None
    [record] = records
    assert (record.success, record.tool) == (False, "nope")
    assert record.error is not None
    assert record.error.category == "availability"
    assert record.error.reason == "not_registered"


async def test_a_registered_tool_that_is_not_enabled(
    manager: ToolManager, expect: Expect, records: list[CallRecord], ran: list[str]
) -> None:
    """[A02][L-03] An alias of a disabled tool is answered under the name the model used."""
    manager.alias("calc", "calculator")
    manager.disable("calculator")

    result = await manager.call_tool("calc", {"expression": "1"})

    expect("A02", result)
    assert ran == []
    [record] = records
    assert (record.tool, record.tool_requested) == ("calculator", "calc")
    assert record.error is not None
    assert record.error.reason == "not_enabled"


async def test_the_alias_changes_nothing_but_the_name(manager: ToolManager) -> None:
    """[A02][P-07] The payload of a disabled alias is that of an unknown tool of that name."""
    manager.alias("calc", "calculator")
    manager.disable("calculator")
    unknown = await ToolManager().call_tool("calc", {})

    result = await manager.call_tool("calc", {"expression": "1"})

    assert result.to_dict() == unknown.to_dict()


async def test_a_paused_tool(
    manager: ToolManager, expect: Expect, records: list[CallRecord], ran: list[str]
) -> None:
    """[A03] A paused tool is answered like an unknown one; the reason is for the system."""
    manager.pause("calculator")

    result = await manager.call_tool("calculator", {"expression": "1"})

    expect("A03", result)
    assert ran == []
    assert [record.error.reason for record in records if record.error] == ["paused"]
    manager.resume("calculator")
    assert (await manager.call_tool("calculator", {"expression": "1"})).success


async def test_every_state_reads_the_same(manager: ToolManager) -> None:
    """[L-02][L-03][A03] Text, payload and dict are byte-identical for every state and argument."""
    unknown = ToolManager()
    disabled = ToolManager(manager.registry, enabled=())
    paused = ToolManager(manager.registry)
    paused.pause("calculator")
    denied = ToolManager(manager.registry, policy=lambda name, arguments: False)
    blocked = ToolManager(manager.registry, before_call=lambda name, arguments: False)

    answers = {
        json.dumps([result.message, result.error.to_llm_payload(), result.to_dict()])
        for each in (unknown, disabled, paused, denied, blocked)
        for arguments in ({}, {"expression": "1"}, {"expression": 7, "x": 1}, "[1,2]", "{", None, 3)
        if (result := await each.call_tool("calculator", arguments)).error is not None
    }

    assert len(answers) == 1
    assert "expression" not in answers.pop()
