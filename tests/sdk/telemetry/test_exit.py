"""Exit: bounded, with the host's own exit code, delivering what can be delivered (S9)."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import PATIENT, python

long = pytest.mark.long

AGENT = """
import os, signal, sys
import toolfault
from toolfault.errors import ToolError
toolfault.init(sys.argv[1] or None, successes="all", spool_dir=sys.argv[3] or None)
@toolfault.tool
def add(a: int) -> int:
    return a
for number in range(5):
    add.call({"a": number})
    add.call({"a": "x"})
"""

ENDINGS = {
    "exception": ("raise RuntimeError('the host failed')", 1),
    "sys.exit": ("sys.exit(7)", 7),
    "interrupt": ("raise KeyboardInterrupt", -signal.SIGINT),
    "SIGTERM handled by the host": (
        (
            "signal.signal(signal.SIGTERM, lambda *a: sys.exit(3)); "
            "os.kill(os.getpid(), signal.SIGTERM)"
        ),
        3,
    ),
    "captured in another exit handler": (
        "import atexit; atexit.register(lambda: add.call({'a': 'late'}))",
        0,
    ),
    "closed twice": ("toolfault.close(); toolfault.close()", 0),
    "sender thread dead": (
        (
            "import socket, threading\n"
            "died, connect = threading.Event(), socket.create_connection\n"
            "def die(*address):\n"
            "    socket.create_connection = connect\n"
            "    died.set()\n"
            "    raise SystemExit\n"
            "socket.create_connection = die\n"
            "while not died.is_set(): toolfault.flush(0.05)"
        ),
        0,
    ),
}
ABRUPT = {
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "os._exit": ("os._exit(5)", 5),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


def run_agent(
    dsn: str, ending: str, folder: Path, spool: str = "", start: str = PATIENT
) -> tuple[int, str]:
    """Run an agent; return its exit code, and what it complained of."""
    program = folder / "agent.py"
    program.write_text(f"{start}{AGENT}{ending}\n")
    agent = python(str(program), dsn, "", spool)
    return agent.returncode, agent.stderr


def but_for(quick: Iterable[str]) -> list[object]:
    """All endings, those that are not named in the long suite alone."""
    return [
        pytest.param(*end, id=name, marks=[] if name in quick else long)
        for name, end in ENDINGS.items()
    ]


@pytest.mark.parametrize(
    ("ending", "code"), but_for(ENDINGS.keys() - {"sys.exit", "interrupt", "closed twice"})
)
def test_everything_is_delivered_at_exit(
    ending: str, code: int, collector: Server, tmp_path: Path
) -> None:
    """However the interpreter ends, all calls are stored and the exit code is the host's."""
    returned, said = run_agent(collector.dsn, ending, tmp_path)
    assert returned == code, said
    assert collector.calls() == (11 if "late" in ending else 10)


@pytest.mark.parametrize(("ending", "code"), but_for({"interrupt"}))
def test_a_black_hole_does_not_keep_the_process(
    ending: str, code: int, collector: Server, tmp_path: Path
) -> None:
    """A collector that never answers lets every end happen, with the exit code of the host.

    How long it may be held is what ``test_delivery.py`` says of closing.
    """
    collector.default = behave.silent
    returned, said = run_agent(collector.dsn, ending, tmp_path, start="")
    assert returned == code, said
    assert collector.calls() == 0


LAW = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(client.stats())))  # called last, being the first
{start}import toolfault
client = toolfault.init(sys.argv[1], successes=sys.argv[2])
@toolfault.tool
def add(a: int) -> int:
    return a
with toolfault.conversation("c1", ends=False):
    for number in range(9):
        add.call({{"a": number if number % 4 else "x"}})
"""


@pytest.mark.parametrize(
    ("behaviour", "successes"),
    [
        pytest.param(behave.honest, "folded", id="collector up, folded"),
        pytest.param(behave.honest, "all", id="collector up, all", marks=long),
        pytest.param(behave.silent, "folded", id="black hole, folded", marks=long),
        pytest.param(behave.silent, "all", id="black hole, all", marks=long),
        pytest.param(behave.status(503), "folded", id="503, folded", marks=long),
        pytest.param(behave.reset, "all", id="resets, all", marks=long),
        pytest.param(behave.status(401), "all", id="401, all"),
    ],
)
def test_every_record_is_accounted_for_at_exit(
    behaviour: behave.Behaviour, successes: str, collector: Server
) -> None:
    """After the end nothing is pending: what was captured is acknowledged or dropped by reason."""
    collector.default = behaviour
    start = PATIENT if behaviour is behave.honest else ""
    agent = python("-c", LAW.format(start=start), collector.dsn, successes)
    assert agent.returncode == 0, agent.stderr
    captured, acked, rejected, dropped, pending = json.loads(agent.stdout)
    assert (pending, captured) == (0, acked + rejected + sum(dropped.values()))
    assert captured >= 9
    assert collector.calls() == (9 if behaviour is behave.honest else 0)
    assert (acked == captured) is (behaviour is behave.honest)


@pytest.mark.parametrize(
    ("end", "reachable"),
    [
        ("SIGKILL", False),
        ("SIGTERM", True),
        *(pytest.param(*case, marks=long) for case in (("SIGKILL", True), ("SIGTERM", False))),
        *(pytest.param("os._exit", reachable, marks=long) for reachable in (True, False)),
    ],
)
def test_abrupt_end_leaves_the_spool_to_the_next_process(
    end: str, reachable: bool, collector: Server, tmp_path: Path
) -> None:
    """What no exit handler sees is delivered by the next process that uses the spool."""
    ending, code = ABRUPT[end]
    if not reachable:
        collector.default = behave.silent
    returned, said = run_agent(collector.dsn, ending, tmp_path, str(tmp_path))
    assert returned == code, said
    collector.default = behave.honest
    assert run_agent(collector.dsn, "", tmp_path, str(tmp_path))[0] == 0
    assert collector.calls() == 20
    assert not list(tmp_path.rglob("*.seg"))


CROWD = """
import os, sys, threading
import toolfault
import tests.sdk.telemetry.patient
toolfault.init(sys.argv[1], successes=sys.argv[2], spool_dir=sys.argv[3] or None)
@toolfault.tool
def add(a: int) -> int:
    return a
def work(name, calls):
    with toolfault.conversation(name):
        for number in range(calls):
            add.call({"a": number if number % 7 else "x"})
def crowd(name, calls):
    threads = [threading.Thread(target=work, args=(f"{name}-{n}", calls)) for n in range(4)]
    for thread in threads:
        thread.start()
    return threads
threads = crowd("before", 30)
children = []
for number in range(3):
    pid = os.fork()
    if not pid:
        for thread in crowd(f"child{number}", 10):
            thread.join()
        os._exit(0 if toolfault.close(20) else 1)
    children.append(pid)
    add.call({"a": number})
for thread in threads:
    thread.join()
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


@pytest.mark.parametrize(
    ("successes", "spool"),
    [
        ("folded", False),
        pytest.param("folded", True, marks=long),
        pytest.param("all", False, marks=long),
        ("all", True),
    ],
)
def test_calls_of_threads_and_forks_are_exact(
    successes: str, spool: bool, collector: Server, tmp_path: Path
) -> None:
    """Threads that call while the process forks, children that call, a normal exit: all arrive."""
    folder = str(tmp_path / "spool") if spool else ""
    agent = python("-c", CROWD, collector.dsn, successes, folder)
    assert agent.returncode == 0, agent.stderr
    assert collector.calls() == 4 * 30 + 3 + 3 * 4 * 10
    assert len(collector.sessions_of_failures()) == 4 * 5 + 3 * 4 * 2


def test_without_a_dsn_nothing_is_started(tmp_path: Path) -> None:
    """Without a DSN the host runs as if the SDK were not there."""
    ending = "import threading; sys.exit(len(threading.enumerate()) - 1)"
    assert run_agent("", ending, tmp_path)[0] == 0
