"""The example for clients in other languages: run by node, checked by the published schema."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sqlalchemy import select
from tests.running import RunningCollector

from toolfault_collector.http.openapi import json_schema
from toolfault_collector.storage.database.engine import open_engine
from toolfault_collector.storage.tables import tool_call

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "report.mjs"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def _run(url: str, key: str = "none") -> str:
    environment = {"PATH": os.environ["PATH"], "TOOLFAULT_URL": url, "TOOLFAULT_KEY": key}
    done = subprocess.run(
        [str(NODE), str(EXAMPLE)],
        env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@contextmanager
def _answering(*statuses: int) -> Iterator[tuple[str, list[Any]]]:
    """Listen, answer with these statuses in turn, and keep what was sent."""
    waiting, sent = list(statuses), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = b'{"accepted": 2, "duplicate": 0, "rejected": []}'
            self.send_response(waiting.pop(0))
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


def test_the_example_is_short_and_needs_nothing() -> None:
    """At most 100 lines, and what it imports is node's own."""
    lines = EXAMPLE.read_text("utf-8").splitlines()
    assert len(lines) <= 100
    imports = [line for line in lines if line.startswith("import ")]
    assert imports
    assert all("from 'node:" in line for line in imports)


def test_a_failure_of_a_javascript_agent_is_stored(sqlite_server: RunningCollector) -> None:
    """The failing call and the one that works are one chain of the collector."""
    assert _run(sqlite_server.url, sqlite_server.key) == "stored"
    engine = open_engine(sqlite_server.database_url)
    with engine.connect() as conn:
        query = select(tool_call).order_by(tool_call.c.call_id)
        failed, worked = conn.execute(query).mappings().all()
    engine.dispose()
    assert (failed["tool"], failed["code"], failed["session_id"]) == (
        *("book", "internal_error", "trip-7"),
    )
    assert failed["exception_message"] == "no seats left"
    assert (failed["agent"], failed["success"], worked["success"]) == ("travel-bot", False, True)
    assert worked["chain_id"] == failed["event_id"]


def test_what_it_sends_is_valid_and_sent_again() -> None:
    """A busy collector gets the same batch again, and each is what the schema asks for."""
    with _answering(503, 200) as (url, sent):
        assert _run(url) == "stored"
    assert len(sent) == 2
    assert sent[0] == sent[1]
    validator = Draft202012Validator(json_schema())
    assert [error.message for error in validator.iter_errors(sent[0])] == []


def test_a_refused_batch_is_not_sent_again() -> None:
    """A wrong key stays wrong."""
    with _answering(401) as (url, sent):
        assert _run(url) == "not stored"
    assert len(sent) == 1


def test_a_batch_is_kept_until_it_is_stored(tmp_path: Path) -> None:
    """Whatever the answer, the next time the same events go out; then there are none left."""
    script = tmp_path / "agent.mjs"
    script.write_text(f"""
        import {{ Reporter }} from {json.dumps(EXAMPLE.as_uri())};
        const reporter = new Reporter({{ url: process.env.TOOLFAULT_URL, key: 'k' }});
        await reporter.run({{ tool: 't', session: 's' }}, async () => 1);
        for (let flush = 0; flush < 8; flush += 1) console.log(await reporter.flush(1));
    """)
    with _answering(500, 401, 404, 502, 302, 413, 200) as (url, sent):
        done = subprocess.run(
            [str(NODE), str(script)],
            env={"PATH": os.environ["PATH"], "TOOLFAULT_URL": url},
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert done.stdout.split() == [*["false"] * 6, "true", "true"]
    assert sent == [sent[0]] * 7
    assert len(sent[0]["events"]) == 1
