"""Repeated execution: a call that succeeds after the same one did, of a tool not idempotent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sdk.telemetry.conftest import (
    QUICK,
    Clock,
    MakeClient,
    a_call,
    a_failure,
    conserved,
    events_of,
)

import toolfault
from toolfault import tool
from toolfault.errors import ConfigError
from toolfault.telemetry import Client
from toolfault.testing import MemoryTransport

# Equal to Python, or nearly so, and not the same JSON; texts that differ far inside alone.
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 1},
    {"n": 1.0},
    {"n": True},
    {"n": -1},
    {"n": -2},
    {"to": "a", "body": {"lines": ["x", "y"]}},
    {"to": "a", "body": {"lines": ["y", "x"]}},
    {"text": "x" * 2_000 + "a" + "x" * 2_000},
    {"text": "x" * 2_000 + "b" + "x" * 2_000},
)


def repeats_of(transport: MemoryTransport) -> int:
    """Repeated executions that the events tell of."""
    counted = sum(each.get("repeated", 0) for each in events_of(transport, "tool_call_counts"))
    return counted + sum(each.get("repeated", False) for each in events_of(transport, "tool_call"))


def call(client: Client, arguments: Any, *, mark: bool | None = False, **members: Any) -> None:
    """Let a call end whose tool has a mark."""
    record = a_call(members.pop("tool", "pay"), arguments=arguments, **members)
    record.idempotent = mark
    client.on_call(record)


@settings(max_examples=25, deadline=None)
@given(
    script=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["pay", "send"]),
            st.integers(0, len(ARGUMENTS) - 1),
            st.booleans(),
            st.sampled_from([False, False, False, None, True]),
            st.sampled_from(["t1", "t2", None]),
        ),
        max_size=60,
    ),
    mode=st.sampled_from(["folded", "all"]),
)
def test_a_repeat_is_counted_exactly_when_an_equal_call_succeeded_before(
    script: list[tuple[int, str, int, bool, bool | None, str | None]], mode: str
) -> None:
    """In its conversation, of a tool so marked, in any turn; a failure neither is nor makes one."""
    transport = MemoryTransport()
    client = toolfault.init(transport=transport, successes=mode, clock=Clock(), release="r")
    assert client is not None
    executed: list[tuple[int, str, str]] = []
    expected = 0
    for place, name, number, fails, mark, turn in script:
        arguments = dict(reversed(ARGUMENTS[number].items()))
        key = (place, name, json.dumps(ARGUMENTS[number], sort_keys=True))
        if mark is False and not fails:
            expected += key in executed
            executed.append(key)
        error = a_failure(name) if fails else None
        with toolfault.conversation(f"c{place}", ends=False):
            call(client, arguments, tool=name, error=error, mark=mark, turn=turn)
    toolfault.close(20)
    conserved(client)
    assert repeats_of(transport) == expected


@pytest.mark.parametrize("spooled", [False, True])
def test_repeats_of_counted_calls_are_counted(
    make_client: MakeClient, spooled: bool, tmp_path: Path
) -> None:
    """A counter has their number, also by way of a disk and beside phantom arguments."""
    transport, folder = MemoryTransport(), str(tmp_path) if spooled else None
    client = make_client(
        transport=transport, successes="folded", clock=lambda: 0.0, spool_dir=folder
    )
    with toolfault.conversation("c", ends=False):
        for _ in range(5):
            call(client, {"n": 1})
    assert client.flush()
    (counter,) = transport.events
    assert (counter["calls"], counter["repeated"]) == (5, 4)
    conserved(client)


@pytest.mark.parametrize(
    "arguments",
    [None, {"text": "x" * 70_000}, {"n": list(range(600))}, {"o": object()}, {"n": float("nan")}],
)
def test_what_cannot_be_compared_is_no_repeat(make_client: MakeClient, arguments: Any) -> None:
    """Unknown arguments, what is no JSON, and what is too large to be compared at a small cost."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded")
    with toolfault.conversation("c", ends=False):
        call(client, arguments)
        call(client, arguments)
    call(client, {"n": 1})  # outside of any conversation
    call(client, {"n": 1})
    assert client.flush()
    assert repeats_of(transport) == 0


def test_what_is_remembered_is_bounded(make_client: MakeClient) -> None:
    """The executions seen last are known: one repeated now and then stays, the others go."""
    transport = MemoryTransport()
    limits = QUICK.with_(executions=10)
    client = make_client(transport=transport, successes="folded", limits=limits)
    with toolfault.conversation("c", ends=False):
        for number in range(50):
            call(client, {"n": number})
            call(client, {"again": True})
        call(client, {"n": 0})
    assert client.flush()
    assert repeats_of(transport) == 49


@pytest.mark.parametrize("by_model", [False, True])
def test_a_mark_of_a_tool_is_that_of_its_calls(make_client: MakeClient, by_model: bool) -> None:
    """Called directly or by a model, a tool marked false has its repeats counted, others do not."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded")

    @tool(idempotent=False)
    def pay(amount: int) -> str:
        return "paid"

    @tool(idempotent=True)
    def put(amount: int) -> str:
        return "put"

    @tool
    def look(amount: int) -> str:
        return "seen"

    with toolfault.conversation("c", ends=False):
        for _ in range(3):
            for each in (pay, put, look):
                each.call({"amount": 5}) if by_model else each(amount=5)
    assert client.flush()
    told = {each["tool"]: each.get("repeated") for each in transport.events}
    assert told == {"pay": 2, "put": None, "look": None}


@pytest.mark.parametrize("arguments", ["not JSON", {"amount": "x"}])
def test_a_refused_call_has_the_mark_of_its_tool(
    make_client: MakeClient, arguments: object
) -> None:
    """Whether its arguments could not be read or were wrong: the tool is the same."""
    transport = MemoryTransport()
    client = make_client(transport=transport)

    @tool(idempotent=False)
    def pay(amount: int) -> str:
        return "paid"

    assert not pay.call(arguments).success
    assert client.flush()
    (event,) = transport.events
    assert event["idempotent"] is False


def test_a_mark_is_true_or_false() -> None:
    """Anything else is refused where the tool is made."""
    with pytest.raises(ConfigError, match="idempotent= takes True, False or None"):

        @tool(idempotent="no")  # type: ignore[call-overload]
        def pay() -> None: ...
