"""A real collector process for tests: started, killed, restarted, and never silent on failure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from tests.starting import Program

from toolfault_collector.admin.keys import KeyKind, create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.storage.database.engine import open_engine, write_transaction

__all__ = ["RunningCollector", "new_key"]

# A start takes a second or two; on a machine that runs several suites at once, longer.
READY_SECONDS = 90.0


def new_key(database_url: str, *, project: str = "demo", kind: KeyKind = "ingest") -> str:
    """A new key of *project*, made beside whatever is running."""
    engine = open_engine(database_url)
    try:
        with write_transaction(engine) as conn:
            return create_key(conn, ensure_project(conn, project), kind)
    finally:
        engine.dispose()


def _client(key: str) -> httpx2.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.Client(headers=headers, timeout=30, trust_env=False)


class RunningCollector:
    """``python -m toolfault_collector`` on a free port, the same one after a restart.

    Args:
        database_url: A database with the schema of today.
        folder: Where its output goes.
        program: What Python runs, in a copy of a process that imported the collector.
        environment: Further ``TOOLFAULT_*`` settings.
    """

    def __init__(
        self,
        database_url: str,
        *,
        folder: Path,
        program: Sequence[str] = (),
        **environment: str,
    ) -> None:
        self.database_url = database_url
        self.key = new_key(database_url)
        self.port = 0
        self._log = folder / f"collector-{id(self):x}.log"
        self._program = program
        self._environment = environment
        self._from = 0
        self._process: Program | None = None
        self.client = _client(self.key)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        self.kill()
        if error is not None:
            error.add_note(f"output of the collector:\n{self.output()[-4_000:]}")

    def of_project(self, project: str) -> RunningCollector:
        """The same process, as it is seen from now on with a new key of *project*."""
        seen = copy(self)
        seen._from = len(self._read_log())
        seen.key = new_key(self.database_url, project=project)
        seen.client = _client(seen.key)
        return seen

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    def start(self, **environment: str) -> None:
        """Start the process and wait until it is ready to store."""
        before = len(self.output())
        self.launch(**environment)
        self._wait_until_ready(before)

    def launch(self, **environment: str) -> None:
        """Start the process and wait for nothing."""
        settings = {
            "TOOLFAULT_DATABASE_URL": self.database_url,
            "TOOLFAULT_PORT": str(self.port),
            **self._environment,
            **environment,
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("TOOLFAULT_")}
        environ = {**inherited, **settings}
        program = self._program or ("-m", "toolfault_collector")
        self._process = Program(*program, environ=environ, folder=Path.cwd(), log=self._log)

    def post(self, *events: Any, key: str | None = None, **members: Any) -> httpx2.Response:
        """Send *events* as one batch."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        batch = {"schema_version": 1, "events": list(events), **members}
        return self.client.post(f"{self.url}/v1/events", json=batch, headers=headers)

    @property
    def dsn(self) -> str:
        """What an agent is given to report here."""
        return self.url.replace("http://", f"http://{self.key}@")

    def get(self, path: str) -> httpx2.Response:
        """Get *path*."""
        return self.client.get(f"{self.url}{path}")

    def kill(self) -> None:
        """End the process at once, with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def terminate(self) -> int:
        """End the process with SIGTERM and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait(60)

    def wait(self, seconds: float = 30) -> int:
        """Wait until the process ends and return its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def output(self) -> str:
        """Everything it wrote, or what it wrote since `of_project` was called."""
        return self._read_log()[self._from :].decode("utf-8", "replace")

    def _read_log(self) -> bytes:
        return self._log.read_bytes() if self._log.exists() else b""

    def _wait_until_ready(self, before: int) -> None:
        assert self._process is not None
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            listening = re.search(r'"url":"http://[^"]*:(\d+)"', self.output()[before:])
            if listening is not None:
                self.port = int(listening.group(1))
                try:
                    if self.get("/readyz").status_code == 200:
                        return
                except httpx2.TransportError:
                    pass
            self._pause()
        message = f"the collector did not become ready:\n{self.output()[-4_000:]}"
        raise AssertionError(message)

    def _pause(self) -> None:
        """Wait a moment, or until the process ends."""
        assert self._process is not None
        try:
            self._process.wait(0.02)
        except subprocess.TimeoutExpired:
            return
