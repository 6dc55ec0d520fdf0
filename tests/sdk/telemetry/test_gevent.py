"""gevent: patched before ``init`` or after a fork, greenlets call tools, everything arrives."""

from __future__ import annotations

import importlib.util

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import python

AGENT = """
import gevent.monkey
gevent.monkey.patch_all()
import os, sys
import gevent
import toolfault
toolfault.init(sys.argv[1], successes=sys.argv[2])
@toolfault.tool
def add(a: int) -> int:
    gevent.sleep(0)
    return a
def work(name):
    with toolfault.conversation(name):
        for number in range(20):
            add.call({"a": number if number % 5 else "x"})
gevent.joinall([gevent.spawn(work, f"g{n}") for n in range(10)], raise_error=True)
pid = os.fork()
add.call({"a": 1})
assert toolfault.flush(20)
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""

WORKER = """
import atexit, os
import toolfault
from toolfault.testing import MemoryTransport
class Slow(MemoryTransport):
    def send(self, body, **options):
        asked.set()
        answered.wait()
        return super().send(body, **options)
transport = Slow()
atexit.register(lambda: print(len(transport.events)))
toolfault.init(transport=transport, successes="all")
@toolfault.tool
def add(a: int) -> int:
    return a
if os.fork():
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
import gevent.monkey
gevent.monkey.patch_all()
import gevent.event
asked, answered = gevent.event.Event(), gevent.event.Event()
add.call({"a": 1})
gevent.spawn(toolfault.flush)
asked.wait()
add.call({"a": 2})
answered.set()
"""

gevent = pytest.mark.skipif(
    importlib.util.find_spec("gevent") is None, reason="gevent is not installed"
)


@gevent
@pytest.mark.parametrize("successes", ["folded", pytest.param("all", marks=pytest.mark.long)])
def test_greenlets_report_every_call(successes: str, collector: Server) -> None:
    """Conversations belong to their greenlet, and no call is lost or counted twice."""
    done = python("-c", AGENT, collector.dsn, successes)
    assert done.returncode == 0, done.stderr
    assert collector.calls() == 10 * 20 + 2
    assert collector.sessions_of_failures() == sorted(4 * [f"g{n}" for n in range(10)])


@gevent
def test_a_worker_that_is_patched_after_its_fork_reports_every_call() -> None:
    """What it captures while it sends is sent at its end, though threads became greenlets."""
    done = python("-c", WORKER)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
