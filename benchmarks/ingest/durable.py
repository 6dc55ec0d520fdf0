"""Durable failures per second through HTTP, counted in the database afterwards.

    python benchmarks/ingest/durable.py [MODE...] [--events N] [--growth N] [--filled FILE]

Starts the real server (`toolfault serve`; SQLite with `synchronous=FULL`) on an empty database and
sends failures from this process, which shares the machine with it. Every mode prints one line of
JSON per run; a rate counts the rows that are in the database afterwards, with their issues, chains
and rollups, or the run fails.

    batches        100 failures per request over 8 connections
    single         one failure per request over 32 connections
    conversation   one conversation of 50,000 calls, 100 per request, one connection
    growth         batches until the database has --growth failures: last rate to first
    filled         batches into an empty database and into --filled, a file that queries/fill.py
                   has filled (and that grows by them), in turns: rate of the second to the first
    postgresql     batches into PostgreSQL, with one collector process and with two
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import count_rows, postgres_database, sqlite_database  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import Result, request, run  # noqa: E402
from machine import loop_ms  # noqa: E402
from processes import Server, collector, new_key, settle  # noqa: E402

MODES = ("batches", "single", "conversation", "growth", "filled", "postgresql")
GROWTH_STEP = 50_000
FILLED_ROUNDS = 4
FILLED_PROJECT = "shop"  # of queries/fill.py


@dataclass
class Target:
    """Running collectors on one database."""

    url: str
    servers: list[Server]
    key: str

    def measure(self, mode: str, events: Iterable[str], *, batch: int, connections: int) -> Result:
        """Send *events*, print what came of them, and return the run."""
        bearer = {"Authorization": f"Bearer {self.key}"}
        requests = [request(each, headers=bearer) for each in bodies(iter(events), batch=batch)]
        before = count_rows(self.url)
        cpu = sum(server.cpu_seconds() for server in self.servers)
        threads = self._threads()
        speed = [loop_ms()]
        result = run([server.port for server in self.servers], requests, connections=connections)
        cpu = sum(server.cpu_seconds() for server in self.servers) - cpu
        busiest = max(used - threads.get(thread, 0) for thread, used in self._threads().items())
        speed.append(loop_ms())
        rows = {name: count - before[name] for name, count in count_rows(self.url).items()}
        stored = rows["tool_call"]
        if not stored or rows["counted"] != stored or set(result.statuses) != {200}:
            message = f"rows and answers do not agree: {rows}, {result.statuses}"
            raise RuntimeError(message)
        show(
            benchmark=f"ingest {mode}",
            engine=self.url.partition(":")[0],
            processes=len(self.servers),
            batch=batch,
            connections=connections,
            failures_per_second=round(stored / result.seconds),
            p50_ms=round(result.percentile(0.5), 1),
            p99_ms=round(result.percentile(0.99), 1),
            server_cpu_us_per_failure=round(cpu / stored * 1e6, 1),
            busiest_thread_us_per_failure=round(busiest / stored * 1e6, 1),
            load_cpu_us_per_failure=round(result.cpu_seconds / stored * 1e6, 1),
            peak_mib=[round(server.peak_mib()) for server in self.servers],
            stored=rows,
            machine_ms=round(statistics.mean(speed), 1),
            in_database=before["tool_call"] + stored,
        )
        return result

    def _threads(self) -> dict[int, float]:
        return {k: v for server in self.servers for k, v in server.thread_seconds().items()}


def show(**line: object) -> None:
    """Print one result."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def on_sqlite(stack: ExitStack) -> Target:
    """Return a collector on a new SQLite file."""
    return _start(stack, stack.enter_context(sqlite_database()), processes=1)


def on_postgres(stack: ExitStack, *, processes: int) -> Target:
    """Return so many collectors on one new PostgreSQL database."""
    return _start(stack, stack.enter_context(postgres_database()), processes=processes)


def _start(stack: ExitStack, database: tuple[str, Path], *, processes: int) -> Target:
    url, folder = database
    servers = [stack.enter_context(collector(url, folder)) for _ in range(processes)]
    return Target(url, servers, new_key(url))


def batches(events: int) -> None:
    """100 failures per request over 8 connections."""
    with ExitStack() as stack:
        target = on_sqlite(stack)
        source = failures(events, generator=random.Random(1))
        target.measure("batches", source, batch=100, connections=8)


def single(events: int) -> None:
    """One failure per request over 32 connections."""
    with ExitStack() as stack:
        target = on_sqlite(stack)
        source = failures(events // 4, generator=random.Random(2))
        target.measure("single", source, batch=1, connections=32)


def conversation(calls: int = 50_000) -> None:
    """One conversation that never ends: the last fifth must cost what the first did."""
    with ExitStack() as stack:
        target = on_sqlite(stack)
        source = failures(calls, generator=random.Random(3), conversation="conv-endless")
        rates = [
            calls / 5 / target.measure("conversation", part, batch=100, connections=1).seconds
            for part in _parts(source, calls // 5)
        ]
    show(benchmark="ingest conversation", calls=calls, last_to_first=round(rates[-1] / rates[0], 2))


def growth(until: int) -> None:
    """Batches into a database that grows, each step measured."""
    rates = []
    with ExitStack() as stack:
        target = on_sqlite(stack)
        generator = random.Random(4)
        for _ in range(0, until, GROWTH_STEP):
            step = failures(GROWTH_STEP, generator=generator)
            seconds = target.measure("growth", step, batch=100, connections=8).seconds
            rates.append(GROWTH_STEP / seconds)
    edge = max(1, len(rates) // 5)
    first, last = sum(rates[:edge]) / edge, sum(rates[-edge:]) / edge
    show(benchmark="ingest growth", failures=until, last_to_first=round(last / first, 2))


def filled(path: Path | None) -> None:
    """Batches into an empty database and into a large one, in turns; the first of each warms up."""
    if path is None:
        return
    rates: tuple[list[float], list[float]] = ([], [])
    generator = random.Random(6)
    with ExitStack() as stack:
        empty = on_sqlite(stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        large = _start(stack, (f"sqlite:///{path.resolve()}", folder), processes=1)
        large.key = new_key(large.url, project=FILLED_PROJECT)  # beside what is there, not apart
        settle(large.servers)
        for _ in range(FILLED_ROUNDS):
            for mode, target, of_target in zip(
                ("empty", "filled"), (empty, large), rates, strict=True
            ):
                step = failures(GROWTH_STEP, generator=generator)
                seconds = target.measure(mode, step, batch=100, connections=8).seconds
                of_target.append(GROWTH_STEP / seconds)
    ratios = [large / empty for empty, large in zip(*rates, strict=True)][1:]
    show(benchmark="ingest filled", filled_to_empty=round(sum(ratios) / len(ratios), 2))


def postgresql(events: int) -> None:
    """Batches into PostgreSQL through one collector process, then through two."""
    for processes in (1, 2):
        with ExitStack() as stack:
            target = on_postgres(stack, processes=processes)
            source = failures(events, generator=random.Random(5))
            target.measure("batches", source, batch=100, connections=8)


def _parts(source: Iterator[str], size: int) -> Iterator[list[str]]:
    while part := list(itertools.islice(source, size)):
        yield part


def main() -> None:
    """Run the chosen modes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", nargs="*", choices=[[], *MODES], help="all of them by default")
    parser.add_argument("--events", type=int, default=60_000, help="failures per run")
    parser.add_argument("--growth", type=int, default=500_000, help="failures in the end")
    parser.add_argument("--filled", type=Path, help="a filled SQLite file, for the mode filled")
    chosen = parser.parse_args()
    wanted = chosen.mode or MODES
    for mode, measure in (
        ("batches", lambda: batches(chosen.events)),
        ("single", lambda: single(chosen.events)),
        ("conversation", conversation),
        ("growth", lambda: growth(chosen.growth)),
        ("filled", lambda: filled(chosen.filled)),
        ("postgresql", lambda: postgresql(chosen.events)),
    ):
        if mode in wanted:
            measure()


if __name__ == "__main__":
    main()
