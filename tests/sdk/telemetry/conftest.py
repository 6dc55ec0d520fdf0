"""Fixtures of the telemetry tests."""

from __future__ import annotations

import gzip
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.telemetry.collector import Server, running_collector

import toolfault
from toolfault.errors import Issue, ToolError
from toolfault.telemetry import Client, Limits, Response
from toolfault.testing import MemoryTransport
from toolfault.tools import CallRecord

QUICK = Limits(batch_seconds=0.01, backoff_base=0.01, backoff_cap=0.05, request_seconds=60.0)
SILENT = QUICK.with_(request_seconds=0.2, adopt_seconds=0.2)

MakeClient = Callable[..., Client]
Doctor = Callable[..., tuple[int, str]]

# A line of child programs: the end of the process may take a minute, however slow the machine is.
PATIENT = "import tests.sdk.telemetry.patient\n"

COMMAND = Path(toolfault.__file__).with_name("__main__.py")
HOST = "collector.test"  # a name that only the certificate, and a proxy, know


@pytest.fixture
def collector() -> Iterator[Server]:
    """An honest collector on a real socket."""
    with running_collector() as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for the collector, signed by itself, with its key in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    command += ["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    command += ["-addext", f"subjectAltName=DNS:{HOST},IP:127.0.0.1"]
    command += ["-keyout", str(folder / "key"), "-out", str(folder / "certificate")]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text((folder / "certificate").read_text() + (folder / "key").read_text())
    return both


@pytest.fixture
def secure(certificate: Path) -> Iterator[Server]:
    """A collector that speaks TLS."""
    with running_collector(certificate) as server:
        yield server


@pytest.fixture
def make_client(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeClient]:
    """Start clients; each replaces the one before, and holds the conservation law at the end."""
    made: list[Client] = []

    def make(dsn: str | None = None, *, limits: Limits | None = QUICK, **settings: Any) -> Client:
        toolfault.close(0.0)
        seams: dict[str, Any] = {"limits": limits}
        if "new_id" in settings:
            seams["new_id"] = settings.pop("new_id")
        with monkeypatch.context() as patch:
            patch.setattr(Client, "__init__", partialmethod(Client.__init__, **seams))
            client = toolfault.init(dsn, **{"successes": "all", **settings})
        assert client is not None
        made.append(client)
        return client

    yield make
    toolfault.close(0.2)
    for thread in threading.enumerate():
        if thread.name == "toolfault-sender":
            thread.join(20)  # what it says belongs to this test, not to the next one
    for client in made:
        conserved(client)


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """``python -m toolfault doctor``: its exit code and what it says."""

    def run(dsn: str | None) -> tuple[int, str]:
        code, said, _ = command(capsys, monkeypatch, "doctor", *(["--dsn", dsn] if dsn else []))
        return code, said

    return run


def command(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    stdin: str = "",
) -> tuple[int, str, str]:
    """Run ``python -m toolfault`` in this process; its exit code and what it wrote."""
    monkeypatch.setattr(sys, "argv", ["toolfault", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(COMMAND), run_name="__main__")
    written = capsys.readouterr()
    return int(ended.value.code or 0), written.out, written.err


def python(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter that finds the SDK, and the tests, as this one does."""
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=1_200,
        env={**os.environ, "PYTHONPATH": path, **variables},
    )


class Clock:
    """A clock the test moves."""

    def __init__(self, now: float = 1_790_000_000.0, step: float = 1.0) -> None:
        self.now = now
        self.step = step
        self.held = False  # while it is, the sender really waits

    def __call__(self) -> float:
        """Present time; every reading is a step later."""
        self.now += self.step
        return self.now


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes only when the sender waits, and then at once."""
    clock = Clock(step=0.0)
    wait = threading.Condition.wait

    def pass_by(condition: threading.Condition, timeout: float | None = None) -> bool:
        sender = threading.current_thread().name == "toolfault-sender"
        if timeout is None or clock.held or not sender:
            return wait(condition, timeout)
        clock.now += timeout
        return wait(condition, 0.0005)

    monkeypatch.setattr(threading.Condition, "wait", pass_by)
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


class Scripted(MemoryTransport):
    """Gives these answers (None: no answer) before it acknowledges.

    Attributes:
        at: When it was asked to send, in the time of the test.
        sizes: How many events each request held.
        asked: Set with the first request.
        acknowledged: Set with the first acknowledgement.
    """

    def __init__(self, *answers: Response | None) -> None:
        super().__init__()
        self.answers = list(answers)
        self.at: list[float] = []
        self.sizes: list[int] = []
        self.asked = threading.Event()
        self.acknowledged = threading.Event()

    def send(self, body: bytes, *, headers: Mapping[str, str], timeout: float) -> Response:
        """Give the next answer."""
        self.at.append(time.monotonic())
        self.sizes.append(len(json.loads(gzip.decompress(body))["events"]))
        self.asked.set()
        if self.answers:
            answer = self.answers.pop(0)
            if answer is None:
                raise ConnectionRefusedError
            return answer
        acknowledgement = super().send(body, headers=headers, timeout=timeout)
        self.acknowledged.set()
        return acknowledgement


def events_of(transport: MemoryTransport, kind: str) -> list[dict[str, Any]]:
    """Events of one type."""
    return [event for event in transport.events if event["type"] == kind]


def conserved(client: Client) -> None:
    """Assert the conservation law: what was captured is accounted for, to one."""
    stats = client.stats()
    known = stats.acked + stats.rejected + sum(stats.dropped.values()) + stats.pending
    assert stats.captured == known, stats


def a_call(tool: str = "http_request", **members: Any) -> CallRecord:
    """A finished call that succeeded, unless ``error`` is given."""
    given = {"started_at": 0.0, "duration_ms": 1.5, "arguments": {"port": 80}, **members}
    return CallRecord(tool, tool, success=given.get("error") is None, **given)


def a_failure(tool: str = "http_request", **members: Any) -> ToolError:
    """A failure with one issue."""
    issue = Issue(
        "port",
        "wrong_type",
        "Input should be a valid integer",
        expected="integer",
        received="'eighty'",
        received_type="str",
        type="int_parsing",
    )
    return ToolError.from_issues(tool, [issue]).with_(**members)


def few_or_many(few: int, many: int) -> pytest.MarkDecorator:
    """Give a heavy test its ``times``: ``few``, and ``many`` in ``make test-long``."""
    return pytest.mark.parametrize("times", [few, pytest.param(many, marks=pytest.mark.long)])


def segments(folder: Path) -> list[Path]:
    """Segments on disk."""
    return sorted(folder.rglob("*.seg"))
