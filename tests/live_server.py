"""A real ``toolfault serve`` for tests that talk to it over HTTP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LiveServer", "free_port", "live_server", "wait_until_ready"]

_SECONDS = 60.0


def free_port() -> int:
    """A port of the loopback address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_until_ready(address: str, process: subprocess.Popen[Any], log: Path) -> None:
    """Wait until *process* answers ``/readyz`` at *address*; show its log if it does not."""
    until = time.monotonic() + _SECONDS
    while True:
        assert process.poll() is None, f"the server stopped:\n{log.read_text(encoding='utf-8')}"
        assert time.monotonic() < until, f"no answer:\n{log.read_text(encoding='utf-8')}"
        try:
            with urllib.request.urlopen(f"{address}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            with_pause(process)


def with_pause(process: subprocess.Popen[Any]) -> None:
    """Wait a moment, or until *process* ends."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return


@dataclass(frozen=True)
class LiveServer:
    """A running server: where it listens, its database, its command, its process."""

    address: str
    database_url: str
    command: tuple[str, ...]
    environment: dict[str, str]
    cwd: Path
    log: Path
    process: subprocess.Popen[bytes]

    def run(self, *arguments: str) -> str:
        """Run the ``toolfault`` command on the server's database and return its output."""
        done = subprocess.run(
            [*self.command, *arguments],
            cwd=self.cwd,
            env={**self.environment, "TOOLFAULT_DATABASE_URL": self.database_url},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def summary(self, *arguments: str) -> dict[str, Any]:
        """What ``toolfault summary --json`` says."""
        return dict(json.loads(self.run("summary", *arguments, "--json")))

    def dsn(self, project: str) -> str:
        """A DSN with a new ingest key of *project*."""
        said = self.run("keys", "create", "--project", project, "--kind", "ingest")
        key = said.strip().splitlines()[-1].strip()
        return self.address.replace("http://", f"http://{key}@")


@contextmanager
def live_server(
    folder: Path, *, home: Path | None = None, database_url: str | None = None, **settings: str
) -> Iterator[LiveServer]:
    """Run a server in *folder* while the block lasts.

    Args:
        folder: Its working directory, where database and log are written.
        home: Environment whose ``toolfault`` is run; this one's by default.
        database_url: Its database; a new SQLite file in *folder* by default.
        settings: Further settings, as variables of its environment.
    """
    bin_folder = Path(sys.executable).parent if home is None else home / "bin"
    url = database_url or f"sqlite:///{folder / 'toolfault.db'}"
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLFAULT_")} | settings
    command = (str(bin_folder / "toolfault"),)
    log = folder / "server.log"
    address = f"http://127.0.0.1:{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "serve", "--port", str(port), "--database-url", url],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_ready(address, process, log)
            yield LiveServer(address, url, command, environment, folder, log, process)
        finally:
            process.terminate()
            process.wait(30)  # the server gives itself eight seconds, and the machine may be slow
