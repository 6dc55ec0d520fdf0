"""Real servers for tests that talk to them over HTTP: a ``toolfault serve``, or one app."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from tests.starting import Program, completed

__all__ = ["LiveServer", "is_ready", "live_server", "served", "wait_until"]

_SECONDS = 90.0


def wait_until(
    listening: Callable[[str], bool], process: subprocess.Popen[Any] | Program, log: Path
) -> str:
    """Wait until *process* says in its *log* where it is *listening*, and return that address.

    Args:
        listening: Whether the server at an address is as far as it should be.
        process: The server.
        log: Where it writes to; shown if it ends or never gets so far.
    """
    until = time.monotonic() + _SECONDS
    while True:
        said = log.read_text(encoding="utf-8")
        found = re.search(r"toolfault listens on http://\S+:(\d+)\n", said)
        if found is not None and listening(address := f"http://127.0.0.1:{found[1]}"):
            return address
        assert process.poll() is None, f"the server stopped:\n{said}"
        assert time.monotonic() < until, f"no answer:\n{said}"
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


def is_ready(address: str) -> bool:
    """Whether the server at *address* stores events."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=5):
            return True
    except OSError:
        return False


@dataclass(frozen=True)
class LiveServer:
    """A running server: where it listens, its database, its command, its process."""

    address: str
    database_url: str
    command: tuple[str, ...]
    environment: dict[str, str]
    cwd: Path
    log: Path
    process: Program

    def run(self, *arguments: str) -> str:
        """Run the ``toolfault`` command on the server's database and return its output."""
        environ = {**self.environment, "TOOLFAULT_DATABASE_URL": self.database_url}
        done = completed(*self.command, *arguments, environ=environ, folder=self.cwd)
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
    folder: Path, *, database_url: str | None = None, **settings: str
) -> Iterator[LiveServer]:
    """Run a server in *folder* while the block lasts.

    Args:
        folder: Its working directory, where database and log are written.
        database_url: Its database; a new SQLite file in *folder* by default.
        settings: Further settings, as variables of its environment.
    """
    url = database_url or f"sqlite:///{folder / 'toolfault.db'}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOOLFAULT_")} | settings
    command = (str(Path(sys.executable).parent / "toolfault"),)
    log = folder / "server.log"
    log.touch()
    serve = ("serve", "--port", "0", "--database-url", url)
    process = Program(*command, *serve, environ=environment, folder=folder, log=log)
    try:
        address = wait_until(is_ready, process, log)
        yield LiveServer(address, url, command, environment, folder, log, process)
    finally:
        process.terminate()
        process.wait(60)  # the server gives itself eight seconds, and the machine may be slow


@contextmanager
def served(app: Any, **settings: Any) -> Iterator[str]:
    """The address of *app*, which a thread of this process serves while the block lasts.

    For what a server of its own process does not allow: to set its clock, to break it.
    """
    # Who connects before the server runs waits in the backlog: nobody has to poll for it.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = uvicorn.Server(uvicorn.Config(app, log_level="warning", **settings))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join()
