"""The way of one batch of failures through the collector: calls, functions, files.

    python benchmarks/ingest/walk.py [--events N] [--before N] [--list]

Sends batches of failures of one tool, each of another conversation that goes on from batch to
batch, to a collector on a new SQLite file, in this process and without a network, and looks at the
last of them: what of the server's own code is entered from its request until its answer is sent and
the writer waits for the next. A coroutine or generator that goes on counts as a call. Of the first
failures much is made that later ones find made; `--before` says how many batches come before the
one that is looked at.

Prints one line of JSON; `--list` also prints every function and how often it was entered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import structlog
import uuid_utils

import toolfault_collector
import toolfault_migrations
from toolfault_collector.admin.keys import create_key
from toolfault_collector.admin.projects import ensure_project
from toolfault_collector.clock import format_time, now_us
from toolfault_collector.http.app import IngestLane, create_app
from toolfault_collector.runtime import Collector
from toolfault_collector.settings import Settings
from toolfault_collector.storage.database.engine import write_transaction

OWN = tuple(
    str(Path(str(package.__file__)).parent)
    for package in (toolfault_collector, toolfault_migrations)
)
WRITER = "toolfault-writer"


class Walk:
    """Notes every entry into the server's own code while it is `on`.

    Attributes:
        entered: The code entered, in order, and the thread that did.
        writer_waits: Set when the writer asks for work again.
    """

    def __init__(self) -> None:
        self.on = False
        self.entered: list[tuple[CodeType, str]] = []
        self.writer_waits = threading.Event()
        self._stored = False
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if not self.on or event != "call" or not code.co_filename.startswith(OWN):
            return
        thread = threading.current_thread().name
        if thread == WRITER and self.writer_waits.is_set():
            return  # it looks around for more work
        self.entered.append((code, thread))
        if thread == WRITER:
            self._stored |= code.co_qualname == "store_group"
            if self._stored and code.co_qualname == "FairQueue.take":
                self.writer_waits.set()


def batch(number: int, events: int) -> bytes:
    """Return a batch of failures, each the next retry in its conversation."""
    return json.dumps({"events": [failure(number, place) for place in range(events)]}).encode()


def failure(number: int, place: int) -> dict[str, Any]:
    """Return one failure of the batch *number*."""
    return {
        "type": "tool_call",
        "event_id": str(uuid_utils.uuid7()),
        "occurred_at": format_time(now_us()),
        "session_id": f"walk-{place}",
        "turn": f"turn-{number}",
        "tool": "http_request",
        "success": False,
        "error": {
            "code": "wrong_type",
            "category": "parameter",
            "audience": "llm",
            "field": "port",
            "issues": [{"code": "wrong_type", "field": "port"}],
            "renderings": {"llm": "port must be an integer"},
        },
    }


async def post(app: IngestLane, key: str, body: bytes) -> None:
    """Send *body* and see that it is accepted."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/events",
        "query_string": b"",
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {key}".encode()),
            (b"content-type", b"application/json"),
        ],
    }
    pending: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
    answers: list[Any] = []

    async def receive() -> Any:
        return pending.pop(0) if pending else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answers.append(message)

    await app(scope, receive, send)
    if answers[0]["status"] != 200 or b'"duplicate":0,"rejected":[]' not in answers[1]["body"]:
        raise RuntimeError(str(answers))


async def walk_of_the_last(collector: Collector, key: str, walk: Walk, bodies: list[bytes]) -> None:
    """Send *bodies* and look at the last."""
    app = IngestLane(create_app(collector.settings, collector=collector), collector)
    for body in bodies[:-1]:
        await post(app, key, body)
    walk.on = True
    await post(app, key, bodies[-1])
    await asyncio.to_thread(walk.writer_waits.wait, 20)
    walk.on = False


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=32, help="failures of a batch")
    parser.add_argument("--before", type=int, default=2, help="batches before the one looked at")
    parser.add_argument("--list", action="store_true", help="print every function")
    chosen = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(Settings(database_url=f"sqlite:///{folder}/walk.db"))
        collector.start()
        with write_transaction(collector.engine) as conn:
            key = create_key(conn, ensure_project(conn, "walk"), "ingest")
        bodies = [batch(number, chosen.events) for number in range(chosen.before + 1)]
        asyncio.run(walk_of_the_last(collector, key, walk, bodies))
        collector.stop()
    # A comprehension is a part of its function.
    functions = Counter(each for each in walk.entered if not each[0].co_name.startswith("<"))
    shown = {
        "benchmark": "ingest walk",
        "events": chosen.events,
        "before": chosen.before,
        "calls": len(walk.entered),
        "calls_per_event": round(len(walk.entered) / chosen.events, 1),
        "functions": len(functions),
        "files": len({code.co_filename for code, _ in functions}),
    }
    sys.stdout.write(json.dumps(shown) + "\n")
    if chosen.list:
        for (code, thread), times in functions.most_common():
            place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
            sys.stdout.write(f"{times:6} {thread:18} {place:26} {code.co_qualname}\n")


if __name__ == "__main__":
    main()
