"""Forks: the child neither hangs nor sends what is the parent's (S7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import MakeClient, a_call, conserved, few_or_many

from toolfault.telemetry import Client
from toolfault.telemetry._ids import uuid7

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def child_ends(pid: int, seconds: int = 20) -> int:
    """Wait for a child and return its exit code; a hanging one is killed and fails the test."""
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        timer.cancel()


def in_child(work) -> int:
    """Fork, run ``work`` in the child, and return the child's pid; 0 stands for success."""
    pid = os.fork()
    if pid:
        return pid
    try:
        code = 0 if work() else 1
    except BaseException:
        code = 2
    os._exit(code)


def test_child_sends_its_own_events_once(collector: Server, make_client: MakeClient) -> None:
    """Events captured before the fork are the parent's; those after it are the child's."""
    client = make_client(collector.dsn)
    for _ in range(5):
        client.on_call(a_call("before"))

    def child() -> bool:
        client.on_call(a_call("child"))
        return client.flush(10) and client.stats().captured == 1

    pid = in_child(child)
    client.on_call(a_call("after"))
    assert client.flush(10)
    assert child_ends(pid) == 0
    tools = sorted(event["tool"] for event in collector.events.values())
    assert tools == ["after", *["before"] * 5, "child"]
    everything = [event["event_id"] for _, batch in collector.requests for event in batch["events"]]
    assert len(everything) == len(set(everything))
    conserved(client)


@contextmanager
def held(lock) -> Iterator[None]:
    """Hold a lock in another thread."""
    taken, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(10)
    try:
        yield
    finally:
        release.set()
        thread.join()


def locks_of(client: Client) -> list:
    """Every lock of the SDK."""
    outbox = client._outbox
    return [outbox.lock, outbox.changed, outbox.settled, client._sender.importing]


@few_or_many(12, 500)
def test_forks_while_another_thread_holds_each_lock(
    times: int, collector: Server, make_client: MakeClient
) -> None:
    """Whatever lock another thread holds at the fork, the child captures, sends and exits."""
    client = make_client(collector.dsn)
    client.on_call(a_call("before"))
    assert client.flush(10)
    for number in range(times):
        with held(locks_of(client)[number % 4]):
            pid = in_child(lambda: client.on_call(a_call("child")) is None and client.flush(10))
            assert child_ends(pid) == 0
    assert len(collector.events) == times + 1
    sent = [event["event_id"] for _, batch in collector.requests for event in batch["events"]]
    assert len(sent) == len(set(sent))


PROGRAM = """
import os, sys
import toolfault
toolfault.init(sys.argv[1], successes="all")
@toolfault.tool
def add(a: int) -> int:
    return a
add.call({"a": "x"})
pid = os.fork()
add.call({"a": "y"})
delivered = toolfault.flush(10)
if pid == 0:
    os._exit(0 if delivered else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) or (0 if delivered else 2))
"""


@few_or_many(3, 50)
def test_fork_while_the_sender_loads_its_modules(times: int, collector: Server) -> None:
    """A fork right after the first event, when the sender imports what it needs, is harmless."""
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, collector.dsn],
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0
    assert collector.calls() == 3 * times


def test_child_leaves_the_spool_of_its_parent_alone(
    collector: Server, make_client: MakeClient, tmp_path
) -> None:
    """A child writes a spool of its own; both are delivered, each event once."""
    client = make_client(collector.dsn, spool_dir=str(tmp_path))
    client.on_call(a_call("before"))
    pid = in_child(lambda: client.on_call(a_call("child")) is None and client.flush(10))
    client.on_call(a_call("after"))
    assert child_ends(pid) == 0
    assert client.flush(10)
    assert sorted(e["tool"] for e in collector.events.values()) == ["after", "before", "child"]


def test_child_makes_ids_of_its_own() -> None:
    """The random digits that a parent keeps for its next ids are not used by a child again."""
    uuid7(0.0)
    reading, writing = os.pipe()
    pid = in_child(lambda: os.write(writing, ",".join(ids(100)).encode()))
    assert child_ends(pid) == 0
    os.close(writing)
    with os.fdopen(reading) as told:
        assert not set(told.read().split(",")) & set(ids(100))


def ids(count: int) -> list[str]:
    """New ids, all of one moment."""
    return [uuid7(0.0) for _ in range(count)]


def test_grandchild_works_too(collector: Server, make_client: MakeClient) -> None:
    """A fork of a fork has a client of its own again."""
    client = make_client(collector.dsn)
    client.on_call(a_call("before"))

    def child() -> bool:
        client.on_call(a_call("child"))
        inner = in_child(lambda: client.on_call(a_call("grandchild")) is None and client.flush(10))
        return client.flush(10) and child_ends(inner) == 0

    assert child_ends(in_child(child)) == 0
    assert client.flush(10)
    tools = sorted(event["tool"] for event in collector.events.values())
    assert tools == ["before", "child", "grandchild"]


def test_child_holds_no_connection_of_its_parent(
    collector: Server, make_client: MakeClient
) -> None:
    """The collector sees the parent's connection closed while the child lives on."""
    gone = threading.Event()
    behave_honestly = collector.default

    class Watch:
        """Tells when the thread that serves the parent's connection has ended."""

        def __del__(self) -> None:
            gone.set()

    def watched(handler, batch) -> None:
        handler.watch = Watch()
        behave_honestly(handler, batch)

    collector.default = watched
    client = make_client(collector.dsn)
    client.on_call(a_call("before"))
    assert client.flush(10)
    reading, writing = os.pipe()

    def wait_for_parent() -> bool:
        os.close(writing)
        return os.read(reading, 1) == b""

    pid = in_child(wait_for_parent)
    os.close(reading)
    try:
        client.close()
        assert gone.wait(10)
    finally:
        os.close(writing)
    assert child_ends(pid) == 0
