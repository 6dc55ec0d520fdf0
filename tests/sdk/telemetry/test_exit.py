"""Exit: bounded, with the host's own exit code, delivering what can be delivered (S9)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.sdk.telemetry import collector as behave
from tests.sdk.telemetry.collector import Server

AGENT = """
import os, signal, sys, time
import toolfault
from toolfault.errors import ToolError
toolfault.init(sys.argv[1], successes="all", spool_dir=sys.argv[3] or None)
@toolfault.tool
def add(a: int) -> int:
    return a
for number in range(5):
    add.call({"a": number})
    add.call({"a": "x"})
print(time.monotonic(), flush=True)
"""

ENDINGS = {
    "normal": ("", 0),
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
            "import ctypes; thread = toolfault.client()._sender._thread; "
            "kill = ctypes.pythonapi.PyThreadState_SetAsyncExc; "
            "kill(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)); thread.join(0.3)"
        ),
        0,
    ),
}
ABRUPT = {
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "os._exit": ("os._exit(5)", 5),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
}


def run_agent(dsn: str, ending: str, folder: Path, spool: str = "") -> tuple[int, float, str]:
    """Run an agent; return its exit code, how long its end took, and what it complained of."""
    program = folder / "agent.py"
    program.write_text(f"{AGENT}{ending}\n")
    agent = subprocess.run(
        [sys.executable, str(program), dsn, "", spool],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    # The monotonic clock is the machine's, so the agent's reading and ours can be compared.
    return agent.returncode, time.monotonic() - float(agent.stdout), agent.stderr


def expected(ending: str, code: int, folder: Path) -> int:
    """Return the exit code without the SDK's work, where the ending can run without a client."""
    return code if "client()" in ending else run_agent("", ending, folder)[0]


@pytest.mark.parametrize(("ending", "code"), ENDINGS.values(), ids=ENDINGS.keys())
def test_everything_is_delivered_at_exit(
    ending: str, code: int, collector: Server, tmp_path: Path
) -> None:
    """However the interpreter ends, all calls are stored and the exit code is the host's."""
    returned, _, said = run_agent(collector.dsn, ending, tmp_path)
    assert returned == expected(ending, code, tmp_path), said
    assert collector.calls() == (11 if "late" in ending else 10)


QUICK_ENDINGS = ("exception", "interrupt", "sender thread dead")
BOUNDED = [
    pytest.param(*end, id=name, marks=[] if name in QUICK_ENDINGS else [pytest.mark.long])
    for name, end in ENDINGS.items()
]


@pytest.mark.parametrize(("ending", "code"), BOUNDED)
def test_exit_is_bounded_against_a_black_hole(
    ending: str, code: int, collector: Server, tmp_path: Path
) -> None:
    """A collector that never answers holds the exit for two seconds at most."""
    collector.default = behave.silent
    returned, lasted, said = run_agent(collector.dsn, ending, tmp_path)
    assert returned == expected(ending, code, tmp_path), said
    assert lasted < 2.5 + 0.3


LAW = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(client.stats())))  # called last, being the first
import toolfault
client = toolfault.init(sys.argv[1], successes=sys.argv[2])
@toolfault.tool
def add(a: int) -> int:
    return a
with toolfault.conversation("c1", ends=False):
    for number in range(9):
        add.call({"a": number if number % 4 else "x"})
"""


@pytest.mark.parametrize("successes", ["all", "folded"])
@pytest.mark.parametrize(
    "behaviour",
    [behave.honest, behave.silent, behave.status(503), behave.reset, behave.status(401)],
    ids=["collector up", "black hole", "503", "resets", "401"],
)
def test_every_record_is_accounted_for_at_exit(
    behaviour: behave.Behaviour, successes: str, collector: Server
) -> None:
    """After the end nothing is pending: what was captured is acknowledged or dropped by reason."""
    collector.default = behaviour
    agent = subprocess.run(
        [sys.executable, "-c", LAW, collector.dsn, successes],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert agent.returncode == 0, agent.stderr
    captured, acked, rejected, dropped, pending = json.loads(agent.stdout)
    assert (pending, captured) == (0, acked + rejected + sum(dropped.values()))
    assert captured >= 9
    assert collector.calls() == (9 if behaviour is behave.honest else 0)
    assert (acked == captured) is (behaviour is behave.honest)


@pytest.mark.parametrize(("ending", "code"), ABRUPT.values(), ids=ABRUPT.keys())
@pytest.mark.parametrize("reachable", [True, False], ids=["collector up", "black hole"])
def test_abrupt_end_leaves_the_spool_to_the_next_process(
    ending: str, code: int, reachable: bool, collector: Server, tmp_path: Path
) -> None:
    """What no exit handler sees is delivered by the next process that uses the spool."""
    if not reachable:
        collector.default = behave.silent
    returned, lasted, said = run_agent(collector.dsn, ending, tmp_path, str(tmp_path))
    assert returned == code, said
    assert lasted < 2.5
    collector.default = behave.honest
    assert run_agent(collector.dsn, "", tmp_path, str(tmp_path))[0] == 0
    assert collector.calls() == 20
    assert not list(tmp_path.rglob("*.seg"))


CROWD = """
import os, sys, threading
import toolfault
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


@pytest.mark.parametrize("spool", [False, True], ids=["memory", "spool"])
@pytest.mark.parametrize("successes", ["folded", "all"])
def test_calls_of_threads_and_forks_are_exact(
    successes: str, spool: bool, collector: Server, tmp_path: Path
) -> None:
    """Threads that call while the process forks, children that call, a normal exit: all arrive."""
    program = tmp_path / "crowd.py"
    program.write_text(CROWD)
    folder = str(tmp_path / "spool") if spool else ""
    agent = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), collector.dsn, successes, folder],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert agent.returncode == 0, agent.stderr
    assert collector.calls() == 4 * 30 + 3 + 3 * 4 * 10
    failures = [event for event in collector.of_type("tool_call") if not event["success"]]
    assert len(failures) == 4 * 5 + 3 * 4 * 2 + 0


def test_without_a_dsn_nothing_is_started(tmp_path: Path) -> None:
    """Without a DSN the host runs as if the SDK were not there."""
    ending = "import threading; sys.exit(len(threading.enumerate()) - 1)"
    assert run_agent("", ending, tmp_path)[0] == 0
