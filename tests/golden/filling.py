"""The projects whose answers are frozen: five sets of real transcripts, and the demo.

Everything comes in through the ``toolfault`` command, so that the answers hold whatever becomes of
the modules behind it.
"""

from __future__ import annotations

import asyncio
import gzip
import http.server
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from toolfault_demo.history import live_through

__all__ = ["COMPARED", "DEMO", "NOW", "REAL", "files_of"]

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""When the data was taken in and is read: everything that depends on the clock sees it."""

REAL: Final = (
    "tau_bench_airline",
    "agentrx_tau_retail",
    "livemcpbench",
    "claude_code_sessions",
    "intercode_sql",
)
"""The folders of real transcripts, which are not part of the repository."""

DEMO: Final = "demo"
COMPARED: Final = {
    "intercode_sql": ("before=variant:before&after=variant:after",),
    DEMO: ("before=tool:http_request&after=tool:search_flights",),
}
"""Comparisons that are asked for, by source."""

DEMO_DAYS: Final = 7
DEMO_SEED: Final = 7


def files_of(source: str, data: Callable[[], Path], folder: Path) -> Path:
    """Return what ``toolfault import`` reads for *source*; what has to be made is put in *folder*.

    Args:
        source: One of `REAL`, or `DEMO`.
        data: Returns the folder of real transcripts, or skips the test where there is none.
        folder: Where files may be written.
    """
    if source == DEMO:
        return _demo(folder)
    transcripts = data() / source
    if source == "intercode_sql":
        return _lines(folder / f"{source}.ndjson", _intercode_events(transcripts))
    return transcripts


def _intercode_events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the recorded runs of InterCode-SQL as events: no format of an agent holds them."""
    moment = NOW - timedelta(days=10)
    for variant in ("before", "after"):
        recorded = json.loads((folder / f"{variant}.json").read_text(encoding="utf-8"))
        for index, task in recorded.items():
            history = task["turn_history"]
            attempts = zip(history["valid_action"], history["observations"], strict=True)
            for turn, (valid, observation) in enumerate(attempts):
                moment += timedelta(seconds=2)
                event: dict[str, Any] = {
                    "type": "tool_call",
                    "event_id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{variant}/{index}/{turn}")),
                    "occurred_at": moment.isoformat().replace("+00:00", "Z"),
                    "duration_ms": 100,
                    "session_id": f"{variant}:{index}",
                    "seq": turn,
                    "turn": f"t{turn}",
                    "tool": "execute_sql",
                    "model": "gpt-3.5-turbo",
                    "variant": variant,
                    "success": valid,
                }
                if not valid:
                    event["error"] = {
                        "code": "invalid_input",
                        "category": "parameter",
                        "audience": "llm",
                        "message": str(observation),
                        "renderings": {"llm": str(observation)},
                        "issues": [{"field": "query", "code": "invalid_input"}],
                    }
                yield event


def _lines(path: Path, events: Iterator[dict[str, Any]]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")
    return path


def _demo(folder: Path) -> Path:
    """Let the demo's agents live through their days and keep what their SDK sends."""
    path = folder / "demo.ndjson"
    lock = threading.Lock()

    class Sink(http.server.BaseHTTPRequestHandler):
        """Takes every batch, as a collector would, and writes it down."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Write one envelope down and acknowledge it."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            envelope = json.loads(body)
            with lock, path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(envelope) + "\n")
            answer = {"accepted": len(envelope["events"]), "duplicate": 0, "rejected": []}
            said = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            dsn = f"http://key@127.0.0.1:{server.server_address[1]}"
            until = NOW.timestamp()
            asyncio.run(live_through(dsn=dsn, seed=DEMO_SEED, until=until, days=DEMO_DAYS))
        finally:
            server.shutdown()
            thread.join()
    return path
