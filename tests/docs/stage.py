"""What the blocks of the pages find: a server, keys, a project with failures, files to import."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import zstandard
from tests.collector.importers.fixtures import FIXTURES
from tests.dashboard.alerts.receiver import Receiver, receiving
from tests.docs.pages import ROOT
from tests.docs.terminal import Terminal
from tests.factories import change, failure
from tests.live_server import LiveServer, live_server
from tests.running import new_key

from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import now_us
from toolfault_collector.storage.database.engine import open_engine, write_transaction
from toolfault_collector.storage.store import store_events
from toolfault_dashboard.alerts.addresses import networks_of
from toolfault_dashboard.alerts.rules import read_rule
from toolfault_dashboard.alerts.store import make_channel, save_rule

__all__ = ["Stage", "clone", "run_program", "stage"]

# The project that a command means which names none.
_PROJECT = "default"
_LOOPBACK = "127.0.0.0/8"
_CHANGE = change(tool="search")


@dataclass
class Stage:
    """A running server and what a reader of a page has beside it.

    Attributes:
        told: What a page prints and its reader replaces: address, keys, ids.
        notes: What one block of a page leaves to the next.
    """

    server: LiveServer
    receiver: Receiver
    home: Path
    told: dict[str, str]
    environ: dict[str, str]
    notes: dict[str, Any] = field(default_factory=dict)

    def as_told(self, text: str) -> str:
        """*text* with the reader's own address, keys and ids."""
        for printed, own in self.told.items():
            text = text.replace(printed, own)
        return text

    def terminal(self) -> Terminal:
        """A new terminal in the clone."""
        return Terminal(self.home / "clone", dict(self.environ))

    def program(self, code: str) -> str:
        """Run *code* as a reader's agent and return what it prints."""
        return run_program(self.as_told(code), self.home, self.environ)

    def found(self, query: str) -> int:
        """How many failures of the project *query* finds."""
        return int(_asked(self.server, self.environ["READ_KEY"], "failures", query)["total"])


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Run a server in *folder* and make everything that the pages take for granted."""
    home = folder / "home"
    home.mkdir()
    clone(home / "clone")
    _transcripts(home)
    with live_server(folder, TOOLFAULT_ALERT_NETWORKS=_LOOPBACK) as server, receiving() as receiver:
        _fill(server.database_url, receiver)
        key = new_key(server.database_url, project=_PROJECT)
        reading = new_key(server.database_url, project=_PROJECT, kind="read")
        address = server.address.removeprefix("http://")
        environ = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "NO_COLOR": "1",
            "READ_KEY": reading,
            "TOOLFAULT_ALERT_NETWORKS": _LOOPBACK,
            "TOOLFAULT_DATABASE_URL": server.database_url,
            "TOOLFAULT_DSN": f"http://{key}@{address}",
        }
        told = {
            "127.0.0.1:8321": address,
            "http://KEY@": f"http://{key}@",
            "Bearer READ_KEY": f"Bearer {reading}",
            "tf_ingest_...": key,
            "0199a1f2-0000-7000-8000-000000000000": str(_CHANGE["event_id"]),
            "signature:9f3c": f"signature:{_signature(server, reading)[:12]}",
        }
        yield Stage(server, receiver, home, told, environ)


def clone(folder: Path) -> None:
    """Make *folder* look like a clone of this repository, as far as a reader needs it."""
    folder.mkdir()
    for name in ("pyproject.toml", "sdk", "demo", "Makefile", "requirements"):
        (folder / name).symlink_to(ROOT / name)


def run_program(code: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What *code* prints; a warning, or a word to the standard error, fails the test."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _fill(database_url: str, receiver: Receiver) -> None:
    engine = open_engine(database_url)
    failures = [failure(tool="mended"), failure(tool="search"), failure(code="timeout")]
    with write_transaction(engine) as conn:
        project = ensure_project(conn, _PROJECT)
        store_events(conn, project, [*failures, _CHANGE], received_at=now_us())
    # A threshold that few failures cannot pass: a preview need not measure a month.
    form = {"name": "my rule", "threshold": "99"}
    rule = read_rule(form, project_id=project, audience="system", now=now_us())
    save_rule(engine, rule, actor="ada")
    make_channel(
        engine, project, name="my channel", kind="webhook", url=receiver.url,
        allowed=networks_of(_LOOPBACK), actor="ada", now=now_us(),
    )  # fmt: skip
    engine.dispose()


def _asked(server: LiveServer, key: str, what: str, query: str) -> Any:
    return httpx2.get(
        f"{server.address}/api/v1/{what}",
        params={"q": query},
        headers={"Authorization": f"Bearer {key}"},
        timeout=60,
    ).json()


def _signature(server: LiveServer, key: str) -> str:
    """The signature of one kind of failure, in the place of that which a page has."""
    (found,) = _asked(server, key, "kinds", "tool:mended")["rows"]
    return str(found["fingerprint"])


def _transcripts(home: Path) -> None:
    """The files that the pages import."""
    texts = {each.name: each.text for each in FIXTURES}
    files = {
        "transcripts/a.json": texts["anthropic"],
        ".claude/projects/a/b.jsonl": texts["claude code"],
        "clone/results.json": texts["anthropic"],
        "clone/logs/2026.eval": texts["inspect log"],
        "clone/run.json": json.dumps({"input": _run()}),
    }
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "clone" / "agent.jsonl.gz").write_bytes(gzip.compress(texts["openai lines"].encode()))
    with (
        (home / "clone" / "runs.tar.zst").open("wb") as packed,
        zstandard.ZstdCompressor().stream_writer(packed) as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):
        archive.add(home / "clone" / "run.json", "run.json")


def _run() -> list[dict[str, Any]]:
    """Twelve calls as OpenAI Responses has them, of which three fail."""
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Y"}]},
    ]
    for number in range(12):
        call = {"call_id": f"call_{number}", "name": "book", "arguments": f'{{"day": {number}}}'}
        output = "Error: no city" if number < 3 else "booked"
        items += [
            {"type": "function_call", "id": f"fc_{number}", "status": "completed", **call},
            {"type": "function_call_output", "call_id": f"call_{number}", "output": output},
        ]
    return items
