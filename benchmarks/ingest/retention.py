"""How long agents wait while a history of a million calls is removed from PostgreSQL.

    python benchmarks/ingest/retention.py [--calls N] [--seconds N]

Fills a database with a history that is old by now, in one partition, and starts a real server on
it, to which four agents send a batch of 20 failures ten times a second each. They are timed for
some seconds alone, and then beside `toolfault prune`, which removes it. One line of JSON: how long
that took, how long requests took before and meanwhile, and what is stored afterwards. A run in
which anything but 200 is answered, a count is wrong afterwards, or the partition is not empty,
fails.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "queries")]

from databases import count_rows, postgres_database  # noqa: E402
from events import bodies, failures  # noqa: E402
from fill import fill  # noqa: E402
from processes import TOOLFAULT, Server, collector, new_key, settle  # noqa: E402

from toolfault_collector.clock import DAY_US, now_us  # noqa: E402
from toolfault_collector.retention.partitions import (  # noqa: E402
    drop_emptied,
    keep_ahead,
    list_partitions,
    newest_id,
)
from toolfault_collector.storage.database.engine import open_engine, write_transaction  # noqa: E402

AGENTS = 4
BATCH = 20
EVERY_SECONDS = 0.1


@dataclass
class Agents:
    """Agents that send at their own pace, and the milliseconds each answer took."""

    port: int
    key: str
    answers: list[tuple[float, float]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send while the block lasts."""
        threads = [threading.Thread(target=self._send, args=(n,)) for n in range(AGENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def between(self, begin: float, end: float) -> dict[str, float | int]:
        """Return how long the requests took that were under way between two moments."""
        took = sorted(ms for began, ms in self.answers if began < end and began + ms / 1e3 > begin)
        return {
            "requests": len(took),
            "p50_ms": round(took[len(took) // 2], 1),
            "p99_ms": round(took[len(took) * 99 // 100], 1),
            "most_ms": round(took[-1], 1),
        }

    def _send(self, number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        headers = {
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            "Authorization": f"Bearer {self.key}",
        }
        events = failures(10**9, generator=random.Random(number))
        due = time.perf_counter()
        while not self._stop.is_set():
            (body,) = bodies(itertools.islice(events, BATCH), batch=BATCH)
            began = time.perf_counter()
            connection.request("POST", "/v1/events", body, headers)
            answer = connection.getresponse()
            answer.read()
            self.answers.append((began, (time.perf_counter() - began) * 1_000))
            if answer.status != 200:
                self.refused.append(answer.status)
            due = max(due + EVERY_SECONDS, time.perf_counter())
            self._stop.wait(due - time.perf_counter())


def _begin_another(url: str) -> int:
    """Let the next call be the first of another partition; return how many calls there are."""
    engine = open_engine(url)
    with write_transaction(engine) as conn:
        high = min(part.high for part in list_partitions(conn) if part.high > newest_id(conn))
        conn.exec_driver_sql(f"SELECT setval('tool_call_id_seq', {high - 1})")
        calls = int(conn.exec_driver_sql("SELECT count(*) FROM tool_call").scalar_one())
    keep_ahead(engine)
    engine.dispose()
    return calls


def _measure(url: str, server: Server, seconds: float) -> dict[str, object]:
    agents = Agents(server.port, new_key(url))
    prune = [TOOLFAULT, "prune", "--days", "1", "--force", "--database-url", url]
    with agents.sending():
        time.sleep(3)  # connections, plans and the first partition's statistics
        begin = time.perf_counter()
        time.sleep(seconds)
        pruned = time.perf_counter()
        said = subprocess.run(prune, capture_output=True, text=True, check=True)
        done = time.perf_counter()
        print(f"{said.stderr}pruned within {done - pruned:.1f} s", file=sys.stderr)
        time.sleep(2)
    engine = open_engine(url)
    if len(drop_emptied(engine)) != 1:
        message = "the partition was not emptied"
        raise SystemExit(message)
    engine.dispose()
    if agents.refused:
        message = f"answered with {sorted(set(agents.refused))}"
        raise SystemExit(message)
    return {
        "prune_s": round(done - pruned, 2),
        "before": agents.between(begin, pruned),
        "meanwhile": agents.between(pruned, done),
        "sent": len(agents.answers) * BATCH,
    }


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=15.0)
    asked = parser.parse_args()
    with postgres_database() as (url, folder):
        fill(
            url,
            asked.calls,
            now=now_us() - 3 * DAY_US,
            say=lambda text: print(text, file=sys.stderr),
        )
        calls = _begin_another(url)
        with collector(url, folder) as server:
            settle([server])
            found = _measure(url, server, asked.seconds)
        left = count_rows(url)
    print(json.dumps({"mode": "retention", "calls": calls, **found, "left": left}))
    if {left["tool_call"], left["counted"]} != {found["sent"]}:
        message = f"{left} are left of {found['sent']} that were sent"
        raise SystemExit(message)


if __name__ == "__main__":
    main()
