"""What an event says of its chain: attempt, difference, fingerprint; never a value."""

from __future__ import annotations

import json
import threading
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sdk.telemetry.conftest import Clock, MakeClient, a_call, a_failure, events_of

import toolfault
from toolfault.testing import MemoryTransport, capture_events

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_attempts_show_what_the_model_changed(make_client: MakeClient) -> None:
    """Each attempt tells which arguments were added, removed, changed or changed in type."""
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=Clock())
    attempts = [
        {"port": "80", "host": "a", "old": 1},
        {"port": 80, "host": "b", "new": 2},
        {"port": 80, "host": "b", "new": 2},
    ]
    with toolfault.conversation("c1"):
        for arguments in attempts[:2]:
            client.on_call(a_call(error=a_failure(), arguments=arguments))
        client.on_call(a_call(arguments=attempts[2]))
    assert client.flush()
    first, second, third = events_of(transport, "tool_call")
    assert "args_diff" not in first
    assert {change["path"]: change["change"] for change in second["args_diff"]} == {
        "port": "type_changed",
        "host": "changed",
        "new": "added",
        "old": "removed",
    }
    assert "args_diff" not in third
    assert second["args_fingerprint"] == third["args_fingerprint"] != first["args_fingerprint"]
    assert [event["args_recorded"] for event in (first, second, third)] == [True] * 3


def test_parallel_calls_do_not_join_a_chain(make_client: MakeClient) -> None:
    """A call of the failed call's own turn, or one begun before it failed, is no attempt."""
    clock = Clock()
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=clock)
    with toolfault.conversation("c1"):
        client.on_call(a_call(error=a_failure(), turn="t1"))
        client.on_call(a_call(error=a_failure(), turn="t1"))
        client.on_call(a_call(turn="t1"))
        client.on_call(a_call(duration_ms=60_000.0))
        client.on_call(a_call(turn="t2"))
    assert client.flush()
    events = events_of(transport, "tool_call")
    assert [event["attempt"] for event in events] == [1, 1, 1, 1, 2]
    assert ["chain_id" in event for event in events] == [True, True, False, False, True]


def test_chains_of_tools_and_conversations_are_apart(make_client: MakeClient) -> None:
    """A chain is of one tool in one conversation."""
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=Clock())
    for conversation in ("c1", "c2"):
        with toolfault.conversation(conversation, ends=False):
            for tool in ("a", "b"):
                client.on_call(a_call(tool, error=a_failure(tool)))
                client.on_call(a_call(tool, error=a_failure(tool)))
    assert client.flush()
    events = events_of(transport, "tool_call")
    assert len({event["chain_id"] for event in events}) == 4
    assert [event["attempt"] for event in events] == [1, 2] * 4


def test_argument_values_are_never_sent(make_client: MakeClient) -> None:
    """Whatever the arguments hold, no event repeats it."""
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=Clock())
    with toolfault.conversation("c1"):
        for number in range(3):
            arguments = {"note": f"CANARY-{number}", "deep": [{"inner": "CANARY"}]}
            client.on_call(a_call(error=a_failure(), arguments=arguments))
        client.on_call(a_call(arguments={"note": "CANARY"}))
    assert client.flush()
    assert "CANARY" not in json.dumps(transport.batches)


def attempts(*arguments: Any, key: str = "KEY") -> list[dict[str, Any]]:
    """What events say of failed calls with these arguments, one after the other."""
    with capture_events(dsn=f"http://{key}@127.0.0.1:1", agent="a", release="r") as events:
        with toolfault.conversation("c"):
            for given_ in arguments:
                call = toolfault.ToolError("t", "no", "not_found")
                toolfault.capture_failure(call, tool="t", arguments=given_)
        return [event for event in events.flush() if event["type"] != "conversation_end"]


def turned(value: Any) -> Any:
    """The same arguments with their names the other way round."""
    if isinstance(value, dict):
        return {name: turned(member) for name, member in reversed(value.items())}
    return [turned(member) for member in value] if isinstance(value, list) else value


@settings(max_examples=15)
@given(arguments=st.dictionaries(st.text(), json_values, max_size=5), other=json_values)
def test_fingerprint_depends_on_the_values_alone(arguments: dict[str, Any], other: object) -> None:
    """Equal arguments have equal fingerprints in any order of names, others do not."""
    changed = {**arguments, "one more": other}
    first, same, another = attempts(arguments, turned(arguments), changed)
    assert first["args_fingerprint"] == same["args_fingerprint"]
    assert "args_diff" not in same
    if "one more" not in arguments:
        assert first["args_fingerprint"] != another["args_fingerprint"]


def test_fingerprint_depends_on_the_key() -> None:
    """Another project cannot compare fingerprints; another process of the same project can."""
    ((one,), (same,), (other,)) = (attempts({"a": 1}, key=key) for key in ("KEY", "KEY", "OTHER"))
    assert one["args_fingerprint"] == same["args_fingerprint"] != other["args_fingerprint"]


class Hostile:
    """An argument all of whose methods are traps."""

    def _trap(self, *args: object) -> object:
        raise AssertionError("touched")

    __repr__ = __str__ = __eq__ = __iter__ = __len__ = __bool__ = __getattr__ = _trap  # type: ignore[assignment]
    __hash__ = _trap  # type: ignore[assignment]


class Listlike(list):
    """A list with a trap."""

    def __iter__(self):
        raise AssertionError("iterated")


def _numbers():
    yield 1
    raise AssertionError("consumed")


def test_foreign_arguments_are_named_not_touched() -> None:
    """Locks, generators and hostile objects are types only: no change, and no proof of equality."""
    first, second = (
        {
            "lock": threading.Lock(),
            "numbers": _numbers(),
            "hostile": Hostile(),
            "list": Listlike([number]),
            "nan": float("nan"),
            1: "number as key",
        }
        for number in (1, 2)
    )
    one, other = attempts(first, second)
    assert "args_diff" not in other
    assert "args_fingerprint" not in one
    assert "args_fingerprint" not in other


def test_large_arguments_cost_little() -> None:
    """Depth, breadth and length are bounded, and what changed is said of 64 places at most."""
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    wide = {str(number): number for number in range(100_000)}
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    told = attempts({}, {"deep": deep}, wide, cyclic, {"text": "x" * 1_000_000})
    assert len(told) == 5
    for event in told:
        assert event["args_recorded"]
        assert len(event.get("args_diff", [])) <= 64
        assert len(json.dumps(event)) < 20_000


def test_large_arguments_cost_no_failure() -> None:
    """What is never sent cannot make an event too large; a slip in the middle is a change still."""
    documents = ["word " * 13_000 for _ in range(400)]
    changed = [*documents[:-1], documents[-1].replace("word", "work", 5_000)]
    sent = [{"documents": texts, "k" * 60_000: 1} for texts in (documents, documents, changed)]
    first, same, other = attempts(*sent)
    assert first["args_fingerprint"] == same["args_fingerprint"] != other["args_fingerprint"]


@pytest.mark.parametrize(
    "value",
    [
        date(2026, 1, 1),
        Decimal(5),
        float("nan"),
        "x" * 70_000,
        list(range(600)),
        [[[[[[[[["deep"]]]]]]]]],
        {1: "one"},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_compared_has_no_fingerprint(value: object) -> None:
    """Arguments that others would be taken for are known to have been sent, and equal to none."""
    (event,) = attempts({"value": value})
    assert event["args_recorded"]
    assert "args_fingerprint" not in event


@pytest.mark.parametrize("arguments", [None, "{not json", {}, []])
def test_what_is_recorded_of_odd_arguments(arguments: object, make_client: MakeClient) -> None:
    """Unknown arguments have no fingerprint; empty and unparsable ones have."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    client.on_call(a_call(error=a_failure(), arguments=arguments))
    assert client.flush()
    (event,) = transport.events
    assert event["args_recorded"] == (arguments is not None)
    assert ("args_fingerprint" in event) == (arguments is not None)
