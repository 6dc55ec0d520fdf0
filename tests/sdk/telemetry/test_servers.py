"""Servers and task queues that fork their workers: what their workers capture arrives (S7)."""

from __future__ import annotations

import http.client
import importlib.util
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.sdk.telemetry.collector import Server
from tests.sdk.telemetry.conftest import python

pytestmark = pytest.mark.slow

long = pytest.mark.long


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip where a package is missing; none of them is needed to work on toolfault."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: not installed")


@contextmanager
def running(
    folder: Path, dsn: str, *command: str, pass_fds: tuple[int, ...] = ()
) -> Iterator[subprocess.Popen[str]]:
    """Run a server in ``folder``; what it says goes into ``said``."""
    variables = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    with (folder / "said").open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            stdout=said,
            stderr=said,
            text=True,
            pass_fds=pass_fds,
            env={**os.environ, **variables, "TOOLFAULT_DSN": dsn},
        )
        try:
            yield server
        finally:
            server.kill()
            server.wait()


def ends(server: subprocess.Popen[str], folder: Path) -> None:
    """Ask a server to end, as a deployment does, and wait until it has."""
    server.send_signal(signal.SIGTERM)
    code = server.wait(60)
    assert code == 0, (folder / "said").read_text()


WEB = """
import os
import toolfault
import tests.sdk.telemetry.patient
toolfault.init()
@toolfault.tool
def add(a: int) -> int:
    return a
if os.environ.get("CALL_FIRST"):
    add.call({"a": 0})
def app(environ, respond):
    with toolfault.conversation(environ["PATH_INFO"]):
        for a in (1, 2, "x", 3):
            add.call({"a": a})
    respond("200 OK", [("Content-Length", "0"), ("Worker", str(os.getpid()))])
    return []
"""
# A configuration of gunicorn: each worker says when it listens to signals and takes requests.
SAYS_READY = """
import os
def post_worker_init(worker):
    os.write(int(os.environ["READY"]), b".")
"""


def visit(address: str, path: str) -> str:
    """Make one request, which waits until a worker takes it; return which one did."""
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(60)
    try:
        connection.sock.connect(address)
        connection.request("GET", path, headers={"Connection": "close"})
        answer = connection.getresponse()
        assert answer.status == 200
        return str(answer.headers["Worker"])
    finally:
        connection.close()


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe."""
    both = os.pipe()
    yield both
    for end in both:
        os.close(end)


@needs("gunicorn")
@pytest.mark.parametrize(
    ("kind", "start"),
    [
        pytest.param("sync", "", marks=long),
        pytest.param("sync", "preload", marks=long),
        ("sync", "preload and call"),
        pytest.param("gthread", "preload and call", marks=long),
        pytest.param("gevent", "", marks=[long, needs("gevent")]),
        pytest.param("gevent", "preload and call", marks=[long, needs("gevent")]),
    ],
)
def test_what_workers_of_gunicorn_capture_arrives(
    kind: str, start: str, collector: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls of every worker, and of those it replaces on the way, are stored once."""
    (tmp_path / "web.py").write_text(WEB)
    (tmp_path / "gunicorn.conf.py").write_text(SAYS_READY)
    if "call" in start:
        monkeypatch.setenv("CALL_FIRST", "yes")
    options = ["--workers", "2", "--worker-class", kind, "--max-requests", "8"]
    options += ["--preload"] if start else []
    address = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener, pipe() as (ready, say_ready):
        monkeypatch.setenv("READY", str(say_ready))
        listener.bind(address)
        listener.listen()
        inherited = listener.fileno()
        options += ["--bind", f"fd://{inherited}", "web:app"]
        with running(
            tmp_path, collector.dsn, "gunicorn", *options, pass_fds=(inherited, say_ready)
        ) as server:
            took = Counter(visit(address, f"/{number}") for number in range(20))
            # A worker that is not ready yet may miss the signal to end, and is killed much later.
            for _ in range(2 + sum(requests >= 8 for requests in took.values())):
                assert os.read(ready, 1)
            ends(server, tmp_path)
    assert collector.sessions_of_failures() == sorted(f"/{n}" for n in range(20))
    assert collector.calls() == 20 * 4 + ("call" in start)


TASKS = """
import os
import celery
import toolfault
import tests.sdk.telemetry.patient
if os.environ["INIT"] == "import":
    toolfault.init()
@toolfault.tool
def add(a: int) -> int:
    return a
app = celery.Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control"}
app.conf.worker_hijack_root_logger = False
@celery.signals.worker_process_init.connect
def begin(**_):
    if os.environ["INIT"] == "worker":
        toolfault.init()
@app.task
def work(number):
    with toolfault.conversation(f"c{number}"):
        for a in (1, 2, "x", 3):
            add.call({"a": a})
"""
SEND = "import sys, tasks\nfor number in range(20): tasks.work.delay(number)"


@needs("celery")
def test_a_worker_of_celery_delivers_before_it_ends(collector: Server) -> None:
    """A forked worker that ends by ``os._exit`` sends what it has when Celery tells it to end."""
    program = """
import os
import celery.signals
import toolfault
import tests.sdk.telemetry.patient
toolfault.init()
@toolfault.tool
def add(a: int) -> int:
    return a
if not (child := os.fork()):
    with toolfault.conversation("c"):
        for a in (1, 2, "x", 3):
            add.call({"a": a})
    celery.signals.worker_process_shutdown.send(sender=None, pid=os.getpid(), exitcode=0)
    os._exit(0)
os.waitpid(child, 0)
"""
    ended = python("-c", program, TOOLFAULT_DSN=collector.dsn)
    assert ended.returncode == 0, ended.stderr
    assert collector.sessions_of_failures() == ["c"]
    assert collector.calls() == 4


@needs("celery")
@long
@pytest.mark.parametrize("init", ["import", "worker"])
def test_what_workers_of_celery_capture_arrives(
    init: str, collector: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefork workers deliver what they have when Celery ends them, wherever ``init`` is called."""
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "queue").mkdir()
    monkeypatch.setenv("INIT", init)
    monkeypatch.chdir(tmp_path)
    options = ["-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "2"]
    options += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    options += ["--max-tasks-per-child", "7"]
    with running(tmp_path, collector.dsn, "celery", *options) as server:
        sent = python("-c", SEND, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
        assert sent.returncode == 0, sent.stderr
        collector.wait_for(lambda stored: len(stored.sessions_of_failures()) == 20)
        ends(server, tmp_path)
    assert collector.sessions_of_failures() == sorted(f"c{n}" for n in range(20))
    assert collector.calls() == 20 * 4, (tmp_path / "said").read_text()
