"""Durable failures per second through HTTP into SQLite, counted in the database afterwards.

    python benchmarks/ingest/durable.py [--events 40000]

Starts the real server (`toolfault serve`, `synchronous=FULL`) on a fresh file and sends batches of
100 over 8 connections, then single events over 32. The load generator shares the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from events import body, failures  # noqa: E402
from load import Result, request, run  # noqa: E402

SHAPES = ((100, 8), (1, 32))


def command(*arguments: str, url: str) -> str:
    """Run the `toolfault` of this environment and return what it prints."""
    tool = Path(sys.executable).parent / "toolfault"
    done = subprocess.run(
        [tool, *arguments, "--database-url", url], capture_output=True, text=True, check=True
    )
    return done.stdout


def wait_until_ready(port: int) -> None:
    """Wait until the server answers ``/readyz``."""
    until = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def line(result: Result, *, batch: int, connections: int, stored: int) -> dict[str, object]:
    """Return one result as it is printed."""
    return {
        "benchmark": "ingest",
        "engine": "sqlite",
        "batch": batch,
        "connections": connections,
        "failures_per_second": round(stored / result.seconds),
        "stored": stored,
        "statuses": result.statuses,
        "p50_ms": round(result.percentile(0.5), 1),
        "p99_ms": round(result.percentile(0.99), 1),
    }


def main() -> None:
    """Measure each shape of load on one server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=40_000)
    parser.add_argument("--port", type=int, default=8_390)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/toolfault.db"
        tool = Path(sys.executable).parent / "toolfault"
        with (Path(folder) / "server.log").open("w") as log:
            server = subprocess.Popen(
                [tool, "serve", "--port", str(chosen.port), "--database-url", url],
                stdout=log,
                stderr=log,
                env={**os.environ, "TOOLFAULT_LOG_LEVEL": "warning"},
            )
        try:
            wait_until_ready(chosen.port)
            key = command("keys", "create", "--project", "bench", "--kind", "ingest", url=url)
            key = key.strip().splitlines()[-1]
            before = 0
            for batch, connections in SHAPES:
                events = failures(
                    chosen.events if batch > 1 else chosen.events // 8, generator=random.Random(1)
                )
                batches = [events[at : at + batch] for at in range(0, len(events), batch)]
                requests = [request(body(events), key=key) for events in batches]
                result = run(chosen.port, requests, connections=connections)
                summary = json.loads(command("summary", "--project", "bench", "--json", url=url))
                stored, before = summary["failures"] - before, summary["failures"]
                shown = line(result, batch=batch, connections=connections, stored=stored)
                sys.stdout.write(json.dumps(shown) + "\n")
                sys.stdout.flush()
        finally:
            server.terminate()
            server.wait(15)


if __name__ == "__main__":
    main()
