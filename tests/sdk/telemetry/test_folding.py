"""Folded successes: whatever is folded or whole, the calls on the collector are the calls made."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sdk.telemetry.conftest import (
    QUICK,
    Clock,
    MakeClient,
    Scripted,
    a_call,
    a_failure,
    conserved,
    events_of,
)

import toolfault
from toolfault.telemetry import Response
from toolfault.testing import MemoryTransport
from toolfault.tools import Repair


def calls_of(transport: MemoryTransport) -> Counter[str]:
    """Calls by tool that the events stand for."""
    calls: Counter[str] = Counter()
    for event in transport.events:
        if event["type"] in ("tool_call", "tool_error"):
            calls[event["tool"]] += 1
        elif event["type"] == "tool_call_counts" and "tool" in event:
            calls[event["tool"]] += event["calls"]
    return calls


def test_successes_become_one_counter_per_minute(make_client: MakeClient) -> None:
    """Successes of a minute are one event with their number, durations and repairs."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", agent="bot", clock=lambda: 90.0)
    with toolfault.conversation("c1", model="m1", ends=False):
        for duration in (0.5, 3.0, 3.1, 100.0):
            client.on_call(a_call(duration_ms=duration))
    assert client.flush()
    (counter,) = transport.events
    assert counter["type"] == "tool_call_counts"
    assert counter["minute"] == counter["occurred_at"] == "1970-01-01T00:01:00.000000Z"
    assert (counter["tool"], counter["agent"], counter["model"]) == ("http_request", "bot", "m1")
    assert counter["calls"] == 4
    durations = counter["duration_ms"]
    assert (durations["sum"], durations["max"]) == (106.6, 100.0)
    assert sum(count for _, count in durations["buckets"]) == 4
    conserved(client)


def test_a_duration_that_cannot_be_is_counted_as_none(make_client: MakeClient) -> None:
    """A clock that jumps or says nan costs the duration of its call, never a call."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=lambda: 90.0)
    for duration in (2.0, float("nan"), float("inf"), -3.0, 1e300, 4.0):
        client.on_call(a_call(duration_ms=duration))
    assert client.flush()
    (counter,) = transport.events
    durations = counter["duration_ms"]
    assert (counter["calls"], durations["sum"], durations["max"]) == (6, 6.0, 4.0)
    assert sum(count for _, count in durations["buckets"]) == 6
    assert client.stats().dropped == {}
    conserved(client)


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), -1.0])
def test_a_failure_whose_duration_cannot_be_is_sent(
    duration: float, make_client: MakeClient
) -> None:
    """A clock of the host's that jumps costs no failure."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    client.on_call(a_call(error=a_failure(), duration_ms=duration))
    assert client.flush()
    (event,) = events_of(transport, "tool_call")
    assert event["duration_ms"] == 0.0


def test_failures_are_never_folded(make_client: MakeClient) -> None:
    """Every failure is an event of its own."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    for _ in range(5):
        client.on_call(a_call(error=a_failure()))
        client.on_call(a_call())
    assert client.flush()
    assert len(events_of(transport, "tool_call")) == 5
    assert calls_of(transport) == {"http_request": 10}


def test_recovery_is_sent_whole(make_client: MakeClient) -> None:
    """The success that ends a chain is an event; those before and after it are counted."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    with toolfault.conversation("c1"):
        for fails in (False, True, True, False, False):
            client.on_call(a_call(error=a_failure() if fails else None))
    assert client.flush()
    whole = events_of(transport, "tool_call")
    assert [event["success"] for event in whole] == [False, False, True]
    assert [event["attempt"] for event in whole] == [1, 2, 3]
    assert len({event["chain_id"] for event in whole}) == 1
    assert calls_of(transport) == {"http_request": 5}


def test_successes_beside_an_open_chain_are_sent_whole_twenty_times(
    make_client: MakeClient,
) -> None:
    """Beside an open chain 20 successes of other tools are whole; the recovery always is."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    with toolfault.conversation("c1"):
        client.on_call(a_call("broken", error=a_failure("broken")))
        for _ in range(30):
            client.on_call(a_call("other"))
        client.on_call(a_call("broken"))
        client.on_call(a_call("broken"))
    assert client.flush()
    whole = Counter(event["tool"] for event in events_of(transport, "tool_call"))
    assert whole == {"broken": 2, "other": 20}
    assert calls_of(transport) == {"broken": 3, "other": 30}


def test_chain_left_open_is_known_when_the_conversation_goes_on(make_client: MakeClient) -> None:
    """Time never splits a chain: a later block of the same conversation still recovers it."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    with toolfault.conversation("c1"):
        client.on_call(a_call(error=a_failure()))
    with toolfault.conversation("c1"):
        client.on_call(a_call())
    assert client.flush()
    failed, recovered = events_of(transport, "tool_call")
    assert failed["chain_id"] == recovered["chain_id"]
    assert recovered["success"]
    assert recovered["attempt"] == 2


def test_end_of_a_conversation_adds_to_the_counters(make_client: MakeClient) -> None:
    """Counters carry conversations and squared calls, per tool and over all tools."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=lambda: 0.0)
    for count in (3, 4):
        with toolfault.conversation():
            for _ in range(count):
                client.on_call(a_call("a"))
            client.on_call(a_call("b"))
    assert client.flush()
    counters = {event.get("tool"): event for event in transport.events}
    assert (counters["a"]["conversations"], counters["a"]["calls_squared"]) == (2, 9 + 16)
    assert (counters["b"]["conversations"], counters["b"]["calls_squared"]) == (2, 2)
    assert (counters[None]["conversations"], counters[None]["calls_squared"]) == (2, 16 + 25)
    assert "calls" not in counters[None]
    assert "duration_ms" not in counters[None]
    conserved(client)


def test_conversation_with_a_failure_tells_its_calls(make_client: MakeClient) -> None:
    """Only a conversation that had a failure sends its calls per tool when it ends."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    with toolfault.conversation("quiet", ends=True):
        client.on_call(a_call())
    with toolfault.conversation("loud", ends=True):
        client.on_call(a_call("a", error=a_failure("a")))
        client.on_call(a_call("b"))
        client.on_call(a_call("b"))
    assert client.flush()
    (end,) = events_of(transport, "conversation_end")
    assert (end["session_id"], end["calls"]) == ("loud", {"a": 1, "b": 2})


def test_idle_conversation_ends_by_itself(make_client: MakeClient) -> None:
    """A conversation without a call for 30 minutes has ended."""
    clock = Clock()
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=clock)
    with toolfault.conversation("c1", ends=False):
        client.on_call(a_call(error=a_failure()))
    clock.now += 1_900.0
    with toolfault.conversation("c2", ends=False):
        client.on_call(a_call())
    assert client.flush()
    assert [end["session_id"] for end in events_of(transport, "conversation_end")] == ["c1"]


def test_time_alone_ends_conversations_and_sends_counters(
    make_client: MakeClient, passing: Clock
) -> None:
    """Nobody calls or flushes any more: a minute sends the counters, half an hour ends the chat."""
    came: dict[str, float] = {}
    complete = threading.Event()

    class Noting(MemoryTransport):
        def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
            answer = super().send(body, headers=headers, timeout=timeout)
            for event in self.events:
                came.setdefault(event["type"], passing.now)
            if "conversation_end" in came:
                complete.set()
            return answer

    client = make_client(transport=Noting(), successes="folded", limits=None, clock=passing)
    begun = passing.now
    with toolfault.conversation("c1", ends=False):
        client.on_call(a_call())
        client.on_call(a_call(error=a_failure()))
    made = passing.now
    assert complete.wait(60)
    assert begun + 60 <= came["tool_call_counts"] <= made + 125
    assert begun + 1_800 <= came["conversation_end"] <= made + 1_925


def test_invented_tools_cost_bounded_memory(make_client: MakeClient) -> None:
    """Of names that a model invents, however long, little is kept while a conversation goes on."""
    client = make_client(transport=MemoryTransport(), successes="folded")
    with toolfault.conversation("c"):
        client.on_call(a_call(error=a_failure()))
        assert client.flush(20)
        tracemalloc.start()
        try:
            for number in range(80):
                client.on_call(a_call(f"{number}-{'x' * 100_000}", error=a_failure()))
            assert client.flush(60)
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept < 4 * 1024 * 1024


def test_a_conversation_of_many_tools_is_told_in_parts(make_client: MakeClient) -> None:
    """Where there are more kinds of calls than are followed, the idlest conversations end."""
    transport = MemoryTransport()
    limits = QUICK.with_(conversation_lanes=50)
    client = make_client(transport=transport, successes="folded", limits=limits)
    with toolfault.conversation("idle", ends=False):
        client.on_call(a_call(error=a_failure()))
    with toolfault.conversation("busy", ends=False):
        for number in range(200):
            client.on_call(a_call(f"t{number}", error=a_failure()))
    assert client.flush(20)
    ended = [event["session_id"] for event in events_of(transport, "conversation_end")]
    assert ended[:2] == ["idle", "busy"]
    client.close(20)
    told: Counter[str] = Counter()
    for event in transport.events:
        if event["type"] == "conversation_end":
            assert len(event["calls"]) <= 50
            told.update(event["calls"])
    assert told == Counter(["http_request", *(f"t{number}" for number in range(200))])


def test_conversations_are_bounded(make_client: MakeClient) -> None:
    """Beyond the limit the conversation idle longest is ended, and nothing is lost."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=Clock())
    for number in range(2_100):
        with toolfault.conversation(f"c{number}", ends=False):
            client.on_call(a_call())
    client.close(20)
    over_all = [event for event in transport.events if "tool" not in event]
    assert sum(event["conversations"] for event in over_all) == 2_100
    assert calls_of(transport) == {"http_request": 2_100}


@settings(max_examples=40, deadline=None)
@given(
    script=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.booleans(), st.sampled_from("tuv")),
        max_size=80,
    ),
    mode=st.sampled_from(["folded", "all"]),
)
def test_calls_on_the_collector_are_the_calls_made(
    script: list[tuple[int, str, bool, str]], mode: str
) -> None:
    """In every mode, calls per tool, failures, and squared calls are exact."""
    transport = MemoryTransport()
    client = toolfault.init(transport=transport, successes=mode, clock=Clock(), release="r")
    assert client is not None
    conversations = [toolfault.conversation(f"c{n}", ends=False) for n in range(3)]
    made: Counter[str] = Counter()
    squares: Counter[tuple[str, str | None]] = Counter()
    for place, tool, fails, turn in script:
        made[tool] += 1
        record = a_call(tool, error=a_failure(tool) if fails else None, turn=turn)
        if place == 3:
            client.on_call(record)
            continue
        with conversations[place] as present:
            squares[(present.id, tool)] += 1
            squares[(present.id, None)] += 1
            client.on_call(record)
    toolfault.close(20)
    conserved(client)
    assert calls_of(transport) == made
    failures = [event for event in events_of(transport, "tool_call") if not event["success"]]
    assert len(failures) == sum(fails for _, _, fails, _ in script)
    expected: Counter[str | None] = Counter()
    for (_, name), calls in squares.items():
        expected[name] += calls * calls
    told: Counter[str | None] = Counter()
    for event in events_of(transport, "tool_call_counts"):
        told[event.get("tool")] += event.get("calls_squared", 0)
    assert +told == (+expected if mode == "folded" else Counter())


def test_a_storm_of_keys_is_bounded(make_client: MakeClient) -> None:
    """More kinds of calls than rows allowed are sent early, and all are counted."""
    transport = Scripted()
    client = make_client(transport=transport, successes="folded", limits=None)
    for number in range(600):
        client.on_call(a_call(f"tool_{number}"))
    assert transport.acknowledged.wait(60)
    assert client.flush()
    assert sum(calls_of(transport).values()) == 600
    conserved(client)


def test_bucket_holds_its_duration(make_client: MakeClient) -> None:
    """A duration lies at most its bucket's bound, and above the bound a quarter octave below."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=lambda: 0.0)
    durations = {f"t{n}": 10.0 ** (n / 40) for n in range(-120, 360)}
    durations |= {"zero": 0.0, "shorter": 1e-9, **{f"exact{n}": 2.0**n for n in range(12)}}
    for tool, duration in durations.items():
        client.on_call(a_call(tool, duration_ms=duration))
    assert client.flush()
    smallest = 0.0
    for event in transport.events:
        ((bound, calls),) = event["duration_ms"]["buckets"]
        duration = durations[event["tool"]]
        assert calls == 1
        if duration < 1e-3:
            smallest = smallest or bound
            assert bound == smallest
        else:
            assert bound / 2**0.25 * (1 - 1e-5) < duration <= bound * (1 + 1e-5)


def test_histogram_is_made_coarser_before_it_is_too_long(make_client: MakeClient) -> None:
    """At most 64 buckets travel, and they still hold every call."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=lambda: 0.0)
    chance = random.Random(7)
    durations = [10.0 ** chance.uniform(-3, 7) for _ in range(500)]
    for duration in durations:
        client.on_call(a_call(duration_ms=duration))
    assert client.flush()
    buckets = transport.events[0]["duration_ms"]["buckets"]
    assert len(buckets) <= 64
    assert sum(count for _, count in buckets) == 500
    for bound in (0.1, 10.0, 1_000.0):
        below = sum(count for le, count in buckets if le <= bound)
        assert below <= sum(duration <= bound for duration in durations)


def test_repaired_fields_are_bounded(make_client: MakeClient) -> None:
    """A counter names at most 100 repaired fields."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded", clock=lambda: 0.0)
    for number in range(300):
        repairs = [Repair(name, "str", "int") for name in (f"field_{number}", "same")]
        client.on_call(a_call(coercions=tuple(repairs)))
    assert client.flush()
    (counter,) = transport.events
    assert len(counter["repairs"]) == 100
    assert counter["repairs"]["same"] == 300


@pytest.mark.parametrize("spooled", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_what_a_client_counts_is_counted_apart(
    make_client: MakeClient, named: bool, spooled: bool, tmp_path: Path
) -> None:
    """In a conversation and outside, also by way of a disk: by who says that it counts."""
    transport, folder = MemoryTransport(), str(tmp_path) if spooled else None
    client = make_client(
        transport=transport, successes="folded", clock=lambda: 0.0, spool_dir=folder
    )
    with toolfault.conversation("c", ends=True) if named else nullcontext():
        for number in range(60):
            call = a_call()
            call.counted_by = (None, "a", "b")[number % 3]
            client.on_call(call)
    assert client.flush()
    counted = [(each.get("counted_by"), each) for each in transport.events]
    of_calls = {by: each["calls"] for by, each in counted if "tool" in each}
    assert of_calls == {None: 20, "a": 20, "b": 20}
    squares = {by: each["calls_squared"] for by, each in counted if "tool" not in each}
    assert squares == (dict.fromkeys((None, "a", "b"), 400) if named else {})
    conserved(client)


@pytest.mark.parametrize("spooled", [False, True])
def test_phantom_arguments_are_counted_and_bounded(
    make_client: MakeClient, spooled: bool, tmp_path: Path
) -> None:
    """A counter says how many calls had each, also by way of a disk, and names at most 100.

    A sign stands for the others: that many calls had one of them, or had more than are named.
    """
    transport, folder = MemoryTransport(), str(tmp_path) if spooled else None
    client = make_client(
        transport=transport, successes="folded", clock=lambda: 0.0, spool_dir=folder
    )
    for number in range(300):
        call = a_call()
        call.phantom_arguments = ("same", f"x{number}") if number % 3 else ()
        if number == 299:
            call.phantom_arguments += ("…",)
        client.on_call(call)
    assert client.flush()
    (counter,) = transport.events
    assert counter["calls"] == 300
    named = counter["phantom_arguments"]
    assert len(named) == 101
    assert (named["same"], named["…"], sum(named.values())) == (200, 101, 400)
    conserved(client)
