"""Conversations and turns through contexts, tasks and threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from tests.sdk.telemetry.conftest import Clock, MakeClient, a_call, a_failure, events_of

import toolfault
from toolfault.telemetry import Client
from toolfault.testing import MemoryTransport


def test_calls_carry_their_conversation(make_client: MakeClient) -> None:
    """Model, agent, user, variant, turn and tags of the conversation are on its calls."""
    transport = MemoryTransport()
    client = make_client(transport=transport, agent="default")
    with toolfault.conversation(
        "c1", model="m", agent="bot", user="u1", variant="before", turn="t0", tags={"team": "x"}
    ) as conversation:
        client.on_call(a_call())
        conversation.set_tags(step="two")
        with conversation.turn("t1"):
            client.on_call(a_call())
        client.on_call(a_call())
    client.on_call(a_call())
    assert client.flush()
    first, second, third, outside = transport.events
    assert first["session_id"] == "c1"
    assert (first["model"], first["agent"], first["user"]) == ("m", "bot", "u1")
    assert (first["variant"], first["turn"], first["tags"]) == ("before", "t0", {"team": "x"})
    assert (second["turn"], second["tags"]) == ("t1", {"team": "x", "step": "two"})
    assert third["turn"] == "t0"
    assert outside["agent"] == "default"
    assert "session_id" not in outside


def test_a_conversation_without_an_id_makes_one() -> None:
    """None makes a new id each time."""
    with toolfault.conversation() as first, toolfault.conversation(None) as second:
        assert first.id != second.id
        assert len(first.id) == 36


def test_blocks_nest_and_restore(make_client: MakeClient) -> None:
    """Leaving a block restores the conversation around it."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    client.on_call(a_call())
    with toolfault.conversation("outer"):
        with toolfault.conversation("inner"):
            client.on_call(a_call())
        client.on_call(a_call())
    client.on_call(a_call())
    assert client.flush()
    calls = events_of(transport, "tool_call")
    assert [call.get("session_id") for call in calls] == [None, "inner", "outer", None]


def test_inner_block_of_the_same_conversation_does_not_end_it(make_client: MakeClient) -> None:
    """A conversation that ends with its block ends with the outermost one."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    with toolfault.conversation("c1", ends=True):
        client.on_call(a_call(error=a_failure()))
        with toolfault.conversation("c1", ends=True):
            pass
        assert client.flush()
        assert events_of(transport, "conversation_end") == []
    assert client.flush()
    assert len(events_of(transport, "conversation_end")) == 1


def test_one_block_for_each_message_is_one_conversation(make_client: MakeClient) -> None:
    """A block with an id leaves the conversation open for the next one; one without an id ends."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    for error in (a_failure(), None):
        with toolfault.conversation("chat"):
            # One that took longer than the block would count as parallel to the call before it.
            client.on_call(a_call(error=error, duration_ms=0.0))
    with toolfault.conversation():
        client.on_call(a_call(error=a_failure()))
    assert client.flush()
    failed, recovered, alone = events_of(transport, "tool_call")
    assert (failed["session_id"], recovered["session_id"]) == ("chat", "chat")
    assert recovered["attempt"] == 2
    ends = events_of(transport, "conversation_end")
    assert [end["session_id"] for end in ends] == [alone["session_id"]]


def test_a_block_left_in_another_context_leaves_the_conversation_there(
    make_client: MakeClient,
) -> None:
    """A dependency entered in one thread and left in another wipes nobody's conversation."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    dependency = toolfault.conversation("dependency", ends=False)
    contextvars.copy_context().run(dependency.__enter__)
    turn = contextvars.copy_context().run(dependency.turn, "t1")
    with toolfault.conversation("request", turn="t0"):
        dependency.__exit__(None, None, None)
        turn.__exit__(None, None, None)
        client.on_call(a_call())
    client.on_call(a_call())
    assert client.flush()
    inside, outside = transport.events
    assert (inside["session_id"], inside["turn"]) == ("request", "t0")
    assert "session_id" not in outside


def test_blocks_may_be_left_in_any_order(make_client: MakeClient) -> None:
    """The one entered first and left first takes nothing of the other with it."""
    transport = MemoryTransport()
    client = make_client(transport=transport)
    first = toolfault.conversation("first", ends=True)
    second = toolfault.conversation("second", turn="t2", ends=True)
    first.__enter__()
    second.__enter__()
    client.on_call(a_call(error=a_failure()))
    first.__exit__(None, None, None)
    client.on_call(a_call(error=a_failure()))
    second.__exit__(None, None, None)
    client.on_call(a_call())
    assert client.flush()
    calls = events_of(transport, "tool_call")
    named = [(call.get("session_id"), call.get("turn")) for call in calls]
    assert named == [("second", "t2"), ("second", "t2"), (None, None)]
    assert [end["session_id"] for end in events_of(transport, "conversation_end")] == ["second"]


def test_bind_holds_without_a_block(make_client: MakeClient) -> None:
    """A bound conversation and its latest turn hold in their context, and only there."""
    transport = MemoryTransport()
    client = make_client(transport=transport)

    def bound() -> None:
        conversation = toolfault.conversation("c1").bind()
        conversation.turn("t1")
        conversation.turn("t2")
        client.on_call(a_call())

    contextvars.copy_context().run(bound)
    client.on_call(a_call())
    assert client.flush()
    inside, outside = transport.events
    assert (inside["session_id"], inside["turn"]) == ("c1", "t2")
    assert "session_id" not in outside


async def test_tasks_keep_their_own_conversation(make_client: MakeClient) -> None:
    """Concurrent tasks do not see each other's conversation, and inherit the one around them."""
    transport = MemoryTransport()
    client = make_client(transport=transport)

    async def talk(name: str) -> None:
        async with toolfault.conversation(name) as conversation:
            conversation.turn(f"turn of {name}")
            await asyncio.sleep(0)
            client.on_call(a_call(name))

    async def inherit() -> None:
        client.on_call(a_call("inherited"))

    await asyncio.gather(*(talk(f"c{number}") for number in range(20)))
    async with toolfault.conversation("around"):
        await asyncio.gather(inherit())
    assert client.flush()
    seen = {call["tool"]: call for call in events_of(transport, "tool_call")}
    for number in range(20):
        call = seen[f"c{number}"]
        assert (call["session_id"], call["turn"]) == (f"c{number}", f"turn of c{number}")
    assert seen["inherited"]["session_id"] == "around"


def test_threads_capture_at_once(make_client: MakeClient) -> None:
    """Eight threads capture into eight conversations; attempts and sequence numbers are right."""
    transport = MemoryTransport()
    client = make_client(transport=transport, clock=Clock())
    start = threading.Barrier(8)

    def work(number: int, client: Client = client) -> None:
        start.wait()
        with toolfault.conversation(f"c{number}"):
            for _ in range(50):
                client.on_call(a_call(error=a_failure()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.flush()
    events = events_of(transport, "tool_call")
    assert len({event["seq"] for event in events}) == len(events) == 400
    for number in range(8):
        mine = [event["attempt"] for event in events if event["session_id"] == f"c{number}"]
        assert mine == list(range(1, 51))


def test_threads_fold_at_once(make_client: MakeClient) -> None:
    """Successes folded by eight threads in shared and own conversations are counted exactly."""
    transport = MemoryTransport()
    client = make_client(transport=transport, successes="folded")
    client.on_call(a_call())
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        with toolfault.conversation(f"c{number % 4}", ends=False):
            for count in range(2_000):
                client.on_call(a_call(f"t{count % 3}"))
        for _ in range(500):
            client.on_call(a_call("alone"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close(20)
    calls = sum(event.get("calls", 0) for event in events_of(transport, "tool_call_counts"))
    assert calls == 1 + 8 * 2_500
    squares = sum(
        event["calls_squared"]
        for event in transport.events
        if event["type"] == "tool_call_counts" and "tool" not in event
    )
    assert squares == 4 * 4_000**2
