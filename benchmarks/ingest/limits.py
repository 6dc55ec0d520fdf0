"""How far the collector is from what the machine can do: raw SQLite, and HTTP without work.

    python benchmarks/ingest/limits.py [--events N]

- ``raw sqlite``: the rows that the collector itself stored, written again by `executemany` into
  the same schema with the same pragmas, 400 failures a transaction (about what concurrent requests
  share). Nothing is decoded, checked, looked up or folded.
- ``no-op posts``: the same requests answered by the same server software without looking at them.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import sqlite_database  # noqa: E402
from durable import on_sqlite, show  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import request, run  # noqa: E402
from processes import Server, free_port  # noqa: E402

GROUP = 400
TABLES = (
    ("tool_call", GROUP),
    ("issue", GROUP),
    ("chain", GROUP // 2),
    ("conversation", GROUP // 2),
    ("signature", None),
    ("failure_counts", None),
)
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "cache_size=-65536",
    "wal_autocheckpoint=8000",
)


def raw_sqlite(events: int) -> None:
    """Write the rows of a real run again."""
    with ExitStack() as stack:
        target = on_sqlite(stack)
        source = failures(events, generator=random.Random(1))
        target.measure("batches", source, batch=100, connections=8)
        stored = Path(target.url.removeprefix("sqlite:///"))
        copy = stored.with_name("copy.db")
        with closing(sqlite3.connect(stored)) as conn:
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            rows = {name: conn.execute(f"SELECT * FROM {name}").fetchall() for name, _ in TABLES}
        shutil.copyfile(stored, copy)
        seconds, cpu = _write(copy, rows)
    show(
        benchmark="ingest limit",
        limit="raw sqlite",
        failures_per_second=round(events / seconds),
        cpu_us_per_failure=round(cpu / events * 1e6, 1),
    )


def _write(file: Path, rows: dict[str, list[tuple[object, ...]]]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds that inserting *rows* into an emptied *file* takes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        for name, _ in reversed(TABLES):
            conn.execute(f"DELETE FROM {name}")
        conn.execute("VACUUM")
        for pragma in PRAGMAS:
            conn.execute(f"PRAGMA {pragma}").fetchall()
        began, cpu = time.perf_counter(), time.process_time()
        for group in _groups(rows):
            conn.execute("BEGIN IMMEDIATE")
            for name, part in group:
                marks = ", ".join("?" * len(part[0]))
                conn.executemany(f"INSERT INTO {name} VALUES ({marks})", part)
            conn.execute("COMMIT")
        return time.perf_counter() - began, time.process_time() - cpu


def _groups(
    rows: dict[str, list[tuple[object, ...]]],
) -> Iterator[list[tuple[str, list[tuple[object, ...]]]]]:
    count = -(-len(rows["tool_call"]) // GROUP)
    for number in range(count):
        group = []
        for name, size in TABLES:
            share = size or -(-len(rows[name]) // count)
            if part := rows[name][number * share : (number + 1) * share]:
                group.append((name, part))
        yield group


def noop_posts(events: int) -> None:
    """Send the same requests to an application that answers without looking."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "noop:app", "--port", str(port)]
    command += ["--log-level", "critical", "--no-access-log", "--app-dir", str(HERE)]
    with (
        sqlite_database() as (_, folder),
        Server(command, port=port, ready="/", folder=folder) as (server),
    ):
        for batch, connections in ((100, 8), (1, 32)):
            source = failures(events if batch > 1 else events // 4, generator=random.Random(1))
            requests = [request(each) for each in bodies(source, batch=batch)]
            cpu = server.cpu_seconds()
            result = run([port], requests, connections=connections)
            show(
                benchmark="ingest limit",
                limit="no-op posts",
                batch=batch,
                connections=connections,
                requests_per_second=round(len(requests) / result.seconds),
                p99_ms=round(result.percentile(0.99), 1),
                cpu_us_per_request=round((server.cpu_seconds() - cpu) / len(requests) * 1e6),
            )


def main() -> None:
    """Measure both limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=60_000)
    chosen = parser.parse_args()
    raw_sqlite(chosen.events)
    noop_posts(chosen.events)


if __name__ == "__main__":
    main()
