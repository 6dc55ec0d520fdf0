"""Goodput: what is stored per second while far more senders come than can be served.

    python benchmarks/ingest/overload.py [--postgresql] [--seconds N] [--senders N] [--rounds N]

Two loads take turns on one server: 8 connections, which it can serve, and --senders of them, none
of which waits after a refusal as an SDK would. Each prints one line of JSON; what is stored is
counted in the database. Beside them somebody reads: the summary of the project, over and over.

The promise (C7): under the second load at least 80 % of the first one's rate is stored, every
refusal is 429 or 503 and says when to come again, what is accepted takes a second at most (p99), a
reader waits a second at most (p95), and the server stays below 400 MiB.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import count_rows  # noqa: E402
from durable import Target, on_postgres, on_sqlite, show  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import request, run  # noqa: E402
from processes import new_key  # noqa: E402

FEW = 8
BATCH = 100
# More than any server here has stored; a load that runs out ends sooner.
REQUESTS_PER_SECOND = 150


class Reader(threading.Thread):
    """Somebody who asks for the summary until told to stop."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(name="reader", daemon=True)
        self._request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
        self._stop_reading = threading.Event()
        self.milliseconds: list[float] = []
        self.errors = 0

    def run(self) -> None:
        """Ask four times a second."""
        while not self._stop_reading.wait(0.25):
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(self._request, timeout=60) as answer:
                    answer.read()
            except OSError:
                self.errors += 1
            self.milliseconds.append((time.perf_counter() - began) * 1_000)

    def stop(self) -> None:
        """End after the question under way."""
        self._stop_reading.set()
        self.join(60)


def measure(target: Target, requests: list[bytes], *, connections: int, seconds: float) -> float:
    """Send over so many *connections* for a time; print and return what was stored per second."""
    server = target.servers[0]
    read_key = new_key(target.url, kind="read")
    reader = Reader(f"http://127.0.0.1:{server.port}/api/v1/summary", read_key)
    before, cpu = count_rows(target.url), server.cpu_seconds()
    reader.start()
    result = run(
        [server.port], requests, connections=connections, at_most_seconds=seconds, again=True
    )
    reader.stop()
    rows = {name: count - before[name] for name, count in count_rows(target.url).items()}
    stored = rows["tool_call"]
    if stored != BATCH * result.statuses.get(200, 0) or rows["counted"] != stored:
        message = f"rows and answers do not agree: {rows}, {result.statuses}"
        raise RuntimeError(message)
    if result.without_retry_after or set(result.statuses) - {200, 429, 503}:
        message = f"refused otherwise than promised: {result.statuses}"
        raise RuntimeError(message)
    waited = sorted(reader.milliseconds) or [0.0]
    show(
        benchmark="ingest overload",
        engine=target.url.partition(":")[0],
        connections=connections,
        failures_per_second=round(stored / result.seconds),
        accepted=result.statuses.get(200, 0),
        refused=result.refused,
        accepted_p99_ms=round(result.percentile(0.99, accepted=True), 1),
        reader_p95_ms=round(waited[int(0.95 * (len(waited) - 1))], 1),
        reader_errors=reader.errors,
        server_cpu_us_per_failure=round((server.cpu_seconds() - cpu) / stored * 1e6, 1),
        peak_mib=round(server.peak_mib()),
        in_database=before["tool_call"] + stored,
    )
    return stored / result.seconds


def main() -> None:
    """Run both loads in turns, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgresql", action="store_true", help="instead of SQLite")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run")
    parser.add_argument("--senders", type=int, default=300, help="connections of the overload")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    generator = random.Random(7)
    shares = []
    with ExitStack() as stack:
        target = on_postgres(stack, processes=1) if chosen.postgresql else on_sqlite(stack)
        bearer = {"Authorization": f"Bearer {target.key}"}
        for _ in range(chosen.rounds):
            rates = []
            for connections in (FEW, chosen.senders):
                source = failures(
                    int(chosen.seconds * REQUESTS_PER_SECOND) * BATCH, generator=generator
                )
                requests = [request(each, headers=bearer) for each in bodies(source, batch=BATCH)]
                rates.append(
                    measure(target, requests, connections=connections, seconds=chosen.seconds)
                )
            shares.append(rates[1] / rates[0])
    show(benchmark="ingest overload", goodput_share=round(statistics.median(shares), 2))


if __name__ == "__main__":
    main()
