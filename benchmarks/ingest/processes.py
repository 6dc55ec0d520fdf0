"""Servers under measurement: started, waited for, watched through /proc, and ended."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")
SETTLED_SECONDS = 3
TOOLFAULT = str(Path(sys.executable).parent / "toolfault")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server process with its children.

    Args:
        command: What to run.
        port: Where it will answer.
        ready: A path that it answers with 200 once it is ready.
        folder: Where it runs and where its output goes.
        environment: Further variables.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        port: int,
        ready: str,
        folder: Path,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.port = port
        self._ready = f"http://127.0.0.1:{port}{ready}"
        self._command = list(command)
        self._folder = folder
        self._environment = environment or {}
        self._log = folder / f"server-{port}.log"

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        try:
            self._wait_until_ready(180)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(self._log.read_text(errors="replace")[-2_000:])
        self._end()

    def cpu_seconds(self) -> float:
        """Return the CPU time the processes have used so far."""
        total = 0
        for pid in self._pids():
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += sum(int(ticks) for ticks in stat[11:15])  # with children that have ended
        return total / TICKS

    def thread_seconds(self) -> dict[int, float]:
        """Return the CPU time of each thread that runs; the busiest bounds what Python can do."""
        found = {}
        for pid in self._pids():
            for task in Path(f"/proc/{pid}/task").iterdir():
                stat = (task / "stat").read_text().rpartition(")")[2].split()
                found[int(task.name)] = (int(stat[11]) + int(stat[12])) / TICKS
        return found

    def peak_mib(self) -> float:
        """Return the most memory the processes had resident (each process's own peak, summed)."""
        total = 0
        for pid in self._pids():
            status = Path(f"/proc/{pid}/status").read_text()
            found = re.search(r"VmHWM:\s+(\d+) kB", status)
            total += int(found[1]) if found else 0
        return total / 1_024

    def _pids(self) -> list[int]:
        pids, found = [], [self._process.pid]
        while found:
            pid = found.pop()
            pids.append(pid)
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        return pids

    def _wait_until_ready(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                with urllib.request.urlopen(self._ready, timeout=2):
                    return
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                    return  # it answers; nothing more is asked of a peer
                if self._process.poll() is not None or time.monotonic() > until:
                    message = f"the server did not start: {self._log.read_text()[-2_000:]}"
                    raise RuntimeError(message) from None
                time.sleep(0.1)

    def _end(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, signum)
                self._process.wait(20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def collector(database_url: str, folder: Path, **settings: str) -> Server:
    """Return a `toolfault serve` on *database_url*, not started yet."""
    port = free_port()
    return Server(
        [TOOLFAULT, "serve", "--port", str(port), "--database-url", database_url, "--migrate"],
        port=port,
        ready="/readyz",
        folder=folder,
        environment={"TOOLFAULT_LOG_LEVEL": "warning", **settings},
    )


def settle(servers: Sequence[Server]) -> None:
    """Wait until *servers* have done what they do at their start for a large project."""
    busy = True
    while busy:
        before = sum(server.cpu_seconds() for server in servers)
        time.sleep(SETTLED_SECONDS)
        busy = sum(server.cpu_seconds() for server in servers) - before > 0.1 * SETTLED_SECONDS


def new_key(database_url: str, *, project: str = "bench", kind: str = "ingest") -> str:
    """Return a new key of *project*."""
    command = [TOOLFAULT, "keys", "create", "--project", project, "--kind", kind]
    done = subprocess.run(
        [*command, "--database-url", database_url], capture_output=True, text=True, check=True
    )
    return done.stdout.strip().splitlines()[-1]
