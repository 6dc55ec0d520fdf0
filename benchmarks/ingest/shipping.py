"""What copying events to ClickHouse costs a collector, how fast it is, and how far it is behind.

    python benchmarks/ingest/shipping.py [cost] [pace] [behind] [--events N]

    cost    batches of 100 failures are stored in turns in two databases, one of which has an
            outbox: the median ratio of a pair, on SQLite and on PostgreSQL. Nothing is shipped.
    pace    a collector on PostgreSQL takes batches over HTTP; then another PostgreSQL's outbox of
            as many failures is shipped, with nobody sending: the second rate to the first.
    behind  a collector on PostgreSQL takes batches over HTTP and ships meanwhile: how old what
            ClickHouse shows is, asked ten times a second, and when nothing waits any more.

ClickHouse runs in the process of the collector (chdb), so it takes its part of the same cores; on
its own machine it would not. One line of JSON for each result.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from databases import postgres_database, sqlite_database  # noqa: E402
from durable import show  # noqa: E402
from events import bodies, failures  # noqa: E402
from load import request, run  # noqa: E402
from processes import Server, collector, new_key  # noqa: E402
from sqlalchemy import Engine, make_url, text  # noqa: E402

from toolfault_collector.admin.projects import ensure_project  # noqa: E402
from toolfault_collector.clickhouse import outbox  # noqa: E402
from toolfault_collector.clickhouse.database import open_events, prepare_events  # noqa: E402
from toolfault_collector.clickhouse.shipper import Shipper  # noqa: E402
from toolfault_collector.clock import now_us  # noqa: E402
from toolfault_collector.storage.database.engine import (  # noqa: E402
    open_engine,
    read_connection,
    write_transaction,
)
from toolfault_collector.storage.database.schema import prepare  # noqa: E402
from toolfault_collector.storage.store import store_events  # noqa: E402

MODES = ("cost", "pace", "behind")
BATCH = 100
ROUNDS = 200
WARM_UP = 20
POLL_SECONDS = 0.1
EVENTS_URL = "clickhousedb:///default?interface=chdb&path={}"


@contextmanager
def _two(name: str) -> Iterator[tuple[str, str]]:
    """Yield the URLs of two empty databases of an engine."""
    if name == "sqlite":
        with sqlite_database() as (one, _), sqlite_database() as (other, _):
            yield one, other
        return
    with postgres_database() as (url, _):
        server = make_url(url).set(drivername="postgresql+psycopg")
        engine = open_engine(server.render_as_string(hide_password=False))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.execute(text("CREATE DATABASE other"))
        engine.dispose()
        other = make_url(url).set(database="other").render_as_string(hide_password=False)
        yield url, other


def _prepared(url: str) -> tuple[Engine, int]:
    engine = open_engine(url)
    prepare(engine, migrate=True)
    with write_transaction(engine) as conn:
        return engine, ensure_project(conn, "bench")


def _store(engine: Engine, project: int, events: list[str]) -> float:
    """Store *events* as a collector does; return the seconds."""
    read = [json.loads(each) for each in events]
    began = time.perf_counter()
    with write_transaction(engine) as conn:
        store_events(conn, project, read, received_at=now_us())
    return time.perf_counter() - began


def _batches(count: int, seed: int) -> Iterator[list[str]]:
    source = iter(failures(count, generator=random.Random(seed)))
    while batch := [each for _, each in zip(range(BATCH), source, strict=False)]:
        yield batch


def cost() -> None:
    """Store batches in turns with an outbox and without."""
    for name in ("sqlite", "postgresql"):
        with _two(name) as urls:
            both = [_prepared(url) for url in urls]
            with write_transaction(both[1][0]) as conn:
                outbox.install(conn)
            taken: tuple[list[float], list[float]] = ([], [])
            for number, batch in enumerate(_batches(BATCH * ROUNDS, seed=1)):
                for place in (0, 1) if number % 2 else (1, 0):
                    taken[place].append(_store(*both[place], batch) / BATCH * 1e6)
            for engine, _ in both:
                engine.dispose()
        ratios = [after / before for before, after in zip(*taken, strict=True)][WARM_UP:]
        low, _, high = statistics.quantiles(ratios, n=4)
        show(
            benchmark="outbox cost",
            engine=name,
            pairs=len(ratios),
            us_per_failure=[round(statistics.median(each[WARM_UP:]), 1) for each in taken],
            ratio=round(statistics.median(ratios), 3),
            quartiles=[round(low, 3), round(high, 3)],
        )


def _sent(server: Server, url: str, events: int, seed: int) -> float:
    """Send *events* failures to *server*; return how many a second were accepted."""
    bearer = {"Authorization": f"Bearer {new_key(url)}"}
    source = failures(events, generator=random.Random(seed))
    requests = [request(each, headers=bearer) for each in bodies(iter(source), batch=BATCH)]
    result = run([server.port], requests, connections=8)
    if set(result.statuses) != {200}:
        message = f"some were refused: {result.statuses}"
        raise RuntimeError(message)
    return events / result.seconds


def pace(events: int) -> None:
    """Ship what a collector of PostgreSQL stored, beside the rate at which one takes it."""
    with postgres_database() as (url, folder), collector(url, folder) as server:
        accepted = _sent(server, url, events, seed=2)
    with postgres_database() as (url, _), tempfile.TemporaryDirectory() as files:
        engine, project = _prepared(url)
        with write_transaction(engine) as conn:
            outbox.install(conn)
        for batch in _batches(events, seed=2):
            _store(engine, project, batch)
        columnar = open_events(EVENTS_URL.format(files))
        prepare_events(columnar)
        began, used = time.perf_counter(), time.process_time()
        rows = Shipper(engine, columnar).ship_all()
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
        columnar.dispose()
        engine.dispose()
    show(
        benchmark="shipping pace",
        failures=events,
        accepted_per_second=round(accepted),
        shipped_per_second=round(events / seconds),
        rows_per_second=round(rows / seconds),
        shipper_cpu_us_per_failure=round(cpu / events * 1e6, 1),
        shipped_to_accepted=round(events / seconds / accepted, 2),
    )


def behind(events: int) -> None:
    """Say how old what ClickHouse shows is while a collector takes events."""
    lags: list[float] = []
    stop = threading.Event()

    def watch(engine: Engine) -> None:
        while not stop.wait(POLL_SECONDS):
            with read_connection(engine) as conn:
                until = outbox.shipped_until(conn)
            if until != 0:  # else what was there at first is still being copied
                lags.append(0.0 if until is None else (now_us() - until) / 1e6)

    with postgres_database() as (url, folder):
        files = f"{folder}/clickhouse"
        with collector(url, folder, TOOLFAULT_EVENTS_URL=EVENTS_URL.format(files)) as server:
            engine = open_engine(url)
            watching = threading.Thread(target=watch, args=(engine,))
            watching.start()
            accepted = _sent(server, url, events, seed=3)
            ended = time.perf_counter()
            while True:
                with read_connection(engine) as conn:
                    if outbox.shipped_until(conn) is None:
                        break
                time.sleep(POLL_SECONDS)
            drained = time.perf_counter() - ended
            stop.set()
            watching.join()
            engine.dispose()
            memory = server.peak_mib()
    lags.sort()
    show(
        benchmark="shipping behind",
        failures=events,
        accepted_per_second=round(accepted),
        behind_seconds={
            name: round(lags[min(len(lags) - 1, int(part * len(lags)))], 1)
            for name, part in (("p50", 0.5), ("p95", 0.95), ("most", 1.0))
        },
        drained_after_seconds=round(drained, 1),
        peak_mib=round(memory),
    )


def main() -> None:
    """Run the chosen modes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", nargs="*", choices=[[], *MODES], help="all of them by default")
    parser.add_argument("--events", type=int, default=60_000, help="failures per run")
    chosen = parser.parse_args()
    wanted = chosen.mode or MODES
    if "cost" in wanted:
        cost()
    if "pace" in wanted:
        pace(chosen.events)
    if "behind" in wanted:
        behind(chosen.events)


if __name__ == "__main__":
    main()
