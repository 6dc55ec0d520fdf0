"""Forks: the child neither hangs nor sends what is the parent's (S7)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import MakeClient, a_call, conserved, few_or_many, python

from toolfault.testing import MemoryTransport

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def child_ends(pid: int, seconds: int = 20) -> int:
    """Wait for a child and return its exit code; a hanging one is killed and fails the test."""
    timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        timer.cancel()


def in_child(work: Callable[[], object]) -> int:
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
    assert collector.sent_once()
    conserved(client)


class Holding:
    """Ids whose making can be held up: it happens inside the lock that all captures share."""

    def __init__(self) -> None:
        self.made = 0
        self.parent = os.getpid()
        self.held = threading.Event()
        self.release = threading.Event()
        self.is_holding = False

    def __call__(self, unix_seconds: float) -> str:
        """Make an id, when one may."""
        if self.is_holding and os.getpid() == self.parent:
            self.held.set()
            self.release.wait(60)
        self.made += 1
        return f"{os.getpid():08x}-0000-7000-8000-{self.made:012x}"


@few_or_many(2, 250)
@pytest.mark.parametrize("holder", ["a capture", "the sender"])
def test_forks_while_another_thread_is_in_the_middle(
    holder: str, times: int, collector: Server, make_client: MakeClient
) -> None:
    """Whatever another thread does at the fork, the child captures, sends and exits."""
    ids = Holding()
    client = make_client(collector.dsn, new_id=ids)
    client.on_call(a_call("before"))
    assert client.flush(10)

    def child() -> bool:
        client.on_call(a_call("child"))
        return client.flush(10)

    for _ in range(times):
        if holder == "a capture":
            ids.held.clear()
            ids.release.clear()
            ids.is_holding = True
            thread = threading.Thread(target=client.on_call, args=(a_call("meanwhile"),))
            thread.start()
            assert ids.held.wait(10)
            ids.is_holding = False
        else:
            begun = len(collector.requests)
            client.on_call(a_call("meanwhile"))
            collector.wait_for(lambda server, begun=begun: len(server.requests) > begun)  # type: ignore[misc]
        pid = in_child(child)
        assert child_ends(pid) == 0
        if holder == "a capture":
            ids.release.set()
            thread.join()
        assert client.flush(10)
    assert len(collector.events) == 2 * times + 1
    assert collector.sent_once()


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


@few_or_many(1, 50)
def test_fork_right_after_the_first_event(times: int, collector: Server) -> None:
    """A fork right after the first event, when the sender begins its work, is harmless."""
    for _ in range(times):
        done = python("-c", PROGRAM, collector.dsn)
        assert done.returncode == 0, done.stderr
    assert collector.calls() == 3 * times


LATE = """
import os, sys, threading
import toolfault
from importlib.abc import MetaPathFinder

toolfault.init(sys.argv[1])
loads, may_go_on = threading.Event(), threading.Event()

class Slow(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[3] and os.getpid() == parent:
            loads.set()
            may_go_on.wait(0.2)

parent = os.getpid()
sys.meta_path.insert(0, Slow())

def use():
    found = toolfault
    for name in sys.argv[2].split("."):
        found = getattr(found, name)

thread = threading.Thread(target=use)
thread.start()
assert loads.wait(60)
pid = os.fork()
if pid == 0:
    use()
    os._exit(0)
threading.Timer(5, os.kill, (pid, 9)).start()
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
may_go_on.set()
thread.join()
os._exit(abs(code))
"""


@pytest.mark.parametrize(
    ("name", "module"),
    [("validators.validate_url", "validators"), ("tools.ToolManager", "tools._manager")],
)
def test_fork_while_a_thread_uses_a_name_for_the_first_time(
    name: str, module: str, collector: Server
) -> None:
    """A public name may be loaded by one thread while another forks: the child can use it too."""
    done = python("-c", LATE, collector.dsn, name, f"toolfault.{module}")
    assert (done.returncode, done.stderr) == (0, "")


def test_child_leaves_the_spool_of_its_parent_alone(
    collector: Server, make_client: MakeClient, tmp_path: Path
) -> None:
    """A child writes a spool of its own; both are delivered, each event once."""
    client = make_client(collector.dsn, spool_dir=str(tmp_path))
    client.on_call(a_call("before"))

    def child() -> bool:
        client.on_call(a_call("child"))
        return client.flush(10)

    pid = in_child(child)
    client.on_call(a_call("after"))
    assert child_ends(pid) == 0
    assert client.flush(10)
    assert sorted(e["tool"] for e in collector.events.values()) == ["after", "before", "child"]


def test_child_makes_ids_of_its_own(make_client: MakeClient) -> None:
    """The random digits that a parent keeps for its next ids are not used by a child again."""
    client = make_client(transport=MemoryTransport(), clock=lambda: 0.0)

    def ids() -> list[str | None]:
        return [client.record_change("x", tool=None, kind="manual") for _ in range(100)]

    ids()
    reading, writing = os.pipe()
    pid = in_child(lambda: os.write(writing, ",".join(map(str, ids())).encode()))
    assert child_ends(pid) == 0
    os.close(writing)
    with os.fdopen(reading) as told:
        theirs = told.read().split(",")
    assert len(theirs) == 100
    assert not set(theirs) & set(ids())


def test_grandchild_works_too(collector: Server, make_client: MakeClient) -> None:
    """A fork of a fork has a client of its own again."""
    client = make_client(collector.dsn)
    client.on_call(a_call("before"))

    def grandchild() -> bool:
        client.on_call(a_call("grandchild"))
        return client.flush(10)

    def child() -> bool:
        client.on_call(a_call("child"))
        inner = in_child(grandchild)
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

    def watched(handler: Any, batch: dict[str, Any]) -> None:
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
